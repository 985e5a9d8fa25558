"""The API keys that we answer and their versions: the one table that the server, ApiVersions and the docs
read.

Messages are imported by `Api.request` and `Api.response`, at their first use. Versions are those
that Apache Kafka 4.3 answers on a client listener.
"""

import importlib
from enum import IntEnum
from typing import Any, NamedTuple

from leafcuttr_sdk.trouble import import_late


class ApiKey(IntEnum):
    """Kafka's names of the API keys that we answer."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75


_NEVER_FLEXIBLE = 32767


class Api(NamedTuple):
    """One API: `min_version` to `max_version` are served, both included.

    `advertised_min_version` is what ApiVersions says. It is lower than `min_version` for Produce alone:
    librdkafka wants to see 0 there (KAFKA-18659), and a request of such a version still closes the
    connection. `module` is the name of the module in `wire.messages` and in `handlers`.
    """

    key: IntEnum
    name: str
    min_version: int
    max_version: int
    first_flexible_version: int
    module: str
    advertised_min_version: int

    @property
    def request(self) -> type[Any]:
        """The request's class; imports its module."""
        return self._class("Request")

    @property
    def response(self) -> type[Any]:
        """The response's class; imports its module."""
        return self._class("Response")

    def serves(self, version: int) -> bool:
        """Whether a request of this version is answered."""
        return self.min_version <= version <= self.max_version

    def request_header_version(self, version: int) -> int:
        """2 (with tagged fields) for flexible versions, else 1."""
        return 2 if version >= self.first_flexible_version else 1

    def response_header_version(self, version: int) -> int:
        """1 (with tagged fields) for flexible versions, else 0.

        Always 0 for ApiVersions: its client does not know yet what this broker speaks (KIP-511).
        """
        return 1 if version >= self.first_flexible_version and self.key != ApiKey.API_VERSIONS else 0

    def _class(self, suffix: str) -> type[Any]:
        name = f"leafcuttr.wire.messages.{self.module}"
        import_late(name)
        found: type[Any] = getattr(importlib.import_module(name), f"{self.name}{suffix}")
        return found


def _api(
    key: ApiKey,
    name: str,
    served: tuple[int, int],
    flexible: int = _NEVER_FLEXIBLE,
    advertised: int | None = None,
) -> Api:
    lowest = served[0] if advertised is None else advertised
    return Api(key, name, *served, flexible, key.name.lower(), lowest)


APIS: dict[int, Api] = {
    api.key: api
    for api in (
        _api(ApiKey.PRODUCE, "Produce", (3, 13), 9, advertised=0),
        _api(ApiKey.FETCH, "Fetch", (4, 18), 12),
        _api(ApiKey.LIST_OFFSETS, "ListOffsets", (1, 11), 6),
        _api(ApiKey.METADATA, "Metadata", (0, 13), 9),
        _api(ApiKey.OFFSET_COMMIT, "OffsetCommit", (2, 10), 8),
        _api(ApiKey.OFFSET_FETCH, "OffsetFetch", (1, 10), 6),
        _api(ApiKey.FIND_COORDINATOR, "FindCoordinator", (0, 6), 3),
        _api(ApiKey.JOIN_GROUP, "JoinGroup", (0, 9), 6),
        _api(ApiKey.HEARTBEAT, "Heartbeat", (0, 4), 4),
        _api(ApiKey.LEAVE_GROUP, "LeaveGroup", (0, 5), 4),
        _api(ApiKey.SYNC_GROUP, "SyncGroup", (0, 5), 4),
        _api(ApiKey.DESCRIBE_GROUPS, "DescribeGroups", (0, 6), 5),
        _api(ApiKey.LIST_GROUPS, "ListGroups", (0, 5), 3),
        _api(ApiKey.SASL_HANDSHAKE, "SaslHandshake", (0, 1)),
        _api(ApiKey.API_VERSIONS, "ApiVersions", (0, 4), 3),
        _api(ApiKey.CREATE_TOPICS, "CreateTopics", (2, 7), 5),
        _api(ApiKey.DELETE_TOPICS, "DeleteTopics", (1, 6), 4),
        _api(ApiKey.DELETE_RECORDS, "DeleteRecords", (0, 2), 2),
        _api(ApiKey.INIT_PRODUCER_ID, "InitProducerId", (0, 5), 2),
        _api(ApiKey.OFFSET_FOR_LEADER_EPOCH, "OffsetForLeaderEpoch", (2, 4), 4),
        _api(ApiKey.ADD_PARTITIONS_TO_TXN, "AddPartitionsToTxn", (0, 5), 3),
        _api(ApiKey.ADD_OFFSETS_TO_TXN, "AddOffsetsToTxn", (0, 4), 3),
        _api(ApiKey.END_TXN, "EndTxn", (0, 5), 3),
        _api(ApiKey.WRITE_TXN_MARKERS, "WriteTxnMarkers", (1, 2), 1),
        _api(ApiKey.TXN_OFFSET_COMMIT, "TxnOffsetCommit", (0, 5), 3),
        _api(ApiKey.DESCRIBE_ACLS, "DescribeAcls", (1, 3), 2),
        _api(ApiKey.CREATE_ACLS, "CreateAcls", (1, 3), 2),
        _api(ApiKey.DELETE_ACLS, "DeleteAcls", (1, 3), 2),
        _api(ApiKey.DESCRIBE_CONFIGS, "DescribeConfigs", (1, 4), 4),
        _api(ApiKey.ALTER_CONFIGS, "AlterConfigs", (0, 2), 2),
        _api(ApiKey.ALTER_REPLICA_LOG_DIRS, "AlterReplicaLogDirs", (1, 2), 2),
        _api(ApiKey.DESCRIBE_LOG_DIRS, "DescribeLogDirs", (1, 5), 2),
        _api(ApiKey.SASL_AUTHENTICATE, "SaslAuthenticate", (0, 2), 2),
        _api(ApiKey.CREATE_PARTITIONS, "CreatePartitions", (0, 3), 2),
        _api(ApiKey.CREATE_DELEGATION_TOKEN, "CreateDelegationToken", (1, 3), 2),
        _api(ApiKey.RENEW_DELEGATION_TOKEN, "RenewDelegationToken", (1, 2), 2),
        _api(ApiKey.EXPIRE_DELEGATION_TOKEN, "ExpireDelegationToken", (1, 2), 2),
        _api(ApiKey.DESCRIBE_DELEGATION_TOKEN, "DescribeDelegationToken", (1, 3), 2),
        _api(ApiKey.DELETE_GROUPS, "DeleteGroups", (0, 2), 2),
        _api(ApiKey.ELECT_LEADERS, "ElectLeaders", (0, 2), 2),
        _api(ApiKey.INCREMENTAL_ALTER_CONFIGS, "IncrementalAlterConfigs", (0, 1), 1),
        _api(ApiKey.ALTER_PARTITION_REASSIGNMENTS, "AlterPartitionReassignments", (0, 1), 0),
        _api(ApiKey.LIST_PARTITION_REASSIGNMENTS, "ListPartitionReassignments", (0, 0), 0),
        _api(ApiKey.OFFSET_DELETE, "OffsetDelete", (0, 0)),
        _api(ApiKey.DESCRIBE_CLIENT_QUOTAS, "DescribeClientQuotas", (0, 1), 1),
        _api(ApiKey.ALTER_CLIENT_QUOTAS, "AlterClientQuotas", (0, 1), 1),
        _api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "DescribeUserScramCredentials", (0, 0), 0),
        _api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "AlterUserScramCredentials", (0, 0), 0),
        _api(ApiKey.DESCRIBE_QUORUM, "DescribeQuorum", (0, 2), 0),
        _api(ApiKey.UPDATE_FEATURES, "UpdateFeatures", (0, 2), 0),
        _api(ApiKey.DESCRIBE_CLUSTER, "DescribeCluster", (0, 2), 0),
        _api(ApiKey.DESCRIBE_PRODUCERS, "DescribeProducers", (0, 0), 0),
        _api(ApiKey.UNREGISTER_BROKER, "UnregisterBroker", (0, 0), 0),
        _api(ApiKey.DESCRIBE_TRANSACTIONS, "DescribeTransactions", (0, 0), 0),
        _api(ApiKey.LIST_TRANSACTIONS, "ListTransactions", (0, 2), 0),
        _api(ApiKey.LIST_CONFIG_RESOURCES, "ListConfigResources", (0, 1), 0),
        _api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "DescribeTopicPartitions", (0, 0), 0),
    )
}
"""Every API that we answer, by key."""

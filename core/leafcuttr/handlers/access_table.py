"""What each API needs on which resource. The page of rights is made from this table, and tests walk it, beside a Kafka
too. The broker itself does not read it: see `access`.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from leafcuttr.handlers.access import (
    ALTER_CLUSTER,
    ALTER_CLUSTER_CONFIGS,
    ALTER_GROUP_CONFIGS,
    ALTER_TOPIC,
    ALTER_TOPIC_CONFIGS,
    CLUSTER_ACTION,
    CREATE_ON_CLUSTER,
    CREATE_TOKENS_OF_USER,
    CREATE_TOPIC,
    DELETE_GROUP,
    DELETE_ON_CLUSTER,
    DELETE_TOPIC,
    DESCRIBE_CLUSTER,
    DESCRIBE_CLUSTER_CONFIGS,
    DESCRIBE_GROUP,
    DESCRIBE_GROUP_CONFIGS,
    DESCRIBE_TOKEN,
    DESCRIBE_TOKENS_OF_USER,
    DESCRIBE_TOPIC,
    DESCRIBE_TOPIC_CONFIGS,
    DESCRIBE_TRANSACTION,
    IDEMPOTENT_WRITE,
    READ_GROUP,
    READ_TOPIC,
    WRITE_TOPIC,
    WRITE_TRANSACTION,
    Right,
)
from leafcuttr.wire.api import ApiKey


class Need(NamedTuple):
    """Any one of these rights suffices, for what the words say."""

    rights: tuple[Right, ...]
    words: str = ""


def _need(*rights: Right, words: str = "") -> Need:
    return Need(rights, words)


NEEDS: Final[Mapping[ApiKey, tuple[Need, ...]]] = {
    ApiKey.PRODUCE: (
        _need(WRITE_TRANSACTION, words="for transactional records"),
        _need(WRITE_TOPIC),
    ),
    ApiKey.FETCH: (_need(READ_TOPIC), _need(CLUSTER_ACTION, words="with a replica id")),
    ApiKey.LIST_OFFSETS: (_need(DESCRIBE_TOPIC),),
    ApiKey.METADATA: (
        _need(DESCRIBE_TOPIC, words="a list of all topics leaves out the others"),
        _need(CREATE_ON_CLUSTER, CREATE_TOPIC, words="to have a topic created"),
        _need(DESCRIBE_CLUSTER, words="for the authorized operations on the cluster"),
    ),
    ApiKey.OFFSET_COMMIT: (_need(READ_GROUP), _need(READ_TOPIC)),
    ApiKey.OFFSET_FETCH: (
        _need(DESCRIBE_GROUP),
        _need(DESCRIBE_TOPIC, words="a list of all offsets leaves out the others"),
    ),
    ApiKey.FIND_COORDINATOR: (
        _need(DESCRIBE_GROUP, words="for groups"),
        _need(DESCRIBE_TRANSACTION, words="for transactional ids"),
    ),
    ApiKey.JOIN_GROUP: (_need(READ_GROUP),),
    ApiKey.HEARTBEAT: (_need(READ_GROUP),),
    ApiKey.LEAVE_GROUP: (_need(READ_GROUP),),
    ApiKey.SYNC_GROUP: (_need(READ_GROUP),),
    ApiKey.DESCRIBE_GROUPS: (_need(DESCRIBE_GROUP),),
    ApiKey.LIST_GROUPS: (_need(DESCRIBE_CLUSTER, DESCRIBE_GROUP, words="leaves out the others"),),
    ApiKey.SASL_HANDSHAKE: (),
    ApiKey.API_VERSIONS: (),
    ApiKey.CREATE_TOPICS: (
        _need(CREATE_ON_CLUSTER, CREATE_TOPIC),
        _need(DESCRIBE_TOPIC_CONFIGS, words="for the settings of the new topic in the answer"),
    ),
    ApiKey.DELETE_TOPICS: (
        _need(DELETE_ON_CLUSTER, DELETE_TOPIC),
        _need(DELETE_ON_CLUSTER, DESCRIBE_TOPIC, words="for the name of a topic that is named by its id"),
    ),
    ApiKey.DELETE_RECORDS: (_need(DELETE_TOPIC),),
    ApiKey.INIT_PRODUCER_ID: (
        _need(WRITE_TRANSACTION, words="with a transactional id"),
        _need(IDEMPOTENT_WRITE, WRITE_TOPIC, words="without one; WRITE on some topic"),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (_need(CLUSTER_ACTION, DESCRIBE_TOPIC),),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        _need(WRITE_TRANSACTION, words="before version 4"),
        _need(WRITE_TOPIC, words="before version 4"),
        _need(CLUSTER_ACTION, words="from version 4 on"),
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: (_need(WRITE_TRANSACTION), _need(READ_GROUP)),
    ApiKey.END_TXN: (_need(WRITE_TRANSACTION),),
    ApiKey.WRITE_TXN_MARKERS: (_need(ALTER_CLUSTER, CLUSTER_ACTION),),
    ApiKey.TXN_OFFSET_COMMIT: (_need(WRITE_TRANSACTION), _need(READ_GROUP), _need(READ_TOPIC)),
    ApiKey.DESCRIBE_ACLS: (_need(DESCRIBE_CLUSTER),),
    ApiKey.CREATE_ACLS: (_need(ALTER_CLUSTER),),
    ApiKey.DELETE_ACLS: (_need(ALTER_CLUSTER),),
    ApiKey.DESCRIBE_CONFIGS: (
        _need(DESCRIBE_TOPIC_CONFIGS, words="for topics"),
        _need(DESCRIBE_CLUSTER_CONFIGS, words="for brokers, loggers and client metrics"),
        _need(DESCRIBE_GROUP_CONFIGS, words="for groups"),
    ),
    ApiKey.ALTER_CONFIGS: (
        _need(ALTER_TOPIC_CONFIGS, words="for topics"),
        _need(ALTER_CLUSTER_CONFIGS, words="for brokers and client metrics"),
        _need(ALTER_GROUP_CONFIGS, words="for groups"),
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (_need(ALTER_CLUSTER),),
    ApiKey.DESCRIBE_LOG_DIRS: (_need(DESCRIBE_CLUSTER),),
    ApiKey.SASL_AUTHENTICATE: (),
    ApiKey.CREATE_PARTITIONS: (_need(ALTER_TOPIC),),
    ApiKey.CREATE_DELEGATION_TOKEN: (_need(CREATE_TOKENS_OF_USER, words="for another owner"),),
    ApiKey.RENEW_DELEGATION_TOKEN: (),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (
        _need(DESCRIBE_TOKEN, DESCRIBE_TOKENS_OF_USER, words="for tokens of others, which are left out"),
    ),
    ApiKey.DELETE_GROUPS: (_need(DELETE_GROUP),),
    ApiKey.ELECT_LEADERS: (_need(ALTER_CLUSTER),),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (
        _need(ALTER_TOPIC_CONFIGS, words="for topics"),
        _need(ALTER_CLUSTER_CONFIGS, words="for brokers, loggers and client metrics"),
        _need(ALTER_GROUP_CONFIGS, words="for groups"),
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (_need(ALTER_CLUSTER),),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (_need(DESCRIBE_CLUSTER),),
    ApiKey.OFFSET_DELETE: (_need(DELETE_GROUP), _need(READ_TOPIC)),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (_need(DESCRIBE_CLUSTER_CONFIGS),),
    ApiKey.ALTER_CLIENT_QUOTAS: (_need(ALTER_CLUSTER_CONFIGS),),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (_need(DESCRIBE_CLUSTER),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (_need(ALTER_CLUSTER),),
    ApiKey.DESCRIBE_QUORUM: (_need(DESCRIBE_CLUSTER),),
    ApiKey.UPDATE_FEATURES: (_need(ALTER_CLUSTER),),
    ApiKey.DESCRIBE_CLUSTER: (_need(DESCRIBE_CLUSTER, words="for the authorized operations on the cluster"),),
    ApiKey.DESCRIBE_PRODUCERS: (_need(READ_TOPIC),),
    ApiKey.UNREGISTER_BROKER: (_need(ALTER_CLUSTER),),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        _need(DESCRIBE_TRANSACTION),
        _need(DESCRIBE_TOPIC, words="leaves out the others"),
    ),
    ApiKey.LIST_TRANSACTIONS: (_need(DESCRIBE_TRANSACTION, words="leaves out the others"),),
    ApiKey.LIST_CONFIG_RESOURCES: (_need(DESCRIBE_CLUSTER_CONFIGS),),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (
        _need(DESCRIBE_TOPIC, words="a list of all topics leaves out the others"),
    ),
}
"""Every API; one without needs is open to everybody, as far as ACLs go."""

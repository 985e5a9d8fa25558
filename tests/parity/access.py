"""A walk over the whole table of rights: every API, under every set of rights that may matter to it.

The tested client is `User:ANONYMOUS`, whose rights a super user sets between the requests: none, all, all but one, one
alone. Nothing that is requested needs more than one run to say the same again; what would be destroyed is made anew
each time, by the super user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

from leafcuttr.handlers.access import Right
from leafcuttr.handlers.access_table import NEEDS
from leafcuttr.state.security.acl import CLUSTER_NAME, AclOperation, AclPermission, AclResourceType
from leafcuttr.wire.api import APIS, ApiKey
from parity.batches import batch
from parity.codec import ZERO_UUID, Body
from parity.scenarios.commits import commit, wanted
from parity.scenarios.configs import BROKER, LOGGER, METRICS, TOPIC, altering, asking
from parity.scenarios.coordinator import TRANSACTIONAL
from parity.scenarios.fetch import fetch, part
from parity.scenarios.offsets import listing
from parity.scenarios.produce import produce
from parity.scenarios.transactions import ending
from parity.side import Answer, Connection, Side

ADMIN = "admin"
PASSWORD = "admin secret"
CLIENT = "User:ANONYMOUS"
STRANGER = "00000000-0000-4000-8000-00000000abcd"
NOBODY = 1 << 40  # a producer id
_PACKAGE = "org.apache.kafka.common.security.plain.PlainLoginModule"
# Kafka prints the whole request, as Java has it in memory.
_WORDS = re.compile(r"(?:Request .*|The request) needs (\w+) permission(?: on the cluster)?\.", re.DOTALL)
_EVERYTHING = {
    AclResourceType.TOPIC: "*",
    AclResourceType.GROUP: "*",
    AclResourceType.CLUSTER: CLUSTER_NAME,
    AclResourceType.TRANSACTIONAL_ID: "*",
    AclResourceType.DELEGATION_TOKEN: "*",
    AclResourceType.USER: "*",
}


def settings(port: object, admin: int, controller: object) -> list[str]:
    """Lines for the settings of both brokers: with an authorizer, and a listener for its super user."""
    entry = f'{_PACKAGE} required username="{ADMIN}" password="{PASSWORD}" user_{ADMIN}="{PASSWORD}";'
    return [
        f"listeners=PLAINTEXT://127.0.0.1:{port},ADMIN://127.0.0.1:{admin},CONTROLLER://127.0.0.1:{controller}",
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{port},ADMIN://127.0.0.1:{admin}",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,ADMIN:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name=ADMIN",
        "sasl.enabled.mechanisms=PLAIN",
        "sasl.mechanism.inter.broker.protocol=PLAIN",
        "sasl.mechanism.controller.protocol=PLAIN",
        f"listener.name.admin.plain.sasl.jaas.config={entry}",
        f"listener.name.controller.plain.sasl.jaas.config={entry}",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        f"super.users=User:{ADMIN}",
    ]


class Admin(Side):
    """The super user's view of a broker."""

    def connect(self) -> Connection:
        connection = super().connect()
        connection.post("sasl_handshake", 1, {"mechanism": "PLAIN"})
        assert not connection.take("sasl_handshake", 1)["error_code"]
        words = b"\0".join((b"", ADMIN.encode(), PASSWORD.encode()))
        connection.post("sasl_authenticate", 2, {"auth_bytes": words})
        assert not connection.take("sasl_authenticate", 2)["error_code"]
        return connection

    def set_rights(self, *acls: tuple[AclResourceType, str, AclOperation, AclPermission]) -> None:
        """The client has these, and no others, once the broker has noticed."""
        mine = {
            "resource_type_filter": 1,
            "resource_name_filter": None,
            "pattern_type_filter": 1,
            "principal_filter": CLIENT,
            "host_filter": None,
            "operation": 1,
            "permission_type": 1,
        }
        self.quiet("delete_acls", 3, {"filters": [mine]})
        made = [
            {
                "resource_type": int(kind),
                "resource_name": name,
                "resource_pattern_type": 3,
                "principal": CLIENT,
                "host": "*",
                "operation": int(operation),
                "permission_type": int(permission),
            }
            for kind, name, operation, permission in acls
        ]
        results = self.quiet("create_acls", 3, {"creations": made})["results"]
        assert not any(one["error_code"] for one in results), results

        def there(answer: Answer) -> bool:
            found = {
                (one["resource_type"], one["resource_name"], acl["operation"], acl["permission_type"])
                for one in answer["resources"]
                for acl in one["acls"]
            }
            return found == {(int(a), b, int(c), int(d)) for a, b, c, d in acls}

        self.until("describe_acls", 3, mine, there)


class Walk:
    """One side: what is there, and every request."""

    def __init__(self, side: Side, admin: Admin) -> None:
        self.side = side
        self.admin = admin
        self.topic = admin.create("topic", 2)
        self.gone = side.name("gone")
        self.group = admin.coordinator(side.name("group"))
        self.id = side.name("id")
        self._numbers = count()
        self._versions: dict[str, int] = {}
        admin.until("find_coordinator", 2, {"key": self.id, "key_type": 1}, lambda a: not a["error_code"])
        admin.quiet("offset_commit", 8, commit(admin, self.group, self.topic, (0, 1, "m")))
        admin.until(
            "init_producer_id",
            4,
            {"transactional_id": self.id, "transaction_timeout": 60_000},
            lambda answer: not answer["error_code"],
        )
        self._share()

    def _share(self) -> None:
        self.side.topic_ids.update(self.admin.topic_ids)
        self.side.labels.update(self.admin.labels)

    def fresh(self) -> str:
        """A topic that may go."""
        name = self.admin.create(f"fresh{next(self._numbers)}")
        self._share()
        return name

    def rights(self) -> Iterator[tuple[str, Right | None]]:
        """Every set of rights in turn: its name, and the right that makes the difference."""
        allow, deny = AclPermission.ALLOW, AclPermission.DENY
        every = [(kind, name, AclOperation.ALL, allow) for kind, name in _EVERYTHING.items()]
        self.admin.set_rights()
        yield "nothing", None
        self.admin.set_rights(*every)
        yield "everything", None
        for right in dict.fromkeys(
            right for needs in NEEDS.values() for need in needs for right in need.rights
        ):
            name = _EVERYTHING[right.resource_type]
            self.admin.set_rights(*every, (right.resource_type, name, right.operation, deny))
            yield f"all but {right}", right
            self.admin.set_rights((right.resource_type, name, right.operation, allow))
            yield f"only {right}", right

    def run(self, versions: Callable[[ApiKey], tuple[int, ...]]) -> None:
        for state, right in self.rights():
            for key, needs in NEEDS.items():
                if needs and (right is None or any(right in need.rights for need in needs)):
                    for version in versions(key):
                        self.ask(key, version, state)

    def ask(self, key: ApiKey, version: int, state: str) -> None:
        api = APIS[key].module
        bodies: Mapping[str, Body] = getattr(self, api)(version)
        for case, body in bodies.items():
            # By name, so that a name of one run is not in the other's answers.
            answer = self.side.ask(api, version, body, f"{state}: {case}")
            self._plain(answer)
            if case == "all" and "topics" in answer:
                # Kafka creates what was requested a moment after its answer.
                new = self.side.name("new")
                answer["topics"][:] = [
                    one for one in answer["topics"] if not (one.get("name") or "").startswith(new)
                ]

    def _plain(self, answer: Any) -> None:
        """What differs from run to run, and what others have left."""
        if isinstance(answer, list):
            answer[:] = [one for one in answer if not self._is_anothers(one)]
            for one in answer:
                self._plain(one)
        elif isinstance(answer, dict):
            for name, value in answer.items():
                if name == "producer_id" and 0 <= value < NOBODY:
                    answer[name] = "some"
                elif name == "topic_id" and value not in (*self.side.labels, ZERO_UUID, STRANGER):
                    answer[name] = "another"
                elif isinstance(value, str):
                    answer[name] = _WORDS.sub(r"needs \1", value)
                else:
                    self._plain(value)

    def _is_anothers(self, one: Any) -> bool:
        """A topic, group or id of a list that is not of this run."""
        if not isinstance(one, dict) or one.get("error_code"):
            return False
        names = ("name", "topic_name", "group_id", "transactional_id", "resource_name")
        name = next((one[each] for each in names if one.get(each)), None)
        listed = {"leader_id", "partitions", "group_state", "transaction_state", "resource_type"} & one.keys()
        return isinstance(name, str) and bool(listed) and "." not in name and name not in ("1",)

    # What is requested, by the modules of the APIs

    def produce(self, version: int) -> Mapping[str, Body]:
        transactional = batch(
            ["x"], sequence=0, producer_id=NOBODY, producer_epoch=0, attributes=TRANSACTIONAL
        )
        return {
            "to a topic": produce(self.side, self.topic, batch(["x"]), 1),
            "to none": produce(self.side, self.gone, batch(["x"])),
            "acks 7": produce(self.side, self.topic, batch(["x"]), acks=7),
            "in a transaction": produce(self.side, self.topic, transactional, transactional_id=self.id),
        }

    def fetch(self, version: int) -> Mapping[str, Body]:
        far = [part(0, 1 << 40)]
        bodies = {
            "from topics": fetch(self.side, {self.topic: far, self.gone: far}),
            "waiting": fetch(self.side, {self.topic: far}, min_bytes=1, max_wait=100),
        }
        if version < 15:
            bodies["from a follower"] = fetch(self.side, {self.topic: far}, replica_id=7)
        return bodies

    def list_offsets(self, version: int) -> Mapping[str, Body]:
        return {"of a topic": listing(self.topic, (0, -2), (9, -1)), "of none": listing(self.gone, (0, -1))}

    def metadata(self, version: int) -> Mapping[str, Body]:
        operations = {
            "include_topic_authorized_operations": True,
            "include_cluster_authorized_operations": True,
        }

        def named(*names: str, **more: Any) -> Body:
            topics = [{"topic_id": ZERO_UUID, "name": name} for name in names]
            return {"topics": topics, "allow_auto_topic_creation": False, **operations, **more}

        # Before version 4 what is missing is created.
        missing = (self.gone,) if version >= 4 else ()
        bodies = {
            "of topics": named(self.topic, *missing, "bad/name"),
            "all": {"topics": None if version else [], "allow_auto_topic_creation": False, **operations},
        }
        if version >= 4:
            new = self.side.name(f"new{next(self._numbers)}")
            bodies["created by asking"] = named(new, allow_auto_topic_creation=True)
        if version >= 12:
            ids = (self.side.topic_ids[self.topic], STRANGER)
            topics = [{"topic_id": one, "name": None} for one in ids]
            bodies["by id"] = {"topics": topics, "allow_auto_topic_creation": False, **operations}
        return bodies

    def offset_commit(self, version: int) -> Mapping[str, Body]:
        topics = [
            *commit(self.side, self.group, self.topic, (0, 1, "m"), (9, 1, ""))["topics"],
            *commit(self.side, self.group, self.gone, (0, 1, ""))["topics"],
        ]
        return {"of topics": commit(self.side, self.group, self.topic, topics=topics)}

    def offset_fetch(self, version: int) -> Mapping[str, Body]:
        bodies = {"of topics": wanted(self.side, self.group, {self.gone: [0], self.topic: [0, 1]})}
        if version >= 2:
            bodies["all"] = wanted(self.side, self.group, None)
        return bodies

    def find_coordinator(self, version: int) -> Mapping[str, Body]:
        def of(key: str, kind: int) -> Body:
            return {"key": key, "key_type": kind, "coordinator_keys": [key]}

        bodies = {"of a group": of(self.group, 0)}
        if version:
            bodies["of an id"] = of(self.id, 1)
        return bodies

    def join_group(self, version: int) -> Mapping[str, Body]:
        return {
            "too short a session": {
                "group_id": self.group,
                "session_timeout": 1,
                "rebalance_timeout": 1,
                "member_id": "",
                "group_instance_id": None,
                "protocol_type": "consumer",
                "protocols": [{"name": "range", "metadata": b""}],
                "reason": None,
            }
        }

    def heartbeat(self, version: int) -> Mapping[str, Body]:
        body = {"group_id": self.group, "generation_id": 1, "member_id": "m", "group_instance_id": None}
        return {"of a stranger": body, "without a group": {**body, "group_id": ""}}

    def leave_group(self, version: int) -> Mapping[str, Body]:
        member = {"member_id": "m", "group_instance_id": None, "reason": None}
        return {"of a stranger": {"group_id": self.group, "member_id": "m", "members": [member]}}

    def sync_group(self, version: int) -> Mapping[str, Body]:
        body = {
            "group_id": self.group,
            "generation_id": 1,
            "member_id": "m",
            "group_instance_id": None,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [],
        }
        return {"of a stranger": body, "without a protocol": {**body, "protocol_type": None}}

    def describe_groups(self, version: int) -> Mapping[str, Body]:
        return {"two": {"groups": [self.group, self.gone], "include_authorized_operations": True}}

    def list_groups(self, version: int) -> Mapping[str, Body]:
        return {"all": {"states_filter": [], "types_filter": []}}

    def create_topics(self, version: int) -> Mapping[str, Body]:
        topics = [
            {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
            for name in (self.gone, self.topic)
        ]
        return {"validate only": {"topics": topics, "timeout": 10_000, "validate_only": True}}

    def delete_topics(self, version: int) -> Mapping[str, Body]:
        def named(*names: str) -> Body:
            topics = [{"name": name, "topic_id": ZERO_UUID} for name in names]
            return {"topics": topics, "topic_names": names, "timeout": 10_000}

        bodies = {"by name": named(self.fresh()), "of none": named(self.gone)}
        if version >= 6:
            ids = (self.side.topic_ids[self.fresh()], STRANGER)
            topics = [{"name": None, "topic_id": one} for one in ids]
            bodies["by id"] = {"topics": topics, "timeout": 10_000}
        return bodies

    def delete_records(self, version: int) -> Mapping[str, Body]:
        parts = [{"partition_index": 0, "offset": 0}]
        topics = [{"name": name, "partitions": parts} for name in (self.topic, self.gone)]
        return {"of topics": {"topics": topics, "timeout": 5_000}}

    def init_producer_id(self, version: int) -> Mapping[str, Body]:
        return {
            "idempotent": {"transactional_id": None, "transaction_timeout": 60_000},
            "transactional": {"transactional_id": self.id, "transaction_timeout": 0},
        }

    def offset_for_leader_epoch(self, version: int) -> Mapping[str, Body]:
        parts = [{"partition": 0, "leader_epoch": 0, "current_leader_epoch": -1}]
        topics = [{"topic": name, "partitions": parts} for name in (self.gone, self.topic)]
        return {"of topics": {"replica_id": -2, "topics": topics}}

    def _of_nobody(self, **more: Any) -> dict[str, Any]:
        return {"transactional_id": self.id, "producer_id": NOBODY, "producer_epoch": 0, **more}

    def add_partitions_to_txn(self, version: int) -> Mapping[str, Body]:
        def of(*names: str) -> Body:
            named = [{"name": name, "partitions": [0]} for name in names]
            if version >= 4:
                return {"transactions": [self._of_nobody(verify_only=False, topics=named)]}
            who = {f"v3_and_below_{key}": value for key, value in self._of_nobody().items()}
            return {**who, "v3_and_below_topics": named}

        return {"a topic": of(self.topic), "a topic and none": of(self.topic, self.gone)}

    def add_offsets_to_txn(self, version: int) -> Mapping[str, Body]:
        return {"of a group": self._of_nobody(group_id=self.group)}

    def end_txn(self, version: int) -> Mapping[str, Body]:
        return {"commit": self._of_nobody(committed=True)}

    def write_txn_markers(self, version: int) -> Mapping[str, Body]:
        return {"to no partition": ending(self.topic, NOBODY, commit=False, partitions=(8, 9))}

    def txn_offset_commit(self, version: int) -> Mapping[str, Body]:
        part_ = {"partition_index": 9, "committed_offset": 1, "committed_metadata": ""}
        topics = [
            {"name": name, "partitions": [{**part_, "committed_leader_epoch": -1}]}
            for name in (self.topic, self.gone)
        ]
        return {"of topics": self._of_nobody(group_id=self.group, topics=topics)}

    def describe_acls(self, version: int) -> Mapping[str, Body]:
        return {"of no topic": {**self._acl_filter(), "principal_filter": "User:nobody"}}

    def _acl_filter(self) -> dict[str, Any]:
        return {
            "resource_type_filter": 2,
            "resource_name_filter": self.gone,
            "pattern_type_filter": 1,
            "principal_filter": None,
            "host_filter": None,
            "operation": 1,
            "permission_type": 1,
        }

    def create_acls(self, version: int) -> Mapping[str, Body]:
        one = {
            "resource_type": 2,
            "resource_name": self.gone,
            "resource_pattern_type": 3,
            "principal": "User:nobody",
            "host": "*",
            "operation": 3,
            "permission_type": 3,
        }
        wrong: list[dict[str, Any]] = [{"resource_type": 4}, {"resource_name": ""}, {"principal": "nobody"}]
        impossible: list[dict[str, Any]] = [
            {"resource_type": 1},
            {"resource_pattern_type": 1},
            {"resource_pattern_type": 2},
            {"operation": 1},
            {"permission_type": 1},
        ]
        return {
            name: {"creations": [{**one, **change} for change in changes]}
            for name, changes in (("wrong ones", wrong), ("impossible ones", impossible))
        }

    def delete_acls(self, version: int) -> Mapping[str, Body]:
        return {"of no topic": {"filters": [self._acl_filter()]}}

    def describe_configs(self, version: int) -> Mapping[str, Body]:
        bodies = {
            "of a topic": asking(TOPIC, self.topic, "retention.ms"),
            "of none": asking(TOPIC, self.gone, "retention.ms"),
            "of a broker": asking(BROKER, "1", "log.retention.hours"),
            "of loggers": asking(LOGGER, "1", "no.such"),
            "of client metrics": asking(METRICS, "", "match"),
            "of a group": asking(32, "", "no.such"),
        }
        every = [one for body in bodies.values() for one in body["resources"]]
        return {**bodies, "of all of them": {**bodies["of a topic"], "resources": every}}

    def alter_configs(self, version: int) -> Mapping[str, Body]:
        one, dry = ("retention.ms", "600000"), {"validate_only": True}
        return {
            "of a topic": altering(TOPIC, self.topic, one, **dry),
            "of none": altering(TOPIC, self.gone, one, **dry),
            "of a broker": altering(BROKER, "1", ("log.retention.ms", "600000"), **dry),
            "of client metrics": altering(METRICS, "", **dry),
            "of a group": altering(32, "", **dry),
            "of a kind that there is not": altering(3, "x", **dry),
        }

    def incremental_alter_configs(self, version: int) -> Mapping[str, Body]:
        bodies = dict(self.alter_configs(version))
        bodies["of loggers"] = altering(LOGGER, "1", ("root", "INFO"), validate_only=True)
        for body in bodies.values():
            for resource in body["resources"]:
                for config in resource["configs"]:
                    config["config_operation"] = 0
        return bodies

    def alter_replica_log_dirs(self, version: int) -> Mapping[str, Body]:
        topics = [{"name": name, "partitions": [0, 1]} for name in (self.topic, self.gone)]
        return {"elsewhere": {"dirs": [{"path": "/nowhere", "topics": topics}]}}

    def describe_log_dirs(self, version: int) -> Mapping[str, Body]:
        return {"of none": {"topics": [{"topic": self.gone, "partitions": [0]}]}}

    def create_partitions(self, version: int) -> Mapping[str, Body]:
        topics = [{"name": name, "count": 3, "assignments": None} for name in (self.topic, self.gone)]
        return {"validate only": {"topics": topics, "timeout": 10_000, "validate_only": True}}

    def create_delegation_token(self, version: int) -> Mapping[str, Body]:
        """Of a client that has not logged in none are taken."""
        owner = {"owner_principal_type": "User", "owner_principal_name": "carol"}
        return {"of another": {"renewers": [], "max_lifetime": -1, **owner}}

    def describe_delegation_token(self, version: int) -> Mapping[str, Body]:
        return {"all": {"owners": None}}

    def delete_groups(self, version: int) -> Mapping[str, Body]:
        return {"none": {"groups_names": [self.gone, ""]}}

    def elect_leaders(self, version: int) -> Mapping[str, Body]:
        topics = [{"topic": self.topic, "partitions": [0, 9]}]
        body = {"election_type": 0, "topic_partitions": topics, "timeout": 5_000}
        return {"one": body, "all": {**body, "topic_partitions": []}}

    def alter_partition_reassignments(self, version: int) -> Mapping[str, Body]:
        parts = [{"partition_index": 0, "replicas": [1]}, {"partition_index": 9, "replicas": None}]
        return {"here": {"timeout": 5_000, "topics": [{"name": self.topic, "partitions": parts}]}}

    def list_partition_reassignments(self, version: int) -> Mapping[str, Body]:
        named = [{"name": self.topic, "partition_indexes": [0]}]
        return {"of a topic": {"timeout": 5_000, "topics": named}, "all": {"timeout": 5_000, "topics": None}}

    def offset_delete(self, version: int) -> Mapping[str, Body]:
        parts = [{"partition_index": index} for index in (1, 9)]
        topics = [{"name": name, "partitions": parts} for name in (self.topic, self.gone)]
        return {"of topics": {"group_id": self.group, "topics": topics}}

    def describe_client_quotas(self, version: int) -> Mapping[str, Body]:
        part_ = {"entity_type": "user", "match_type": 0, "match": "nobody"}
        return {"of nobody": {"components": [part_], "strict": True}}

    def alter_client_quotas(self, version: int) -> Mapping[str, Body]:
        entity = [{"entity_type": "user", "entity_name": "nobody"}]
        ops = [{"key": "producer_byte_rate", "value": 1.0, "remove": False}]
        return {"validate only": {"entries": [{"entity": entity, "ops": ops}], "validate_only": True}}

    def describe_user_scram_credentials(self, version: int) -> Mapping[str, Body]:
        return {"of nobody": {"users": [{"name": "nobody"}]}}

    def alter_user_scram_credentials(self, version: int) -> Mapping[str, Body]:
        gone = [{"name": "nobody", "mechanism": 1}]
        return {"of nobody": {"deletions": gone, "upsertions": []}}

    def describe_quorum(self, version: int) -> Mapping[str, Body]:
        parts = [{"partition_index": 0}]
        return {"of a topic": {"topics": [{"topic_name": self.topic, "partitions": parts}]}}

    def update_features(self, version: int) -> Mapping[str, Body]:
        return {"none": {"timeout": 5_000, "feature_updates": [], "validate_only": True}}

    def describe_cluster(self, version: int) -> Mapping[str, Body]:
        return {"operations": {"include_cluster_authorized_operations": True, "endpoint_type": 1}}

    def describe_producers(self, version: int) -> Mapping[str, Body]:
        topics = [{"name": name, "partition_indexes": [0, 9]} for name in (self.gone, self.topic, "bad/name")]
        return {"of topics": {"topics": topics}}

    def unregister_broker(self, version: int) -> Mapping[str, Body]:
        return {"a stranger": {"broker_id": 77}}

    def describe_transactions(self, version: int) -> Mapping[str, Body]:
        return {"two": {"transactional_ids": [self.id, self.gone]}}

    def list_transactions(self, version: int) -> Mapping[str, Body]:
        return {"all": {"state_filters": [], "producer_id_filters": []}}

    def list_config_resources(self, version: int) -> Mapping[str, Body]:
        return {"brokers": {"resource_types": [BROKER]}}

    def describe_topic_partitions(self, version: int) -> Mapping[str, Body]:
        named = [{"name": name} for name in (self.topic, self.gone)]
        body = {"response_partition_limit": 2000, "cursor": None}
        return {"of topics": {**body, "topics": named}, "all": {**body, "topics": []}}

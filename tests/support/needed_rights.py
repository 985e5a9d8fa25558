"""The rights that programs of Kafka's world need, no more, and what they say where one is missing: the table from which
tests give them, and from which docs/how-to/acls.md is made.

    rights = Rights(broker)
    rights.give(STREAMS, "app-7")
    rights.take(STREAMS[0], "app-7")

Tests run each program with all of its rights but one, and see what it says; then that one is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.secured_broker import NAME, PRINCIPALS, SecuredBroker, secured_broker
from support.waiting import until

if TYPE_CHECKING:
    from confluent_kafka.admin import AclBinding, AclBindingFilter

MECHANISM = "SCRAM-SHA-256"
SECONDS = 180.0


@dataclass(frozen=True)
class Need:
    """One ACL. `name` is that of a test, with `{app}` for what each test has of its own; `on` says on the page what it
    is. `says` is a regular expression of what the program says without it, and `without` what becomes of it then."""

    operation: str
    resource: str
    on: str
    name: str
    says: str
    without: str
    prefixed: bool = False

    def __str__(self) -> str:
        return f"{self.operation} {self.resource} {self.name}"


def table(needs: Sequence[Need]) -> str:
    """As on the page."""
    rows = [f"| `{one.operation}` | {one.resource} | {one.on} | {one.without} |" for one in needs]
    return "\n".join(("| Right | Of | Which | Without it |", "|---|---|---|---|", *rows))


class Rights:
    """What ACLs allow the user of the broker's tests."""

    def __init__(self, broker: SecuredBroker) -> None:
        from confluent_kafka.admin import AdminClient

        self._admin = AdminClient(broker.administrator)
        self._settings, self._log = broker.administrator, broker.log

    def give(self, needs: Sequence[Need], app: str) -> None:
        from confluent_kafka.admin import AclBinding

        for future in self._admin.create_acls([_acl(AclBinding, one, app) for one in needs]).values():
            future.result(60)

    def create(self, topics: Sequence[str], partitions: int = 1) -> None:
        """Root makes these topics."""
        from confluent_kafka.admin import NewTopic

        made = self._admin.create_topics([NewTopic(each, partitions, 1) for each in topics])
        for future in made.values():
            future.result(60)

    def read(self, topic: str) -> list[str]:
        """The values of all committed records of a topic of one partition, as root reads them."""
        from confluent_kafka import Consumer, KafkaError, TopicPartition

        more = {"group.id": "none", "isolation.level": "read_committed", "enable.partition.eof": True}
        reader = Consumer({**self._settings, **more})
        reader.assign([TopicPartition(topic, 0, 0)])
        found: list[str] = []
        while True:
            message: Any = reader.poll(60)
            assert message is not None
            if message.error() is None:
                found.append((message.value() or b"").decode())
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF
                reader.close()
                return found

    def send(self, topic: str, values: Sequence[str]) -> None:
        """Root writes these to a topic of one partition."""
        from confluent_kafka import Producer

        producer = Producer(self._settings)
        for value in values:
            producer.produce(topic, value)
        assert producer.flush(60) == 0

    def wait_for_offset(self, group: str, topic: str, offset: int) -> None:
        """Until a group has committed it, of a topic of one partition."""
        from confluent_kafka import Consumer, TopicPartition

        reader = Consumer({**self._settings, "group.id": group})

        def committed() -> bool:
            return bool(reader.committed([TopicPartition(topic, 0)], timeout=60)[0].offset == offset)

        until(committed, f"offset {offset} of {group}", seconds=SECONDS)
        reader.close()

    def take(self, need: Need, app: str) -> None:
        from confluent_kafka.admin import AclBindingFilter

        for future in self._admin.delete_acls([_acl(AclBindingFilter, need, app)]).values():
            assert len(future.result(60)) == 1

    def wait_for(self, missing: Need, app: str, said: Callable[[], str]) -> None:
        """Until the program has said that it lacks this, or the broker, where the program does not."""
        line = re.compile(missing.says.format(app=app))
        until(
            lambda: (
                line.search(said()) or ("resource" in missing.says and line.search(self._log.read_text()))
            ),
            f"the line {line.pattern}",
            seconds=SECONDS,
        )


def seen(need: Need) -> Need:
    """What this one implies, to see its resource."""
    return replace(need, operation="describe")


def _acl(made: type[AclBinding | AclBindingFilter], need: Need, app: str) -> Any:
    from confluent_kafka.admin import AclOperation, AclPermissionType, ResourcePatternType, ResourceType

    return made(
        ResourceType[need.resource.upper().replace(" ", "_")],
        need.name.format(app=app),
        ResourcePatternType.PREFIXED if need.prefixed else ResourcePatternType.LITERAL,
        f"User:{NAME}",
        "*",
        AclOperation[need.operation.upper().replace("-", "_")],
        AclPermissionType.ALLOW,
    )


@contextmanager
def authorized_broker(folder: Path) -> Iterator[SecuredBroker]:
    """One whose user may do nothing yet; its topics are made by root, and by who may create them."""
    with secured_broker(
        folder,
        offsets_topic_num_partitions="1",
        group_initial_rebalance_delay_ms="0",
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:root",
        listener_name_mtls_ssl_principal_mapping_rules=PRINCIPALS,
    ) as broker:
        yield broker


def client(broker: SecuredBroker) -> dict[str, str]:
    """The properties with which the user logs in, by Java's names."""
    return broker.client("SASL_SSL", MECHANISM)


def denied(operation: str, resource: str) -> str:
    """What the broker's log says where the program says nothing."""
    return f'"operation": "{operation}", "resource": "{resource}"'


_TOPIC = r"TopicAuthorizationException: Not authorized to access topics: \[{}"
_GROUP = r"GroupAuthorizationException: Not authorized to access group: {}"
_TRANSACTIONAL = "TransactionalIdAuthorizationException"

_END, _INTERNAL = "its threads end", "the same topics"
STREAMS = (
    Need("read", "topic", "what it reads", "in-{app}", _TOPIC.format("in-{app}"), _END),
    Need("write", "topic", "what it writes", "out-{app}", _TOPIC.format("out-{app}"), _END),
    Need("read", "group", "`application.id`", "{app}", _GROUP.format("{app}"), _END),
    Need(
        operation="create",
        resource="topic",
        on="internal ones: prefixed, `<application.id>-`",
        name="{app}-",
        says="Could not create topic {app}-",
        without=_END,
        prefixed=True,
    ),
    Need("read", "topic", _INTERNAL, "{app}-", _TOPIC.format("{app}-"), _END, prefixed=True),
    Need("write", "topic", _INTERNAL, "{app}-", _TOPIC.format("{app}-"), _END, prefixed=True),
    Need(
        operation="delete",
        resource="topic",
        on=_INTERNAL,
        name="{app}-",
        says=denied("DELETE", "TOPIC:{app}-counts-repartition"),
        without="it goes on and says nothing; what it is done with is not deleted",
        prefixed=True,
    ),
    Need(
        operation="write",
        resource="transactional id",
        on="with `exactly_once_v2`: prefixed, `<application.id>-`",
        name="{app}-",
        says=_TRANSACTIONAL,
        without=_END,
        prefixed=True,
    ),
)

_STOPS, _FAILED = "an error in the worker's log or its REST answer", "the task fails"


def _store(kind: str, operation: str) -> Need:
    topic = f"{{app}}-{kind}"
    on = f"`{kind if kind == 'status' else kind.removesuffix('s')}.storage.topic`"
    if (kind, operation) == ("configs", "write"):
        says = denied("WRITE", f"TOPIC:{topic}")
        return Need(operation, "topic", on, topic, says, "connectors cannot be created: the request fails")
    return Need(operation, "topic", on, topic, _TOPIC.format(topic), _STOPS)


CONNECT = (
    Need("read", "group", "`group.id` of the workers", "{app}", _GROUP.format("{app}"), _STOPS),
    *(
        _store(kind, operation)
        for kind in ("configs", "offsets", "status")
        for operation in ("create", "read", "write")
    ),
    Need(
        operation="write",
        resource="transactional id",
        on="`connect-cluster-<group.id>`, with `exactly.once.source.support`",
        name="connect-cluster-{app}",
        says=_TRANSACTIONAL,
        without=_STOPS,
    ),
)
CONNECTORS = (
    Need("write", "topic", "what a source writes", "topic-{app}", _TOPIC.format("topic-{app}"), _FAILED),
    Need(
        operation="write",
        resource="transactional id",
        on="of an exactly-once source: prefixed, `<group.id>-<connector>-`",
        name="{app}-source-",
        says=_TRANSACTIONAL,
        without=_FAILED,
        prefixed=True,
    ),
    Need("read", "topic", "what a sink reads", "topic-{app}", _TOPIC.format("topic-{app}"), _FAILED),
    Need(
        operation="read",
        resource="group",
        on="`connect-<connector>` of a sink",
        name="connect-sink-{app}",
        says=_GROUP.format("connect-sink-{app}"),
        without=_FAILED,
    ),
)
STANDALONE = tuple(each for each in CONNECTORS if each.resource != "transactional id")
"""Of a standalone worker, which has no topics and no group of its own, and no sources that are exactly once."""
_NO_SETTINGS = "it goes on; settings are not copied"
_NO_GROUPS = "it goes on without the offsets of groups"
_OWN, _NOTHING = "its own: prefixed, `mm2-`", "nothing is copied"


def _own(operation: str, kind: str, without: str = _NOTHING) -> Need:
    says = denied(operation.upper(), f"TOPIC:mm2-{kind}")
    return Need(operation, "topic", _OWN, "mm2-", says, without, prefixed=True)


def _copied(operation: str, without: str = _NOTHING) -> Need:
    says = denied(operation.upper().replace("-", "_"), "TOPIC:orders")
    return Need(operation, "topic", "what it copies", "orders", says, without)


def _checkpoints(operation: str, without: str) -> Need:
    topic = "old.checkpoints.internal"
    says = denied(operation.upper(), f"TOPIC:{topic}")
    return Need(operation, "topic", "`<source>.checkpoints.internal`", topic, says, without)


MIRROR_SOURCE = (
    _copied("read"),
    _copied("describe-configs", _NO_SETTINGS),
    _own("create", "offset-syncs.new.internal", _NO_GROUPS),
    _own("read", "offset-syncs.new.internal", _NO_GROUPS),
    # The one topic that it writes there: its producer may not even begin.
    replace(
        _own("write", "offset-syncs.new.internal", _NO_GROUPS),
        says=denied("IDEMPOTENT_WRITE", "CLUSTER:kafka-cluster"),
    ),
    Need(
        operation="describe",
        resource="group",
        on="those whose offsets are synced",
        name="readers",
        says="",
        without="it goes on without the group, and says nothing",
    ),
)
MIRROR_TARGET = (
    Need(
        operation="read",
        resource="group",
        on="`<source>-mm2`",
        name="old-mm2",
        says=denied("READ", "GROUP:old-mm2"),
        without=_NOTHING,
    ),
    *(_own(operation, "(configs|offsets|status).old.internal") for operation in ("create", "read", "write")),
    *(_copied(operation) for operation in ("create", "write")),
    _copied("alter", "it goes on; partitions that are new are not copied"),
    _copied("alter-configs", _NO_SETTINGS),
    _copied("read", _NO_GROUPS),
    _checkpoints("create", _NO_GROUPS),
    _checkpoints("write", _NO_GROUPS),
    _checkpoints("read", "it goes on; it translates offsets of groups anew after it was restarted"),
    Need(
        operation="read",
        resource="group",
        on="those whose offsets are synced",
        name="readers",
        says=denied("READ", "GROUP:readers"),
        without="it goes on without the group",
    ),
)
_FAILS = "the query fails"
SPARK = (
    Need(
        operation="read",
        resource="topic",
        on='what `format("leafcuttr")` reads',
        name="in-{app}",
        says="in-{app}: the client may not [A-Z]+ topic in-{app}",
        without=_FAILS,
    ),
    Need(
        operation="write",
        resource="topic",
        on="what `TopicSink` writes",
        name="out-{app}",
        says="out-{app}(-0)?: the client may not [A-Z]+ topic out-{app}",
        without=_FAILS,
    ),
    Need(
        operation="read",
        resource="topic",
        on="exactly once: the same topics",
        name="out-{app}",
        says="committing out-{app}-0: the client may not READ topic out-{app}",
        without=_FAILS,
    ),
    Need(
        operation="write",
        resource="transactional id",
        on="exactly once: `kafka.transactional.id`",
        name="{app}",
        says="the client may not WRITE transactional id {app}",
        without=_FAILS,
    ),
    Need(
        operation="read",
        resource="group",
        on="exactly once: the group with the name of the transactional id",
        name="{app}",
        says="the client may not DESCRIBE group {app}",
        without=_FAILS,
    ),
    Need(
        operation="read",
        resource="group",
        on="`kafka.group.id` of `GroupOffsets`",
        name="lag-{app}",
        says="are not committed to group lag-{app}: the client may not READ group lag-{app}",
        without="the query goes on; the log has a line, and lag is not seen",
    ),
)
_PIPELINES = {"in-{app}": "{app}", "out-{app}": "{app}-large", "{app}": "{app}-sinks", "lag-{app}": "{app}"}
"""What a pipeline's source, target, transactional id and group are named, by what these are above."""


def _of_pipeline(need: Need, names: Mapping[str, str] = _PIPELINES) -> Need:
    says = re.sub("(in-|out-|lag-)?{app}", lambda found: names[found.group()], need.says)
    return replace(need, name=names[need.name], says=says)


PIPELINE = (
    *map(_of_pipeline, SPARK),
    *(_of_pipeline(one, {"out-{app}": "{app}-dead"}) for one in SPARK if one.name == "out-{app}"),
)
"""Of `leafcuttr spark run`: with dead letters, exactly once."""
CONNECTOR = (
    Need(
        operation="read",
        resource="topic",
        on='what `format("kafka")` reads',
        name="in-{app}",
        says="TopicAuthorizationException",
        without=_FAILS,
    ),
    Need("write", "topic", "what it writes", "out-{app}", _TOPIC.format("out-{app}"), _FAILS),
)
"""Spark's own."""

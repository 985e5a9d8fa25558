"""`Security.acting_for` and `allowed`: what a client of a plugin may do, beside the rules of Kafka's handlers."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import trio

from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.state.broker import Broker
from leafcuttr.state.security import AUDIT_LOGGER
from leafcuttr.state.security.acl import Acl, AclOperation, AclPermission, PatternType
from leafcuttr.state.security.acl import AclResourceType as Kind
from leafcuttr_sdk import Broker as View
from leafcuttr_sdk import CommittedOffset, NewBatch, Plugin, Record, TopicPartition
from leafcuttr_sdk.batches import BatchBuilder
from leafcuttr_sdk.errors import (
    AuthorizationFailed,
    ClusterAuthorizationFailed,
    ErrorCode,
    GroupAuthorizationFailed,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from leafcuttr_sdk.principals import ANONYMOUS, Principal
from leafcuttr_sdk.security import Operation, ResourceType

PLUGIN = Plugin("sample", 1, "one for tests")
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ALICE = Principal("User", "alice")
T0 = TopicPartition("t", 0)
Open = Callable[..., Broker]


async def grant(core: Broker, operation: str, kind: str = "TOPIC", name: str = "t", **more: Any) -> None:
    assert core.authorizer is not None and core.authorizer.acls is not None
    denies = more.pop("denies", False)
    acl = Acl(
        Kind[kind],
        name,
        PatternType[more.pop("pattern", "LITERAL")],
        str(more.pop("principal", ALICE)),
        more.pop("host", "*"),
        AclOperation[operation],
        AclPermission.DENY if denies else AclPermission.ALLOW,
    )
    await core.authorizer.acls.create([acl])


async def revoke_all(core: Broker) -> None:
    from leafcuttr.state.security.acl import AclFilter

    assert core.authorizer is not None and core.authorizer.acls is not None
    await core.authorizer.acls.delete([AclFilter()])


@pytest.fixture
def secured(open_core: Open) -> Broker:
    return open_core(authorizer_class_name=STANDARD, num_partitions="1")


@pytest.fixture
async def view(secured: Broker) -> View:
    view = make_broker_view(secured, PLUGIN)
    await view.topics.create("t")
    await view.produce("t", b"v")
    return view


@pytest.fixture
def lines() -> Iterator[list[dict[str, Any]]]:
    found: list[dict[str, Any]] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(json.loads(record.getMessage()))

    handler, logger = Kept(), logging.getLogger(AUDIT_LOGGER)
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)


def batch() -> bytes:
    builder = BatchBuilder(10_000)
    builder.extend_records([(b"v", None, (), 1)])
    return bytes(builder.finish())


async def send_by_producer(acting: View) -> None:
    async with acting.producer() as producer:
        await producer.send("t", Record(b"v"))


async def append(acting: View) -> None:
    (answer,) = await acting.append([NewBatch(T0, batch())])
    if isinstance(answer, Exception):
        raise answer


async def poll(acting: View) -> None:
    async with acting.consumer("g", ["t"], auto_offset_reset="earliest") as consumer:
        await consumer.poll(wait_s=60)


async def transact(acting: View) -> None:
    async with acting.transaction("x") as producer, producer.begin() as transaction:
        await transaction.produce_batch("t", [Record(b"v")])


async def commit_in_transaction(acting: View) -> None:
    async with acting.transaction("x") as producer, producer.begin() as transaction:
        await transaction.commit_offsets("g", {T0: CommittedOffset(0)})


async def plain(call: Callable[[], Any]) -> None:
    call()


Call = Callable[[View], Awaitable[object]]
READ, WRITE, DESCRIBE = ("READ", "TOPIC", "t"), ("WRITE", "TOPIC", "t"), ("DESCRIBE", "TOPIC", "t")
GROUP, CLUSTER = ("READ", "GROUP", "g"), ("CREATE", "CLUSTER", "kafka-cluster")
CALLS: dict[str, tuple[Call, tuple[tuple[str, str, str], ...]]] = {
    "produce": (lambda acting: acting.produce("t", b"v"), (WRITE,)),
    "produce_batch": (lambda acting: acting.produce_batch("t", [Record(b"v")]), (WRITE,)),
    "producer": (send_by_producer, (WRITE,)),
    "append": (append, (WRITE,)),
    "produce to a new topic": (
        lambda acting: acting.produce("new", b"v"),
        (("WRITE", "TOPIC", "new"), ("CREATE", "TOPIC", "new")),
    ),
    "fetch": (lambda acting: acting.fetch({T0: 0}), (READ,)),
    "read_batches": (lambda acting: acting.read_batches(T0, 0), (READ,)),
    "wait_for_records": (lambda acting: acting.wait_for_records({T0: 0}), (READ,)),
    "offsets": (lambda acting: acting.offsets({T0: -1}), (DESCRIBE,)),
    "consumer": (poll, (GROUP, READ)),
    "transaction": (transact, (("WRITE", "TRANSACTIONAL_ID", "x"), WRITE)),
    "offsets in a transaction": (
        commit_in_transaction,
        (("WRITE", "TRANSACTIONAL_ID", "x"), GROUP, READ),
    ),
    "topics.get": (lambda acting: plain(lambda: acting.topics.get("t")), (DESCRIBE,)),
    "topics.partition_count": (lambda acting: plain(lambda: acting.topics.partition_count("t")), (DESCRIBE,)),
    "topics.create": (lambda acting: acting.topics.create("new"), (("CREATE", "TOPIC", "new"),)),
    "topics.create by the cluster": (lambda acting: acting.topics.create("new"), (CLUSTER,)),
    "topics.ensure": (lambda acting: acting.topics.ensure("t"), (DESCRIBE,)),
    "topics.ensure a new one": (
        lambda acting: acting.topics.ensure("new"),
        (("DESCRIBE", "TOPIC", "new"), ("CREATE", "TOPIC", "new")),
    ),
    "topics.alter": (
        lambda acting: acting.topics.alter("t", {"retention.ms": "5"}),
        (("ALTER_CONFIGS", "TOPIC", "t"),),
    ),
    "topics.add_partitions": (
        lambda acting: acting.topics.add_partitions("t", 2),
        (("ALTER", "TOPIC", "t"),),
    ),
    "topics.delete": (lambda acting: acting.topics.delete("t"), (("DELETE", "TOPIC", "t"),)),
    "topics.delete by the cluster": (
        lambda acting: acting.topics.delete("t"),
        (("DELETE", "CLUSTER", "kafka-cluster"),),
    ),
    "topics.delete_records": (
        lambda acting: acting.topics.delete_records("t", 0, -1),
        (("DELETE", "TOPIC", "t"),),
    ),
    "topics.configs": (
        lambda acting: plain(lambda: acting.topics.configs("t")),
        (("DESCRIBE_CONFIGS", "TOPIC", "t"),),
    ),
    "groups.get": (lambda acting: plain(lambda: acting.groups.get("g")), (("DESCRIBE", "GROUP", "g"),)),
    "groups.committed": (
        lambda acting: plain(lambda: acting.groups.committed("g")),
        (("DESCRIBE", "GROUP", "g"),),
    ),
    "groups.lag": (lambda acting: plain(lambda: acting.groups.lag("g")), (("DESCRIBE", "GROUP", "g"),)),
    "groups.commit": (lambda acting: acting.groups.commit("g", {T0: CommittedOffset(0)}), (GROUP, READ)),
}
ERRORS = {
    "TOPIC": TopicAuthorizationFailed,
    "GROUP": GroupAuthorizationFailed,
    "CLUSTER": ClusterAuthorizationFailed,
    "TRANSACTIONAL_ID": TransactionalIdAuthorizationFailed,
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", CALLS)
async def test_each_call_needs_its_rights_and_no_others(name: str, secured: Broker, view: View) -> None:
    call, needs = CALLS[name]
    acting = view.security.acting_for(ALICE)
    for missing in needs:
        await revoke_all(secured)
        for need in needs:
            if need != missing:
                await grant(secured, *need)
        with pytest.raises(AuthorizationFailed) as refused:
            await call(acting)
        operation, kind, resource = missing
        if kind == "CLUSTER":  # the other way to have it is named
            assert refused.value.resource_type == "TOPIC"
            continue
        assert type(refused.value) is ERRORS[kind]
        found = refused.value
        assert (found.operation, found.resource_type, found.resource_name) == missing
        words = f"{kind.lower().replace('_', ' ')} {resource}"
        assert str(found) == f"User:alice may not {operation} {words}"
    for need in needs:
        await grant(secured, *need)
    await call(acting)


async def test_the_plugin_itself_needs_no_rights(secured: Broker, view: View) -> None:
    assert (await view.fetch({T0: 0})).records
    assert view.topics.names() == ["t"]


async def test_lists_leave_out_what_may_not_be_seen(
    secured: Broker, view: View, lines: list[dict[str, Any]]
) -> None:
    await view.topics.create("u")
    await view.groups.commit("g", {T0: CommittedOffset(1), TopicPartition("u", 0): CommittedOffset(0)})
    await view.groups.commit("h", {T0: CommittedOffset(1)})
    acting = view.security.acting_for(ALICE)
    assert (acting.topics.names(), acting.groups.names()) == ([], [])
    await grant(secured, "DESCRIBE")
    await grant(secured, "DESCRIBE", "GROUP", "g")
    assert (acting.topics.names(), acting.groups.names()) == (["t"], ["g"])
    assert acting.groups.committed("g") == {T0: CommittedOffset(1)}
    assert acting.groups.lag("g") == {T0: 0}
    await grant(secured, "DESCRIBE", "CLUSTER", "kafka-cluster")
    assert acting.groups.names() == ["g", "h"]
    assert lines == [], "nobody has requested what is left out"


async def test_a_pattern_means_what_may_be_seen(secured: Broker, view: View) -> None:
    await view.topics.create("u")
    await grant(secured, "READ")
    await grant(secured, "READ", "GROUP", "g")
    acting = view.security.acting_for(ALICE)
    async with acting.consumer("g", pattern=".", auto_offset_reset="earliest") as consumer:
        assert [record.topic for record in await consumer.poll(wait_s=60)] == ["t"]
        assert consumer.subscription == {"t"}


async def test_a_consumer_is_asked_with_each_poll_and_commit(secured: Broker, view: View) -> None:
    await grant(secured, "READ")
    await grant(secured, "READ", "GROUP", "g")
    acting = view.security.acting_for(ALICE, host="10.0.0.7", client_id="c")
    async with acting.consumer("g", ["t"], auto_offset_reset="earliest") as consumer:
        assert await consumer.poll(wait_s=60)
        await consumer.commit()
        member = view.groups.get("g")
        assert member is not None and member.members[0][1:3] == ("c", "/10.0.0.7")
        await revoke_all(secured)
        with pytest.raises(GroupAuthorizationFailed):
            await consumer.poll(wait_s=0)
        with pytest.raises(GroupAuthorizationFailed):
            await consumer.commit()
        with pytest.raises(GroupAuthorizationFailed):
            consumer.group_metadata()
        with pytest.raises(GroupAuthorizationFailed):
            await consumer.committed([T0])
        with pytest.raises(TopicAuthorizationFailed):
            await consumer.seek_to_beginning()


async def test_a_fetch_that_waits_ends_when_the_right_is_gone(secured: Broker, view: View) -> None:
    await grant(secured, "READ")
    acting = view.security.acting_for(ALICE)
    refused: list[str] = []

    async def wait() -> None:
        try:
            await acting.fetch({T0: 1}, wait_s=60)
        except TopicAuthorizationFailed as error:
            refused.append(str(error))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        await revoke_all(secured)
        await view.produce("t", b"secret")
    assert refused == ["User:alice may not READ topic t"]


async def test_what_is_not_a_clients(view: View) -> None:
    acting = view.security.acting_for(ALICE)
    with pytest.raises(RuntimeError, match="is not a peer"):
        acting.peer()
    assert acting.security is view.security
    assert acting.clock is view.clock


async def test_without_an_authorizer_it_is_the_same_broker(open_core: Open) -> None:
    view = make_broker_view(open_core(), PLUGIN)
    assert view.security.acting_for(ANONYMOUS) is view
    assert not view.security.authorizes
    assert view.security.version == 0
    assert view.security.allowed(ANONYMOUS, Operation.ALTER, ResourceType.CLUSTER)
    view.security.check(ANONYMOUS, Operation.ALTER, ResourceType.CLUSTER)


async def test_the_plain_question(secured: Broker, view: View, lines: list[dict[str, Any]]) -> None:
    security = view.security
    assert security.authorizes
    version = security.version
    topic = (Operation.READ, ResourceType.TOPIC, "subject/orders")
    assert not security.allowed(ALICE, *topic, quietly=True)
    assert lines == []
    assert not security.allowed(ALICE, *topic, host="10.0.0.7")
    (line,) = lines
    assert (line["principal"], line["address"], line["request"]) == ("User:alice", "10.0.0.7", "sample")
    assert (line["operation"], line["resource"], line["allowed"]) == ("READ", "TOPIC:subject/orders", False)
    await grant(secured, "READ", name="subject/", pattern="PREFIXED", host="10.0.0.7")
    assert security.version > version
    assert security.allowed(ALICE, *topic, host="10.0.0.7")
    assert not security.allowed(ALICE, *topic, host="10.0.0.8")
    assert not security.allowed(ANONYMOUS, *topic, host="10.0.0.7")
    with pytest.raises(AuthorizationFailed) as refused:
        security.check(ALICE, Operation.ALTER, ResourceType.CLUSTER)
    assert str(refused.value) == "User:alice may not ALTER the cluster"
    assert refused.value.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_views_are_kept_and_bounded(
    secured: Broker, view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leafcuttr.plugins.facade import security as module

    monkeypatch.setattr(module, "_MOST_VIEWS", 2)
    acting = view.security.acting_for(ALICE)
    assert view.security.acting_for(ALICE) is acting
    assert view.security.acting_for(ALICE, host="10.0.0.1") is not acting
    assert view.security.acting_for(ALICE, client_id="c") is not acting
    assert view.security.acting_for(ALICE) is not acting, "all were forgotten at the limit"


async def set_quota(core: Broker, **quotas: float) -> None:
    await core.quotas.alter({(("user", "alice"),): quotas})


async def test_quotas(open_core: Open, autojump_clock: trio.testing.MockClock) -> None:
    core = open_core()
    view = make_broker_view(core, PLUGIN)
    await view.topics.create("t")
    assert view.security.quota(ALICE) is None
    await set_quota(core, producer_byte_rate=1000, consumer_byte_rate=1000)
    quota = view.security.quota(ALICE)
    assert quota is not None and quota.wait_s() == 0
    assert view.security.quota(Principal("User", "bob")) is None
    acting = view.security.acting_for(ALICE)
    assert acting is not view
    await acting.produce("t", bytes(5000))
    wait_s = quota.wait_s()
    assert 4 < wait_s < 5
    await trio.sleep(wait_s)
    assert quota.wait_s() == 0
    await acting.fetch({T0: 0})
    await acting.read_batches(T0, 0)
    # Two windows were left, however long it has rested.
    assert 8 < quota.wait_s() < 9
    await trio.sleep(10)
    quota.consumed(50_000)
    quota.produced(1)
    assert quota.wait_s() > 30
    await view.fetch({T0: 0})
    before = quota.wait_s()
    await view.produce("t", bytes(50_000))
    assert quota.wait_s() == before, "the plugin's own records are nobody's"


async def test_changes_are_told_once_for_all_that_changes_together(secured: Broker, view: View) -> None:
    told: list[int] = []

    def changed() -> None:
        told.append(view.security.version)

    end = view.security.on_change(changed)
    await grant(secured, "READ")
    await trio.testing.wait_all_tasks_blocked()
    assert told == [view.security.version]
    await set_quota(secured, producer_byte_rate=5)
    await trio.testing.wait_all_tasks_blocked()
    assert len(told) == 2
    end()
    end()
    await grant(secured, "WRITE")
    await trio.testing.wait_all_tasks_blocked()
    assert len(told) == 2


async def test_a_callback_that_raises_harms_no_other(
    secured: Broker, view: View, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    def broken() -> None:
        raise ValueError("no such")

    view.security.on_change(broken)
    view.security.on_change(lambda: told.append("x"))
    await grant(secured, "READ")
    await trio.testing.wait_all_tasks_blocked()
    assert told == ["x"]
    assert "plugin sample: callback on changed users and rights failed: ValueError: no such" in caplog.text

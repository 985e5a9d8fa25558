"""Which broker gets a request, and what is known of the cluster: against a broker of ours on the test's own loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr.client.cluster import RemoteCluster, open_cluster
from leafcuttr.client.coordinators import CoordinatorKind
from leafcuttr.client.errors import (
    AuthenticationRefused,
    ConnectionLost,
    NotKafka,
    TimedOut,
    Unreachable,
)
from leafcuttr.client.properties import client_settings
from leafcuttr.client.settings import HostPort
from leafcuttr.errors import BrokerError, ErrorCode, UnknownTopicOrPartition
from leafcuttr.runtime.clock import SystemClock
from leafcuttr.state.broker import Broker
from leafcuttr.wire.api import ApiKey
from leafcuttr.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from leafcuttr.wire.messages.find_coordinator import FindCoordinatorResponse
from leafcuttr.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from leafcuttr.wire.messages.metadata import MetadataRequest
from leafcuttr_sdk.types import TopicPartition
from support.sasl_server import SaslServer
from support.scripted_broker import HANG_UP, Call, Script, ScriptedBroker, coordinator, metadata
from support.waiting import free_port

Serve = Callable[..., Awaitable[Broker]]


def bootstrap(broker: Broker) -> str:
    listener = broker.listeners[0]
    return f"{listener.host}:{listener.port}"


async def test_leaders_coordinators_and_any_broker(serve: Serve) -> None:
    address = bootstrap(await serve())
    async with open_cluster(client_settings({"bootstrap.servers": address}), clock=SystemClock()) as cluster:
        assert cluster.nodes == {}
        created = await cluster.request(
            CreateTopicsRequest(
                topics=[CreatableTopic(name="t", num_partitions=2, replication_factor=1)], timeout_ms=10_000
            ),
            node=await cluster.controller(),
        )
        assert [topic.error_code for topic in created.topics] == [0]
        tp = TopicPartition("t", 1)
        assert await cluster.leader(tp) == 1
        cluster.forget_leader(tp)
        assert await cluster.leader(tp) == 1
        assert await cluster.coordinator(CoordinatorKind.GROUP, "g") == 1
        assert {*cluster.nodes} == {1}
        assert str(cluster.nodes[1]) == address
        assert cluster.cluster_id is not None
        assert cluster.trouble is None
        with pytest.raises(UnknownTopicOrPartition, match="there is no topic nowhere"):
            await cluster.leader(TopicPartition("nowhere", 0))
        with pytest.raises(UnknownTopicOrPartition, match="t has no partition 7"):
            await cluster.leader(TopicPartition("t", 7))
        with pytest.raises(Unreachable, match="there is no broker 9; there are 1"):
            await cluster.request(MetadataRequest(topics=[]), node=9)


async def test_a_fetch_that_waits_holds_up_no_other_request(serve: Serve) -> None:
    settings = client_settings({"bootstrap.servers": bootstrap(await serve())})
    async with open_cluster(settings, clock=SystemClock()) as cluster, trio.open_nursery() as nursery:
        topics = [CreatableTopic(name="t", num_partitions=1, replication_factor=1)]
        await cluster.request(CreateTopicsRequest(topics=topics, timeout_ms=10_000))
        fetched = list[int]()

        async def fetch() -> None:
            wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
            topic_id = (await cluster.metadata(["t"])).topics[0].topic_id
            topic = FetchTopic(topic="t", topic_id=topic_id, partitions=[wanted])
            await cluster.request(
                FetchRequest(max_wait_ms=600_000, min_bytes=1, topics=[topic]), node=1, timeout_s=700
            )
            fetched.append(1)

        nursery.start_soon(fetch)
        for _ in range(5):
            await cluster.metadata([])
        assert not fetched
        nursery.cancel_scope.cancel()


async def test_a_cluster_that_is_away(autojump_clock: trio.testing.MockClock) -> None:
    address = f"127.0.0.1:{free_port()}"
    settings = client_settings({"bootstrap.servers": address, "request.timeout.ms": "5000"})
    async with open_cluster(settings, clock=SystemClock()) as cluster:
        began = trio.current_time()
        with pytest.raises(Unreachable, match=f"^no broker answers at {address}$"):
            await cluster.metadata()
        assert trio.current_time() - began == pytest.approx(5, abs=0.01)
        assert cluster.trouble == f"no broker answers at {address}"


async def test_what_the_body_raises_is_in_no_group(serve: Serve) -> None:
    settings = client_settings({"bootstrap.servers": bootstrap(await serve())})
    with pytest.raises(UnknownTopicOrPartition) as caught:
        async with open_cluster(settings, clock=SystemClock()) as cluster:
            await cluster.leader(TopicPartition("nowhere", 0))
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# Clusters whose brokers do what the test says


def opened(
    brokers: Iterable[ScriptedBroker | str], **more: str
) -> AbstractAsyncContextManager[RemoteCluster]:
    where = ",".join(each if isinstance(each, str) else each.address for each in brokers)
    return open_cluster(client_settings({"bootstrap.servers": where, **more}), clock=SystemClock())


async def cluster_of(
    nursery: trio.Nursery, count: int, answers: Callable[[int], Mapping[int, Script]] = lambda node: {}
) -> list[ScriptedBroker]:
    """Brokers 1 to `count`, each of which names all of them; partition n of `t` is led by broker n + 1."""
    brokers = list[ScriptedBroker]()

    def describe(call: Call) -> Any:
        wanted = {each.name for each in call.request.topics or ()}
        return metadata(*brokers, topics={"t": list(range(1, count + 1))} if "t" in wanted else {})

    for node in range(1, count + 1):
        broker = ScriptedBroker({ApiKey.METADATA: describe, **answers(node)}, node=node)
        await broker.start(nursery)
        brokers.append(broker)
    return brokers


async def test_a_request_goes_to_its_broker(nursery: trio.Nursery) -> None:
    brokers = await cluster_of(nursery, 3)
    async with opened(brokers[:1]) as cluster:
        assert [await cluster.leader(TopicPartition("t", part)) for part in (0, 1, 2)] == [1, 2, 3]
        assert brokers[0].asked("MetadataRequest") == 1, "one request tells of all partitions of a topic"
        for node in (3, 2, 2):
            await cluster.request(MetadataRequest(topics=[]), node=node)
        assert [each.asked("MetadataRequest") for each in brokers] == [1, 2, 1]
        assert [each.connections for each in brokers] == [1, 1, 1]


async def test_leaders_of_many_topics_are_found_with_few_requests(nursery: trio.Nursery) -> None:
    names = [f"topic-{number}" for number in range(100)]
    broker = ScriptedBroker(
        {
            ApiKey.METADATA: lambda call: metadata(
                call.broker, topics={each.name: [1] for each in call.request.topics}
            )
        }
    )
    await broker.start(nursery)
    async with opened([broker]) as cluster, trio.open_nursery() as asking:
        for name in names:
            asking.start_soon(cluster.leader, TopicPartition(name, 0))
    assert broker.asked("MetadataRequest") <= 3


async def test_a_leader_that_is_forgotten_is_not_asked_for_all_the_time(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    [broker] = await cluster_of(nursery, 1)
    tp = TopicPartition("t", 0)
    async with opened([broker], **{"retry.backoff.ms": "1000"}) as cluster:
        await cluster.leader(tp)
        began = trio.current_time()
        for _ in range(5):
            cluster.forget_leader(tp)
            await cluster.leader(tp)
        assert trio.current_time() - began >= 5


async def test_metadata_grows_old(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> None:
    [broker] = await cluster_of(nursery, 1)
    async with opened([broker], **{"metadata.max.age.ms": "60000"}) as cluster:
        for _ in range(3):
            await cluster.leader(TopicPartition("t", 0))
            await trio.sleep(59)
            await cluster.leader(TopicPartition("t", 0))
            await trio.sleep(2)
        assert broker.asked("MetadataRequest") == 3


@pytest.mark.parametrize(
    ("leaders", "error", "code"),
    [
        ([-1], 0, ErrorCode.LEADER_NOT_AVAILABLE),
        ([1], 29, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ([1], 3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ([], 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_a_partition_without_a_leader(
    nursery: trio.Nursery, leaders: list[int], error: int, code: ErrorCode
) -> None:
    broker = ScriptedBroker(
        {
            ApiKey.METADATA: lambda call: metadata(
                call.broker, topics={"t": [] if error else leaders}, error=error
            )
        }
    )
    await broker.start(nursery)
    async with opened([broker]) as cluster:
        with pytest.raises(BrokerError) as caught:
            await cluster.leader(TopicPartition("t", 0))
        assert caught.value.code == code


async def test_the_first_bootstrap_address_that_answers_is_enough(nursery: trio.Nursery) -> None:
    [broker] = await cluster_of(nursery, 1)
    away = f"127.0.0.1:{free_port()}"
    async with opened([away, broker]) as cluster:
        await cluster.metadata()
        assert cluster.trouble is None, "it does not matter that one of the addresses is wrong"


async def test_a_bootstrap_address_that_is_no_kafka_does_not_hide_one_that_is(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    async def hello(call: Call) -> Any:
        await call.stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        return HANG_UP

    other = ScriptedBroker({ApiKey.API_VERSIONS: hello})
    await other.start(nursery)
    [broker] = await cluster_of(nursery, 1)
    async with opened([other, broker]) as cluster:
        await cluster.metadata()
    away = f"127.0.0.1:{free_port()}"
    async with opened([other, away]) as cluster:
        # What does not pass is said, and at once; what may pass would be tried again.
        began = trio.current_time()
        with pytest.raises(NotKafka):
            await cluster.metadata(timeout_s=60)
        assert trio.current_time() == began
    async with opened([other]) as cluster:
        with pytest.raises(NotKafka):
            await cluster.metadata()
        assert cluster.trouble == f"{other.address} does not speak Kafka's protocol"


async def test_a_password_that_is_wrong_is_said_at_once(nursery: trio.Nursery) -> None:
    server = SaslServer("PLAIN", "alice", "right")
    broker = ScriptedBroker({**server.answers, ApiKey.METADATA: lambda call: metadata(call.broker)})
    await broker.start(nursery)
    wrong = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "wrong",
    }
    async with opened([broker], **wrong) as cluster:
        with pytest.raises(AuthenticationRefused):
            await cluster.metadata()
        line = (
            f"{broker.address}: the user alice is refused: Authentication failed (SASL_AUTHENTICATION_FAILED)"
        )
        assert cluster.trouble == line
        server.password = "wrong"
        await cluster.metadata()
        assert cluster.trouble is None


async def test_a_broker_that_comes_back_is_reached_within_the_time_of_a_request(
    nursery: trio.Nursery,
) -> None:
    port = free_port()
    broker = ScriptedBroker({ApiKey.METADATA: lambda call: metadata(call.broker)}, port=port)
    async with opened([f"127.0.0.1:{port}"]) as cluster, trio.open_nursery() as asking:
        asking.start_soon(cluster.metadata)
        while cluster.trouble is None:
            await trio.lowlevel.checkpoint()
        await broker.start(nursery)
    assert broker.asked("MetadataRequest") == 1
    assert cluster.trouble is None


async def test_a_broker_that_has_moved_is_found_by_the_others(nursery: trio.Nursery) -> None:
    first, second = await cluster_of(nursery, 2)
    async with opened([first]) as cluster:
        await cluster.metadata()
        moved = ScriptedBroker(second.answers, node=2)
        await moved.start(nursery)
        second.port, left = moved.port, second.port
        cluster.nodes[2] = HostPort("127.0.0.1", free_port())
        await cluster.request(MetadataRequest(topics=[]), node=2)
        assert moved.asked("MetadataRequest") == 1
        assert cluster.nodes[2].port == moved.port != left
        assert cluster.trouble is None


async def test_a_request_is_sent_once(nursery: trio.Nursery) -> None:
    [broker] = await cluster_of(nursery, 1, lambda node: {ApiKey.LIST_GROUPS: lambda call: HANG_UP})
    async with opened([broker]) as cluster:
        with pytest.raises(ConnectionLost):
            await cluster.request(ListGroupsRequest(), node=1)
        assert broker.asked("ListGroupsRequest") == 1
        await cluster.metadata()


async def test_a_request_that_is_not_answered_is_trouble_until_one_is(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    [broker] = await cluster_of(nursery, 1, lambda node: {ApiKey.LIST_GROUPS: lambda call: None})
    async with opened([broker]) as cluster:
        with pytest.raises(TimedOut) as caught:
            await cluster.request(ListGroupsRequest(), timeout_s=4)
        line = f"{broker.address} does not answer ListGroups within 4 seconds"
        assert (str(caught.value), cluster.trouble) == (line, line)
        await cluster.metadata()
        assert cluster.trouble is None


async def test_coordinators(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> None:
    codes = [15, 16, 0, 15, 0]
    brokers = list[ScriptedBroker]()
    brokers += await cluster_of(
        nursery,
        2,
        lambda node: {
            ApiKey.FIND_COORDINATOR: lambda call: coordinator(call, codes.pop(0), broker=brokers[1])
        },
    )
    async with opened(brokers[:1]) as cluster:
        assert await cluster.coordinator(CoordinatorKind.TRANSACTION, "x") == 2
        assert await cluster.coordinator(CoordinatorKind.TRANSACTION, "x") == 2
        assert codes == [15, 0]
        assert cluster.nodes[2].port == brokers[1].port, "its address comes with the answer"
        cluster.forget_coordinator(CoordinatorKind.TRANSACTION, "x")
        assert await cluster.coordinator(CoordinatorKind.TRANSACTION, "x") == 2
        codes[:] = [30]
        with pytest.raises(BrokerError) as caught:
            await cluster.coordinator(CoordinatorKind.GROUP, "g")
        assert caught.value.code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        codes[:] = [15] * 100
        with pytest.raises(BrokerError) as caught:
            await cluster.coordinator(CoordinatorKind.GROUP, "g", timeout_s=3)
        assert caught.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_a_coordinator_that_is_not_found_in_time_costs_no_connection(nursery: trio.Nursery) -> None:
    [broker] = await cluster_of(
        nursery,
        1,
        lambda node: {ApiKey.FIND_COORDINATOR: lambda call: coordinator(call, error=15)},
    )
    # An answer comes at once and one after the pause; another pause would leave no time for its answer.
    async with opened([broker], **{"retry.backoff.ms": "1000"}) as cluster:
        for _ in range(2):
            with pytest.raises(BrokerError) as caught:
                await cluster.coordinator(CoordinatorKind.GROUP, "g", timeout_s=2)
            assert caught.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert cluster.trouble is None
    assert broker.connections == 1


async def test_what_is_sent_at_once_goes_over_an_open_connection_in_its_order(nursery: trio.Nursery) -> None:
    fails = [False]
    [broker] = await cluster_of(
        nursery,
        1,
        lambda node: {
            ApiKey.LIST_GROUPS: lambda call: (
                HANG_UP
                if fails[0]
                else ListGroupsResponse(throttle_time_ms=broker.asked("ListGroupsRequest"), groups=[])
            )
        },
    )
    async with opened([broker]) as cluster:
        assert cluster.send_now(ListGroupsRequest(), node=1) is None, "its address is unknown"
        await cluster.metadata([])
        waiting = [cluster.send_now(ListGroupsRequest(), node=1) for _ in range(3)]
        assert [(await one()).throttle_time_ms for one in waiting if one is not None] == [1, 2, 3]
        assert cluster.send_now(ListGroupsRequest(), node=2) is None
        fails[0] = True
        lost = cluster.send_now(ListGroupsRequest(), node=1)
        assert lost is not None
        with pytest.raises(ConnectionLost):
            await lost()
        assert cluster.send_now(ListGroupsRequest(), node=1) is None, "it has to be connected again"


async def test_one_that_is_late_is_trouble(nursery: trio.Nursery) -> None:
    [broker] = await cluster_of(nursery, 1, lambda node: {ApiKey.LIST_GROUPS: lambda _: None})
    async with opened([broker], **{"request.timeout.ms": "100"}) as cluster:
        await cluster.metadata([], timeout_s=30)
        late = cluster.send_now(ListGroupsRequest(), node=1)
        assert late is not None
        with pytest.raises(TimedOut, match="does not answer ListGroups within"):
            await late()
        assert cluster.trouble is not None


async def test_a_coordinator_by_the_single_fields_of_older_brokers(nursery: trio.Nursery) -> None:
    [broker] = await cluster_of(
        nursery,
        1,
        lambda node: {
            ApiKey.FIND_COORDINATOR: lambda call: FindCoordinatorResponse(
                node_id=1, host="127.0.0.1", port=call.broker.port
            )
        },
    )
    broker.versions = {18: (0, 2), 3: (0, 5), 10: (0, 2)}
    async with opened([broker]) as cluster:
        assert await cluster.coordinator(CoordinatorKind.GROUP, "g") == 1
    assert ("FindCoordinatorRequest", 2) in broker.seen


async def test_a_cluster_without_a_controller(nursery: trio.Nursery) -> None:
    brokers = [True, False]
    broker = ScriptedBroker(
        {ApiKey.METADATA: lambda call: metadata(*([call.broker] if brokers.pop() else []))}
    )
    await broker.start(nursery)
    async with opened([broker]) as cluster:
        with pytest.raises(BrokerError) as caught:
            await cluster.controller()
        assert caught.value.code == ErrorCode.NOT_CONTROLLER
        assert await cluster.controller() == 1
        assert await cluster.controller() == 1
        brokers[:] = [True]
        cluster.forget_controller()
        assert await cluster.controller() == 1
        assert await cluster.versions() == await cluster.versions(1)


async def test_connections_are_closed_at_the_end(nursery: trio.Nursery) -> None:
    go_on = trio.Event()

    async def wait(call: Call) -> Any:
        await go_on.wait()

    [broker] = await cluster_of(nursery, 1, lambda node: {ApiKey.LIST_GROUPS: wait})
    async with opened([broker]) as cluster:
        with trio.move_on_after(0):
            await cluster.request(ListGroupsRequest(), node=1)
        await cluster.metadata()
    with trio.CancelScope() as scope:
        async with opened([broker]) as cluster:
            await cluster.metadata()
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    go_on.set()


async def test_one_that_is_cancelled_while_it_is_opened(autojump_clock: trio.testing.MockClock) -> None:
    """Nothing that is shielded is left to wait for."""
    settings = client_settings({"bootstrap.servers": "127.0.0.1:1"})
    with trio.fail_after(600), trio.CancelScope() as scope:
        scope.cancel()
        async with open_cluster(settings, clock=SystemClock()):
            raise AssertionError("it was opened")
    assert scope.cancelled_caught

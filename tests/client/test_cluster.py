"""Which broker gets a request, and what is known of the cluster: against a broker of ours on the test's own loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from leafcuttr.client.cluster import open_cluster
from leafcuttr.client.coordinators import CoordinatorKind
from leafcuttr.client.errors import Unreachable
from leafcuttr.client.properties import client_settings
from leafcuttr.errors import ErrorCode, UnknownTopicOrPartition
from leafcuttr.runtime.clock import SystemClock
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from leafcuttr.wire.messages.metadata import MetadataRequest
from leafcuttr_sdk.types import TopicPartition
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

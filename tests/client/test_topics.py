"""Topics of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
import trio

from leafcuttr.errors import (
    BrokerError,
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicationFactor,
    InvalidTopic,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from leafcuttr_sdk.peers import Peer
from support.waiting import eventually


async def test_a_topic_is_there_once_it_is_created(peer: Peer, topic: str) -> None:
    found = await peer.topics([topic, "nowhere", topic])
    assert found.keys() == {topic}
    assert (found[topic].name, found[topic].partitions, found[topic].internal) == (topic, 3, False)
    assert len(found[topic].topic_id) == 16
    assert any(found[topic].topic_id)
    assert all(epoch >= 0 for epoch in found[topic].leader_epochs)
    assert found[topic] == (await peer.topics())[topic]


async def test_names_that_no_topic_can_have_are_none(peer: Peer) -> None:
    assert not await peer.topics(["", "a/b", ".."])


async def test_settings_of_the_topic_alone(peer: Peer) -> None:
    await peer.create_topic(
        "configured", partitions=1, configs={"retention.ms": "5000", "cleanup.policy": "compact"}
    )
    assert await peer.topic_configs(["configured", "nowhere"]) == {
        "configured": {"retention.ms": "5000", "cleanup.policy": "compact"}
    }
    await peer.alter_topic("configured", {"retention.ms": None, "segment.bytes": "2000000"})
    expected = {"configured": {"segment.bytes": "2000000", "cleanup.policy": "compact"}}

    async def changed() -> bool:
        return await peer.topic_configs(["configured"]) == expected

    await eventually(changed, "the settings")  # a cluster may change them behind its answer
    await peer.alter_topic("configured", {})


async def test_partitions_are_added(peer: Peer, topic: str) -> None:
    await peer.add_partitions(topic, 5)
    assert (await peer.topics([topic]))[topic].partitions == 5
    with pytest.raises(InvalidPartitions):
        await peer.add_partitions(topic, 4)


async def test_what_is_refused_is_raised_by_its_code(peer: Peer, topic: str) -> None:
    refused: list[tuple[str, dict[str, object], type[BrokerError]]] = [
        (topic, {"partitions": 1}, TopicAlreadyExists),
        ("a/b", {"partitions": 1}, InvalidTopic),
        ("none", {"partitions": 0}, InvalidPartitions),
        ("far", {"partitions": 1, "replication_factor": 7}, InvalidReplicationFactor),
        ("odd", {"partitions": 1, "configs": {"retention.ms": "soon"}}, InvalidConfig),
    ]
    for name, arguments, kind in refused:
        with pytest.raises(kind):
            await peer.create_topic(name, **arguments)  # type: ignore[arg-type]
    with pytest.raises(InvalidConfig):
        await peer.alter_topic(topic, {"retention.ms": "soon"})
    with pytest.raises(UnknownTopicOrPartition):
        await peer.alter_topic("nowhere", {"retention.ms": "1"})
    with pytest.raises(UnknownTopicOrPartition):
        await peer.add_partitions("nowhere", 3)


async def test_the_default_factor_is_what_one_broker_has(peer: Peer) -> None:
    await peer.create_topic("one", partitions=1, replication_factor=1)
    await peer.create_topic("default", partitions=1)
    assert (await peer.topics(["one", "default"])).keys() == {"one", "default"}
    assert await peer.node_count() == 1


async def test_a_topic_that_the_broker_may_create(peer: Peer, topic: str) -> None:
    made = await peer.ensure_topic(f"made-{topic}")
    assert made == (await peer.topics([made.name]))[made.name]
    assert await peer.ensure_topic(topic) == (await peer.topics([topic]))[topic]


async def test_what_no_broker_creates_is_said_at_once(
    open_peer: Callable[..., AbstractAsyncContextManager[Peer]],
) -> None:
    """However long a topic is waited for that is being created."""
    async with open_peer(topic_metadata_propagation_max_ms="600000") as peer:
        with trio.fail_after(60), pytest.raises(InvalidTopic):
            await peer.ensure_topic("a/b")

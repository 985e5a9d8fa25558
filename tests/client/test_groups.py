"""Consumer groups of a cluster and their offsets."""

from __future__ import annotations

import pytest
import trio
from confluent_kafka import Consumer

from leafcuttr.errors import UnknownMemberId, UnknownTopicOrPartition
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.peers import Peer
from leafcuttr_sdk.types import TopicPartition
from support.waiting import eventually


async def test_offsets_are_committed_and_read(peer: Peer, topic: str) -> None:
    group = f"offsets-{topic}"
    assert await peer.committed(group) == {}
    offsets = {
        TopicPartition(topic, number): CommittedOffset(number * 10, f"m{number}") for number in range(3)
    }
    await peer.commit(group, offsets)
    assert await peer.committed(group) == offsets
    await peer.commit(group, {TopicPartition(topic, 1): CommittedOffset(11)})
    assert (await peer.committed(group))[TopicPartition(topic, 1)] == CommittedOffset(11)
    assert group in await peer.groups()
    assert not await peer.group_is_active(group)
    await peer.commit(group, {})


async def test_what_cannot_be_committed(peer: Peer, topic: str) -> None:
    with pytest.raises(UnknownTopicOrPartition, match="committing nowhere-0"):
        await peer.commit("g", {TopicPartition("nowhere", 0): CommittedOffset(1)})


async def test_groups_that_do_not_exist(peer: Peer) -> None:
    assert not await peer.group_is_active("nobody")
    assert "nobody" not in await peer.groups()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_the_offsets_of_members_are_theirs(
    peer: Peer, topic: str, address: str, protocol: str, request: pytest.FixtureRequest
) -> None:
    if protocol == "consumer" and request.node.callspec.params["address"] == "leafcuttr":
        pytest.skip("LeafCuttr does not have the newer protocol of groups")
    group = f"{protocol}-{topic}"
    consumer = Consumer({"bootstrap.servers": address, "group.id": group, "group.protocol": protocol})
    consumer.subscribe([topic])
    try:

        async def assigned() -> bool:
            await trio.to_thread.run_sync(consumer.poll, 0.1)
            return bool(consumer.assignment())

        await eventually(assigned, "an assignment")
        assert await peer.group_is_active(group)
        assert group in await peer.groups()
        with pytest.raises(UnknownMemberId):
            await peer.commit(group, {TopicPartition(topic, 0): CommittedOffset(1)})
    finally:
        await trio.to_thread.run_sync(consumer.close)

    async def left() -> bool:
        return not await peer.group_is_active(group)

    await eventually(left, "the member to have left")
    await peer.commit(group, {TopicPartition(topic, 0): CommittedOffset(1)})
    assert await peer.committed(group) == {TopicPartition(topic, 0): CommittedOffset(1)}

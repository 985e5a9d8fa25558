"""Offsets by time, and where leader epochs end."""

from __future__ import annotations

from leafcuttr_sdk.broker import EARLIEST, LATEST
from leafcuttr_sdk.peers import Peer
from leafcuttr_sdk.types import TopicPartition
from support.remote_peers import new_batch
from support.waiting import eventually


async def test_the_ends_and_times_between(peer: Peer, topic: str) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with peer.appender() as appender:
        for time in (1000, 2000, 3000):
            await appender.append([new_batch(first, b"a", b"b", timestamp=time)])
    assert await peer.offsets({first: EARLIEST, second: EARLIEST}) == {first: 0, second: 0}
    assert await peer.offsets({first: LATEST, second: LATEST}) == {first: 6, second: 0}
    for time, offset in ((0, 0), (1000, 0), (1001, 2), (3000, 4), (3001, 6)):
        assert await peer.offsets({first: time}) == {first: offset}
    assert await peer.offsets({}) == {}


async def test_partitions_that_do_not_exist_are_left_out(peer: Peer, topic: str) -> None:
    there = TopicPartition(topic, 2)
    gone = [TopicPartition(topic, 9), TopicPartition("nowhere", 0)]
    assert await peer.offsets({there: LATEST, gone[0]: LATEST, gone[1]: 5}) == {there: 0}
    assert await peer.epoch_end({there: 0, gone[0]: 0, gone[1]: 0}) == {there: (0, 0)}


async def test_the_end_of_committed_records(peer: Peer, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with peer.transaction(f"open-{topic}") as producer, producer.begin() as transaction:
        await transaction.append([new_batch(tp, b"open")])
        assert await peer.offsets({tp: LATEST}) == {tp: 1}
        assert await peer.offsets({tp: LATEST}, committed=True) == {tp: 0}

    async def ended() -> bool:
        return await peer.offsets({tp: LATEST}, committed=True) == {tp: 2}

    await eventually(ended, "the marker")


async def test_the_end_of_an_epoch(peer: Peer, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with peer.appender() as appender:
        await appender.append([new_batch(tp, b"a", b"b")])
    (epoch, *_) = (await peer.topics([topic]))[topic].leader_epochs
    assert await peer.epoch_end({tp: epoch}) == {tp: (epoch, 2)}
    assert await peer.epoch_end({tp: epoch + 1}) == {tp: (-1, -1)}
    assert await peer.epoch_end({}) == {}

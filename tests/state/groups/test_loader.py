"""What happens to groups while they are being read back, and how the usual record is read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.committing import Committer, NewOffset
from leafcuttr.state.groups.offsets import OffsetAndMetadata
from leafcuttr.state.groups.records import offset_value, parse_offset
from leafcuttr.state.groups.store import OffsetsLog
from leafcuttr.state.internal_log import ProducerIdAndEpoch
from leafcuttr.state.transactions.markers import End
from leafcuttr.wire.errors import WireError
from leafcuttr_sdk import TopicPartition

Start = Callable[..., Broker]
ONE = {"transaction_state_log_num_partitions": "1", "offsets_topic_num_partitions": "1"}
P0 = TopicPartition("t", 0)
GROUP = TopicPartition("__consumer_offsets", 0)


async def committed_in_transaction(start: Start) -> tuple[int, int]:
    """A broker, already stopped, with an offset of `g` for `t` in an open transaction: producer id and epoch."""
    broker = start(**ONE)
    await broker.groups.ready()
    topic = await broker.topics.create("t", 1, {})
    given = await broker.transactions.init("id", 60_000, None)
    assert not broker.transactions.add("id", given.producer_id, given.epoch, [GROUP], 2)
    offsets = broker.groups.offsets
    new = NewOffset("t", topic.id, 0, 9, -1, "")
    assert offsets.commit("h", Committer(), [new]) == [ErrorCode.NONE]
    producer = ProducerIdAndEpoch(given.producer_id, given.epoch)
    assert offsets.commit_in_transaction("g", Committer(), producer, [new]) == [ErrorCode.NONE]
    return given.producer_id, given.epoch


class Held:
    """Holds up the loader when it has read all there is, and not yet published it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read, self.go_on = trio.Event(), trio.Event()
        batches = OffsetsLog.batches

        async def held(log: OffsetsLog, partition: int) -> AsyncIterator[Iterator[Any]]:
            async for some in batches(log, partition):
                yield some
            self.read.set()
            await self.go_on.wait()

        monkeypatch.setattr(OffsetsLog, "batches", held)


async def loaded(broker: Broker) -> None:
    while broker.groups.loading:
        await trio.testing.wait_all_tasks_blocked(0.01)


@pytest.mark.parametrize("commit", [True, False])
async def test_a_marker_that_the_loader_came_too_early_for(
    start: Start, monkeypatch: pytest.MonkeyPatch, commit: bool
) -> None:
    producer_id, epoch = await committed_in_transaction(start)
    held = Held(monkeypatch)
    broker = start(**ONE)
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.groups.run)
        await held.read.wait()
        end = End(producer_id, epoch + 1, commit, 0, 2)
        assert broker.transactions.markers.write(GROUP, end) is None
        held.go_on.set()
        await loaded(broker)
        assert not broker.groups.offsets.unstable("g")
        found = broker.groups.offsets.fetch("g")
        assert ({"t": {0: 9}} if commit else {}) == {
            topic: {number: each.offset for number, each in partitions.items()}
            for topic, partitions in found.items()
        }
        nursery.cancel_scope.cancel()


async def test_a_topic_that_is_deleted_meanwhile(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    await committed_in_transaction(start)
    held = Held(monkeypatch)
    broker = start(**ONE)
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.groups.run)
        await held.read.wait()
        # As its deletion does it, which the loader notices by itself only if it comes before the last record.
        broker.groups.offsets.forget_topic("t")
        held.go_on.set()
        await loaded(broker)
        assert not broker.groups.offsets.fetch("h")
        assert not broker.groups.offsets.unstable("g")
        nursery.cancel_scope.cancel()


metadata = st.text(max_size=140)
numbers = st.integers(-(2**63), 2**63 - 1)


@given(numbers, st.integers(-1, 2**31 - 1), metadata, numbers, st.binary(min_size=16, max_size=16), st.data())
def test_offsets_come_back(
    offset: int, epoch: int, text: str, timestamp: int, topic_id: bytes, data: st.DataObject
) -> None:
    """Also those that are read by a short way; and what is damaged is refused, or read as something else."""
    known = OffsetAndMetadata(offset, epoch, text, timestamp, -1, topic_id, 7)
    value = offset_value(known)
    assert parse_offset(value, 7) == known
    damaged = bytearray(value)
    damaged[data.draw(st.integers(0, len(value) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        parse_offset(bytes(damaged[: data.draw(st.integers(0, len(value)))]))
    except WireError:
        return

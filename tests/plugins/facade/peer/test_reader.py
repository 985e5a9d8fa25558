"""Reading many partitions of this broker in process."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr.log.log import Log
from leafcuttr_sdk import NewBatch, Record, TopicPartition
from leafcuttr_sdk.batches import BatchBuilder, batches_in
from leafcuttr_sdk.errors import (
    CorruptMessage,
    OffsetOutOfRange,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from leafcuttr_sdk.peers import PeerRead
from plugins.facade.peer.conftest import Live

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)

Run = Callable[..., AbstractAsyncContextManager[Live]]


async def fill(live: Live, *values: bytes, partition: TopicPartition = T0) -> None:
    """One batch for each."""
    for value in values:
        await live.view.produce(partition.topic, value, partition=partition.partition)


def values(read: PeerRead) -> list[bytes | None]:
    return [
        None if one.value is None else bytes(one.value)
        for each in batches_in(read.data)
        for one in each.records()
    ]


async def test_what_is_there_and_then_what_comes(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.reader() as reader, trio.open_nursery() as nursery:
        await fill(live, b"a", b"b")
        reader.assign({T0: 0, T1: 0})
        (first,) = await reader.read()
        assert (first.partition, values(first), first.next_offset) == (T0, [b"a", b"b"], 2)
        assert (first.high_watermark, first.log_start_offset, first.aborted, first.error) == (2, 0, (), None)

        nursery.start_soon(fill, live, b"c")
        (second,) = await reader.read()
        assert (second.partition, values(second), second.next_offset) == (T0, [b"c"], 3)


async def test_a_partition_that_is_assigned_again_goes_on_there(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.reader() as reader:
        await fill(live, b"a", b"b", b"c")
        reader.assign({T0: 2})
        assert [values(each) for each in await reader.read()] == [[b"c"]]
        reader.assign({T0: 1})
        assert [values(each) for each in await reader.read()] == [[b"b", b"c"]]


async def test_an_assignment_is_taken_up_by_a_read_that_waits(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.reader() as reader, trio.open_nursery() as nursery:
        await fill(live, b"a")
        found: list[PeerRead] = []

        async def read() -> None:
            found.extend(await reader.read())

        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        reader.assign({T0: 0})
        await wait_all_tasks_blocked()
        assert [values(each) for each in found] == [[b"a"]]


async def test_partitions_take_turns_within_the_limit(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.reader(max_bytes=100, partition_bytes=1) as reader:
        for _ in range(3):
            await fill(live, b"x" * 60, partition=T0)
            await fill(live, b"x" * 60, partition=T1)
        reader.assign({T0: 0, T1: 0})
        order = [[each.partition for each in await reader.read()] for _ in range(6)]
        assert order == [[T0], [T1]] * 3


async def test_a_partition_gives_at_most_its_bytes_at_a_time(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.reader(partition_bytes=300) as reader:
        await fill(live, *[b"x" * 60] * 6)
        reader.assign({T0: 0})
        assert [len(values(each)) for each in await reader.read()] == [2]


async def test_a_paused_partition_waits_for_its_resumption(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.reader() as reader:
        await fill(live, b"a")
        await fill(live, b"b", partition=T1)
        reader.assign({T0: 0, T1: 0})
        reader.pause(T0, TopicPartition("other", 9))
        assert [each.partition for each in await reader.read()] == [T1]
        reader.resume(T0, T1)
        assert [each.partition for each in await reader.read()] == [T0]


async def test_a_partition_is_read_no_more_once_it_is_unassigned(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.reader() as reader:
        await fill(live, b"a")
        await fill(live, b"b", partition=T1)
        reader.assign({T0: 0, T1: 0})
        reader.unassign(T0, TopicPartition("other", 9))
        assert [each.partition for each in await reader.read()] == [T1]
        assert len(live.core.topics.partition(T0).log.waiters) == 0


async def test_a_closed_reader_waits_at_no_log(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live:
        log = live.core.topics.partition(T0).log
        async with live.peer.reader() as reader:
            reader.assign({T0: 0})
            assert len(log.waiters) == 1
        assert len(log.waiters) == 0


async def test_a_read_that_is_cancelled_loses_nothing(
    run: Run, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run() as live, live.peer.reader() as reader:
        await fill(live, b"a")
        reader.assign({T0: 0})
        with trio.CancelScope() as scope:
            scope.cancel()
            await reader.read()
        from leafcuttr.plugins.facade.peer import reader as module

        real = module.read_log

        async def cancelled_behind_it(*arguments: Any, **options: Any) -> Any:
            found = await real(*arguments, **options)
            await trio.sleep_forever()
            return found

        monkeypatch.setattr(module, "read_log", cancelled_behind_it)
        with trio.move_on_after(1):
            await reader.read()
        monkeypatch.undo()
        assert [values(each) for each in await reader.read()] == [[b"a"]]


async def test_one_task_at_a_time_reads(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.reader() as reader, trio.open_nursery() as nursery:
        nursery.start_soon(reader.read)
        await wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await reader.read()
        nursery.cancel_scope.cancel()


async def test_committed_ends_where_a_transaction_is_open(run: Run, autojump_clock: MockClock) -> None:
    async with (
        run() as live,
        live.peer.reader() as committed,
        live.peer.reader(committed=False) as reader,
        live.peer.transaction("mine") as producer,
    ):
        committed.assign({T0: 0})
        reader.assign({T0: 0})
        async with producer.begin() as transaction:
            await transaction.produce_batch("t", [Record(b"a")], partitions=[0])
            with trio.move_on_after(1):
                await committed.read()
                pytest.fail("what is not decided was read")
            (open_,) = await reader.read()
            assert (values(open_), open_.high_watermark) == ([b"a"], 1)
            await fill(live, b"plain", partition=T1)
            await transaction.produce_batch("t", [Record(b"b")], partitions=[1])
            committed.assign({T1: 0})
            (before,) = await committed.read()
            assert (values(before), before.next_offset, before.high_watermark) == ([b"plain"], 1, 1)
            committed.unassign(T1)
        (decided,) = await committed.read()
        assert decided.next_offset == 2
        assert decided.high_watermark == 2
        assert next(iter(batches_in(decided.data))).header.is_transactional


async def test_committed_names_what_was_aborted(run: Run, autojump_clock: MockClock) -> None:
    async with (
        run() as live,
        live.peer.reader() as committed,
        live.peer.transaction("mine") as producer,
    ):
        async with producer.begin() as transaction:
            await transaction.produce_batch("t", [Record(b"a")], partitions=[0])
            await transaction.abort()
        committed.assign({T0: 0})
        (read,) = await committed.read()
        assert read.next_offset == 2
        assert [(one.first_offset, one.last_offset) for one in read.aborted] == [(0, 1)]
        first = next(iter(batches_in(read.data)))
        assert first.is_aborted(read.aborted)


@pytest.mark.parametrize("offset", [-1, 4])
async def test_an_offset_that_is_none_is_said_once(run: Run, autojump_clock: MockClock, offset: int) -> None:
    async with run() as live, live.peer.reader() as reader:
        await fill(live, b"a", b"b", b"c")
        reader.assign({T0: offset})
        (read,) = await reader.read()
        assert isinstance(read.error, OffsetOutOfRange)
        assert (read.partition, read.next_offset, bytes(read.data)) == (T0, offset, b"")
        assert (read.log_start_offset, read.high_watermark) == (0, 3)
        with trio.move_on_after(1):
            pytest.fail(f"it was read once more: {await reader.read()}")
        reader.assign({T0: 0})
        assert [values(each) for each in await reader.read()] == [[b"a", b"b", b"c"]]


async def test_records_that_retention_has_taken(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.reader() as reader:
        await fill(live, b"a", b"b")
        reader.assign({T0: 0})
        await live.view.topics.delete_records("t", 0, 2)
        (read,) = await reader.read()
        assert isinstance(read.error, OffsetOutOfRange)
        assert read.log_start_offset == 2


async def test_a_topic_that_does_not_exist(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.reader() as reader:
        reader.assign({TopicPartition("none", 0): 0})
        (read,) = await reader.read()
        assert isinstance(read.error, UnknownTopicOrPartition)


async def test_a_topic_that_is_deleted_while_a_read_waits(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.reader() as reader, trio.open_nursery() as nursery:
        reader.assign({T0: 0})
        nursery.start_soon(live.view.topics.delete, "t")
        (read,) = await reader.read()
        assert isinstance(read.error, UnknownTopicOrPartition)
        assert "deleted" in str(read.error)


async def test_a_topic_that_was_created_anew(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.reader() as reader:
        await fill(live, b"old")
        reader.assign({T0: 0})
        await live.view.topics.delete("t")
        await live.view.topics.create("t")
        await fill(live, b"new")
        (read,) = await reader.read()
        assert isinstance(read.error, UnknownTopicId)
        reader.assign({T0: 0})
        assert [values(each) for each in await reader.read()] == [[b"new"]]


async def test_what_the_disk_refuses_is_tried_again(
    run: Run, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run() as live, live.peer.reader() as reader:
        await fill(live, b"a")
        reader.assign({T0: 0})
        real, refused = Log.read, list[bool]()

        def read(self: Log, *arguments: Any, **options: Any) -> Any:
            if len(refused) < 2:
                refused.append(True)
                raise OSError(5, "Input/output error")
            return real(self, *arguments, **options)

        monkeypatch.setattr(Log, "read", read)
        before = trio.current_time()
        assert [values(each) for each in await reader.read()] == [[b"a"]]
        assert len(refused) == 2
        assert trio.current_time() - before >= 2


async def test_a_damaged_batch_is_said(
    run: Run, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run() as live, live.peer.reader() as reader:
        await fill(live, b"a")
        reader.assign({T0: 0})

        async def damaged(*_: object, **__: object) -> None:
            raise CorruptMessage("t-0: a batch is damaged")

        monkeypatch.setattr("leafcuttr.plugins.facade.peer.reader.read_log", damaged)
        (read,) = await reader.read()
        assert isinstance(read.error, CorruptMessage)


async def test_whole_batches_even_where_the_position_lies_within_one(
    run: Run, autojump_clock: MockClock
) -> None:
    async with run() as live, live.peer.reader() as reader:
        builder = BatchBuilder()
        for value in (b"a", b"b", b"c"):
            assert builder.add(value, 1)
        await live.view.append([NewBatch(T0, builder.finish())])
        reader.assign({T0: 1})
        (read,) = await reader.read()
        assert values(read) == [b"a", b"b", b"c"]
        assert read.next_offset == 3

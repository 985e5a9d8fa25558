"""Batches that are appended to this broker in process: in order, and none behind one that failed."""

import errno
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr.log.append import commit
from leafcuttr.log.append.rules import LARGE
from leafcuttr.plugins.facade.peer import appender as module
from leafcuttr_sdk import Appended, NewBatch, TopicPartition
from leafcuttr_sdk.batches import Batch, BatchBuilder, batches_in
from leafcuttr_sdk.batches.header import HEADER, TRANSACTIONAL, BatchHeader, seal
from leafcuttr_sdk.errors import (
    CorruptMessage,
    InvalidTopic,
    MessageTooLarge,
    OutOfOrderSequence,
    RequestTimedOut,
    UnknownTopicOrPartition,
)
from plugins.facade.peer.conftest import Live

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)

Run = Callable[..., AbstractAsyncContextManager[Live]]


def batch(*values: bytes) -> bytearray:
    builder = BatchBuilder()
    for value in values:
        assert builder.add(value, 1)
    return builder.finish()


def new(*values: bytes, partition: TopicPartition = T0) -> NewBatch:
    return NewBatch(partition, batch(*values))


LARGE_ONE = b"x" * 2_000_000
"""More than `max.message.bytes`."""


async def stored(live: Live, partition: TopicPartition = T0) -> list[Batch]:
    return list(batches_in((await live.view.read_batches(partition, 0)).data))


async def values(live: Live, partition: TopicPartition = T0) -> list[bytes]:
    return [bytes(one.value or b"") for each in await stored(live, partition) for one in each.records()]


def kinds(answers: list[Any]) -> list[type]:
    return [type(each) for each in answers]


async def test_batches_in_the_order_of_the_call(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.appender() as appender:
        answers = await appender.append([new(b"a", b"b"), new(b"x", partition=T1), new(b"c")])
        assert answers == [Appended(0, 1), Appended(0, 0), Appended(2, 2)]
        assert await values(live) == [b"a", b"b", b"c"]
        assert await values(live, T1) == [b"x"]
        assert await appender.append([]) == []


async def test_producer_and_sequence_are_set(run: Run, autojump_clock: MockClock) -> None:
    """Whatever the batch says: another producer's, in a transaction."""
    async with run() as live, live.peer.appender() as appender:
        foreign = batch(b"a")
        header = BatchHeader._make(HEADER.unpack_from(foreign))
        seal(
            foreign,
            header._replace(
                base_offset=17, producer_id=99, producer_epoch=3, base_sequence=5, attributes=TRANSACTIONAL
            ),
        )
        await appender.append([NewBatch(T0, bytes(foreign)), new(b"b", b"c")])
        await appender.append([new(b"d")])
        headers = [each.header for each in await stored(live)]
        assert [each.base_sequence for each in headers] == [0, 1, 3]
        assert {(each.producer_id, each.producer_epoch, each.attributes) for each in headers} == {
            (headers[0].producer_id, 0, 0)
        }
        assert headers[0].producer_id != 99


async def test_each_appender_is_a_producer_of_its_own(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.appender() as first, live.peer.appender() as second:
        await first.append([new(b"a")])
        assert await second.append([new(b"a")]) == [Appended(1, 1)]
        assert len({each.header.producer_id for each in await stored(live)}) == 2


async def test_none_behind_one_that_was_refused_in_a_call(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.appender() as appender:
        for _ in range(2):
            answers = await appender.append(
                [new(b"a"), new(LARGE_ONE), new(b"b"), new(b"x", partition=T1), new(b"c")]
            )
            assert kinds(answers) == [
                Appended, MessageTooLarge, OutOfOrderSequence, Appended, OutOfOrderSequence
            ]  # fmt: skip
        assert await values(live) == [b"a", b"a"]


async def test_none_behind_the_very_first_if_that_was_refused(run: Run, autojump_clock: MockClock) -> None:
    """A partition takes any sequence number from a producer that it does not know."""
    async with run() as live, live.peer.appender() as appender:
        answers = await appender.append([new(LARGE_ONE), new(b"b")])
        assert kinds(answers) == [MessageTooLarge, OutOfOrderSequence]
        assert await appender.append([new(b"b")]) == [Appended(0, 0)]


async def test_none_behind_one_that_failed_of_an_earlier_call(run: Run, autojump_clock: MockClock) -> None:
    """The earlier call is still under way: it waits for the disk, and is refused there."""
    async with run() as live, live.peer.appender() as appender, trio.open_nursery() as nursery:
        answers: dict[str, list[Any]] = {}

        async def append(name: str, *batches: NewBatch) -> None:
            answers[name] = await appender.append(batches)

        nursery.start_soon(append, "first", new(b"a"), new(LARGE_ONE))
        await wait_all_tasks_blocked()
        nursery.start_soon(append, "second", new(b"b"), new(b"x", partition=T1))
        while len(answers) < 2:
            await trio.lowlevel.checkpoint()
        assert kinds(answers["first"]) == [Appended, MessageTooLarge]
        assert kinds(answers["second"]) in ([OutOfOrderSequence, Appended], [Appended, Appended])


async def test_calls_of_many_tasks_keep_their_order(run: Run, autojump_clock: MockClock) -> None:
    """Those in the middle are made ready by worker threads, the others here."""
    async with run(message_max_bytes="10000000") as live, live.peer.appender() as appender:
        expected: list[bytes] = []
        async with trio.open_nursery() as nursery:
            for number in range(20):
                value = b"%d" % number + bytes(LARGE if number % 3 == 1 else 1)
                expected.append(value)
                nursery.start_soon(appender.append, [new(value)])
                await trio.lowlevel.checkpoint()
        read = await live.view.read_batches(T0, 0, max_bytes=1 << 30)
        found = [bytes(one.value or b"") for each in batches_in(read.data) for one in each.records()]
        assert sorted(found) == sorted(expected)
        assert [each.header.base_sequence for each in batches_in(read.data)] == list(range(20))


async def test_five_calls_at_a_time(
    run: Run, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run() as live, live.peer.appender() as appender:
        real = live.core.appender.append
        counts: list[int] = []
        now = 0

        async def counted(*arguments: Any, **options: Any) -> Any:
            nonlocal now
            now += 1
            counts.append(now)
            await trio.sleep(1)
            now -= 1
            return await real(*arguments, **options)

        await live.view.topics.create("many", partitions=20)
        monkeypatch.setattr(appender, "_producing", _Appending(counted, appender))
        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(appender.append, [new(b"a", partition=TopicPartition("many", number))])
        assert max(counts) == 5


class _Appending:
    """What appends, with something before it."""

    def __init__(self, before: Callable[..., Any], appender: Any) -> None:
        self._real = appender._producing
        self._before = before

    async def append(self, batches: list[NewBatch]) -> Any:
        await self._before([])
        return await self._real.append(batches)


async def test_a_damaged_batch_is_refused_before_it_gets_a_new_crc(
    run: Run, autojump_clock: MockClock
) -> None:
    async with run() as live, live.peer.appender() as appender:
        damaged = batch(b"a")
        damaged[-1] ^= 1
        answers = await appender.append([NewBatch(T0, damaged), new(b"b"), NewBatch(T1, b"short")])
        assert kinds(answers) == [CorruptMessage, OutOfOrderSequence, CorruptMessage]
        assert await appender.append([new(b"b")]) == [Appended(0, 0)]


async def test_partitions_that_nobody_may_write_to(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.appender() as appender:
        answers = await appender.append(
            [
                new(b"a", partition=TopicPartition("none", 0)),
                new(b"a", partition=TopicPartition("__consumer_offsets", 0)),
                new(b"a"),
            ]
        )
        assert kinds(answers) == [UnknownTopicOrPartition, InvalidTopic, Appended]


async def test_what_the_disk_does_not_take_is_tried_again(
    run: Run, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run() as live, live.peer.appender() as appender:
        await appender.append([new(b"a")])
        real, failures = commit.write_all, list[bool]()

        def write(*arguments: Any) -> Any:
            if len(failures) < 3:
                failures.append(True)
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*arguments)

        monkeypatch.setattr(commit, "write_all", write)
        answers = await appender.append([new(b"b"), new(b"c"), new(b"x", partition=T1)])
        assert kinds(answers) == [Appended] * 3
        assert len(failures) == 3
        assert await values(live) == [b"a", b"b", b"c"]
        assert [each.header.base_sequence for each in await stored(live)] == [0, 1, 2]


async def test_what_the_disk_never_takes_times_out(
    run: Run, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run() as live, live.peer.appender() as appender:

        def write(*_: Any) -> Any:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(commit, "write_all", write)
        before = trio.current_time()
        (answer,) = await appender.append([new(b"a")])
        assert trio.current_time() - before >= module.DELIVERY_TIMEOUT_S
        assert isinstance(answer, RequestTimedOut)
        assert "No space left" in str(answer)
        monkeypatch.undo()
        assert await appender.append([new(b"b")]) == [Appended(0, 0)]


async def test_after_a_cancelled_call_the_next_one_goes_on(
    run: Run, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run() as live, live.peer.appender() as appender:
        await appender.append([new(b"a")])

        async def never(_: Any) -> Any:
            await trio.sleep_forever()

        monkeypatch.setattr(appender._producing, "append", never)  # type: ignore[attr-defined]
        with trio.move_on_after(1):
            await appender.append([new(b"lost")])
        monkeypatch.undo()
        assert await appender.append([new(b"b")]) == [Appended(1, 1)]
        assert [each.header.producer_epoch for each in await stored(live)] == [0, 1]


async def test_a_new_producer_id_once_the_epochs_are_used_up(
    run: Run, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LAST_EPOCH", 1)
    async with run() as live, live.peer.appender() as appender:
        for _ in range(3):
            assert kinds(await appender.append([new(b"a"), new(LARGE_ONE)])) == [Appended, MessageTooLarge]
        headers = [each.header for each in await stored(live)]
        assert [each.producer_epoch for each in headers] == [0, 1, 0]
        assert headers[0].producer_id == headers[1].producer_id != headers[2].producer_id

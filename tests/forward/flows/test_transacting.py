"""Exactly once: what comes into one transaction, and when it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from forward.flows.test_intake import Case, running
from leafcuttr_forward.flows.intake import MUCH
from leafcuttr_forward.flows.making import RecordsRefused
from leafcuttr_forward.flows.positions import POSITIONS
from leafcuttr_forward.flows.progress import Progress
from leafcuttr_forward.flows.report import FlowReport
from leafcuttr_forward.flows.spec import FlowSpec
from leafcuttr_forward.flows.transacting import MARKERS_S, UNDER_WAY, TransactionalWriter
from leafcuttr_sdk.errors import BrokerError, MessageTooLarge, OutOfOrderSequence
from leafcuttr_sdk.records import Appended, NewBatch
from leafcuttr_sdk.testing import HandClock
from leafcuttr_sdk.types import TopicPartition
from support.forwarded_batches import PARTITION, Seen, Stored, stored


class Target:
    """A producer that writes down what came in each transaction: how many records, and its position."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.committed: list[list[int]] = []
        self.begun_at: list[float] = []
        self.held_at_the_end: list[int] = []
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        """Happens while the first records of a transaction are appended."""
        self.begun: list[int] = []
        """How many calls were under way at the beginning of each, itself included."""
        self.errors: dict[int, BrokerError] = {}
        """What the calls raise with these numbers, from 0 on."""
        self.answer: trio.Event | None = None
        """What calls wait for."""
        self._open: list[int] = []
        self._under_way = 0

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Target]:
        self.begun_at.append(trio.current_time())
        self._open = []
        yield self
        self.committed.append(self._open)

    async def append(self, batches: Sequence[NewBatch]) -> list[Appended]:
        if batches[0].partition == POSITIONS:
            self.held_at_the_end.append(self.case.intake.held)
            return [Appended(0, 0)]
        self._open.append(len(batches))
        self._under_way += 1
        number = len(self.begun)
        self.begun.append(self._under_way)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        if self.answer is not None:
            await self.answer.wait()
        self._under_way -= 1
        if number in self.errors:
            raise self.errors[number]
        return [Appended(0, 9) for _ in batches]


class Writing:
    """A writer of a source that the test writes."""

    def __init__(self, case: Case, clock: HandClock) -> None:
        self.case, self.clock, self.target = case, clock, Target(case)
        self._next = 0
        self.progress = progress = Progress("f", "c", "c", {}, FlowReport("f"))
        progress.start(PARTITION, 0, "copy")
        spec = FlowSpec(name="f", rules=[], transaction_ms=100)
        self.writer = TransactionalWriter(
            spec,
            self.target,  # type: ignore[arg-type]
            case.intake,
            progress,
            FlowReport("f"),
            clock,
        )

    def found(self, *sizes: int) -> None:
        """Ten records of about so many bytes together, for each."""
        batches: list[Stored] = []
        for size in sizes:
            records = [(at, Seen(1, b"k", bytes(size // 10))) for at in range(10)]
            batches.append(stored(records, base=self._next))
            self._next += 10
        self.case.found(*batches)

    async def finds(self, size: int) -> None:
        """The same, until it waits to be taken."""
        self.found(size)
        while self.case.intake.positions[PARTITION] < self._next:
            await trio.sleep(0)

    async def run(self, transactions: int) -> list[list[int]]:
        """Until so many were committed, and a second more."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.writer.run)
            with trio.fail_after(60):
                while len(self.target.committed) < transactions:
                    await trio.sleep(0.001)
            await trio.sleep(1)
            nursery.cancel_scope.cancel()
        return self.target.committed


@pytest.fixture
async def writing() -> AsyncIterator[Writing]:
    """For tests that have `autojump_clock`, which counts only as an argument of the test itself."""
    async with running(limit=100 << 20) as case:
        yield Writing(case, HandClock())


async def test_a_slow_flow_commits_what_it_has(writing: Writing, autojump_clock: MockClock) -> None:
    async def more() -> None:
        await writing.finds(1000)

    writing.found(1000)
    writing.target.meanwhile = more
    assert await writing.run(2) == [[1], [1]]


async def test_one_that_is_behind_writes_more_in_the_same_transaction(
    writing: Writing, autojump_clock: MockClock
) -> None:
    async def more() -> None:
        await writing.finds(MUCH // 2)
        await writing.finds(MUCH // 2)

    writing.found(1000)
    writing.target.meanwhile = more
    assert await writing.run(1) == [[1, 2]]


async def test_a_transaction_does_not_go_on_for_ever(writing: Writing, autojump_clock: MockClock) -> None:
    async def more() -> None:
        await writing.finds(2 * MUCH)
        writing.clock.ms += 200

    writing.found(1000)
    writing.target.meanwhile = more
    assert await writing.run(2) == [[1], [1]], "it is committed, and what waits begins another"


@pytest.mark.parametrize(("after_s", "expected"), [(0.0, [[2, 1]]), (0.05, [[2], [1]])])
async def test_a_fast_flow_waits_a_moment_for_more(
    writing: Writing, autojump_clock: MockClock, after_s: float, expected: Any
) -> None:
    async def later() -> None:
        await trio.sleep(after_s)
        writing.found(1000)

    async with trio.open_nursery() as nursery:

        async def more() -> None:
            nursery.start_soon(later)

        writing.found(600_000, 600_000)
        writing.target.meanwhile = more
        assert await writing.run(len(expected)) == expected


async def test_calls_of_one_that_is_behind_do_not_wait_for_each_other(
    writing: Writing, autojump_clock: MockClock
) -> None:
    """Nor are there more of them at a time than a broker keeps in their order, and positions are behind the last."""
    writing.writer._spec = replace(writing.writer._spec, request_bytes=MUCH)
    for _ in range(UNDER_WAY + 2):
        await writing.finds(MUCH)
    await writing.finds(1000)
    target = writing.target
    target.answer = trio.Event()

    async def answers() -> None:
        await trio.sleep(1)
        assert target.begun == [1, 2, 3, 4, 5] and not target.committed
        assert target.answer is not None
        target.answer.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answers)
        await writing.run(1)
    assert max(target.begun) == UNDER_WAY
    assert sum(map(sum, target.committed)) == UNDER_WAY + 3
    records = 10 * (UNDER_WAY + 3)
    assert writing.progress.positions[PARTITION].offset == records


async def test_what_is_refused_for_itself_is_said_with_all_that_the_transaction_had(
    writing: Writing, autojump_clock: MockClock
) -> None:
    writing.writer._spec = replace(writing.writer._spec, request_bytes=MUCH)
    for _ in range(UNDER_WAY + 2):
        await writing.finds(MUCH)
    target = writing.target
    target.answer = trio.Event()
    target.answer.set()
    target.errors = {1: OutOfOrderSequence("behind another"), 2: MessageTooLarge("too large")}
    with pytest.raises(RecordsRefused, match="too large") as raised:
        await writing.writer.run()
    assert len(raised.value.portions) == len(target.begun) < UNDER_WAY + 2, "no call begins after the error"
    assert not target.committed
    assert not writing.progress.positions[PARTITION].offset


async def test_what_stands_alone_does_not_join_one_that_waits_for_more(
    writing: Writing, autojump_clock: MockClock
) -> None:
    async def later() -> None:
        await trio.sleep(MARKERS_S / 2)
        writing.found(1000)

    async with trio.open_nursery() as nursery:

        async def more() -> None:
            writing.case.intake.go_carefully(PARTITION, step=10, until=30)
            nursery.start_soon(later)

        writing.found(600_000, 600_000)
        writing.target.meanwhile = more
        assert await writing.run(2) == [[2], [1]]


async def test_what_stands_alone_has_a_transaction_of_its_own(
    writing: Writing, autojump_clock: MockClock
) -> None:
    writing.case.intake.go_carefully(PARTITION, step=10, until=20)
    for _ in range(3):
        await writing.finds(2 * MUCH)
    assert await writing.run(3) == [[1], [1], [1]]


async def test_what_stands_alone_is_not_behind_others(writing: Writing, autojump_clock: MockClock) -> None:
    async def more() -> None:
        writing.case.intake.go_carefully(PARTITION, step=10, until=30)
        await writing.finds(2 * MUCH)

    writing.found(1000)
    writing.target.meanwhile = more
    assert await writing.run(2) == [[1], [1]]


async def test_what_the_target_has_taken_needs_no_memory_any_more(
    writing: Writing, autojump_clock: MockClock
) -> None:
    writing.found(MUCH)
    await writing.run(1)
    assert writing.target.held_at_the_end == [0]
    assert writing.case.intake.held == 0


async def test_the_markers_of_a_transaction_are_waited_for(
    writing: Writing, autojump_clock: MockClock
) -> None:
    async def more() -> None:
        await writing.finds(1000)

    writing.found(1000)
    writing.target.meanwhile = more
    await writing.run(2)
    first, second = writing.target.begun_at
    assert second - first >= MARKERS_S


async def test_its_bytes_and_records_are_counted_all_the_same(
    writing: Writing, autojump_clock: MockClock
) -> None:
    report = FlowReport("f")
    progress = Progress("f", "c", "c", {}, report)
    progress.start(PARTITION, 0, "copy")
    writing.writer._progress = progress
    writing.found(1000)
    await writing.run(1)
    copied = report.partitions[PARTITION]
    assert copied.written_records == 10
    assert copied.written_bytes > 1000
    assert copied.written_to == {TopicPartition("copy", 0): 10}

"""What is between reading and writing: order, bounds, what is forgotten, and what stands alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from leafcuttr_forward.flows.errors import FlowStopped, PoisonRecord, one_error
from leafcuttr_forward.flows.intake import Intake
from leafcuttr_forward.flows.making import Maker, Portion
from leafcuttr_forward.flows.pace import Throttle
from leafcuttr_forward.flows.routes import Route
from leafcuttr_sdk.errors import BrokerError, CorruptMessage, OffsetOutOfRange
from leafcuttr_sdk.peers import PeerRead
from leafcuttr_sdk.testing import HandClock
from leafcuttr_sdk.types import TopicPartition
from support.forwarded_batches import PARTITION, Seen, Stored, read_of, seen_in, stored

OTHER = TopicPartition("orders", 1)


class Reads:
    """A reader that finds what it is given."""

    def __init__(self) -> None:
        self.send, self._receive = trio.open_memory_channel[Sequence[PeerRead]](100)
        self.assigned: list[dict[TopicPartition, int]] = []
        self.unassigned: list[TopicPartition] = []
        self.reads = 0
        self.paused: set[TopicPartition] = set()

    def assign(self, positions: dict[TopicPartition, int]) -> None:
        self.assigned.append(dict(positions))

    def unassign(self, *partitions: TopicPartition) -> None:
        self.unassigned += partitions

    def pause(self, *partitions: TopicPartition) -> None:
        self.paused |= {*partitions}

    def resume(self, *partitions: TopicPartition) -> None:
        self.paused -= {*partitions}

    async def read(self) -> Sequence[PeerRead]:
        found = await self._receive.receive()
        self.reads += 1
        return found


class Copy:
    """Every topic to one of the same name."""

    def route(self, topic: str) -> Route:
        return Route("copy", 2)

    async def route_to(self, topic: str, like: str) -> Route:
        return Route(topic, 1)


class Counting(Maker):
    """Says what it has made."""

    def __init__(self) -> None:
        super().__init__(Copy(), dead_letter_topic="dead")
        self.made: list[tuple[int, int]] = []
        self.records = 0

    async def make(self, read: PeerRead, position: int, until: int | None = None) -> Portion:
        portion = await super().make(read, position, until)
        self.made.append((portion.first, portion.next))
        self.records += portion.read_records
        return portion


class Case:
    def __init__(
        self,
        *,
        limit: int = 1 << 20,
        dead: str | None = "dead",
        cut: bool = False,
        maker: Maker | None = None,
    ) -> None:
        self.reads = Reads()
        self.errors: list[tuple[TopicPartition, BrokerError]] = []
        self.epochs: list[tuple[int, int]] = []
        self.held = 0
        self.cut = cut
        self.intake = Intake(
            self.reads,  # type: ignore[arg-type]
            maker or Maker(Copy(), dead_letter_topic=dead),
            limit=limit,
            throttle=Throttle(None, HandClock()),
            on_read=lambda read: None,
            on_error=lambda partition, error: self.errors.append((partition, error)),
            on_wait=lambda why: None,
            on_held=self.hold,
            on_epoch=self.on_epoch,
            broken=set(),
        )
        self.intake.assign({PARTITION: 0, OTHER: 0}, {PARTITION: 3})

    def hold(self, size: int) -> None:
        self.held = size

    async def on_epoch(self, partition: TopicPartition, epoch: int, offset: int) -> bool:
        self.epochs.append((epoch, offset))
        return self.cut

    def found(self, *batches: Stored, partition: TopicPartition = PARTITION) -> None:
        self.reads.send.send_nowait([read_of(batches)._replace(partition=partition)])

    async def taken(self, most: int = 1 << 20) -> list[Portion]:
        with trio.fail_after(5):
            return await self.intake.take(most)


@asynccontextmanager
async def running(**options: Any) -> AsyncIterator[Case]:
    case = Case(**options)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(case.intake.run)
        yield case
        nursery.cancel_scope.cancel()


def some(base: int, count: int = 10, **options: Any) -> Stored:
    records = [(at, Seen(1, b"k", b"%d" % (base + at))) for at in range(count)]
    return stored(records, base=base, **options)


def values(portions: Sequence[Portion]) -> list[int]:
    return [
        int(one.value or b"")
        for portion in portions
        for piece in portion.pieces
        for one in seen_in(piece.batch)
    ]


async def test_portions_come_in_their_order() -> None:
    async with running() as case:
        for base in (0, 10, 20):
            case.found(some(base))
            assert values(await case.taken()) == [*range(base, base + 10)]
        assert case.intake.positions[PARTITION] == 30


async def test_it_reads_no_further_than_it_may() -> None:
    async with running(limit=100) as case:
        for base in (0, 10, 20):
            case.found(some(base))
        await trio.testing.wait_all_tasks_blocked()
        assert case.reads.reads == 1
        portions = await case.taken()
        await trio.testing.wait_all_tasks_blocked()
        assert case.reads.reads == 1  # what is taken counts until it is at the target
        assert case.held == case.intake.held == portions[0].size > 100
        case.intake.release(portions)
        await trio.testing.wait_all_tasks_blocked()
        assert case.reads.reads == 2


async def test_a_writer_takes_about_as_much_as_it_wants() -> None:
    async with running() as case:
        for base in (0, 10, 20):
            case.found(some(base))
        await trio.testing.wait_all_tasks_blocked()
        assert len(await case.taken(1)) == 1
        assert len(case.intake.take_now(1 << 20)) == 2
        assert case.intake.take_now(1 << 20) == []


async def test_what_is_assigned_anew_forgets_what_was_read() -> None:
    async with running() as case:
        case.found(some(0))
        case.found(some(0), partition=OTHER)
        await trio.testing.wait_all_tasks_blocked()
        case.intake.assign({PARTITION: 5})
        assert case.reads.assigned[-1] == {PARTITION: 5}
        case.found(some(0))
        await trio.testing.wait_all_tasks_blocked()
        portions = await case.taken()
        assert [one.source for one in portions] == [OTHER, PARTITION]
        assert values(portions[1:]) == [5, 6, 7, 8, 9]
        case.intake.release(portions)
        assert case.held == 0


async def test_what_is_unassigned_is_not_made() -> None:
    async with running() as case:
        case.intake.unassign(PARTITION)
        case.found(some(0))
        case.found(some(0), partition=OTHER)
        assert [one.source for one in await case.taken()] == [OTHER]
        assert case.reads.unassigned == [PARTITION]


async def test_settling_waits_for_what_the_writer_has() -> None:
    async with running() as case, trio.open_nursery() as nursery:
        case.found(some(0))
        portions = await case.taken()
        settled = trio.Event()

        async def settle() -> None:
            await case.intake.settled([PARTITION])
            settled.set()

        nursery.start_soon(settle)
        await trio.testing.wait_all_tasks_blocked()
        assert not settled.is_set()
        case.intake.release(portions)
        await settled.wait()


async def test_careful_portions_stand_alone() -> None:
    async with running() as case:
        case.intake.go_carefully(PARTITION, 4, 10)
        case.found(some(0, 15))
        found = []
        while sum(len(values([one])) for one in found) < 15:
            taken = await case.taken()
            assert len(taken) == 1
            assert taken[0].alone is (taken[0].first < 10)
            found += taken
            case.intake.release(taken)
        assert [(one.first, one.next) for one in found] == [(0, 4), (4, 8), (8, 10), (10, 15)]
        assert values(found) == [*range(15)]


async def test_what_stands_alone_is_made_when_the_writer_is_done_with_the_one_before() -> None:
    maker = Counting()
    async with running(maker=maker) as case:
        case.intake.go_carefully(PARTITION, 4, 8)
        case.found(some(0))
        first = await case.taken()
        await trio.testing.wait_all_tasks_blocked()
        assert maker.made == [(0, 4)]
        assert case.reads.paused == {PARTITION}
        case.intake.release(first)
        await trio.testing.wait_all_tasks_blocked()
        assert maker.made == [(0, 4), (4, 8)], "not while it waits"
        case.intake.release(await case.taken())
        rest = await case.taken()
        assert (maker.made, case.reads.paused) == ([(0, 4), (4, 8), (8, 10)], set())
        case.intake.release(rest)
        assert (case.intake.held, rest[0].alone) == (0, False)


async def test_others_go_on_beside_what_stands_alone() -> None:
    async with running() as case:
        case.intake.go_carefully(PARTITION, 4, 8)
        case.found(some(0))
        held = await case.taken()
        case.found(some(0), partition=OTHER)
        assert values(await case.taken()) == [*range(10)]
        assert [one.source for one in held] == [PARTITION]


async def test_what_is_refused_is_made_again_of_what_was_read() -> None:
    maker = Counting()
    async with running(maker=maker) as case:
        case.intake.go_carefully(PARTITION, 8, 8)
        case.found(some(0))
        refused = await case.taken()
        assigned = len(case.reads.assigned)
        case.intake.go_carefully(PARTITION, 4, 8)
        case.intake.release(refused)
        case.intake.make_again({PARTITION: 0}, {PARTITION: 3})
        found: list[Portion] = []
        while len(found) < 3:
            found += (taken := await case.taken())
            case.intake.release(taken)
        assert [(one.first, one.next) for one in found] == [(0, 4), (4, 8), (8, 10)]
        assert (len(case.reads.assigned), case.reads.reads, case.intake.held) == (assigned, 1, 0)
        assert maker.made == [(0, 8), (0, 4), (4, 8), (8, 10)]


@pytest.mark.parametrize("position", [3, 21])
async def test_what_is_not_kept_is_read_again(position: int) -> None:
    async with running() as case:
        case.intake.assign({PARTITION: 5})
        case.intake.go_carefully(PARTITION, 5, 20)
        case.found(some(0, 20))
        case.intake.release(await case.taken())
        await trio.testing.wait_all_tasks_blocked()
        case.intake.make_again({PARTITION: position}, {PARTITION: 3})
        assert case.reads.assigned[-1] == {PARTITION: position}
        assert (case.reads.paused, case.intake.held) == (set(), 0)


async def test_what_is_unassigned_is_kept_no_longer() -> None:
    async with running() as case:
        case.intake.go_carefully(PARTITION, 4, 8)
        case.found(some(0))
        taken = await case.taken()
        assert case.intake.held > sum(one.size for one in taken), "what is kept counts"
        case.intake.unassign(PARTITION)
        case.intake.release(taken)
        await trio.testing.wait_all_tasks_blocked()
        assert (case.intake.held, case.reads.paused, case.intake.take_now(1)) == (0, set(), [])


@pytest.mark.parametrize("at", [0, 700, 999])
async def test_the_search_for_a_record_makes_each_some_times_only(at: int) -> None:
    """By halves, of a thousand batches of one record: not all of them for each half."""
    maker, count, written = Counting(), 1000, 0
    async with running(maker=maker) as case:
        case.intake.go_carefully(PARTITION, count, count)
        case.found(*(some(base, 1) for base in range(count)))
        while written < count:
            (portion,) = taken = await case.taken()
            if portion.is_letter or not portion.first <= at < portion.next:
                written = portion.next
                case.intake.release(taken)
                continue
            step = (portion.next - portion.first) // 2
            if step:
                case.intake.go_carefully(PARTITION, step, portion.next)
            else:
                case.intake.set_aside(PoisonRecord(PARTITION, at, "bad"))
            case.intake.release(taken)
            case.intake.make_again({PARTITION: portion.first}, {PARTITION: 3})
        assert case.reads.reads == 1
    assert maker.records < 3.2 * count
    assert len(maker.made) < 30


async def test_nothing_is_taken_with_one_that_stands_alone() -> None:
    async with running() as case:
        case.found(some(0), partition=OTHER)
        await trio.testing.wait_all_tasks_blocked()
        case.intake.go_carefully(PARTITION, 10, 10)
        case.found(some(0))
        await trio.testing.wait_all_tasks_blocked()
        assert [one.source for one in await case.taken()] == [OTHER]
        assert case.intake.next_is_alone
        assert [one.source for one in await case.taken()] == [PARTITION]


async def test_a_record_that_is_set_aside_is_a_dead_letter_in_its_place() -> None:
    async with running() as case:
        case.intake.set_aside(PoisonRecord(PARTITION, 4, "bad"))
        case.found(some(0))
        found: list[Portion] = []
        while len(found) < 3:
            found += await case.taken()
        assert [(one.first, one.next, one.is_letter) for one in found] == [
            (0, 4, False),
            (4, 5, True),
            (5, 10, False),
        ]


async def test_a_broken_batch_is_read_twice_before_it_is_given_up() -> None:
    bad = some(10)
    bad = bad._replace(data=bad.data[:-1] + bytes([bad.data[-1] ^ 1]))
    case = Case()
    case.intake.go_carefully(PARTITION, 10, 30)
    case.found(some(0), bad, some(20))

    async def write() -> None:
        case.intake.release(await case.taken())

    with pytest.raises(CorruptMessage, match=r"orders-0, offset 10: .* wrong CRC"), one_error():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            await case.intake.run()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(case.intake.run)
        case.intake.assign({PARTITION: 0})
        case.found(some(0), bad, some(20))
        found: list[Portion] = []
        while len(found) < 3:
            found += (taken := await case.taken())
            case.intake.release(taken)
        nursery.cancel_scope.cancel()
    assert [(one.first, one.next, one.is_letter) for one in found] == [
        (0, 10, False),
        (10, 20, True),
        (20, 30, False),
    ]


async def test_without_a_dead_letter_topic_it_stops() -> None:
    case = Case(dead=None)
    case.intake.set_aside(PoisonRecord(PARTITION, 0, "bad"))
    case.found(some(0))
    with pytest.raises(FlowStopped, match="bad"):
        await case.intake.run()


async def test_errors_of_a_partition_are_handed_on() -> None:
    error = OffsetOutOfRange("gone")
    async with running() as case:
        case.reads.send.send_nowait([PeerRead(PARTITION, b"", 0, 0, 0, error=error)])
        case.found(some(0), partition=OTHER)
        assert [one.source for one in await case.taken()] == [OTHER]
        assert case.errors == [(PARTITION, error)]


@pytest.mark.parametrize("cut", [False, True])
async def test_a_new_leader_epoch_is_checked_before_its_records_are_made(cut: bool) -> None:
    async with running(cut=cut) as case:
        case.found(some(0, epoch=3))
        await case.taken()
        assert case.epochs == []
        case.found(some(10, epoch=5))
        if cut:
            await trio.testing.wait_all_tasks_blocked()
            assert case.intake.take_now(1) == []
        else:
            assert values(await case.taken()) == [*range(10, 20)]
        assert case.epochs == [(3, 10)]


async def test_a_closed_one_gives_nothing_more() -> None:
    async with running() as case:
        case.found(some(0))
        await trio.testing.wait_all_tasks_blocked()
        case.intake.close()
        assert await case.taken() == []


async def test_a_writer_is_interrupted_and_another_goes_on() -> None:
    async with running() as case:
        case.intake.stop_taking()
        assert await case.taken() == []
        case.intake.start_taking()
        case.found(some(0))
        assert len(await case.taken()) == 1


async def test_empty_reads_move_the_position() -> None:
    async with running() as case:
        case.reads.send.send_nowait([PeerRead(PARTITION, b"", 7, 9, 0)])
        (portion,) = await case.taken()
        assert (portion.first, portion.next, portion.pieces) == (0, 7, [])

"""What is told of records that are at the target: from which offsets of the source they are, batch by batch, so that a
position of a group is translated to one from which it misses nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_forward.flows.making import Maker, Piece, Portion
from leafcuttr_forward.flows.positions import Position
from leafcuttr_forward.flows.progress import AppendedPortion, Progress
from leafcuttr_forward.flows.report import FlowReport, Written
from leafcuttr_forward.flows.routes import Route
from leafcuttr_forward.mm2.syncs import DueSyncs, SyncStore
from leafcuttr_sdk.filters import DROP
from leafcuttr_sdk.peers import PeerRead
from leafcuttr_sdk.records import Appended, Record
from leafcuttr_sdk.types import TopicPartition
from support.forwarded_batches import PARTITION, Judging, Seen, stored


class ToOne:
    """Everything goes to the partition of the same number."""

    def route(self, topic: str) -> Route:
        return Route(topic, 1)

    async def route_to(self, topic: str, like: str) -> Route:
        raise AssertionError(topic)


def copied(batches: Sequence[Sequence[int]], kept: set[int] | None) -> tuple[list[Written], dict[int, int]]:
    """What is told of batches with records of these offsets, read at once and written, and where each is then. With
    `kept` a filter drops all others."""

    async def make_chain(names: object, topic: str) -> Any:
        def judge(records: Sequence[Record]) -> list[Any]:
            return [one if int(one.value or b"") in (kept or ()) else DROP for one in records]

        return Judging(judge)

    data, end = b"", 0
    for offsets in batches:
        base = offsets[0]
        records = [(offset - base, Seen(1000, None, b"%d" % offset)) for offset in offsets]
        batch = stored(records, base=base)
        data, end = data + batch.data, batch.next_offset
    read = PeerRead(PARTITION, data, end, end, 0)
    filters = ["f"] if kept is not None else []
    portion: Portion = trio.run(Maker(ToOne(), filters=filters, make_chain=make_chain).make, read, 0)
    report, told, where = FlowReport("f"), list[Written](), dict[int, int]()
    report.on_written.append(told.extend)
    progress = Progress("f", "c", "c", {}, report)
    progress.start(PARTITION, 0, PARTITION.topic)
    there, appended = 0, list[Appended]()
    for piece in portion.pieces:
        appended.append(at(there, piece.records))
        there += piece.records
    progress.settle([AppendedPortion(portion, appended)])
    for offset in (one for offsets in batches for one in offsets):
        if kept is None or offset in kept:
            where[offset] = len(where)
    assert len(where) == there
    return told, where


def test_each_batch_has_the_offsets_of_its_own_records() -> None:
    told, _ = copied([range(20), range(20, 35), range(40, 60)], None)
    assert [(one.first_offset, one.next_offset, one.target_offset, one.records) for one in told] == [
        (0, 20, 0, 20),
        (20, 35, 20, 15),
        (40, 60, 35, 20),
    ]


def test_where_a_dead_letter_went_says_nothing_of_the_flow_s_own_topic() -> None:
    letter = Piece(TopicPartition("dead", 0), bytearray(70), 1, 11, 11, 70)
    own = Piece(PARTITION, bytearray(70), 10, 0, 9, 70)
    report = FlowReport("f")
    progress = Progress("f", "c", "c", {}, report)
    progress.start(PARTITION, 0, PARTITION.topic)
    first = AppendedPortion(Portion(PARTITION, 0, 12, pieces=[own, letter]), [at(100, 10), at(7, 1)])
    progress.settle([first])
    assert (progress.positions[PARTITION].offset, progress.positions[PARTITION].target_offset) == (12, 110)
    only = AppendedPortion(Portion(PARTITION, 12, 13, pieces=[letter]), [at(8, 1)])
    progress.settle([only])
    assert (progress.positions[PARTITION].offset, progress.positions[PARTITION].target_offset) == (13, 110)
    assert report.partitions[PARTITION].target_offset == 110
    unknown = AppendedPortion(Portion(PARTITION, 13, 14, pieces=[own]), [at(-1, 1)])
    progress.settle([unknown])
    assert progress.positions[PARTITION].target_offset == report.partitions[PARTITION].target_offset == -1


def test_offsets_at_the_target_are_known_after_a_restart() -> None:
    report = FlowReport("f")
    stored = {PARTITION: Position(12, source="c", target_offset=110)}
    progress = Progress("f", "c", "c", stored, report)
    progress.start(PARTITION, 12, "copy", 3)
    found = report.partitions[PARTITION]
    assert (found.target_topic, found.target_partition, found.target_offset) == ("copy", 3, 110)
    progress.start(PARTITION, 5, "copy", 3)
    assert found.target_offset == -1, "it begins elsewhere"


def at(base: int, count: int) -> Appended:
    return Appended(base, base + count - 1)


BATCHES = st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=25), min_size=1, max_size=8)


@given(BATCHES, st.none() | st.sets(st.integers(0, 200)), st.data())
def test_a_group_that_moves_misses_nothing(
    steps: list[list[int]], kept: set[int] | None, data: st.DataObject
) -> None:
    """Batches of any size, with gaps between and within them, with and without a filter."""
    offset, batches = 0, list[list[int]]()
    for some in steps:
        batches.append([])
        for step in some:
            batches[-1].append(offset)
            offset += step
    told, where = copied(batches, kept)
    due, store = DueSyncs(lag_max=10), SyncStore()
    for one in told:
        for sync in due.take(one):
            store.add(sync)
    at = data.draw(st.integers(0, offset))
    translated = store.translate(PARTITION, at)
    following = next((there for here, there in sorted(where.items()) if here >= at), len(where))
    assert translated is None or translated <= following

"""Offset syncs: what is kept, how it is translated, and what is due."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_forward.flows.report import Written
from leafcuttr_forward.mm2.records import OffsetSync
from leafcuttr_forward.mm2.syncs import DueSyncs, SyncStore
from leafcuttr_sdk.types import TopicPartition

T = TopicPartition("orders", 0)
THERE = TopicPartition("a.orders", 0)


def store_of(*syncs: tuple[int, int]) -> SyncStore:
    store = SyncStore()
    for up, down in syncs:
        store.add(OffsetSync(T, up, down))
    return store


def test_a_position_is_translated_by_the_last_sync_that_is_not_behind_it() -> None:
    store = store_of((10, 3), (20, 8))
    assert [store.translate(T, at) for at in (9, 10, 11, 19, 20, 21, 99)] == [None, 3, 4, 4, 8, 9, 9]
    assert store.translate(TopicPartition("orders", 1), 10) is None


def test_a_source_that_begins_anew_makes_what_was_before_void() -> None:
    assert store_of((10, 3), (20, 8), (5, 9)).translate(T, 15) == 10
    assert store_of((3, 1), (20, 8), (5, 9)).translate(T, 4) is None
    assert store_of((10, 30), (20, 8)).translate(T, 15) is None, "the target's topic was created anew"


def test_a_sync_of_the_same_offset_takes_the_place_of_the_last() -> None:
    assert store_of((10, 3), (10, 7)).translate(T, 10) == 7


def test_few_are_kept_and_the_older_they_are_the_fewer() -> None:
    store = SyncStore()
    for number in range(1, 5001):
        store.add(OffsetSync(T, number, number))
        assert store.translate(T, 1) == 1, "the first one is kept"
    exact = [number for number in range(1, 5001) if store.translate(T, number) == number]
    # Between two of them no more are left out than twice as many as came behind.
    assert all(later - one <= max(2 * (5000 - later), 1) for one, later in pairwise(exact))
    assert 10 < len(store._kept[T]) < 20


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(0, 20)), min_size=1, max_size=60), st.data())
def test_no_record_is_missed(runs: list[tuple[int, int]], data: st.DataObject) -> None:
    """Records with gaps at the source, one behind the other at the target: a group never begins behind its next one."""
    store, upstream, downstream = SyncStore(), 0, 0
    where: dict[int, int] = {}
    due = DueSyncs(lag_max=100)
    for count, gap in runs:
        first = upstream
        for _ in range(count):
            where[upstream] = downstream
            upstream, downstream = upstream + 1, downstream + 1
        written = Written(T, first, upstream, THERE, downstream - count, count, 0)
        for sync in due.take(written):
            store.add(sync)
        upstream += gap
    at = data.draw(st.integers(0, upstream))
    translated = store.translate(T, at)
    following = next((there for here, there in sorted(where.items()) if here >= at), downstream)
    assert translated is not None and translated <= following
    assert at != max(where) + 1 or translated == downstream, "at the end it is exact"


def wrote(first: int, count: int, down: int, gap: int = 0) -> Written:
    return Written(T, first, first + count + gap, THERE, down, count, 0)


def pairs(syncs: list[OffsetSync]) -> list[tuple[int, int]]:
    return [(sync.upstream, sync.downstream) for sync in syncs]


def test_the_first_records_are_due_at_once() -> None:
    due = DueSyncs(lag_max=100)
    assert not due
    assert pairs(due.take(wrote(5, 10, 0))) == [(5, 0), (14, 9)]
    assert due and pairs(due.pop()) == [(5, 0), (14, 9)]
    assert not due


def test_then_only_every_so_many_and_the_others_once_in_a_while() -> None:
    due = DueSyncs(lag_max=100)
    due.take(wrote(0, 1, 0))
    assert pairs(due.pop()) == [(0, 0)]
    assert pairs(due.take(wrote(1, 99, 1))) == [(99, 99)]
    assert not due
    due.promote()
    assert pairs(due.pop()) == [(99, 99)]
    due.promote()
    assert not due
    due.take(wrote(100, 101, 100))
    assert pairs(due.pop()) == [(200, 200)]


def test_a_gap_at_the_source_is_due_at_once() -> None:
    due = DueSyncs(lag_max=100)
    due.take(wrote(0, 1, 0))
    due.pop()
    due.take(wrote(3, 2, 1))
    assert pairs(due.pop()) == [(3, 1), (4, 2)]
    due.take(wrote(5, 2, 3, gap=4))
    assert not due, "the gap is behind it"
    due.take(wrote(11, 1, 5))
    assert not due


def test_a_target_that_begins_anew_is_due_at_once() -> None:
    due = DueSyncs(lag_max=100)
    due.take(wrote(0, 50, 100))
    due.pop()
    due.take(wrote(50, 1, 0))
    assert pairs(due.pop()) == [(50, 0)]


def test_of_many_that_wait_the_last_is_written() -> None:
    due = DueSyncs(lag_max=0)
    for number in range(100):
        due.take(wrote(number, 1, number))
    assert pairs(due.pop()) == [(0, 0), (99, 99)]


def test_what_was_not_written_is_put_back_behind_what_is_newer() -> None:
    due = DueSyncs(lag_max=1)
    due.take(wrote(0, 1, 0))
    failed = due.pop()
    due.put_back(failed)
    assert pairs(due.pop()) == [(0, 0)]
    due.take(wrote(1, 9, 1))
    due.put_back(failed)
    assert pairs(due.pop()) == [(9, 9)]


def test_what_left_nothing_at_the_target_says_nothing() -> None:
    due = DueSyncs(lag_max=1)
    assert due.take(wrote(0, 0, 5)) == []
    assert due.take(wrote(0, 3, -1)) == []
    assert not due

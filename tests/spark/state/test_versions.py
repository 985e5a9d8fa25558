"""The rows of a table for one key, against a plain model: the whole changelog, sorted anew for each question."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_spark.state.versions import Change, Version, as_of, changed, remembered
from support.gates_slice import sampled

CHANGES = st.lists(st.tuples(st.integers(0, 20), st.one_of(st.none(), st.integers(0, 9))), max_size=12).map(
    lambda found: [Change(time, offset, row) for offset, (time, row) in enumerate(found)]
)


def seen(changes: list[Change[int]], time: int) -> int | None:
    before = sorted((one for one in changes if one.time <= time), key=lambda one: (one.time, one.offset))
    return before[-1].row if before else None


@settings(max_examples=sampled(300), deadline=None)
@given(CHANGES, st.lists(st.integers(0, 12), max_size=4))
def test_a_row_sees_the_table_as_of_its_time(changes: list[Change[int]], cuts: list[int]) -> None:
    versions: list[Version[int]] = []
    begin = 0
    for end in [*sorted(cuts), len(changes)]:
        # Offsets rise from batch to batch; within one they come in any order.
        versions = changed(versions, reversed(changes[begin:end]))
        begin = max(begin, end)
    assert [one.since for one in versions] == sorted({one.since for one in versions})
    for time in range(-1, 22):
        assert as_of(versions, time) == seen(changes, time)


@settings(max_examples=sampled(300), deadline=None)
@given(CHANGES, st.integers(0, 20))
def test_what_no_row_can_see_any_more_is_forgotten_and_nothing_else(
    changes: list[Change[int]], watermark: int
) -> None:
    left = remembered(changed([], changes), watermark)
    for time in range(watermark, 22):
        assert as_of(left, time) == seen(changes, time)
    assert sum(one.since <= watermark for one in left) <= 1
    assert not left or left[0].row is not None or left[0].since > watermark


def test_of_two_changes_at_one_time_the_greater_offset_counts() -> None:
    versions = changed([], [Change(5, 2, "new"), Change(5, 1, "old")])
    assert versions == [Version(5, "new")]
    assert changed(versions, [Change(5, 3, None)]) == [Version(5, None)]


def test_a_key_that_was_deleted_long_ago_is_forgotten() -> None:
    assert remembered([Version(1, "a"), Version(3, None)], 3) == []
    assert remembered([Version(1, "a"), Version(3, None)], 2) == [Version(1, "a"), Version(3, None)]

"""Rows of one key in windows, against a plain model: all windows there could be, tried one by one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_spark.pipelines.operations import (
    HoppingWindow,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    Window,
)
from leafcuttr_spark.state.windows import NEVER, Timed, closed_by_row, final, updates, windows_of
from support.gates_slice import sampled

TIMES = st.lists(st.integers(0, 60), max_size=12)
SIZES = st.integers(1, 12)
WINDOWS = st.one_of(
    st.builds(TumblingWindow, SIZES),
    SIZES.flatmap(lambda size: st.builds(HoppingWindow, st.just(size), st.integers(1, size))),
    st.builds(SlidingWindow, SIZES),
    st.builds(SessionWindow, SIZES),
)


def edges(window: Window, times: list[int]) -> set[tuple[int, int]]:
    """What windows there are, by the definition of each kind."""
    match window:
        case TumblingWindow(size):
            return {(at // size * size, at // size * size + size) for at in times}
        case HoppingWindow(size, advance):
            starts = {start for start in range(-100 * advance, 100, 1) if start % advance == 0}
            return {(start, start + size) for start in starts for at in times if start <= at < start + size}
        case SlidingWindow(difference):
            found = {(max(0, at - difference), max(at, difference)) for at in times}
            for at in times:
                if any(at + 1 <= other <= at + 1 + difference for other in times):
                    found.add((at + 1, at + 1 + difference))
            return found
        case SessionWindow(gap):
            found = set()
            for at in times:
                first = last = at
                grown = True
                while grown:
                    near = [one for one in times if first - gap <= one <= last + gap]
                    grown = min(near) < first or max(near) > last
                    first, last = min(near), max(near)
                found.add((first, last + gap))
            return found


def members(window: Window, edge: tuple[int, int], times: list[int]) -> list[int]:
    inclusive = isinstance(window, SlidingWindow)
    return sorted(at for at in times if edge[0] <= at and (at <= edge[1] if inclusive else at < edge[1]))


def closes(window: Window, edge: tuple[int, int]) -> int:
    """The first close time at which it is closed."""
    return edge[1] + isinstance(window, SlidingWindow)


@settings(max_examples=sampled(300), deadline=None)
@given(WINDOWS, TIMES)
def test_windows_are_those_of_the_definition(window: Window, times: list[int]) -> None:
    found = windows_of(window, sorted(times))
    assert {(one.start, one.end) for one in found} == edges(window, times)
    assert [one.end for one in found] == sorted(one.end for one in found)
    for one in found:
        assert one.closed_by == closes(window, (one.start, one.end))
        assert one.last in (one.end, one.end - 1) or isinstance(window, SessionWindow)


@settings(max_examples=sampled(300), deadline=None)
@given(WINDOWS, st.integers(0, 60))
def test_a_row_is_late_once_all_of_its_windows_are_closed(window: Window, at: int) -> None:
    last = max(closes(window, edge) for edge in edges(window, [at]))
    if isinstance(window, SlidingWindow):
        # The window from the row on, in which there may come others.
        last = at + window.difference_ms + 1
    assert closed_by_row(window, at) == last


def in_batches(data: st.DataObject, window: Window) -> tuple[list[list[int]], list[int]]:
    """Times of rows in batches, none of which is late by the close time of the batch before, and the close times."""
    batches, closed, close = [], [], NEVER
    for _ in range(data.draw(st.integers(1, 6))):
        before = closed[-1] if closed else NEVER
        times = data.draw(st.lists(st.integers(0, 60), max_size=5))
        batches.append([at for at in times if closed_by_row(window, at) > before])
        close = max(close, data.draw(st.integers(-5, 70)))
        closed.append(close)
    return batches, closed


@settings(max_examples=sampled(400), deadline=None)
@given(WINDOWS, st.data())
def test_each_window_is_given_once_when_it_closes_with_all_rows_that_came_in_time(
    window: Window, data: st.DataObject
) -> None:
    batches, closed = in_batches(data, window)
    kept: list[Timed[int]] = []
    seen: list[int] = []
    given_before: set[tuple[int, int]] = set()
    before = NEVER
    for times, now in zip(batches, closed, strict=True):
        step = final(window, kept, [Timed(at, at) for at in times], before, now)
        seen += times
        for bounds, rows in step.given:
            edge = (bounds.start, bounds.end)
            assert edge not in given_before
            given_before.add(edge)
            assert before < bounds.closed_by <= now
            assert rows, "a window without rows"
            if not isinstance(window, SessionWindow):
                assert sorted(rows) == members(window, edge, seen)
        if not isinstance(window, SessionWindow):
            there = {edge for edge in edges(window, seen) if before < closes(window, edge) <= now}
            assert {(one.start, one.end) for one, _ in step.given} == there
        assert step.wake_at is None or step.wake_at > now
        open_ = [closes(window, edge) for edge in edges(window, [row.time for row in step.kept])]
        assert step.wake_at == min((one for one in open_ if one > now), default=None)
        kept, before = step.kept, max(before, now)


@settings(max_examples=sampled(400), deadline=None)
@given(WINDOWS, st.data())
def test_updates_give_each_window_that_has_changed_as_it_is_now(window: Window, data: st.DataObject) -> None:
    batches, closed = in_batches(data, window)
    kept: list[Timed[int]] = []
    seen: list[int] = []
    last: dict[tuple[int, int], list[int]] = {}
    late = NEVER
    for times, now in zip(batches, closed, strict=True):
        step = updates(window, kept, [Timed(at, at) for at in times], late, now)
        seen += times
        for one in step.gone:
            del last[one.start, one.end]
        for bounds, rows in step.given:
            assert bounds.closed_by > late, "a window that was closed"
            last[bounds.start, bounds.end] = sorted(rows)
        if not isinstance(window, SessionWindow):
            for edge in edges(window, seen):
                if closes(window, edge) > late:
                    assert last[edge] == members(window, edge, seen)
        kept, late = step.kept, now
    if isinstance(window, SessionWindow):
        assert sorted(at for rows in last.values() for at in rows) == sorted(seen)


def test_a_session_that_grows_replaces_the_one_that_was_given() -> None:
    window = SessionWindow(5)
    first = updates(window, [], [Timed(10, "a"), Timed(20, "b")], NEVER, 0)
    assert [(one.start, one.end, rows) for one, rows in first.given] == [(10, 15, ["a"]), (20, 25, ["b"])]
    second = updates(window, first.kept, [Timed(15, "c")], NEVER, 0)
    assert [(one.start, one.end, rows) for one, rows in second.given] == [(10, 25, ["a", "c", "b"])]
    assert [(one.start, one.end) for one in second.gone] == [(10, 15), (20, 25)]


def test_rows_that_no_open_window_has_are_forgotten() -> None:
    step = final(SlidingWindow(10), [], [Timed(100, "a"), Timed(150, "b")], NEVER, 112)
    assert [row.row for row in step.kept] == ["b"]
    step = final(SlidingWindow(10), [], [Timed(100, "a"), Timed(150, "b")], NEVER, 111)
    assert [row.row for row in step.kept] == ["a", "b"], "a window [101, 111] may still open"
    step = final(SessionWindow(10), [], [Timed(100, "a"), Timed(150, "b")], NEVER, 110)
    assert [row.row for row in step.kept] == ["b"]

"""Rows of one key in windows: which windows there are, which of them close, which have changed.

It has the rules of Kafka Streams. Times are milliseconds since 1970. A window is closed by the *close time*: event time
as far as the watermark has come, less the grace of the windows. A window that is closed takes no more rows and is given
no more; one row can come too late for some windows and in time for others.

    tumbling, hopping   from the epoch on; the end is exclusive; closed once the close time has reached the end
    sliding             KIP-450: for each time t of a row [t - d, t], and [t + 1, t + 1 + d] where it has rows; both
                        ends inclusive; closed once the close time is behind the end. Rows of the first d ms after
                        1970 share [0, d]
    session             rows whose times differ by at most the gap; the end, exclusive, is the last time and the gap
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from leafcuttr_spark.pipelines.operations import (
    HoppingWindow,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    Window,
)

NEVER: Final = -(1 << 62)
"""The close time before the first watermark."""

Row = TypeVar("Row")


class Bounds(NamedTuple):
    """A window: its first millisecond, its end as it is shown, the last millisecond that is in it, and the close time
    that closes it."""

    start: int
    end: int
    last: int
    closed_by: int


class Timed(NamedTuple, Generic[Row]):
    """A row and its time."""

    time: int
    row: Row


@dataclass(frozen=True)
class Outcome(Generic[Row]):
    """What came of some rows, or of a later close time."""

    kept: list[Timed[Row]]
    """The rows that open windows have or can still get, by time."""
    given: list[tuple[Bounds, list[Row]]]
    """Windows with all of their rows, by their ends: those that have changed, or those that are closed now."""
    gone: list[Bounds]
    """Sessions that were given before and are part of a longer one now."""
    wake_at: int | None
    """The close time at which the next window closes; None: there is none."""


WindowsOf: TypeAlias = Callable[[Sequence[int]], list[Bounds]]


def final(
    window: Window, kept: Sequence[Timed[Row]], new: Iterable[Timed[Row]], before: int, now: int
) -> Outcome[Row]:
    """Each window once, when it closes. `before` is the close time up to which windows were given already."""
    rows = _by_time([*kept, *new])
    windows = windows_of(window, [one.time for one in rows])
    given = [one for one in windows if before < one.closed_by <= now]
    return Outcome(_needed(window, rows, windows, now), _with_rows(given, rows), [], _next(windows, now))


def updates(
    window: Window, kept: Sequence[Timed[Row]], new: Sequence[Timed[Row]], before: int, now: int
) -> Outcome[Row]:
    """Each window whenever it has changed. `before` is the close time when the rows came, by which it is decided
    whether they were late."""
    known = {(one.start, one.end) for one in windows_of(window, [one.time for one in kept])}
    rows = _by_time([*kept, *new])
    windows = windows_of(window, [one.time for one in rows])
    times = sorted(one.time for one in new)

    def changed(one: Bounds) -> bool:
        is_new = (one.start, one.end) not in known
        return one.closed_by > before and (is_new or _between(times, one.start, one.last))

    given = [one for one in windows if changed(one)]
    there = {(one.start, one.end) for one in windows}
    gone = [
        one for one in windows_of(window, [one.time for one in kept]) if (one.start, one.end) not in there
    ]
    return Outcome(_needed(window, rows, windows, now), _with_rows(given, rows), gone, _next(windows, now))


def closed_by_row(window: Window, time: int) -> int:
    """The close time at which a row of this time is late for all of its windows."""
    match window:
        case SlidingWindow(difference):
            return time + difference + 1
        case SessionWindow(gap):
            return time + gap
        case TumblingWindow(size):
            return time - time % size + size
        case HoppingWindow(size, advance):
            return time - time % advance + size


def windows_of(window: Window, times: Sequence[int]) -> list[Bounds]:
    """All windows that rows of these times make, by their ends. `times` are in order."""
    match window:
        case SlidingWindow(difference):
            found = _sliding(times, difference)
        case SessionWindow(gap):
            found = _sessions(times, gap)
        case TumblingWindow(size):
            found = _hopping(times, size, size)
        case HoppingWindow(size, advance):
            found = _hopping(times, size, advance)
    return sorted(found, key=lambda one: (one.end, one.start))


def _hopping(times: Sequence[int], size: int, advance: int) -> Iterable[Bounds]:
    starts: set[int] = set()
    for time in times:
        last = time - time % advance
        starts.update(range(last, time - size, -advance))
    return [Bounds(start, start + size, start + size - 1, start + size) for start in starts]


def _sliding(times: Sequence[int], difference: int) -> Iterable[Bounds]:
    starts: set[int] = set()
    for time in times:
        starts.add(0 if 0 <= time < difference else time - difference)
        if _between(times, time + 1, time + 1 + difference):
            starts.add(time + 1)
    return [Bounds(start, start + difference, start + difference, start + difference + 1) for start in starts]


def _sessions(times: Sequence[int], gap: int) -> Iterable[Bounds]:
    first = previous = None
    for time in times:
        if first is None or previous is None:
            first = time
        elif time - previous > gap:
            yield Bounds(first, previous + gap, previous, previous + gap)
            first = time
        previous = time
    if first is not None and previous is not None:
        yield Bounds(first, previous + gap, previous, previous + gap)


def _needed(window: Window, rows: list[Timed[Row]], windows: list[Bounds], now: int) -> list[Timed[Row]]:
    """What an open window has, or one that a row can still open."""
    if isinstance(window, SlidingWindow):
        # The right window of a row begins behind it and is open for one ms more than the window that ends with it.
        return [one for one in rows if one.time + window.difference_ms + 2 > now]
    open_ = [one for one in windows if one.closed_by > now]
    return [row for row in rows if any(one.start <= row.time <= one.last for one in open_)]


def _next(windows: Iterable[Bounds], now: int) -> int | None:
    return min((one.closed_by for one in windows if one.closed_by > now), default=None)


def _with_rows(windows: Iterable[Bounds], rows: list[Timed[Row]]) -> list[tuple[Bounds, list[Row]]]:
    times = [one.time for one in rows]
    return [
        (one, [row.row for row in rows[bisect_left(times, one.start) : bisect_right(times, one.last)]])
        for one in windows
    ]


def _between(times: Sequence[int], first: int, last: int) -> bool:
    at = bisect_left(times, first)
    return at < len(times) and times[at] <= last


def _by_time(rows: list[Timed[Row]]) -> list[Timed[Row]]:
    return sorted(rows, key=lambda one: one.time)

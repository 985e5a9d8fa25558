"""The numbers that are counted where things happen: plain attributes, a few additions for each request or round.

What can be read off the broker's own state at a scrape (offsets, sizes, members) is not counted. One `Counts` belongs
to one broker; nothing is shared by a process.
"""

from bisect import bisect_left
from itertools import accumulate
from typing import Final, TypeVar

_LAST: Final = 29
SHORTEST: Final = 6  # 64 us: the first bound that is shown,
LONGEST: Final = 24  # and the last, 16.8 s


class Times:
    """How often something happened and how long it took: a histogram whose bounds are powers of two of a microsecond.

    `buckets[n]` counts what took less than 2**n microseconds and not less than half of that.
    """

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (_LAST + 1)
        self.seconds = 0.0

    def add(self, seconds: float, count: int = 1) -> None:
        """`count` of them took this long, each."""
        at = int(seconds * 1e6).bit_length()
        self.buckets[at if at < _LAST else _LAST] += count
        self.seconds += seconds * count

    @property
    def count(self) -> int:
        return sum(self.buckets)

    @property
    def total(self) -> float:
        return self.seconds

    def cumulative(self) -> list[tuple[float, int]]:
        """(bound in seconds, how many took at most so long) for the bounds that are shown; the last is infinite."""
        found, below = [], sum(self.buckets[:SHORTEST])
        for power in range(SHORTEST, LONGEST + 1):
            below += self.buckets[power]
            found.append((2**power / 1e6, below))
        return [*found, (float("inf"), self.count)]


class Distribution:
    """How often values were at most as large as each of the bounds, which rise; and their sum."""

    __slots__ = ("_bounds", "buckets", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.buckets[bisect_left(self._bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.buckets)

    def cumulative(self) -> list[tuple[float, int]]:
        """(bound, how many were at most as large); the last is infinite."""
        return list(zip((*self._bounds, float("inf")), accumulate(self.buckets), strict=True))


_Key = TypeVar("_Key")


class _ByKey(dict[_Key, Times]):
    def __missing__(self, key: _Key) -> Times:
        found = self[key] = Times()
        return found


class Counts:
    """What one broker has counted since its start.

    `answered`: by API key, from the arrival of a request to its answer's being ready to leave. `unanswered`: requests
    that want no answer (Produce with acks=0), by API key. `errors`: by API key and error code, each place of an answer
    that has one. `malformed`: connections that were closed because of what their peer sent. `loop_delay`: how late the
    event loop was, see `leafcuttr.server.loop_delay`. `throttled`: for how long clients were held back, by quota.
    `paused`: connections that are not read now because of that; `held`: those that are not served yet.
    """

    __slots__ = ("answered", "errors", "held", "loop_delay", "malformed", "paused", "throttled", "unanswered")

    def __init__(self) -> None:
        self.answered: dict[int, Times] = _ByKey()
        self.unanswered: dict[int, int] = {}
        self.errors: dict[tuple[int, int], int] = {}
        self.loop_delay = Times()
        self.malformed = 0
        self.throttled: dict[str, Times] = _ByKey()
        self.paused = 0
        self.held = 0

    def failed(self, api_key: int, code: int) -> None:
        key = api_key, code
        self.errors[key] = self.errors.get(key, 0) + 1

"""How much of what there is one batch of a stream gets, and what it gets where there is nothing. Without I/O; the time
is given."""

import math
from collections.abc import Mapping

from leafcuttr_sdk.types import TopicPartition

Offsets = Mapping[TopicPartition, int]


def admitted(first: Offsets, ends: Offsets, maximum: int | None) -> dict[TopicPartition, int]:
    """The ends of a batch of about `maximum` offsets: each partition gives in proportion to what it has, one offset at
    least. `first` and `ends` have the same partitions."""
    sizes = {one: max(0, end - first[one]) for one, end in ends.items()}
    total = sum(sizes.values())
    if maximum is None or total <= maximum:
        return dict(ends)
    return {one: first[one] + _share(size, maximum, total) for one, size in sizes.items()}


def _share(size: int, maximum: int, total: int) -> int:
    if not size:
        return 0
    # Integers: a float would be wrong above 2**53.
    return min(size, max(1, size * maximum // total))


class Patience:
    """When a stream that waits for `minimum` offsets has waited long enough."""

    def __init__(self, minimum: int | None, delay_s: float) -> None:
        self._minimum = minimum
        self._delay_s = delay_s
        self._last = -math.inf

    def waits(self, first: Offsets, ends: Offsets, now: float) -> bool:
        """Whether there is too little for a batch, `now` (seconds of a clock that does not go back). The first batch
        does not wait."""
        if self._minimum is None:
            return False
        there = sum(max(0, end - first[one]) for one, end in ends.items())
        if not there:
            return True
        if there >= self._minimum or now - self._last >= self._delay_s:
            self._last = now
            return False
        return True


class Idleness:
    """When a stream that has no records moves event time on by itself, so that it does not hold the watermark of others
    back: once nothing has come for `idle_s`, and again each time that this has passed."""

    def __init__(self, idle_s: float | None) -> None:
        self._idle_s = idle_s
        self._since: float | None = None

    def tick(self, has_records: bool, now: float) -> bool:
        """Whether it is time to, `now` (seconds of a clock that does not go back)."""
        if self._idle_s is None:
            return False
        if has_records or self._since is None:
            self._since = now
            return False
        if now - self._since < self._idle_s:
            return False
        self._since = now
        return True

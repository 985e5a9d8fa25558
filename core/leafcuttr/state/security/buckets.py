"""What is left of a quota, as a bucket that fills with the quota's rate. No I/O, no clock: the time is an argument.

A bucket may be drawn below zero: what was done is counted, and what comes next waits until that is paid. So the average
holds however large a single amount is.
"""

from typing import Final

_LONGEST_S: Final = (2**31 - 1) / 1000
"""What fits into `throttle_time_ms`."""


class Bucket:
    """Fills with `rate` a second up to `most`; `level` is what it begins with. `longest_s` is the longest wait that it
    says, however large the debt."""

    __slots__ = ("__weakref__", "_at_s", "_level", "longest_s", "most", "rate")

    def __init__(
        self, rate: float, most: float, level: float, now_s: float, longest_s: float = _LONGEST_S
    ) -> None:
        self.rate = rate
        self.most = most
        self.longest_s = longest_s
        self._level = level
        self._at_s = now_s

    def level(self, now_s: float) -> float:
        """What may be taken now; below zero: the debt."""
        if now_s > self._at_s:
            self._level = min(self._level + (now_s - self._at_s) * self.rate, self.most)
            self._at_s = now_s
        return self._level

    def take(self, amount: float, now_s: float) -> None:
        self._level = self.level(now_s) - amount

    def wait_s(self, now_s: float, until: float = 0.0) -> float:
        """How long until it holds so much; 0 if it does."""
        missing = until - self.level(now_s)
        return min(missing / self.rate, self.longest_s) if missing > 0 else 0.0

    def resize(self, rate: float, most: float, now_s: float) -> None:
        """Another rate from now on; the debt stays."""
        self._level = min(self.level(now_s), most)
        self.rate, self.most = rate, most

    def is_full(self, now_s: float) -> bool:
        """Whether nothing that was taken is remembered any more."""
        return self.level(now_s) >= self.most

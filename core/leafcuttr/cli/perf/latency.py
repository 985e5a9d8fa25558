"""Latencies counted by the tenth of a millisecond: any number of them in the same memory."""

from array import array
from typing import Any, Final

_STEP_MS: Final = 0.1
_STEPS: Final = 1_200_000
"""Two minutes; what takes longer counts as that in percentiles. The maximum is exact."""


class Latencies:
    """Milliseconds."""

    def __init__(self) -> None:
        self.counts = array("I", bytes(4 * _STEPS))
        self.count = 0
        self.total = self.longest = 0.0

    def add(self, ms: float) -> None:
        """One more."""
        self.counts[min(int(ms / _STEP_MS), _STEPS - 1)] += 1
        self.count += 1
        self.total += ms
        if ms > self.longest:
            self.longest = ms

    @property
    def average(self) -> float:
        """0 without any."""
        return self.total / self.count if self.count else 0.0

    def percentiles(self, *shares: float) -> list[float]:
        """For each share (ascending, 0.99 for p99) the smallest latency that so many do not pass; 0 without any."""
        found: list[float] = []
        seen = 0
        if self.count:
            for step, count in enumerate(self.counts[: int(self.longest / _STEP_MS) + 1]):
                if count:
                    seen += count
                    while len(found) < len(shares) and seen >= shares[len(found)] * self.count:
                        found.append(min(round((step + 1) * _STEP_MS, 1), self.longest))
        return found + [0.0] * (len(shares) - len(found))

    def figures(self) -> dict[str, Any]:
        """For JSON."""
        p50, p95, p99, p999 = self.percentiles(0.5, 0.95, 0.99, 0.999)
        return {
            "avg_ms": round(self.average, 3),
            "max_ms": round(self.longest, 3),
            "p50_ms": p50,
            "p95_ms": p95,
            "p99_ms": p99,
            "p999_ms": p999,
        }

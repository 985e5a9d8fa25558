"""The pauses between a failure of a service and its next start."""

import random
from typing import Final

FIRST_S: Final = 0.5
LONGEST_S: Final = 60.0
STEADY_S: Final = 60.0
"""A service that has been up for this long was well: its next failure is a first one again."""


class Backoff:
    """Twice as long after each failure, up to a minute; up to half of it is left to chance, so that services that
    failed together do not come back together."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._failures = 0

    def pause_s(self, up_s: float) -> float:
        """After a failure of a service that had been up for `up_s` seconds."""
        if up_s >= STEADY_S:
            self._failures = 0
        longest = min(FIRST_S * 2.0 ** min(self._failures, 32), LONGEST_S)
        self._failures += 1
        return longest * self._chance.uniform(0.5, 1.0)

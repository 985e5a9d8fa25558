"""Searches a text for a regular expression, in a time that has a bound.

Python's engine is the quickest, and tries every way to match: `(a+)+b` in a text of forty `a` takes it hours. So it is
used where the ways are known to be few for the length of the text; everywhere else the automaton, which takes about
50 ns for a character, and some microseconds at worst.
"""

import math
from typing import Final

from leafcuttr_sdk.conditions.automaton import Automaton
from leafcuttr_sdk.conditions.regular import Regular, parse_regular, ways_of

_STEPS: Final = 1_000_000
"""What Python's engine may take at most: some milliseconds."""
_STEPS_PER_CHARACTER: Final = 40
"""Of Python's engine, in the time that the automaton takes for a character."""
_HIGHEST_DEGREE: Final = 4


class Search:
    """One regular expression. Raises ValueError, one line, for one that is not taken."""

    def __init__(self, source: str) -> None:
        self._regular: Final = parse_regular(source)
        self._python: Final = self._regular.compiled.search
        self._literal: Final = self._regular.literal
        self._automaton: Automaton | None = None
        self.longest: Final = _longest(self._regular)
        """The length of the longest text in which Python's engine searches."""

    def __call__(self, text: str) -> bool:
        """Whether it is found anywhere in the text."""
        if len(text) <= self.longest:
            return self._python(text) is not None
        if self._literal not in text:
            return False
        if self._automaton is None:
            self._automaton = Automaton(self._regular)
        return self._automaton.is_in(text)


def _longest(regular: Regular) -> float:
    """Python's engine begins at every character of a text, but at the first only where it must match there."""
    ways = ways_of(regular.tree)
    steps, degree = ways.steps + 1, ways.degree + (not regular.at_beginning)
    if degree > _HIGHEST_DEGREE:
        return 0
    if degree <= 1 and steps <= _STEPS_PER_CHARACTER:
        return math.inf
    return int((_STEPS / steps) ** (1 / max(degree, 1)))

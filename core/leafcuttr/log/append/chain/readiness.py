"""Validators and filters that lack something for now: they refuse a batch by `NotReady`, and `/health` says what they
wait for. Of no chain is it known whether it is ready before it is given records; so what was said last counts for a
while only: clients that are refused come back within seconds.
"""

import logging
import time
from typing import Any, Final, NoReturn

from leafcuttr.errors import NotReadyError
from leafcuttr.runtime.complaints import Complaints
from leafcuttr.runtime.described import first_line
from leafcuttr.runtime.plugin_parts import Part
from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.filters import NotReady

HOLDS_S: Final = 60.0
"""How long it counts that a batch was refused."""


class Readiness:
    """Whether a chain is ready, by the last batch. Any thread."""

    __slots__ = ("_complain", "_refused")

    def __init__(self, complain: Complaints) -> None:
        self._complain = complain
        self._refused: tuple[float, str] | None = None

    def refuse(self, part: Part, verdict: NotReady) -> NoReturn:
        """Raises NotReadyError: this part cannot judge the batch yet."""
        waits_for = first_line(verdict.waits_for) or "something that it does not name"
        self._refused = time.monotonic(), f"{part} waits for {waits_for}"
        self._complain(
            f"{part} is not ready",
            *("the %s is not ready: it waits for %s; producers are told to try again", part, waits_for),
            level=logging.WARNING,
        )
        raise NotReadyError(f"The {part.name} is not ready: it waits for {waits_for}")

    def judged(self) -> None:
        """All of them have judged a batch."""
        self._refused = None

    @property
    def waits(self) -> str:
        """Which one waits, and for what; empty if none does."""
        refused = self._refused
        return refused[1] if refused is not None and time.monotonic() - refused[0] < HOLDS_S else ""


def fault_of_not_ready(verdict: NotReady) -> str | None:
    """What of it makes it no verdict."""
    fields: tuple[Any, ...] = verdict  # of any type: a filter has made it
    (waits_for,) = fields
    if isinstance(waits_for, str):
        return None
    return f"its verdict is {kind_of(verdict)}, which waits for {kind_of(waits_for)}, not a text"

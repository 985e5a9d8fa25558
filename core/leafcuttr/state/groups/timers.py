"""The deadlines of groups: one heap for all of them, one task that sleeps until the first is due.

A group that is due earlier than before gets a second place in the heap, and its older one is emptied, as is that
of a group that is no more. Empty places are dropped when they come up, and once half of them are empty all of those go.
Heartbeats move deadlines back only, so they never come here.
"""

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Final

import trio

from leafcuttr.state.groups.table import Entry
from leafcuttr_sdk import Clock

_FEW: Final = 1_000  # empty places that are left to come up by themselves


@dataclass(slots=True, eq=False)
class _Place:
    """Of a group in the heap; it holds on to the group only while that is waited for."""

    at: float
    entry: Entry | None

    def __lt__(self, other: "_Place") -> bool:
        return self.at < other.at


class Timers:
    """Deadlines of groups, in monotonic seconds of `clock`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[_Place] = []
        self._places: dict[Entry, _Place] = {}
        self._sooner = trio.Event()

    def want(self, entry: Entry) -> None:
        """Wake this group when its machine has to be."""
        at = entry.group.wake_at
        known = self._places.get(entry)
        if at is None or (known is not None and known.at <= at):
            return
        self.drop(entry)
        place = self._places[entry] = _Place(at, entry)
        heappush(self._heap, place)
        if self._heap[0] is place:
            self._sooner.set()

    def drop(self, entry: Entry) -> None:
        """Do not wake this group."""
        place = self._places.pop(entry, None)
        if place is None:
            return
        place.entry = None
        if len(self._heap) > 2 * len(self._places) + _FEW:
            self._heap = [each for each in self._heap if each.entry is not None]
            heapify(self._heap)

    @property
    def late_s(self) -> float:
        """For how long the first one has been due."""
        return self._clock.monotonic() - self._heap[0].at if self._heap else 0.0

    def due(self) -> list[Entry]:
        """Take the groups whose time has come; each is put back with `want` when it has been served."""
        now = self._clock.monotonic()
        found = []
        while self._heap and self._heap[0].at <= now:
            entry = heappop(self._heap).entry
            if entry is not None:
                del self._places[entry]
                found.append(entry)
        return found

    async def wait(self) -> None:
        """Until something may be due."""
        self._sooner = trio.Event()
        left = self._heap[0].at - self._clock.monotonic() if self._heap else float("inf")
        with trio.move_on_after(max(left, 0)):
            await self._sooner.wait()

"""When which group wants to be woken: one heap for all of them, one task that sleeps until the first is due.

A group that is asked for earlier than before gets a second place in the heap; the older one, when it comes
up, is seen to be stale and dropped. So is that of a group that is no more. Once half of the places are stale,
all of those go. Heartbeats move deadlines back only, so they never come here.
"""

from heapq import heapify, heappop, heappush
from typing import Final

import trio

from leafcuttr.state.groups.table import Entry
from leafcuttr_sdk import Clock

_FEW: Final = 1_000  # stale places that are left to come up by themselves


class Timers:
    """Deadlines of groups, in monotonic seconds of `clock`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Entry]] = []
        self._count = 0
        self._stale = 0
        self._sooner = trio.Event()

    def want(self, entry: Entry) -> None:
        """Wake this group when its machine asks for it."""
        at = entry.group.wake_at
        if at is None or (entry.wakes_at is not None and entry.wakes_at <= at):
            return
        self.drop(entry)
        entry.wakes_at = at
        self._count += 1
        heappush(self._heap, (at, self._count, entry))
        if self._heap[0][2] is entry:
            self._sooner.set()

    def drop(self, entry: Entry) -> None:
        """Do not wake this group."""
        if entry.wakes_at is None:
            return
        entry.wakes_at = None
        self._stale += 1
        if self._stale > _FEW and self._stale > len(self._heap) / 2:
            self._heap = [place for place in self._heap if place[2].wakes_at == place[0]]
            heapify(self._heap)
            self._stale = 0

    @property
    def late_s(self) -> float:
        """For how long the first one has been due."""
        return self._clock.monotonic() - self._heap[0][0] if self._heap else 0.0

    def due(self) -> list[Entry]:
        """Take the groups whose time has come; each is asked for again with `want` when it has been served."""
        now = self._clock.monotonic()
        found = []
        while self._heap and self._heap[0][0] <= now:
            at, _, entry = heappop(self._heap)
            if entry.wakes_at == at:
                entry.wakes_at = None
                found.append(entry)
            else:
                self._stale -= 1
        return found

    async def wait(self) -> None:
        """Until something may be due."""
        self._sooner = trio.Event()
        left = self._heap[0][0] - self._clock.monotonic() if self._heap else float("inf")
        with trio.move_on_after(max(left, 0)):
            await self._sooner.wait()

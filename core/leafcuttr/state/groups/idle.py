"""What clients leave behind that do not come back: bounded, because names and ids are theirs to choose.

Kafka keeps an empty group until the next check of `offsets.retention.check.interval.ms`, and a member id that was
handed out until its session is over. So does this broker, but only so many of them.
"""

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import Final

from leafcuttr.errors import ErrorCode
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.groups.table import Entry, GroupTable

MOST_IDLE: Final = 1_000
MOST_HANDED_OUT: Final = 5_000
# Names count too: each may have 32,767 bytes.
_IDLE_CHARACTERS: Final = 1 << 20
_HANDED_OUT_CHARACTERS: Final = 4 << 20
_LONGEST_SHORT: Final = 800  # characters: MOST_HANDED_OUT of them are no more than the long ones may have
# How many go with one request. More than one: many may have become idle at once, as when a topic is deleted.
_AT_ONCE: Final = 2


class IdleGroups:
    """The groups of `table` that are idle, the one that has been so for longest first, each with the size of its names.

    `delete` writes a group's tombstone and forgets it, unless it answers with an error.
    """

    def __init__(
        self, table: GroupTable, delete: Callable[[Entry], ErrorCode | Awaitable[ErrorCode]]
    ) -> None:
        self._table = table
        self._delete = delete
        self._sizes: OrderedDict[Entry, int] = OrderedDict()
        self._characters = 0

    def __len__(self) -> int:
        return len(self._sizes)

    def note(self, entry: Entry) -> None:
        """Something has happened to this group."""
        if not entry.is_idle or self._table.known(entry.group.group_id) is not entry:
            self.discard(entry)
        elif entry not in self._sizes:
            size = len(entry.group.group_id) + len(entry.group.protocol_type or "")
            self._sizes[entry] = size
            self._characters += size

    def discard(self, entry: Entry) -> None:
        self._characters -= self._sizes.pop(entry, 0)

    def sort(self) -> None:
        """Order them by the time at which they became empty: a log is not read in that order."""
        for entry in sorted(self._sizes, key=lambda entry: entry.state_since_ms or 0):
            self._sizes.move_to_end(entry)

    @property
    def too_many(self) -> bool:
        """Not before all groups are known: one that has been idle for longer may still come."""
        most = len(self._sizes) > MOST_IDLE or self._characters > _IDLE_CHARACTERS
        return most and not self._table.loading

    def trim(self) -> None:
        """Delete what is too many, but only a few at once."""
        for _ in range(_AT_ONCE):
            if not self.too_many or not self._delete_oldest():
                return

    async def trim_all(self) -> None:
        """Delete what is too many."""
        pace = Pace()
        while self.too_many and self._delete_oldest():
            await pace.turn()

    def _delete_oldest(self) -> bool:
        """False if its tombstone cannot be written: then it stays, and another one is tried first next time."""
        entry = next(iter(self._sizes))
        refused = self._delete(entry)
        if isinstance(refused, ErrorCode) and refused:
            self._sizes.move_to_end(entry)
            return False
        self.discard(entry)
        return True


class HandedOut:
    """The member ids that were handed out last (KIP-394), used or not. `give_up` is called with the group and the id of
    each that is one too many."""

    def __init__(self, give_up: Callable[[str, str], None]) -> None:
        self._give_up = give_up
        self._short: deque[tuple[str, str]] = deque()
        # Apart, so that a few requests with very long names do not take the ids of clients that have none.
        self._long: deque[tuple[str, str]] = deque()
        self._characters = 0  # of the long ones

    def add(self, group_id: str, member_id: str) -> None:
        size = len(group_id) + len(member_id)
        if size <= _LONGEST_SHORT:
            self._short.append((group_id, member_id))
            if len(self._short) > MOST_HANDED_OUT:
                self._give_up(*self._short.popleft())
            return
        self._long.append((group_id, member_id))
        self._characters += size
        while self._characters > _HANDED_OUT_CHARACTERS:
            former_group, former = self._long.popleft()
            self._characters -= len(former_group) + len(former)
            self._give_up(former_group, former)

"""Which groups there are, and which of them are loaded: the table that coordinator and offsets share."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from leafcuttr.errors import CoordinatorLoadInProgress, CoordinatorNotAvailable
from leafcuttr.state.groups.events import GroupLimits
from leafcuttr.state.groups.machine import Group
from leafcuttr.state.groups.offsets import GroupOffsets
from leafcuttr.state.groups.store import OffsetsLog


@dataclass(slots=True, eq=False)
class Entry:
    """All that is known of one group.

    `state_since_ms`: wall clock of the last change of state, None if that is not known. `changes_seen` is the
    machine's counter at that time, `generation_seen` the last generation that was noticed. `in_log`: there are records
    of it, which want tombstones when it goes.
    """

    group: Group
    partition: int
    offsets: GroupOffsets = field(default_factory=GroupOffsets)
    state_since_ms: int | None = None
    changes_seen: int = 0
    generation_seen: int = 0
    in_log: bool = False
    # Writes of its records that are on their way to the log: the group must not be deleted meanwhile.
    writing: int = 0

    @property
    def is_idle(self) -> bool:
        """It has no members, none is expected, and nothing is committed or about to be: it is of no use."""
        return self.group.is_empty and not (
            self.offsets or self.offsets.pending or self.writing or self.group.expects_somebody
        )


class GroupTable:
    """Groups by id. `loading` and `failed` are the partitions whose groups are not known, yet or at all."""

    def __init__(self, log: OffsetsLog, limits: GroupLimits) -> None:
        self.log = log
        self.limits = limits
        self.loading: set[int] = set()
        self.failed: set[int] = set()
        self._entries: dict[str, Entry] = {}

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._entries.values()))

    def check(self, group_id: str) -> int:
        """The partition of this group, if its groups are known.

        Raises CoordinatorLoadInProgress, CoordinatorNotAvailable (its log is damaged).
        """
        partition = self.log.partition_of(group_id)
        if partition in self.loading:
            raise CoordinatorLoadInProgress
        if partition in self.failed:
            raise CoordinatorNotAvailable
        return partition

    def find(self, group_id: str) -> Entry | None:
        """Raises as `check`."""
        if self.loading or self.failed:
            self.check(group_id)
        return self._entries.get(group_id)

    def known(self, group_id: str) -> Entry | None:
        """As `find`, for a caller that knows the group: never raises."""
        return self._entries.get(group_id)

    def find_or_create(self, group_id: str) -> Entry:
        """Raises as `check`."""
        found = self.find(group_id)
        if found is None:
            found = self._entries[group_id] = Entry(Group(group_id, self.limits), self.check(group_id))
        return found

    def adopt(self, entry: Entry) -> None:
        self._entries[entry.group.group_id] = entry

    def forget(self, group_id: str) -> None:
        del self._entries[group_id]

    def clear(self) -> list[Entry]:
        """Forget every group; return them."""
        entries = list(self._entries.values())
        self._entries.clear()
        return entries

"""Which offset at the source is which at the target: what is kept of it, and what of it is due to be written. No I/O.

An offset sync says that one record of the source is at one offset of the target. A position of a group is translated
by the last sync that is not behind it: exactly if the sync is of that offset, otherwise to the record behind it, as
what lies between may have been left out. So a group reads some records again, and never misses one (KAFKA-12468).
"""

from collections.abc import Iterable, Iterator
from typing import Final

from leafcuttr_forward.flows.report import Written
from leafcuttr_forward.mm2.records import OffsetSync
from leafcuttr_sdk.types import TopicPartition


class SyncStore:
    """The syncs of all partitions: of each at most one for every doubling of the distance from its newest, so that what
    is translated is the more exact the nearer it is to the end."""

    def __init__(self) -> None:
        self._kept: dict[TopicPartition, list[OffsetSync]] = {}

    def add(self, sync: OffsetSync) -> None:
        """The next one of its partition. One that is before the last, at either side, makes those before it void."""
        kept = self._kept.setdefault(sync.partition, [])
        if kept and (sync.upstream < kept[-1].upstream or sync.downstream < kept[-1].downstream):
            kept.clear()
        if kept and kept[-1].upstream == sync.upstream:
            kept.pop()
        kept.append(sync)
        self._kept[sync.partition] = list(_thinned(kept))

    def translate(self, partition: TopicPartition, upstream: int) -> int | None:
        """The offset at the target for a group that is at this offset of the source; None where it is not known."""
        for sync in reversed(self._kept.get(partition, ())):
            if sync.upstream <= upstream:
                return sync.downstream + (sync.upstream != upstream)
        return None


def _thinned(syncs: list[OffsetSync]) -> Iterator[OffsetSync]:
    """Of those whose distance from the newest has equally many bits, the oldest."""
    newest, before = syncs[-1].upstream, -1
    for sync in syncs:
        bits = (newest - sync.upstream).bit_length()
        if bits != before:
            yield sync
        before = bits


class DueSyncs:
    """The syncs that are to be written. Of a partition at most two wait: one with which its records begin, or go on
    behind a gap, and the last one."""

    def __init__(self, lag_max: int) -> None:
        self._lag_max: Final = lag_max
        self._next: dict[TopicPartition, tuple[int, int]] = {}
        """Where the next record is expected, at the source and at the target."""
        self._told: dict[TopicPartition, int] = {}
        """The offset at the target of the last sync that was due."""
        self._begins: dict[TopicPartition, OffsetSync] = {}
        self._due: dict[TopicPartition, OffsetSync] = {}
        self._later: dict[TopicPartition, OffsetSync] = {}

    def __bool__(self) -> bool:
        return bool(self._begins or self._due)

    def take(self, written: Written) -> list[OffsetSync]:
        """Records that are at the target now; the syncs that they give, in order."""
        partition = written.source
        if written.records <= 0 or written.target_offset < 0:
            return []
        first = OffsetSync(partition, written.first_offset, written.target_offset)
        last = OffsetSync(partition, written.next_offset - 1, written.target_offset + written.records - 1)
        expected = self._next.get(partition)
        self._next[partition] = (written.next_offset, last.downstream)
        if expected is None or expected[0] != first.upstream or first.downstream < expected[1]:
            self._begins.setdefault(partition, first)
            self._tell(last)
            return [first, last]
        if last.downstream - (self._told[partition] + 1) >= self._lag_max:
            self._tell(last)
        else:
            self._later[partition] = last
        return [last]

    def promote(self) -> None:
        """Those that wait until as many records have come as there may be between two are due now."""
        for sync in self._later.values():
            self._due[sync.partition] = sync
            self._told[sync.partition] = sync.downstream
        self._later.clear()

    def pop(self) -> list[OffsetSync]:
        """What is due, in the order in which it has to be written; nothing waits any more."""
        found = list(self._begins.values())
        found += [sync for sync in self._due.values() if sync not in found]
        self._begins.clear()
        self._due.clear()
        return found

    def put_back(self, syncs: Iterable[OffsetSync]) -> None:
        """They could not be written: later ones stay in front of them."""
        for sync in syncs:
            self._due.setdefault(sync.partition, sync)

    def _tell(self, sync: OffsetSync) -> None:
        self._due[sync.partition] = sync
        self._later.pop(sync.partition, None)
        self._told[sync.partition] = sync.downstream

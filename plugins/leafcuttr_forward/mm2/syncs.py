"""Which offset at the source is which at the target: what is kept of it, and what of it is due to be written. No I/O.

An offset sync says that one record of the source is at one offset of the target. A position of a group is translated
by the last sync that is not behind it: exactly if the sync is of that offset, otherwise to the record behind it, as
what lies between may have been left out. So a group reads some records again, and never misses one (KAFKA-12468).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from leafcuttr_forward.flows.report import Written
from leafcuttr_forward.mm2.records import OffsetSync
from leafcuttr_sdk.types import TopicPartition


class SyncStore:
    """The syncs of all partitions. Of each the newest are kept, and the older they are the fewer: one for each doubling
    of their age, counted in syncs. The first one is kept, so that what could be translated once still can be."""

    def __init__(self) -> None:
        self._kept: dict[TopicPartition, list[_Aged]] = {}

    def add(self, sync: OffsetSync) -> None:
        """The next one of its partition. One that is before the last, at either side, makes those before it void."""
        kept = self._kept.setdefault(sync.partition, [])
        last = kept[-1].sync if kept else sync
        if sync.upstream < last.upstream or sync.downstream < last.downstream:
            kept.clear()
        elif kept and sync.upstream == last.upstream:
            kept[-1] = kept[-1]._replace(sync=sync)
            return
        kept.append(_Aged(kept[-1].number + 1 if kept else 0, sync))
        self._kept[sync.partition] = list(_thinned(kept))

    def translate(self, partition: TopicPartition, upstream: int) -> int | None:
        """The offset at the target for a group that is at this offset of the source; None where it is not known."""
        for _, sync in reversed(self._kept.get(partition, ())):
            if sync.upstream <= upstream:
                return sync.downstream + (sync.upstream != upstream)
        return None


class _Aged(NamedTuple):
    """A sync, and which one of its partition it was."""

    number: int
    sync: OffsetSync


def _thinned(kept: Sequence[_Aged]) -> Iterator[_Aged]:
    """Of those whose age has equally many bits, the oldest."""
    newest, before = kept[-1].number, -1
    for each in kept:
        bits = (newest - each.number).bit_length()
        if bits != before:
            yield each
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

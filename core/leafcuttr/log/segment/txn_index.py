"""The `.txnindex` of a segment, in Kafka's format: the aborted transactions whose marker is in the segment.

    version i16 = 0 | producer id i64 | first offset i64 | last offset i64 | last stable offset i64

The last offset is that of the marker, so entries ascend by it. The last stable offset is the one that the marker left
behind: a reader that only wants what lies before it needs no further entry (it never goes back). A segment without
aborted transactions has no such file. Like the other indexes it is a cache: recovery rebuilds what a crash took, and
what is pending is written in bulk.
"""

import os
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from leafcuttr.log.files.open_file import OpenFile
from leafcuttr.log.segment.index import SparseIndex

VERSION: Final = 0
_LAST_OFFSET: Final = 3  # column
_READ: Final = 1024  # entries at once


class AbortedTransaction(NamedTuple):
    """One entry: all of this producer's records in [first_offset, last_offset] are to be skipped."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex(SparseIndex):
    """See the module's docstring."""

    __slots__ = ()
    ENTRY = struct.Struct(">hqqqq")

    def append(self, aborted: AbortedTransaction) -> None:
        """Kept in memory until `flush`."""
        pending = self._entries_known()[1]
        pending += self.ENTRY.pack(VERSION, *aborted)

    def flush(self) -> None:
        """Write what is pending, into a new file if there is none. Raises OSError; then everything is pending still."""
        on_disk, pending = self._entries_known()
        if pending and not on_disk and not os.path.exists(self.path):  # noqa: PTH110
            self._pool.open(self, self.path, create=True)
        super().flush()

    def forget_from(self, offset: int) -> None:
        """Drop the entries of markers at `offset` or behind it. Raises OSError."""
        self.truncate(self.search(_LAST_OFFSET, offset - 1)[0] if len(self) else 0)

    def overlapping(
        self, from_offset: int, up_to: int, *, may_block: bool = True
    ) -> tuple[list[AbortedTransaction], bool]:
        """The transactions with records in [from_offset, up_to), in the order of their markers, and whether no later
        entry can be one. Raises OSError, NotCached."""
        found: list[AbortedTransaction] = []
        if not len(self):
            return found, False
        first, _ = self.search(_LAST_OFFSET, from_offset - 1, may_block=may_block)
        for _, producer_id, first_offset, last_offset, last_stable in self._from(first, may_block):
            if first_offset < up_to:
                found.append(AbortedTransaction(producer_id, first_offset, last_offset, last_stable))
            if last_stable >= up_to:
                return found, True
        return found, False

    def aborted(self) -> list[AbortedTransaction]:
        """All entries. Raises OSError."""
        return [AbortedTransaction(*fields[1:]) for fields in self._from(0, True)]

    def _from(self, number: int, may_block: bool) -> Iterator[tuple[int, int, int, int, int]]:
        """The fields of the entries from that number on."""
        on_disk, pending = self._entries_known()
        size = self.ENTRY.size
        while number < on_disk:
            file: OpenFile = self._pool.open(self, self.path)
            run = file.pread(min(_READ, on_disk - number) * size, number * size, may_block=may_block)
            run = run[: len(run) - len(run) % size]
            if not run:
                return
            yield from self.ENTRY.iter_unpack(run)
            number += len(run) // size
        skipped = max(number - on_disk, 0) * size
        yield from self.ENTRY.iter_unpack(bytes(pending[skipped:]))

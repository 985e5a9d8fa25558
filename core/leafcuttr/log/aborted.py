"""Which aborted transactions a read_committed reader of a range has to skip.

The entry of a transaction is in the segment of its marker, which may come long after its records: the search goes from
the segment of the range on, until an entry says that no later one matters. Few segments have any, and which these are
is found out once: by a look into the folder, in a worker thread where there are many segments, and told by the appends
from then on.
"""

import os
from typing import TYPE_CHECKING, Final

from leafcuttr.errors import StorageError
from leafcuttr.log.files import NotCached
from leafcuttr.log.txn_index import AbortedTransaction, TransactionIndex

if TYPE_CHECKING:
    from collections.abc import Callable

    from leafcuttr.log.files import FilePool
    from leafcuttr.log.log import Log
    from leafcuttr.log.segment import Segment

_FEW: Final = 16  # segments whose files are looked for on the loop


class _FolderNotRead(NotCached):
    """The folder has to be looked into first; `warm` does it."""

    def __init__(self, warm: "Callable[[], None]") -> None:
        Exception.__init__(self, "the transaction indexes of a folder are not known yet")
        self.warm = warm


class Aborts:
    """The segments of a log in which transactions were aborted."""

    __slots__ = ("_looked", "_segments")

    def __init__(self, *, empty: bool = False) -> None:
        self._segments: list[Segment] | None = [] if empty else None
        self._looked: set[str] | None = None  # names that were in the folder when it was looked into

    def noticed(self, segment: "Segment") -> None:
        """The segment has an entry more."""
        if self._segments is not None and (not self._segments or self._segments[-1] is not segment):
            self._segments.append(segment)

    def forget(self) -> None:
        """The segments are others than before (compaction has replaced some): look again."""
        self._segments = self._looked = None

    def segments(self, log: "Log", *, may_block: bool) -> "list[Segment]":
        """In the order of their offsets. Raises NotCached, OSError."""
        known = self._segments
        if known is None:
            if len(log.segments) > _FEW and self._looked is None:
                if not may_block:
                    raise _FolderNotRead(lambda: self._look(log.directory_name))
                self._look(log.directory_name)
            looked = self._looked
            known = self._segments = [segment for segment in log.segments if segment.has_aborted(looked)]
            self._looked = None
        first = log.segments[0].base_offset
        while known and known[0].base_offset < first:
            del known[0]  # retention has dropped it
        return known

    def _look(self, directory: str) -> None:
        with os.scandir(directory) as entries:
            self._looked = {entry.name for entry in entries if entry.name.endswith(".txnindex")}


def aborted_transactions(
    log: "Log", from_offset: int, up_to: int, *, may_block: bool
) -> list[AbortedTransaction]:
    """See `Log.aborted_transactions`."""
    found: list[AbortedTransaction] = []
    try:
        candidates = log.aborts.segments(log, may_block=may_block)
        if not candidates:
            return found
        number = len(log.segments) - 1
        if from_offset < log.segments[-1].base_offset:
            from leafcuttr.log.read import segment_at

            number = segment_at(log, from_offset)
        first = log.segments[number].base_offset
        for segment in candidates:
            if segment.base_offset >= first:
                some, complete = segment.txn_index.overlapping(from_offset, up_to, may_block=may_block)
                found += some
                if complete:
                    break
    except OSError as error:
        reason = f"Reading the transaction indexes of {log.topic_partition} failed: {error.strerror or error}"
        raise StorageError(reason) from error
    return found


def read_txn_index(path: str, pool: "FilePool") -> list[AbortedTransaction]:
    """All entries of a `.txnindex` file, none if there is no such file (compaction, tools). Raises OSError."""
    index = TransactionIndex(path, pool)
    try:
        return index.aborted()
    finally:
        index.close()

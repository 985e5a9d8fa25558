"""Which aborted transactions a read_committed reader of a range has to skip.

The entry of a transaction is in the segment of its marker, which may come long after its records: the search goes from
the segment of the range on, until an entry says that no later one matters. Few segments have any, and which these are
is found out once: by a look into the folder, in a worker thread where there are many segments, and told by the appends
from then on.
"""

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from leafcuttr.errors import StorageError
from leafcuttr.log.files.pool import NotCached
from leafcuttr.log.read.read import base_offset, segment_at
from leafcuttr.log.segment.txn_index import AbortedTransaction, TransactionIndex

if TYPE_CHECKING:
    from collections.abc import Callable

    from leafcuttr.log.files.pool import FilePool
    from leafcuttr.log.log import Log
    from leafcuttr.log.segment.segment import Segment

_FEW: Final = 16  # segments whose files are looked for on the loop


class _FolderNotReadError(NotCached):
    """The folder has to be looked into first; `warm` does it."""

    def __init__(self, warm: "Callable[[], None]") -> None:
        Exception.__init__(self, "the transaction indexes of a folder are not known yet")
        self.warm = warm


class Aborts:
    """The segments of a log in which transactions were aborted."""

    __slots__ = ("_looked", "_segments")

    def __init__(self, *, empty: bool = False) -> None:
        self._segments: list[Segment] | None = [] if empty else None
        self._looked: dict[Segment, bool] = {}  # whether each had a file when the folder was looked into

    def noticed(self, segment: "Segment") -> None:
        """The segment has an entry more."""
        if self._segments is not None and (not self._segments or self._segments[-1] is not segment):
            self._segments.append(segment)

    def forget(self) -> None:
        """The segments are others than they were: look again."""
        self._segments = None

    def segments(self, log: "Log", *, may_block: bool) -> "list[Segment]":
        """In the order of their offsets; some of them may have gone. Raises NotCached, OSError."""
        if self._segments is None:
            unknown = [segment for segment in log.segments if segment not in self._looked]
            if len(unknown) > _FEW:
                if not may_block:
                    raise _FolderNotReadError(lambda: self._look(unknown))
                self._look(unknown)
            self._segments = [s for s in log.segments if s.has_aborted(self._looked.get(s))]
            self._looked = {}
        return self._segments

    def _look(self, segments: "list[Segment]") -> None:
        self._looked = {segment: segment.has_aborted() for segment in segments}


def aborted_transactions(
    log: "Log", from_offset: int, up_to: int, *, may_block: bool
) -> list[AbortedTransaction]:
    """See `Log.aborted_transactions`."""
    try:
        while (found := _overlapping(log, from_offset, up_to, may_block)) is None:
            log.aborts.forget()
    except OSError as error:
        reason = f"Reading the transaction indexes of {log.topic_partition} failed: {error.strerror or error}"
        raise StorageError(reason) from error
    return found


def _overlapping(
    log: "Log", from_offset: int, up_to: int, may_block: bool
) -> list[AbortedTransaction] | None:
    """None if the segments are not those that were known: compaction has put others in their place."""
    found: list[AbortedTransaction] = []
    candidates = log.aborts.segments(log, may_block=may_block)
    if not candidates:
        return found
    first = log.segments[segment_at(log, from_offset)].base_offset
    for segment in candidates[bisect_left(candidates, first, key=base_offset) :]:
        if log.segments[segment_at(log, segment.base_offset)] is not segment:
            return None
        some, complete = segment.txn_index.overlapping(from_offset, up_to, may_block=may_block)
        found += some
        if complete:
            break
    return found


def read_txn_index(path: str, pool: "FilePool") -> list[AbortedTransaction]:
    """All entries of a `.txnindex` file, none if there is no such file (compaction, tools). Raises OSError."""
    index = TransactionIndex(path, pool)
    try:
        return index.aborted()
    finally:
        index.close()

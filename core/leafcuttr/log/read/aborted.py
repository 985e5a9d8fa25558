"""Which aborted transactions a read_committed reader of a range has to skip.

The entry of a transaction is in the segment of its marker, which may come long after its records: the search goes from
the segment of the range on, until an entry says that no later one matters. Which segments have any is known:
see `leafcuttr.log.segment.aborts`.
"""

from bisect import bisect_left
from typing import TYPE_CHECKING

from leafcuttr.errors import StorageError
from leafcuttr.log.read.read import base_offset, segment_at
from leafcuttr.log.segment.txn_index import AbortedTransaction, TransactionIndex

if TYPE_CHECKING:
    from leafcuttr.log.files.pool import FilePool
    from leafcuttr.log.state import LogState


def aborted_transactions(
    log: "LogState", from_offset: int, up_to: int, *, may_block: bool
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
    log: "LogState", from_offset: int, up_to: int, may_block: bool
) -> list[AbortedTransaction] | None:
    """None if the segments are not those that were known: compaction has put others in their place."""
    found: list[AbortedTransaction] = []
    candidates = log.aborts.among(log.segments, may_block=may_block)
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

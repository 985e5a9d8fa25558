"""Named points at which a test may kill the process, to show that a crash there loses nothing acknowledged.

A point is armed by `LEAFCUTTR_CRASH_POINT=name` or `name:n` (the n-th time it is reached) in the environment;
the process then sends itself SIGKILL. Unarmed, a point costs one comparison. `POINTS` is the whole list: the
crash tests reach each of them, and `reach` refuses a name that is not in it when the process is armed.
"""

import os
import signal
from typing import Final

POINTS: Final[frozenset[str]] = frozenset(
    {
        "append.staged",  # records have offsets, nothing is written
        "append.written",  # records are in the file, nobody has been told
        "append.published",  # the high watermark has moved, the acknowledgement has not left
        "roll.before",  # the active segment is full, the new one does not exist
        "roll.snapshot-written",  # the producer snapshot of the new base offset exists
        "roll.file-created",  # the new segment's files exist, nothing refers to them
        "roll.done",  # the new segment is the active one
        "checkpoint.synced",  # segments are synced, the recovery point is not written
        "checkpoint.written",  # the new checkpoint is beside the old one
        "checkpoint.renamed",  # the new checkpoint is in place
        "soft-checkpoint.written",  # the soft checkpoint is beside the old one
        "soft-checkpoint.renamed",  # the soft checkpoint is in place
        "metadata.before-commit",  # the transaction is open
        "metadata.committed",  # the transaction is durable, memory does not know it
        "topic-create.folders",  # the partition folders exist, the metadata does not know them
        "topic-delete.committed",  # the metadata has forgotten the topic, its folders still have their names
        "topic-delete.renamed",  # the folders are renamed, not deleted
        "topic-delete.removed",  # the folders are gone
        "retention.renamed",  # a segment's files are renamed, not deleted
        "compaction.cleaned",  # a cleaned segment is beside the log, complete and synced
        "compaction.swap-announced",  # its files are renamed to .swap, the log has the old ones
        "compaction.old-renamed",  # the old files are renamed, the new ones have not got their names
        "compaction.exchanged",  # the log has the new segment, its checkpoint is not written
        "compaction.checkpoint-written",  # the log's first dirty offset is on the disk
        "delete-records.moved",  # the log start offset has moved, its checkpoint has not
        "group-commit.appended",  # committed offsets are in the log, the answer has not left
        "transaction.written",  # a change of a transactional id is in the log, the answer has not left
        "transaction.before-prepare",  # a transaction is about to be decided
        "transaction.prepared",  # it is decided, no partition has its marker
        "transaction.marked",  # a partition has its marker, others may not
        "transaction.before-complete",  # every partition has its marker, the log does not say so
        "shutdown.checkpointed",  # the clean shutdown is recorded, the process still lives
    }
)

_name, _, _count = os.environ.get("LEAFCUTTR_CRASH_POINT", "").partition(":")
_left = int(_count) if _count.isdigit() else 1


def reach(point: str) -> None:
    """Kill the process here if the environment asked for it."""
    global _left
    if not _name:
        return
    if point not in POINTS:
        raise AssertionError(f"{point!r} is not a declared crash point")
    if point == _name:
        _left -= 1
        if _left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

"""Named points at which a test may kill the process, to show that a crash there loses nothing acknowledged.

A point is armed by `LEAFCUTTR_CRASH_POINT=name` or `name:n` (the n-th time it is reached) in the environment;
the process then sends itself SIGKILL. `LEAFCUTTR_CRASH_POINT=@FILE` leaves that to the file: from when it is there,
its content is the name, so that a process can be armed while it runs. Unarmed, a point costs one comparison. `POINTS`
is the whole list: the crash tests reach each of them, and `reach` refuses a name that is not in it when it is set.
"""

import os
import signal
from pathlib import Path
from typing import Final

POINTS: Final[frozenset[str]] = frozenset(
    {
        "append.staged",  # records have offsets, nothing is written
        "append.written",  # records are in the file, nobody has been told
        "append.published",  # the high watermark has moved, the acknowledgement has not left
        "writer.before-write",  # a thread has records to write, as in topic sync mode
        "writer.written",  # the thread has written them (and synced, in that mode), the loop does not know
        "segment.names-synced",  # the names of a new segment are on the disk, its first record is not acknowledged
        "roll.before",  # the active segment is full, the new one does not exist
        "roll.sealed",  # the indexes of the full segment are complete
        "roll.snapshot-written",  # the producer snapshot of the new base offset exists
        "roll.file-created",  # the new segment's files exist, nothing refers to them
        "roll.done",  # the new segment is the active one
        "producer-snapshot.written",  # a producer snapshot is beside its place
        "producer-snapshot.renamed",  # and in it
        "leader-epochs.written",  # a leader-epoch-checkpoint is beside its place
        "leader-epochs.renamed",  # and in it
        "partition-metadata.written",  # whose folder it is, is beside its place
        "partition-metadata.renamed",  # and in it
        "checkpoint.synced",  # segments are synced, the recovery point is not written
        "checkpoint.written",  # the new checkpoint is beside the old one
        "checkpoint.renamed",  # the new checkpoint is in place
        "soft-checkpoint.written",  # the soft checkpoint is beside the old one
        "soft-checkpoint.renamed",  # the soft checkpoint is in place
        "metadata.before-commit",  # the transaction is open
        "metadata.committed",  # the transaction is durable, memory does not know it
        "topic-create.folders",  # the partition folders exist, the metadata does not know them
        "topic-create.committed",  # the metadata knows the topic, its folders have not got their names
        "topic-create.adopted",  # the folders have their names, nobody can see the topic
        "topic-delete.committed",  # the metadata has forgotten the topic, its folders still have their names
        "topic-delete.renamed",  # the folders are renamed, not deleted
        "topic-delete.removed",  # the folders are gone
        "retention.renamed",  # a segment's files are renamed, not deleted
        "retention.removing",  # some of them are deleted
        "delete-records.moved",  # the log start offset has moved, its checkpoint has not
        "delete-records.kept",  # its checkpoint is in place, the answer has not left
        "compaction.begun",  # a process has begun to write a cleaned segment beside the log
        "compaction.cleaned",  # a cleaned segment is beside the log, complete and synced
        "compaction.swap-announced",  # its files are renamed to .swap, the log has the old ones
        "compaction.old-renamed",  # the old files are renamed, the new ones have not got their names
        "compaction.exchanged",  # the log has the new segment, its checkpoint is not written
        "compaction.checkpoint-written",  # the log's first dirty offset is on the disk
        "group.stored",  # members and assignments of a group are in the log, the answer has not left
        "group.tombstone-written",  # the tombstone of a group is in the log, the answer has not left
        "group-commit.appended",  # committed offsets are in the log, the answer has not left
        "group-commit.tombstones-written",  # tombstones of committed offsets are in the log, the answer has not left
        "transaction.written",  # a change of a transactional id is in the log, the answer has not left
        "transaction.before-prepare",  # a transaction is about to be decided
        "transaction.prepared",  # it is decided, no partition has its marker
        "transaction.marked",  # a partition has its marker, others may not
        "transaction.before-complete",  # every partition has its marker, the log does not say so
        "recovery.cut",  # a start has cut the torn end of a log off
        "recovery.scanned",  # a start has read the end of a log, its indexes are complete
        "start.loaded",  # every log is open, the mark of the last clean stop is still there
        "start.unmarked",  # that mark is gone, nothing serves yet
        "shutdown.synced",  # every log is synced, the clean stop is not recorded
        "shutdown.checkpointed",  # the clean shutdown is recorded, the process still lives
    }
)

_name, _, _count = os.environ.get("LEAFCUTTR_CRASH_POINT", "").partition(":")
_left = int(_count) if _count.isdigit() else 1


def reach(point: str) -> None:
    """Kill the process here if the environment names this point."""
    global _left
    if not _name:
        return
    if point not in POINTS:
        raise AssertionError(f"{point!r} is not a declared crash point")
    if _name.startswith("@"):
        _look(Path(_name[1:]))
    if point == _name:
        _left -= 1
        if _left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


def _look(file: Path) -> None:
    global _name, _left
    try:
        text = file.read_text()
    except FileNotFoundError:
        return
    _name, _, count = text.strip().partition(":")
    _left = int(count) if count.isdigit() else 1

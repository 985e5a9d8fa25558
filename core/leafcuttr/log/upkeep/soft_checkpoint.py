"""Which partitions have changed since they were last recorded, and the writing of the record.

The lines of the state file are kept encoded, so that a round costs what has changed and one write. A round
goes through the logs in short turns on the loop, has each changed one write its pending index entries, then
takes its line: the indexes on the disk never lag behind the line. The file itself is written in a worker
thread and not synced.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import trio

from leafcuttr.log.layout.partition_state import PartitionState, SegmentState, encode_entry, write_state
from leafcuttr.log.log import Log
from leafcuttr.runtime.pacing import Pace
from leafcuttr_sdk import TopicPartition

Mark = tuple[int, int, int, int, int]


def _mark(log: Log) -> Mark:
    return log.log_end_offset, log.log_start_offset, log.recovery_point, len(log.segments), log.rewrites


class StateRecord:
    """The lines of all partitions, and the offsets of each log when its line was taken.

    An offline log keeps the line it had: what was known of it is what `repair` needs. Only a log whose sync has
    failed loses it: the next start may not take it as the line says.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lines: dict[TopicPartition, bytes] = {}
        self._marks: dict[TopicPartition, Mark] = {}
        self._dirty = False

    def keep(self, topic_partition: TopicPartition, log: Log, line: bytes | None) -> None:
        """Start with a log whose line is the one that was read, or (None) with one that has none yet."""
        if line is not None:
            self._lines[topic_partition] = line
        if line is not None or log.offline is not None:
            self._marks[topic_partition] = _mark(log)

    def changed(self, topic_partition: TopicPartition, log: Log) -> bool:
        """Whether the log is not as its line says."""
        mark = self._marks.get(topic_partition)
        return mark is None or (
            mark[0] != log.log_end_offset
            or mark[1] != log.log_start_offset
            or mark[2] != log.recovery_point
            or mark[3] != len(log.segments)
            or mark[4] != log.rewrites
        )

    def take(self, topic_partition: TopicPartition, log: Log, topic_id: bytes) -> None:
        """Take the line of a log that serves, or leave it to the next round if its indexes cannot be written just
        now: a start relies on the line, and does not read again what lies before its end. Raises OSError."""
        if not log.flush_indexes():
            return
        self._lines[topic_partition] = encode_entry(topic_partition, state_of(log, topic_id))
        self._marks[topic_partition] = _mark(log)
        self._dirty = True

    def forget(self, topic_partition: TopicPartition) -> None:
        """The partition is no more."""
        self._marks.pop(topic_partition, None)
        if self._lines.pop(topic_partition, None) is not None:
            self._dirty = True

    async def gather(
        self, logs: Mapping[TopicPartition, Log], ids: Mapping[TopicPartition, bytes]
    ) -> list[Log]:
        """Take the lines of all logs that have changed; returns those logs. Raises OSError of the last that
        failed; the others are taken all the same."""
        pace, failed, found = Pace(), None, []
        for topic_partition, log in list(logs.items()):
            if log.sync_failed:
                self.forget(topic_partition)
            elif self.changed(topic_partition, log) and log.offline is None and topic_partition in ids:
                try:
                    self.take(topic_partition, log, ids[topic_partition])
                except OSError as error:
                    failed = error
                found.append(log)
            await pace.turn()
        if failed is not None:
            raise failed
        return found

    async def write(self) -> None:
        """Put the file in place if any line is new. Raises OSError; then the next call tries again."""
        if self._dirty:
            self._dirty = False
            lines = list(self._lines.values())
            try:
                await trio.to_thread.run_sync(
                    lambda: write_state(self.directory, lines, clean=False, sync=False)
                )
            except OSError:
                self._dirty = True
                raise

    def write_clean(self) -> None:
        """The record of a clean stop: synced. Raises OSError."""
        write_state(self.directory, self._lines.values(), clean=True, sync=True)


def state_of(log: Log, topic_id: bytes) -> PartitionState:
    """What the state file says of a log now."""
    return PartitionState(
        topic_id=topic_id,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        recovery_point=log.recovery_point,
        leader_epoch=log.leader_epoch,
        segments=tuple(SegmentState(*sizes) for sizes in log.segment_sizes()),
        producers=log.producers.dump() if log.has_producers else [],
    )


def remove_old_snapshots(log: Log, bases: Iterable[int]) -> None:
    """Remove producer snapshots that no recovery needs: those of no segment, but the last. Raises
    OSError."""
    wanted = {*bases, log.log_end_offset}
    with os.scandir(log.directory_name) as entries:
        for entry in entries:
            stem, dot, suffix = entry.name.partition(".")
            if dot and suffix == "snapshot" and stem.isdecimal() and int(stem) not in wanted:
                os.unlink(entry.path)  # noqa: PTH108

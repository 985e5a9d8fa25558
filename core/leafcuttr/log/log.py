"""One partition on disk: a list of segments, of which the last is appended to.

This is the face of a partition: the contracts of its methods. Their work is done in `append/`, `read/` and
`retention.py`, on the fields that `state.py` declares. All methods are synchronous, for the event loop's thread, unless
they say otherwise.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from leafcuttr.config.topic import TopicConfig
from leafcuttr.errors import BrokerError, StorageError
from leafcuttr.log.append.background_write import write_in_background
from leafcuttr.log.append.commit import commit
from leafcuttr.log.append.pending_write import DONE, PendingWrite
from leafcuttr.log.append.preparation import LongWork, Prepared
from leafcuttr.log.append.roll import roll
from leafcuttr.log.append.rules import LARGE, LONG_MAX, Origin
from leafcuttr.log.append.stage import stage
from leafcuttr.log.append.staged import Staged
from leafcuttr.log.files.off_loop import off_loop
from leafcuttr.log.files.open_file import NotCached
from leafcuttr.log.files.region import FileRegion
from leafcuttr.log.producers.snapshot import write_snapshot
from leafcuttr.log.read.aborted import aborted_transactions
from leafcuttr.log.read.lookup import (
    FoundOffset,
    batch_timestamp,
    max_timestamp_offset,
    offset_for_leader_epoch,
    offset_for_timestamp,
)
from leafcuttr.log.read.read import LogRead, read
from leafcuttr.log.resources import LogResources
from leafcuttr.log.retention import (
    apply_retention,
    delete_records_before,
    delete_scheduled_files,
)
from leafcuttr.log.segment.aborts import Aborts
from leafcuttr.log.segment.scan import DamagedSegmentError
from leafcuttr.log.segment.segment import Segment, segment_name
from leafcuttr.log.segment.sync import sync_segment
from leafcuttr.log.segment.txn_index import AbortedTransaction
from leafcuttr.log.state import LogState
from leafcuttr_sdk import TopicPartition

__all__ = ["AbortedTransaction", "FileRegion", "Log", "LogRead", "NotCached", "Staged"]

T = TypeVar("T")


class Log(LogState):
    """See the module's docstring. Nothing on disk is touched before it is needed."""

    __slots__ = ()

    @classmethod
    def create(
        cls,
        topic_partition: TopicPartition,
        directory: Path | str,
        config: TopicConfig,
        resources: LogResources,
    ) -> "Log":
        """A new, empty log in a folder that exists (callable in a worker). Raises OSError."""
        preallocate = config.segment_bytes if config.preallocate else 0
        segment = Segment.create(
            str(directory),
            0,
            pool=resources.pool,
            preallocate=preallocate,
            sync_writes=config.lc_log_sync_always,
        )
        log = cls(
            topic_partition, directory, config, segments=[segment], log_end_offset=0, resources=resources
        )
        log._aborts = Aborts(empty=True)
        return log

    def stage(
        self,
        batch: memoryview | bytearray,
        origin: Origin,
        *,
        now_ms: int,
        prepared: Prepared | None = None,
    ) -> Staged:
        """Check one record set (exactly one batch), give it offsets, stamp and queue it; nothing of it is visible
        before `write`, and the bytes must stay as they are until that is done. Which of the
        checks hold for it depends on its origin: see `Origin`.

        Raises LongWork, with nothing staged, where a worker thread has to check the batch first: call again with what
        it has `prepared`. Raises, of the BrokerError family: CorruptMessage (length, magic, CRC), InvalidRecord
        (counts, control batches, a base offset, more or less than one batch, no key where one is due, records that do
        not fill the batch), UnknownServerError (a record whose length has no end), InvalidTimestamp, MessageTooLarge,
        RecordListTooLarge, InvalidProducerEpoch, OutOfOrderSequence, InvalidTxnState (a plain batch of a producer whose
        transaction is open), TransactionCoordinatorFenced, ChainError (a filter of the topic has failed), NotReadyError
        (one cannot judge the batch yet), StorageError.

        Once a marker is published, the producer's transaction, if one is open, has ended: `last_stable_offset` moves,
        and if it was aborted its records are to be skipped.
        """
        if origin.deferrable and self.resources.refusal is not None:
            raise StorageError(self.resources.refusal, disk_full=True)
        while True:
            try:
                return stage(self, batch, origin, now_ms, prepared)
            except LongWork as long:
                if origin.deferrable:
                    raise
                prepared = long.work.do()
            except BrokerError:
                if self.chain is not None:
                    self.chain.forget()
                raise
            except OSError as error:
                raise StorageError(
                    f"Reading {self.topic_partition} failed: {error.strerror or error}"
                ) from error
            except DamagedSegmentError as error:
                raise StorageError(str(error)) from error

    def ongoing(self, producer_id: int, producer_epoch: int | None = None) -> int:
        """First offset of the producer's open transaction, staged batches and markers counted; -1 if there is none, or
        (with an epoch) none of that epoch."""
        producers = self._producers
        return -1 if producers is None else producers.ongoing(producer_id, producer_epoch)

    def write(self) -> PendingWrite:
        """Write everything staged, publish it and wake waiters: here and now, or by a worker thread where that would
        keep the event loop from its work. Then the write is to be waited for, and what is staged meanwhile makes the
        next one. With nothing staged it is the one under way, or one that is done.

        Does not raise: `PendingWrite.failure` says which offsets are not in the log, and why; they are given out again.
        """
        if not self.groups:
            return self.writing or DONE
        if self.writing is not None or self.would_wait():
            return write_in_background(self)
        return commit(self)

    def would_wait(self) -> bool:
        """Whether a write of what is staged would likely wait for the disk, or take long; its caller may also
        have to wait for dead letters."""
        groups, rules = self.groups, self.rules
        if rules.sync or rules.flush_messages <= self.unflushed + self.next_offset - self.log_end_offset:
            return True
        for group in groups:
            if group.letters is not None:
                return True
        size = groups[-1].size
        return size > LARGE or self.resources.pressure.stalls(size)

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        at_least_one: bool,
        up_to: int | None = None,
        may_block: bool = True,
    ) -> LogRead:
        """Whole batches from the one that holds `offset` on, of one segment, within `max_bytes`; with `at_least_one`
        the first batch whatever its size. Nothing at or beyond `up_to` (default: the high watermark).

        Raises OffsetOutOfRange, StorageError; NotCached if `may_block` is False and finding the place needs the disk.
        """
        return read(self, offset, max_bytes, at_least_one=at_least_one, up_to=up_to, may_block=may_block)

    def aborted_transactions(
        self, from_offset: int, up_to: int, *, may_block: bool = True
    ) -> list[AbortedTransaction]:
        """The aborted transactions with records in [from_offset, up_to), in the order of their markers. `up_to` is not
        beyond the last stable offset: what lies there is not decided.

        Raises StorageError; NotCached if `may_block` is False and the disk is needed (see `off_loop`)."""
        return aborted_transactions(self, from_offset, up_to, may_block=may_block)

    async def off_loop(self, attempt: Callable[[bool], T]) -> T:
        """Call `attempt(False)` (its argument is `may_block`) until what it needs is in the page cache, reading that in
        worker threads. For example `await log.off_loop(lambda b: log.read(0, 99, at_least_one=True, may_block=b))`."""
        return await off_loop(attempt)

    async def offset_for_timestamp(self, timestamp: int) -> FoundOffset | None:
        """(timestamp, offset, leader epoch) of the first record with this timestamp (ms, >= 0) or a later one.
        Raises StorageError."""
        with self._readable():
            return await offset_for_timestamp(self, timestamp)

    async def max_timestamp_offset(self) -> FoundOffset | None:
        """(timestamp, offset, leader epoch) of the first record with the largest timestamp of all.
        Raises StorageError."""
        with self._readable():
            return await max_timestamp_offset(self)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        if self.offline is not None:
            raise StorageError(self.offline)
        try:
            yield
        except OSError as error:
            raise StorageError(f"Reading {self.topic_partition} failed: {error.strerror or error}") from error
        except DamagedSegmentError as error:
            raise StorageError(str(error)) from error

    def batch_timestamp(self, offset: int) -> int | None:
        """The timestamp of the first batch from `offset` on; -1 if it has none, None if there is no batch. Raises
        StorageError; NotCached if the disk is needed."""
        with self._readable():
            return batch_timestamp(self, offset)

    def offset_for_leader_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) for an epoch, (-1, -1) if it is not known."""
        return offset_for_leader_epoch(self, epoch)

    def delete_records_before(self, offset: int) -> int:
        """Move the log start offset up to `offset` and drop the segments below it; returns the log start offset.
        Raises OffsetOutOfRange beyond the high watermark, StorageError."""
        return delete_records_before(self, offset)

    def apply_retention(self, now_ms: int) -> int:
        """Drop the segments that are due by retention.ms, retention.bytes and the log start offset; returns the bytes
        freed once the files are gone. Raises StorageError."""
        return apply_retention(self, now_ms)

    def delete_scheduled_files(self, elapsed_ms: int, *, at_most: int = 8) -> int:
        """Remove dropped files whose delay is over, a few at a time; returns how many. A large file takes long: call it
        in a worker. Raises OSError."""
        return delete_scheduled_files(self, elapsed_ms, at_most=at_most)

    def roll(self) -> None:
        """Begin a new segment at the log end, if the active one has anything. Raises OSError."""
        roll(self)

    def roll_with_next(self) -> None:
        """Let the next batch begin a new segment, as if the active one were full. A failed append forgets it."""
        tail = self.tail
        if tail is not None and tail.segment is self.segments[-1] and tail.size:
            tail.size = LONG_MAX

    def segment_sizes(self) -> Sequence[tuple[int, int, int]]:
        """(base offset, size, largest timestamp) of each segment, as a checkpoint keeps it."""
        return [(s.base_offset, s.size, s.largest_timestamp) for s in self.segments]

    def flush_indexes(self) -> bool:
        """Write pending index entries; False while a worker seals the segment. Raises OSError."""
        if self.sealing:
            return False
        if self.segments:
            self.segments[-1].flush_indexes()
        return True

    def flush(self, end: int | None = None, *, folder_name_synced: bool = False) -> None:
        """Force everything published to disk and move the recovery point, to `end` if that is given: where the log
        ended when its index entries were written. `folder_name_synced`: the folder's own name is on the disk. Blocks:
        call it in a worker thread. Raises OSError."""
        end = self.log_end_offset if end is None else end
        segments, before = tuple(self.segments), self.recovery_point
        unflushed = self.unflushed
        for number, segment in enumerate(segments):
            if number + 1 == len(segments) or segments[number + 1].base_offset > before:
                sync_segment(segment, folder_name_synced=folder_name_synced)
        self.recovery_point = max(self.recovery_point, end)
        self.unflushed = max(self.unflushed - unflushed, 0)

    def seal(self) -> None:
        """Write what belongs into a clean stop: indexes, producer snapshot. Nothing may be staged. Raises OSError."""
        if self.offline is None and self.segments:
            if self._producers:
                write_snapshot(
                    self.directory / f"{segment_name(self.log_end_offset)}.snapshot",
                    self._producers,
                    sync=True,
                )
            self.segments[-1].seal()

    def close(self) -> None:
        """Close the files; what is in them stays as it is."""
        for segment in self.segments:
            segment.close()

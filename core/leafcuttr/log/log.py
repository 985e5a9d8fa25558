"""One partition on disk: a list of segments, of which the last is appended to.

Offsets, and who may see what when (each holds between any two checkpoints of the event loop):

    log_start_offset <= log_end_offset <= next_offset, and recovery_point <= log_end_offset

- `next_offset` is what the next batch gets. What lies between `log_end_offset` and it is *staged*: it has offsets,
  perhaps it is being written, and nobody but the appender knows of it.
- `log_end_offset` is *published*: every byte before it is in the file (the page cache: it survives the death of the
  process, not that of the machine). There are no followers, so it is the high watermark: readers see all of it, and
  acks=all means published. `last_stable_offset` is where the first open transaction began, or else the same.
- Staged becomes published in order, all of one write at once, on the event loop, after the write has returned; the
  indexes, the producer state and `size` move in the same step. If the write fails, all that is staged is undone, also
  what was staged behind it: offsets are never given out with a gap, and never twice to what has been published.
- `recovery_point`: what is before it has been forced to disk. `log_start_offset` only grows.

All methods are synchronous, for the event loop's thread, unless they say otherwise. The methods' work is done in
the modules beside this one: append, commit, roll, read, lookup, retention. State they share is declared here. The room
is long because it is the one face of a partition: half of it are the contracts of its methods.
"""

import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import trio

from leafcuttr.config.topic import TopicConfig
from leafcuttr.errors import StorageError
from leafcuttr.log.append.commit import WriteError, commit
from leafcuttr.log.append.pending_write import Flight, Ticket
from leafcuttr.log.append.preparation import LongWork, Prepared
from leafcuttr.log.append.roll import discard, jitter_ms, new_segment, take_over
from leafcuttr.log.append.rules import LARGE, LONG_MAX, append_rules
from leafcuttr.log.append.stage import Group, Staged, Tail, stage, stage_marker
from leafcuttr.log.files.failed_sync import SyncFailedError
from leafcuttr.log.files.pool import FilePool, FileRegion, NotCached
from leafcuttr.log.files.write_pressure import PRESSURE
from leafcuttr.log.producers.snapshot import write_snapshot
from leafcuttr.log.producers.state import ProducerStateTable
from leafcuttr.log.read.aborted import Aborts, aborted_transactions
from leafcuttr.log.read.lookup import (
    Found,
    max_timestamp_offset,
    offset_for_leader_epoch,
    offset_for_timestamp,
)
from leafcuttr.log.read.read import LogRead, read
from leafcuttr.log.retention import (
    Doomed,
    apply_retention,
    delete_records_before,
    delete_scheduled_files,
)
from leafcuttr.log.segment.scan import DamagedSegmentError
from leafcuttr.log.segment.segment import Segment, segment_name
from leafcuttr.log.segment.txn_index import AbortedTransaction
from leafcuttr_sdk import Clock, TopicPartition

if TYPE_CHECKING:
    from leafcuttr.log.append.chain import Gate

__all__ = ["FileRegion", "Log", "LogRead", "Staged"]

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Waiter(Protocol):
    """Who wants to know that a log has changed."""

    def notify(self) -> None:
        """The log has more, or less, than before. Called synchronously; may not block."""


class Log:
    """See the module's docstring. Nothing on disk is touched before it is needed."""

    __slots__ = (
        "_aborts",
        "_config",
        "_producers",
        "_waiters",
        "bytes_in",
        "bytes_out",
        "clock",
        "cursors",
        "directory_name",
        "doomed",
        "flight",
        "gate",
        "groups",
        "leader_epoch",
        "log_end_offset",
        "log_start_offset",
        "next_offset",
        "offline",
        "opened_at",
        "pool",
        "records_out",
        "recovery_point",
        "rewrites",
        "roll_jitter_ms",
        "rules",
        "sealing",
        "segments",
        "suspect",
        "tail",
        "ticket",
        "topic_partition",
        "unflushed",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: Path | str,
        config: TopicConfig,
        *,
        segments: list[Segment],
        log_end_offset: int,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        leader_epoch: int = 0,
        producers: ProducerStateTable | None = None,
        pool: FilePool,
        clock: Clock,
        offline: str | None = None,
    ) -> None:
        """A log in a known state. `segments` is not empty unless `offline` says why nothing can be served."""
        self.topic_partition = topic_partition
        self.directory_name = str(directory)
        self.segments = segments
        self.log_start_offset = log_start_offset
        self.log_end_offset = self.next_offset = log_end_offset
        self.opened_at = log_end_offset
        self.bytes_in = self.bytes_out = self.records_out = 0  # since then; `records_out` by offsets
        self.recovery_point = recovery_point
        self.leader_epoch = leader_epoch
        self.offline = offline
        self.suspect = False  # a sync has failed: see `distrust`
        self.pool = pool
        self.clock = clock
        self._producers = producers
        self._waiters: set[Waiter] | None = None
        self._aborts: Aborts | None = None
        self._config = config
        self.gate: Gate | None = None
        self.rules = append_rules(config)
        self.roll_jitter_ms = jitter_ms(config.segment_jitter_ms, config.segment_ms)
        self.groups: list[Group] = []
        self.tail: Tail | None = None
        self.ticket: Ticket | None = None  # of what waits for the flight to land
        self.flight: Flight | None = None
        self.sealing = False  # a worker makes the next segment, and writes the index entries of the last one
        self.cursors: dict[int, tuple[Segment, int]] | None = None
        self.doomed: list[Doomed] = []
        self.rewrites = 0  # how often compaction has exchanged segments
        # Records that may not be on the disk yet, counted from the end. What this process did not sync may be none.
        self.unflushed = max(log_end_offset - recovery_point, 0)

    @classmethod
    def create(
        cls,
        topic_partition: TopicPartition,
        directory: Path | str,
        config: TopicConfig,
        *,
        pool: FilePool,
        clock: Clock,
    ) -> "Log":
        """A new, empty log in a folder that exists (callable in a worker). Raises OSError."""
        preallocate = config.segment_bytes if config.preallocate else 0
        segment = Segment.create(
            str(directory), 0, pool=pool, preallocate=preallocate, sync_writes=config.lc_log_sync_always
        )
        log = cls(
            topic_partition, directory, config, segments=[segment], log_end_offset=0, pool=pool, clock=clock
        )
        log._aborts = Aborts(empty=True)
        return log

    def __repr__(self) -> str:
        return f"<Log {self.topic_partition} [{self.log_start_offset}, {self.log_end_offset})>"

    @property
    def directory(self) -> Path:
        return Path(self.directory_name)

    @directory.setter
    def directory(self, directory: Path) -> None:
        """The folder has been renamed (deletion)."""
        self.directory_name = str(directory)
        for segment in self.segments:
            segment.close()
            segment.move_to(self.directory_name)

    @property
    def elapsed_ms(self) -> int:
        """Monotonic time."""
        return int(self.clock.monotonic() * 1000)

    @property
    def config(self) -> TopicConfig:
        return self._config

    @config.setter
    def config(self, config: TopicConfig) -> None:
        """New settings hold from the next append, roll or retention on."""
        if (config.segment_jitter_ms, config.segment_ms) != (
            self._config.segment_jitter_ms,
            self._config.segment_ms,
        ):
            self.roll_jitter_ms = jitter_ms(config.segment_jitter_ms, config.segment_ms)
        self._config = config
        self.use_gate(self.gate)

    def use_gate(self, gate: "Gate | None") -> None:
        """From the next append on this gate looks at every batch that is not the broker's own; None: nobody does."""
        self.gate = gate
        rules = append_rules(self._config)
        # A topic without one has no step more to go: it is one of those that convert what they get.
        self.rules = rules if gate is None else rules._replace(always_convert=True, sets_header_only=False)

    @property
    def high_watermark(self) -> int:
        return self.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """What is before it is decided: no open transaction has a record there (KIP-98)."""
        producers = self._producers
        if producers is None or producers.first_unstable < 0:
            return self.log_end_offset
        return max(producers.first_unstable, self.log_start_offset)

    @property
    def size(self) -> int:
        """Bytes of published batches in all segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def records_in(self) -> int:
        """Records published since the log was opened."""
        return self.log_end_offset - self.opened_at

    @property
    def producers(self) -> ProducerStateTable:
        if self._producers is None:
            self._producers = ProducerStateTable()
        return self._producers

    @property
    def aborts(self) -> Aborts:
        """Which segments have aborted transactions."""
        if self._aborts is None:
            self._aborts = Aborts()
        return self._aborts

    @property
    def has_producers(self) -> bool:
        """Whether any idempotent producer is remembered; asking makes no table."""
        return bool(self._producers)

    @property
    def waiters(self) -> set[Waiter]:
        """Notified after every publish, move of the log start offset, and deletion."""
        if self._waiters is None:
            self._waiters = set()
        return self._waiters

    def take_offline(self, reason: str) -> None:
        """Serve nothing of this log until the next start, and say so in one line."""
        if self.offline is None:
            self.offline = reason
            _log.error("%s is offline: %s", self.topic_partition, reason)
            self.notify()

    def distrust(self, error: SyncFailedError) -> None:
        """A sync has failed: what was written since the last good one may not be on the disk, whatever the page cache
        says. Nothing is served or synced until the next start has read it again; see `files.failed_sync`."""
        self.suspect = True
        cause = error.strerror or str(error)
        self.take_offline(
            f"syncing {error.filename} failed: {cause}; the next start reads it again from offset "
            f"{self.recovery_point} on"
        )

    def notify(self) -> None:
        """Tell all waiters."""
        if self._waiters:
            for waiter in tuple(self._waiters):
                waiter.notify()

    def stage(
        self, batch: memoryview, *, now_ms: int, by_coordinator: bool = False, encoded_here: bool = False
    ) -> Staged:
        """Check one produced record set (exactly one batch), give it offsets, stamp and queue it; nothing of it is
        visible before `commit`, and the view must stay as it is until then. What one of the broker's own coordinators
        writes for a producer (`by_coordinator`: offsets committed in a transaction) may have no sequence number. The
        records of what this broker has `encoded_here` are known to be whole: `lc.records.check` is for others'.

        Raises, of the BrokerError family: CorruptMessage (length, magic, CRC), InvalidRecord (counts, control batches,
        a base offset, more or less than one batch, no key where one is due, records that do not fill the batch),
        UnknownServerError (a record whose length has no end), InvalidTimestamp, MessageTooLarge,
        RecordListTooLarge, InvalidProducerEpoch, OutOfOrderSequence, InvalidTxnState (a plain batch of a producer whose
        transaction is open), GateError (a filter of the topic has failed), StorageError.
        """
        prepared = None
        while True:
            try:
                return self._stage(batch, now_ms, by_coordinator, prepared, encoded_here=encoded_here)
            except LongWork as long:
                prepared = long.work.do()

    def stage_at_once(
        self,
        batch: memoryview,
        *,
        now_ms: int,
        prepared: Prepared | None = None,
        encoded_here: bool = False,
    ) -> Staged:
        """`stage` for what clients send, which may be made to take long. Raises as it does, and LongWork, with nothing
        staged, where a worker thread has to look at the batch first: call again with what it has `prepared`."""
        if self.pool.refuses is not None:
            raise StorageError(self.pool.refuses)
        return self._stage(batch, now_ms, False, prepared, encoded_here=encoded_here)

    def stage_letters(self, batch: bytearray, *, now_ms: int, prepared: Prepared | None = None) -> Staged:
        """`stage_at_once` for dead letters: no gate looks at them, and they may be larger than the topic allows, by
        what the broker adds to a record that was not."""
        if self.pool.refuses is not None:
            raise StorageError(self.pool.refuses)
        return self._stage(memoryview(batch), now_ms, False, prepared, letters=True, encoded_here=True)

    def _stage(
        self,
        batch: memoryview,
        now_ms: int,
        by_coordinator: bool,
        prepared: Prepared | None,
        *,
        letters: bool = False,
        encoded_here: bool = False,
    ) -> Staged:
        gate = None if letters else self.gate
        try:
            return stage(
                self,
                batch,
                now_ms=now_ms,
                by_coordinator=by_coordinator,
                prepared=prepared,
                gate=gate,
                any_size=letters,
                encoded_here=encoded_here,
            )
        except OSError as error:
            raise StorageError(f"Reading {self.topic_partition} failed: {error.strerror or error}") from error
        except DamagedSegmentError as error:
            raise StorageError(str(error)) from error

    def stage_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        now_ms: int,
        transaction_version: int = 1,
    ) -> Staged:
        """Check a transaction marker, give it an offset and queue it. Once it is published, the producer's transaction,
        if one is open, has ended: `last_stable_offset` moves, and if it was aborted its records are to be skipped.

        With `transaction_version` 2 the marker's epoch is above that of the records. Raises InvalidProducerEpoch,
        TransactionCoordinatorFenced, StorageError.
        """
        try:
            return stage_marker(
                self,
                producer_id,
                producer_epoch,
                commit=commit,
                coordinator_epoch=coordinator_epoch,
                now_ms=now_ms,
                transaction_version=transaction_version,
            )
        except OSError as error:
            raise StorageError(f"Reading {self.topic_partition} failed: {error.strerror or error}") from error
        except DamagedSegmentError as error:
            raise StorageError(str(error)) from error

    def ongoing(self, producer_id: int, producer_epoch: int | None = None) -> int:
        """First offset of the producer's open transaction, staged batches and markers counted; -1 if there is none, or
        (with an epoch) none of that epoch."""
        producers = self._producers
        return -1 if producers is None else producers.ongoing(producer_id, producer_epoch)

    def commit(self) -> None:
        """Write everything staged, publish it and wake waiters. Not while `must_wait`.

        Raises WriteError; then nothing of what could not be written is there, and its offsets are free again. Of
        several groups the first may have been written: `written_to` says how far.
        """
        commit(self)

    @property
    def busy(self) -> bool:
        """Whether anything is staged or being written."""
        return self.flight is not None or bool(self.groups)

    @property
    def must_wait(self) -> bool:
        """Whether what is staged has to go through `commit_off_loop`: a write is in flight, or one on the loop would
        likely wait for the disk, or who waits for it also waits for dead letters."""
        if self.flight is not None:
            return True
        groups = self.groups
        if not groups:
            return False
        rules = self.rules
        if rules.sync or rules.flush_messages <= self.unflushed + self.next_offset - self.log_end_offset:
            return True
        size = groups[-1].size
        return size > LARGE or any(group.letters for group in groups) or PRESSURE.stalls(size)

    def write_off_loop(self) -> Ticket | None:
        """Have everything written that is staged, by a worker thread, one write at a time; what is staged meanwhile
        makes the next one. The ticket says what becomes of it, and whatever is in flight; None if there is nothing."""
        if not self.groups:
            return None if self.flight is None else self.flight.ticket
        ticket = self.ticket
        if ticket is None:
            ticket = Ticket()
            if self.flight is None:
                Flight(self, ticket).take_off()
            else:
                self.ticket = ticket
        return ticket

    def commit_off_loop(self, staged: Staged | None = None) -> Coroutine[Any, Any, None]:
        """`write_off_loop` at the call (not: at the await), to be awaited. Shielded from cancellation: views stay in
        use.

        Raises WriteError as `commit` does, also if what was staged was written, and failed, for somebody else; with
        `staged`, only if that is not in the log.
        """
        return _landed(self.write_off_loop(), LONG_MAX if staged is None else staged.base_offset)

    async def commit_staged(self, staged: Staged) -> None:
        """`commit`, on the loop or off it, whichever does not block, of what has just been staged (nothing may have
        been awaited since). Raises StorageError if `staged` is not in the log."""
        if self.must_wait:
            await self.commit_off_loop(staged)
        else:
            self.commit()

    def append(self, batch: bytes | bytearray, now_ms: int, *, by_coordinator: bool = False) -> int:
        """Stage and commit one batch; returns its base offset. Raises as they do. Not while `must_wait` for a write
        in flight: stage, then `await commit_staged(staged)`."""
        staged = self.stage(memoryview(bytearray(batch)), now_ms=now_ms, by_coordinator=by_coordinator)
        self.commit()
        return staged.base_offset

    def forget_staged(self) -> None:
        """Undo what is staged, after a failed write."""
        self.groups = []
        self.tail = None
        self.next_offset = self.log_end_offset
        if self._producers is not None:
            self._producers.forget_staged()

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

    async def off_loop(self, ask: Callable[[bool], T]) -> T:
        """Call `ask(False)` (its argument is `may_block`) until what it needs is in the page cache, reading that in
        worker threads. For example `await log.off_loop(lambda b: log.read(0, 99, at_least_one=True, may_block=b))`."""
        while True:
            try:
                return ask(False)
            except NotCached as cold:
                await trio.to_thread.run_sync(cold.warm)

    async def offset_for_timestamp(self, timestamp: int) -> Found | None:
        """(timestamp, offset, leader epoch) of the first record with this timestamp (ms, >= 0) or a later one.
        Raises StorageError."""
        with self._readable():
            return await offset_for_timestamp(self, timestamp)

    async def max_timestamp_offset(self) -> Found | None:
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

    def offset_for_leader_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) for an epoch, (-1, -1) if it is not known."""
        return offset_for_leader_epoch(self, epoch)

    def delete_records_before(self, offset: int) -> int:
        """Move the log start offset up to `offset` and drop the segments below it; returns the log start offset.
        Raises OffsetOutOfRange beyond the high watermark, StorageError."""
        return delete_records_before(self, offset)

    def apply_retention(self, now_ms: int) -> int:
        """Drop what retention.ms, retention.bytes and the log start offset let go; returns the bytes freed once the
        files are gone. Raises StorageError."""
        return apply_retention(self, now_ms)

    def delete_scheduled_files(self, elapsed_ms: int, *, at_most: int = 8) -> int:
        """Remove dropped files whose delay is over (`Doomed`), a few at a time (a large file takes long: call it in a
        worker); returns how many. Raises OSError."""
        return delete_scheduled_files(self, elapsed_ms, at_most=at_most)

    def roll(self) -> None:
        """Begin a new segment at the log end, if the active one has anything. Raises OSError."""
        if self.busy:
            raise RuntimeError(f"{self.topic_partition}: cannot roll while batches are staged")
        active = self.segments[-1]
        if active.size:
            try:
                fresh = new_segment(self, active, self.log_end_offset)
            except OSError:
                # The active segment goes on growing: a file that begins inside it would end the next recovery.
                discard(self, self.log_end_offset)
                raise
            take_over(self, fresh)
            self.tail = None

    def roll_with_next(self) -> None:
        """Let the next batch begin a new segment, as if the active one were full. A failed append forgets it."""
        tail = self.tail
        if tail is not None and tail.segment is self.segments[-1] and tail.size:
            tail.size = LONG_MAX

    def segment_sizes(self) -> Sequence[tuple[int, int, int]]:
        """(base offset, size, largest timestamp) of each segment, as a checkpoint keeps it."""
        return [(s.base_offset, s.size, s.largest_timestamp) for s in self.segments]

    def flush_indexes(self) -> bool:
        """Write pending index entries; False if a worker is at it, sealing the segment. Raises OSError."""
        if self.sealing:
            return False
        if self.segments:
            self.segments[-1].flush_indexes()
        return True

    def flush(self, end: int | None = None) -> None:
        """Force everything published to disk and move the recovery point, to `end` if that is given: where the log
        ended when its index entries were written. Blocks: call it in a worker thread. Raises OSError."""
        end = self.log_end_offset if end is None else end
        segments, before = tuple(self.segments), self.recovery_point
        unflushed = self.unflushed
        for number, segment in enumerate(segments):
            if number + 1 == len(segments) or segments[number + 1].base_offset > before:
                segment.sync()
        self.recovery_point = max(self.recovery_point, end)
        self.unflushed = max(self.unflushed - unflushed, 0)

    def close(self) -> None:
        """Write what belongs into a clean stop (indexes, producer snapshot) and let go of the files. Nothing may be
        staged. Raises OSError."""
        if self.offline is None and self.segments:
            if self._producers:
                write_snapshot(
                    self.directory / f"{segment_name(self.log_end_offset)}.snapshot",
                    self._producers,
                    sync=True,
                )
            self.segments[-1].seal()
        for segment in self.segments:
            segment.close()


async def _landed(ticket: Ticket | None, base_offset: int) -> None:
    if ticket is None:
        await trio.lowlevel.cancel_shielded_checkpoint()
        return
    await ticket.wait()
    failure = ticket.failure
    if failure is not None and base_offset >= failure.written_to:
        raise WriteError(str(failure), failure.written_to)

"""The fields of one partition on disk, and what holds between them: what the parts of a log work on.

Offsets, and what readers may see (each holds between any two checkpoints of the event loop):

    log_start_offset <= log_end_offset <= next_offset, and recovery_point <= log_end_offset

- `next_offset` is what the next batch gets. What lies between `log_end_offset` and it is *staged*: it has offsets,
  perhaps it is being written, and only the appender knows of it.
- `log_end_offset` is *published*: every byte before it is in the file (the page cache: it survives the death of the
  process, not that of the machine). There are no followers, so it is the high watermark: readers see all of it, and
  acks=all means published. `last_stable_offset` is where the first open transaction began, or else the same.
- Staged becomes published in order, all of one write at once, on the event loop, after the write has returned; the
  indexes, the producer state and `size` move in the same step. If the write fails, all that is staged is undone, also
  what was staged behind it: offsets are never given out with a gap, and never twice to what has been published.
- `recovery_point`: what is before it has been forced to disk. `log_start_offset` only grows.
"""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from leafcuttr.config.topic import TopicConfig
from leafcuttr.log.append.pending_write import PendingWrite
from leafcuttr.log.append.rules import append_rules, jitter_ms
from leafcuttr.log.append.staged import StagedGroup, Tail
from leafcuttr.log.files.failed_sync import SyncFailedError
from leafcuttr.log.files.pending_delete import PendingDelete
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.producers.state import ProducerStateTable
from leafcuttr.log.resources import LogResources
from leafcuttr.log.segment.aborts import Aborts
from leafcuttr.log.segment.segment import Segment
from leafcuttr_sdk import Clock, TopicPartition

if TYPE_CHECKING:
    from leafcuttr.log.append.chain.chain import Chain

_log = logging.getLogger(__name__)


class Waiter(Protocol):
    """Is notified when a log has changed."""

    def notify(self) -> None:
        """The log has more, or less, than before. Called synchronously; may not block."""


class LogState:
    """See the module's docstring. Nothing on disk is touched before it is needed."""

    __slots__ = (
        "_aborts",
        "_config",
        "_producers",
        "_waiters",
        "bytes_in",
        "bytes_out",
        "chain",
        "cursors",
        "directory_name",
        "groups",
        "leader_epoch",
        "log_end_offset",
        "log_start_offset",
        "next_offset",
        "next_write",
        "offline",
        "opened_at",
        "pending_deletes",
        "records_out",
        "recovery_point",
        "resources",
        "rewrites",
        "roll_jitter_ms",
        "rules",
        "sealing",
        "segments",
        "sync_failed",
        "tail",
        "topic_partition",
        "unflushed",
        "writing",
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
        resources: LogResources,
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
        self.sync_failed = False  # a sync has failed: see `handle_failed_sync`
        self.resources = resources
        self._producers = producers
        self._waiters: set[Waiter] | None = None
        self._aborts: Aborts | None = None
        self._config = config
        self.chain: Chain | None = None
        self.rules = append_rules(config)
        self.roll_jitter_ms = jitter_ms(config.segment_jitter_ms, config.segment_ms)
        self.groups: list[StagedGroup] = []
        self.tail: Tail | None = None
        self.writing: PendingWrite | None = None  # what a worker writes now
        self.next_write: PendingWrite | None = None  # of what waits until it has
        self.sealing = False  # a worker makes the next segment, and writes the index entries of the last one
        self.cursors: dict[int, tuple[Segment, int]] | None = None
        self.pending_deletes: list[PendingDelete] = []
        self.rewrites = 0  # how often compaction has exchanged segments
        # Records that may not be on the disk yet, counted from the end. What this process did not sync may be none.
        self.unflushed = max(log_end_offset - recovery_point, 0)

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
    def pool(self) -> FilePool:
        return self.resources.pool

    @property
    def clock(self) -> Clock:
        return self.resources.clock

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
        self.use_chain(self.chain)

    def use_chain(self, chain: "Chain | None") -> None:
        """From the next append on this chain runs over every batch that is not the broker's own; None: no chain."""
        self.chain = chain
        rules = append_rules(self._config)
        # With a chain each batch takes the path of a conversion, so that topics without one need no further check.
        self.rules = rules if chain is None else rules._replace(always_convert=True, sets_header_only=False)

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
    def segment_count(self) -> int:
        return len(self.segments)

    @property
    def active_size(self) -> int:
        """Bytes of published batches in the segment that is written to."""
        return self.segments[-1].size

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
        """Whether any idempotent producer is remembered; does not make a table."""
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

    def handle_failed_sync(self, error: SyncFailedError) -> None:
        """A sync has failed: what was written since the last good one may not be on the disk, whatever the page cache
        says. Nothing is served or synced until the next start has read it again; see `files.failed_sync`."""
        self.sync_failed = True
        cause = error.strerror or str(error)
        self.take_offline(
            f"syncing {error.filename} failed: {cause}; the next start reads it again from offset "
            f"{self.recovery_point} on"
        )

    def notify(self) -> None:
        """Notify all waiters."""
        if self._waiters:
            for waiter in tuple(self._waiters):
                waiter.notify()

    @property
    def busy(self) -> bool:
        """Whether anything is staged or being written."""
        return self.writing is not None or bool(self.groups)

    def forget_staged(self) -> None:
        """Undo what is staged, after a failed write."""
        self.groups = []
        self.tail = None
        self.next_offset = self.log_end_offset
        if self._producers is not None:
            self._producers.forget_staged()

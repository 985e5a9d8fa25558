"""What is known of a run while it goes on: batches come in from Spark's thread, the status file and the history go out
from the run's own.

Both are on a disk that may be full: then the run goes on, and says so once.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.operating.history import History, Point
from leafcuttr_spark.operating.lag import lag_s
from leafcuttr_spark.operating.progress import BatchProgress
from leafcuttr_spark.operating.status import RunState, RunStatus, write_status

LOGGER: Final = logging.getLogger("leafcuttr.spark")

STALE_MS: Final = 5000
"""The status file is written so often at least, and the lag of a run without batches is found anew."""

Oldest = Callable[[Mapping[TopicPartition, int]], int | None]


class RunMonitor:
    """`tick`, `enter` and `status` are for one thread; `told` may be called by another."""

    def __init__(
        self,
        status: RunStatus,
        files: tuple[Path, ...],
        history: History | None,
        now_ms: Callable[[], int],
        oldest: Oldest,
    ) -> None:
        self.status = status
        self._files = files
        self._history = history
        self._now_ms = now_ms
        self._oldest = oldest
        self._lock = threading.Lock()
        self._new: list[BatchProgress] = []
        self._last: BatchProgress | None = None
        self._refused: set[str] = set()
        self._looked_ms = 0

    def told(self, progress: BatchProgress) -> None:
        """A batch is done. Any thread."""
        with self._lock:
            self._new.append(progress)

    def tick(self, dead_letters: int = 0) -> list[BatchProgress]:
        """Take in what has come, and write what is due. The batches that are new, without those that had no rows."""
        with self._lock:
            new, self._new = self._new, []
        now = self._now_ms()
        for progress in new:
            self._take(progress)
        if new or now - self._looked_ms >= STALE_MS:
            self._find_lag(now)
        is_due = bool(new) or dead_letters != self.status.dead_letters
        self.status = replace(self.status, dead_letters=dead_letters)
        with_rows = [progress for progress in new if progress.rows]
        for progress in with_rows:
            self._add(progress)
        if is_due or now - self.status.written_ms >= STALE_MS:
            self._write()
        return with_rows

    def enter(self, state: RunState, trouble: str = "") -> None:
        """The run does something else now."""
        self.status = replace(self.status, state=state, trouble=trouble)
        self._write()

    def goes_on(self) -> None:
        """What has made the run before fail does not keep this one from going on."""
        if self.status.last_failure:
            self.status = replace(self.status, last_failure="")
            self._write()

    # How

    def _take(self, progress: BatchProgress) -> None:
        before = self.status
        is_new = self._last is None or progress.batch > self._last.batch
        self._last = progress
        self.status = replace(
            before,
            batch=progress.batch,
            batches=before.batches + is_new,
            rows=before.rows + progress.rows,
            rows_per_s=progress.rows_per_s if progress.rows else before.rows_per_s,
            watermark_ms=progress.watermark_ms or before.watermark_ms,
            state_rows=progress.state_rows,
            state_bytes=progress.state_bytes,
            late_rows=before.late_rows + progress.late_rows,
            last_failure="",
        )

    def _find_lag(self, now: int) -> None:
        self._looked_ms = now
        last = self._last
        if last is None or not last.knows_lag:
            return
        lag = last.lag
        read = {partition: offset for source in last.sources for partition, offset in source.read.items()}
        self.status = replace(
            self.status, lag_records=sum(lag.values()), lag_s=lag_s(lag, read, now, self._oldest)
        )

    def _add(self, progress: BatchProgress) -> None:
        if self._history is None:
            return
        now = self.status
        point = Point(
            self._now_ms(), progress.batch, progress.rows, progress.seconds,
            now.lag_records, now.lag_s, progress.state_rows, now.dead_letters,
        )  # fmt: skip
        try:
            self._history.add(point)
        except OSError as error:
            self._refuse("the history", error)

    def _write(self) -> None:
        self.status = replace(self.status, written_ms=self._now_ms())
        for path in self._files:
            try:
                write_status(path, self.status)
            except OSError as error:
                self._refuse(str(path), error)
            else:
                self._refused.discard(str(path))

    def _refuse(self, what: str, error: OSError) -> None:
        if what not in self._refused:
            self._refused.add(what)
            LOGGER.warning("%s cannot be written, the pipeline goes on: %s", what, error.strerror or error)

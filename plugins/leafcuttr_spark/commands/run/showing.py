"""What a run prints: a line for batches, as people read them or as JSON."""

import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Final

from leafcuttr_spark.operating.progress import BatchProgress
from leafcuttr_spark.operating.status import RunStatus

TERMINAL_MS: Final = 1000
LOG_MS: Final = 30_000
"""Between two lines: on a terminal, and where lines are kept."""

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


class Shown:
    """Prints a line with `echo` for what the monitor has found, not more often than once in `pause_ms`; as JSON one for
    each batch."""

    def __init__(self, echo: Callable[[str], None], *, as_json: bool, pause_ms: int) -> None:
        self._echo = echo
        self._as_json = as_json
        self._pause_ms = pause_ms
        self._due_ms = 0
        self._left_out = False

    def batches(self, new: list[BatchProgress], status: RunStatus) -> None:
        """Called again and again, also where nothing is new."""
        if self._as_json:
            for progress in new:
                self._echo(as_json(status, progress))
            return
        self._left_out = self._left_out or bool(new)
        if self._left_out and status.written_ms >= self._due_ms:
            self._due_ms = status.written_ms + self._pause_ms
            self._left_out = False
            self._echo(as_line(status))

    def end(self, status: RunStatus) -> None:
        """The last line of a run."""
        if self._as_json:
            self._echo(as_json(status))
        else:
            self._echo(f"{status.state.value}: {as_line(status)}")


def as_line(status: RunStatus) -> str:
    """`batch 17 | 1,200 rows, 5,210/s | lag 42 records, 1.3 s | watermark ... | state ... | dead letters 2`"""
    batch = "no batch" if status.batch is None else f"batch {status.batch}"
    parts = [batch, f"{status.rows:,} rows, {status.rows_per_s:,.0f}/s", lag_text(status)]
    if status.watermark_ms is not None:
        parts.append(f"watermark {time_text(status.watermark_ms)}")
    if status.state_rows:
        parts.append(f"state {status.state_rows:,} rows, {bytes_text(status.state_bytes)}")
    if status.late_rows:
        parts.append(f"late {status.late_rows:,}")
    if status.dead_letters:
        parts.append(f"dead letters {status.dead_letters:,}")
    return " | ".join(parts)


def as_json(status: RunStatus, progress: BatchProgress | None = None) -> str:
    """The status, and of a batch its rows and seconds."""
    found = asdict(status) | {"state": status.state.value}
    if progress is not None:
        found |= {"batch": progress.batch, "batch_rows": progress.rows, "batch_s": progress.seconds}
    return json.dumps(found, ensure_ascii=False)


def lag_text(status: RunStatus) -> str:
    if status.lag_records is None:
        return "lag unknown"
    seconds = "" if status.lag_s is None else f", {status.lag_s:,.1f} s"
    return f"lag {status.lag_records:,} records{seconds}"


def time_text(ms: int) -> str:
    """In UTC."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"


def bytes_text(count: float) -> str:
    unit = 0
    while count >= 1024 and unit + 1 < len(_UNITS):
        count /= 1024
        unit += 1
    return f"{count:,.{1 if unit else 0}f} {_UNITS[unit]}"

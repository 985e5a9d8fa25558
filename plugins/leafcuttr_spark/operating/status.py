"""The status of a run: one small JSON file that `leafcuttr spark run` replaces after each batch, and once in a while
without one. Who reads it has no Spark: `leafcuttr spark status`, and the broker that supervises the run.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Final, get_args, get_type_hints

STATUS: Final = "status.json"
"""The name of its file, in the folder with what runs keep beside the checkpoint."""
_MOST: Final = 1 << 20
"""Bytes of a file that is read."""


class RunState(Enum):
    """What a run does."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    """It was told to stop, and finishes its batch."""
    STOPPED = "stopped"
    FINISHED = "finished"
    """All there was is done: with the trigger available-now, or `--once`."""
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        return self in (RunState.STOPPED, RunState.FINISHED, RunState.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """How a run goes. Times are milliseconds since 1970; counts are of this run alone."""

    pipeline: str
    file: str
    checkpoint: str
    run: str
    """An id of this run."""
    pid: int
    host: str
    state: RunState
    began_ms: int
    written_ms: int
    batch: int | None = None
    """The number of the last batch that is done, which counts all runs of the checkpoint."""
    batches: int = 0
    rows: int = 0
    """Rows that were read."""
    rows_per_s: float = 0.0
    """Of the last batch that had rows, while it was at work."""
    lag_records: int | None = None
    """Offsets between what the last batch has read and the ends of the topics; None while it is unknown."""
    lag_s: float | None = None
    """How old the oldest record is that was not read; 0 without such a record, None while it is unknown."""
    watermark_ms: int | None = None
    state_rows: int = 0
    state_bytes: int = 0
    late_rows: int = 0
    dead_letters: int = 0
    trouble: str = ""
    """What is wrong, in one line."""
    last_failure: str = ""
    """Why the run before has failed, in one line, until this one has done a batch or waits for records."""

    @property
    def failure(self) -> str:
        """Why the last run that has failed did, in one line; empty where a run has gone on since."""
        return self.trouble if self.state is RunState.FAILED else self.last_failure

    @property
    def all_trouble(self) -> str:
        """What is wrong, in one line: with this run, or with the one before as long as nobody knows that this one goes
        on."""
        return self.trouble or before(self.last_failure)


def before(failure: str) -> str:
    """What is said of a failure of the run before; empty without one."""
    return f"the run before has failed: {failure}" if failure else ""


_TYPES: Final = get_type_hints(RunStatus)


def write_status(path: Path, status: RunStatus) -> None:
    """Readers see the old one or the new one, never a part. Raises OSError."""
    text = json.dumps(asdict(status) | {"state": status.state.value}, ensure_ascii=False)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        new.write_text(text + "\n", encoding="utf-8")
        new.replace(path)
    except OSError:
        with suppress(OSError):
            new.unlink()
        raise


def read_status(path: Path) -> RunStatus | None:
    """None where there is none, or what is there is none: a run of another version may have written it."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST + 1)
        found = json.loads(data) if len(data) <= _MOST else None
    except (OSError, ValueError, RecursionError):
        return None
    return _status_of(found) if isinstance(found, dict) else None


def _status_of(found: Mapping[str, Any]) -> RunStatus | None:
    values: dict[str, Any] = {}
    for field in fields(RunStatus):
        if field.name not in found:
            continue
        value = found[field.name]
        if field.name == "state":
            try:
                value = RunState(value)
            except ValueError:
                return None
        elif not _is_of(value, _TYPES[field.name]):
            return None
        values[field.name] = value
    try:
        return RunStatus(**values)
    except TypeError:
        return None


def _is_of(value: Any, type_: Any) -> bool:
    allowed = set(get_args(type_)) if isinstance(type_, UnionType) else {type_}
    if float in allowed:
        allowed.add(int)
    return type(value) in allowed


def is_alive(status: RunStatus, host: str) -> bool:
    """Whether the process that wrote it still runs, as far as this machine, of the name `host`, can tell: of another
    one's it cannot, and says yes until the run has said that it is over."""
    if status.state.is_over:
        return False
    if status.host != host:
        return True
    try:
        os.kill(status.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

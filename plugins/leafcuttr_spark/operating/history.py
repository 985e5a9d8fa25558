"""The last batches of a pipeline, a line of JSON for each: what plots are made of. The file is bounded.

{"at_ms": 1790000000000, "batch": 17, "rows": 500, "seconds": 0.3, "lag_records": 0, "lag_s": 0.0, ...}
"""

import json
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

HISTORY: Final = "history.jsonl"
"""In the own folder of a checkpoint."""

MOST: Final = 2000
"""Batches that are kept; up to twice as many are in the file."""


class Point(NamedTuple):
    """One batch, at its end."""

    at_ms: int
    batch: int
    rows: int
    seconds: float
    lag_records: int | None = None
    lag_s: float | None = None
    state_rows: int = 0
    dead_letters: int = 0
    """Of the run so far."""


class History:
    """Writes the file. `add` raises OSError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._points: deque[Point] = deque(read_history(path), maxlen=MOST)
        self._in_file = 2 * MOST  # what a process before has left is written anew with the first one

    def add(self, point: Point) -> None:
        self._points.append(point)
        self._in_file += 1
        if self._in_file > 2 * MOST:
            new = self._path.with_suffix(".new")
            new.write_text("".join(map(_line, self._points)), encoding="utf-8")
            new.replace(self._path)
            self._in_file = len(self._points)
        else:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(_line(point))


def read_history(path: Path) -> list[Point]:
    """The last ones, oldest first. Lines that are none, as a last one that was cut off, are left out."""
    found: deque[Point] = deque(maxlen=MOST)
    with suppress(OSError), path.open("rb") as file:
        for line in file:
            with suppress(ValueError, TypeError, RecursionError):
                values = json.loads(line)
                point = Point(**{name: values[name] for name in Point._fields if name in values})
                if all(_is_number(value) for value in point):
                    found.append(point)
    return list(found)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _line(point: Point) -> str:
    return json.dumps(point._asdict()) + "\n"

"""A line on the terminal that says how far a long work with records is; nothing where standard error is no terminal."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

METER_EVERY: Final = 64
"""Calling `count` after so many records is often enough."""
_EVERY_S: Final = 0.1


class Meter:
    """Shows nothing."""

    def count(self, records: int) -> None:
        """So many records are done."""

    def read(self, size: int) -> None:
        """So many more bytes of the input have been read."""


class _Line(Meter):
    def __init__(self, bar: Any, task: Any) -> None:
        self._bar = bar
        self._task = task
        self._due = 0.0
        self._began = time.monotonic()

    def count(self, records: int) -> None:
        now = time.monotonic()
        if now >= self._due:
            self._due = now + _EVERY_S
            rate = records / max(now - self._began, 0.001)
            self._bar.update(self._task, done=f"{records:,} records, {rate:,.0f}/s")

    def read(self, size: int) -> None:
        self._bar.advance(self._task, size)


@contextlib.contextmanager
def record_meter(title: str, total_bytes: int | None = None, *, shown: bool = True) -> Iterator[Meter]:
    """A meter for the time of a `with`; with the bytes to read it has a bar."""
    if not shown or not sys.stderr.isatty():
        yield Meter()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns: list[Any] = [TextColumn("{task.description} {task.fields[done]}")]
    if total_bytes is not None:
        columns += [BarColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _Line(bar, bar.add_task(title, total=total_bytes, done=""))

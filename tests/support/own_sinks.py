"""Sinks as a user writes them."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any


class Folder:
    """A file for each batch, which is replaced."""

    def __init__(self, path: str, fails_once: str | None = None, closing_fails: str | None = None) -> None:
        self.closing_fails = closing_fails
        self.path = Path(path)
        self.path.mkdir(exist_ok=True)
        self.fails_once = Path(fails_once) if fails_once else None

    def write(self, rows: Any, batch: Any) -> None:
        found = [row.asDict(recursive=True) for row in rows.collect()]
        (self.path / f"{batch.query}-{batch.number}").write_text(json.dumps(found))
        if self.fails_once is not None and not self.fails_once.exists():
            self.fails_once.touch()
            raise RuntimeError("the disk is\nfull")

    def close(self) -> None:
        (self.path / "closed").touch()
        if self.closing_fails is not None:
            raise RuntimeError(self.closing_fails)


class Appends:
    """What must not be: a batch that comes again is there twice."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def write(self, rows: Any, batch: Any) -> None:
        with self.path.open("a") as out:
            for row in rows.collect():
                out.write(json.dumps(row.asDict()) + "\n")


DIES = "OWN_SINK_DIES"
"""The variable with which the process of a `Table` ends in the middle of a batch."""


class Table:
    """A table that has the batch as a part of its key. Rows are committed one by one, so an end in the middle of one
    leaves some of its rows."""

    def __init__(self, path: str) -> None:
        self.path = path
        with closing(self._opened()) as table:
            table.execute("CREATE TABLE IF NOT EXISTS kept (query, batch, row)")

    def write(self, rows: Any, batch: Any) -> None:
        found = [json.dumps(row.asDict(recursive=True)) for row in rows.collect()]
        with closing(self._opened()) as table:
            table.execute("DELETE FROM kept WHERE query = ? AND batch = ?", (batch.query, batch.number))
            for number, row in enumerate(found):
                table.execute("INSERT INTO kept VALUES (?, ?, ?)", (batch.query, batch.number, row))
                if 2 * (number + 1) >= len(found) and DIES in os.environ:
                    os.kill(os.getpid(), signal.SIGKILL)

    def _opened(self) -> sqlite3.Connection:
        table = sqlite3.connect(self.path, isolation_level=None)
        # A process that is killed loses nothing by it.
        table.execute("PRAGMA synchronous = OFF")
        return table


def read_table(path: Path) -> list[tuple[str, int, Any]]:
    """The rows with their queries and batches, in the order in which they were written."""
    with closing(sqlite3.connect(path)) as table:
        found = table.execute("SELECT query, batch, row FROM kept ORDER BY rowid").fetchall()
    return [(query, batch, json.loads(row)) for query, batch, row in found]

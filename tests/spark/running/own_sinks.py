"""Sinks as a user writes them."""

from __future__ import annotations

import json
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

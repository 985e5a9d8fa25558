"""How a command of ours ended, whichever way a test ran it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ran:
    """The exit status, and what was printed."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def commit(run: Callable[..., Any], group: str, topic: str, offset: int) -> None:
    """Give a group without members a committed offset for partition 0."""
    words = ("--topic", f"{topic}:0", "--to-offset", str(offset), "--execute")
    done = run("groups", "reset-offsets", group, *words)
    assert done.status == 0, done.err

"""What a check has to say: where, how bad, and in which words."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Severity(StrEnum):
    """A note is a state that the broker knows how to leave; a problem is damage."""

    PROBLEM = "problem"
    NOTE = "note"


class FileFinding(NamedTuple):
    """Something that is not as it should be. `position` is a byte of the file, where there is one to name."""

    severity: Severity
    path: Path
    position: int | None
    text: str

    def __str__(self) -> str:
        at = "" if self.position is None else f" at byte {self.position}"
        return f"{self.severity}: {self.path}{at}: {self.text}"


Report = Callable[[FileFinding], None]

"""What `leafcuttr repair` reports: a line for people as it comes, or one JSON object at the end. It changes nothing."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from leafcuttr.offline.findings import FileFinding


@dataclass
class RepairReport:
    """Problems, steps and refusals of one run; `execute` says whether the steps are done or only planned."""

    execute: bool
    as_json: bool
    _problems: list[dict[str, Any]] = field(default_factory=list)
    _steps: list[str] = field(default_factory=list)
    _refused: list[str] = field(default_factory=list)

    def line(self, text: str, *, err: bool = False) -> None:
        """For people only."""
        if not self.as_json:
            click.echo(text, err=err)

    def problem(self, finding: "FileFinding") -> None:
        """What is wrong with a file."""
        self._problems.append({"path": str(finding.path), "position": finding.position, "text": finding.text})
        self.line(str(finding))

    def step(self, text: str, line: str) -> None:
        """What is done, or would be."""
        self._steps.append(text)
        self.line(line)

    def refused(self, text: str, line: str, *, err: bool = False) -> None:
        """What cannot be done, and why."""
        self._refused.append(text)
        self.line(line, err=err)

    def json(self, directory: Path, *, done: bool) -> dict[str, Any]:
        """All of it; `done` says that nothing is left to do."""
        return {
            "directory": str(directory),
            "executed": self.execute,
            "done": done,
            "problems": self._problems,
            "steps": self._steps,
            "refused": self._refused,
        }

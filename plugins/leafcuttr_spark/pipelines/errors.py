"""What is wrong with a pipeline, one line each:
`orders.yaml:12: steps[2] (large): there is no column amont: did you mean amount?`"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One thing that is wrong. Secrets are left out of its texts."""

    line: int
    """Of the file, from 1; 0 for a pipeline that was made in Python."""
    part: str
    """`steps[2] (large)`, `sources.orders`; empty for the file as a whole."""
    what: str
    """What is wrong, and what is allowed."""
    note: bool = False
    """Whether it is only worth knowing: the pipeline can run."""

    def text(self, file: str) -> str:
        """The line for the person who has written the file."""
        place = f"{file}:{self.line}: " if self.line and file else f"{file}: " if file else ""
        return f"{place}{self.part}: {self.what}" if self.part else f"{place}{self.what}"


class PipelineFaultsError(ValueError):
    """A pipeline that cannot be used: all that is wrong with it, in the order of lines."""

    def __init__(self, file: str, faults: Sequence[Fault]) -> None:
        self.file = file
        self.faults = tuple(faults)
        super().__init__("\n".join(fault.text(file) for fault in self.faults))


class PipelineError(Exception):
    """A pipeline that failed while it ran: one line for the person who runs it, and the step that it comes from."""

    def __init__(self, message: str, step: str | None = None, line: int = 0, file: str = "") -> None:
        self.message = message
        self.step = step
        self.line = line
        self.file = file
        super().__init__(Fault(line, step or "", message).text(file))


class PipelineRefusedError(PipelineError):
    """A pipeline that cannot run as it is: another try would end in the same way. The checks of its file did not see
    it, as of one that was made in Python, or of a module that is missing."""


class DeadLetterLimitError(PipelineError):
    """More dead letters than the pipeline allows."""

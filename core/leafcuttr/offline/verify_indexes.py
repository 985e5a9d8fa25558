"""Checks the two indexes of a segment, in step with its batches or alone."""

from abc import ABC, abstractmethod
from pathlib import Path
from struct import Struct
from typing import Final

from leafcuttr.log.segment.index import OffsetIndex, TimeIndex
from leafcuttr.offline.findings import FileFinding, Report, Severity
from leafcuttr.wire.batch import BatchHeader

_NEVER: Final = 1 << 63


class IndexWalk(ABC):
    """The entries of one index, read in step with the batches. `due` and `due_offset` say with which batch the next
    one is checked: the one at that position, or with that offset."""

    entry: Struct
    name: str

    def __init__(self, path: Path, base_offset: int, report: Report) -> None:
        self.path = path
        self.base_offset = base_offset
        self.report = report
        self.due = self.due_offset = _NEVER
        self.position = 0
        self.faulty = False
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            data = b""
            self.fault("the file is missing")
        used = len(data.rstrip(b"\0"))
        used += -used % self.entry.size
        if used < len(data):
            report(
                FileFinding(Severity.NOTE, path, used, f"{len(data) - used} bytes of unused preallocation")
            )
        elif len(data) % self.entry.size:
            self.fault(f"{len(data)} bytes are not a multiple of {self.entry.size}")
        whole = min(used, len(data)) // self.entry.size
        self.entries = self.entry.iter_unpack(data[: whole * self.entry.size])
        self.current: tuple[int, int] | None = None
        self.advance()

    def fault(self, text: str, severity: Severity = Severity.PROBLEM) -> None:
        """Report the first fault of the file; the rest usually follows from it."""
        if not self.faulty:
            self.report(FileFinding(severity, self.path, self.position, text))
        self.faulty = True
        self.due = self.due_offset = _NEVER
        self.current = None

    def advance(self) -> None:
        if self.faulty:
            return
        last, following = self.current, next(self.entries, None)
        if last is not None:
            self.position += self.entry.size
        if following is None:
            self.current, self.due, self.due_offset = None, _NEVER, _NEVER
            return
        self.current = (following[0], following[1])
        if last is not None and (following[0] <= last[0] or following[1] < last[1]):
            self.fault(f"the entry {self.current} does not ascend after {last}")
            return
        self.arm(*self.current)

    @abstractmethod
    def arm(self, first: int, second: int) -> None:
        """Say when the entry is due."""

    @abstractmethod
    def batch(self, position: int, header: BatchHeader, max_timestamp: int) -> None:
        """Check the entries that are due with this batch, the last one so far."""

    def finish(self, end: int, next_offset: int, tolerant: bool) -> None:
        """The log has ended: an entry that is left points to nothing."""
        if self.current is not None:
            severity = Severity.NOTE if tolerant else Severity.PROBLEM
            self.fault(
                f"the entry {self.current} points behind the end of the log file ({end} bytes)", severity
            )


class OffsetIndexWalk(IndexWalk):
    """Each position is the beginning of a batch, and each offset is not before that batch: a lookup starts there."""

    entry = OffsetIndex.ENTRY

    def arm(self, first: int, second: int) -> None:
        self.due = second

    def batch(self, position: int, header: BatchHeader, max_timestamp: int) -> None:
        while self.current is not None and self.due <= position:
            relative, at = self.current
            if at != position:
                self.fault(f"offset {self.base_offset + relative} has position {at}, where no batch begins")
            elif self.base_offset + relative < header.base_offset:
                self.fault(
                    f"offset {self.base_offset + relative} has position {at}, "
                    f"where the batch {header.base_offset} to {header.last_offset} begins"
                )
            else:
                self.advance()


class TimeIndexWalk(IndexWalk):
    """Each timestamp is the largest of all batches up to the entry's offset: a search by time starts behind it."""

    entry = TimeIndex.ENTRY

    def arm(self, first: int, second: int) -> None:
        self.due_offset = self.base_offset + second

    def batch(self, position: int, header: BatchHeader, max_timestamp: int) -> None:
        while self.current is not None and self.due_offset <= header.last_offset:
            timestamp, relative = self.current
            if timestamp != max_timestamp:
                self.fault(
                    f"says that {timestamp} is the largest timestamp up to offset {self.base_offset + relative}, "
                    f"but {max_timestamp} is"
                )
            else:
                self.advance()


def check_index_alone(path: Path, base_offset: int, report: Report) -> int:
    """What can be said of an index without its log: whole entries, ascending. Returns how many there are."""
    walk = (OffsetIndexWalk if path.suffix == ".index" else TimeIndexWalk)(path, base_offset, report)
    entries = 0
    while walk.current is not None:
        entries += 1
        walk.advance()
    return entries

"""Checks one segment: its log file batch by batch, and in step with it the entries of its two indexes.

What is checked is what a reader relies on, so that a segment which passes can be served. What a finding means for
the data directory, and everything outside the segment's own files, belongs to `leafcuttr.offline.verify`.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from leafcuttr.log.files.open_file import OpenFile
from leafcuttr.log.layout.epochs import EpochsWalk
from leafcuttr.log.segment.index import OffsetIndex, TimeIndex
from leafcuttr.log.segment.scan import SCAN_CHUNK, DamagedSegmentError
from leafcuttr.offline.findings import FileFinding, Report, Severity
from leafcuttr.offline.placing import EVERYTHING, Placed, Placing, placed
from leafcuttr.offline.verify_transactions import TransactionsWalk
from leafcuttr.wire.batch import HEADER_SIZE, MIN_LENGTH, BatchHeader, parse
from leafcuttr.wire.errors import WireError


@dataclass(slots=True)
class SegmentChecked:
    """What was found in one segment."""

    base_offset: int
    end_position: int = 0
    next_offset: int = 0
    batches: int = 0
    records: int = 0
    max_timestamp: int = -1
    damaged: bool = False


class SegmentRules(NamedTuple):
    """What to expect of a segment. `expected` is the offset after the segment before it (-1: not known)."""

    expected: int
    gaps: Severity
    """How bad a hole between two batches is: compaction makes them."""
    open_tail: int | None
    """Position from which on a broker that did not stop cleanly may have left half a batch; None for nowhere."""
    deep: bool
    placing: Placing = Placing()
    recovered_from: int = EVERYTHING
    """The offset from which on the next start reads every batch itself."""


class Holder:
    """Owns the file in place of a pool: a tool has one open at a time."""

    file: OpenFile | None = None


def check_segment(
    log: Path,
    base_offset: int,
    rules: SegmentRules,
    report: Report,
    progress: Callable[[int], None],
    transactions: TransactionsWalk | None = None,
    epochs: EpochsWalk | None = None,
) -> SegmentChecked:
    """Read the whole segment. `progress` gets the bytes read since it was last called. `transactions` and `epochs`
    have seen the segments before. Raises OSError."""
    found = SegmentChecked(base_offset, next_offset=base_offset)
    file = OpenFile(str(log), os.O_RDONLY, Holder())
    end = os.fstat(file.fd).st_size
    walks = [
        _OffsetWalk(log.with_suffix(".index"), base_offset, report),
        _TimeWalk(log.with_suffix(".timeindex"), base_offset, report),
    ]
    expected = base_offset if rules.expected < 0 else max(base_offset, rules.expected)
    position = told = 0
    resumed = False
    while position < end:
        try:
            walked = placed(
                file, position, end, expected, rules.placing, after_damage=found.damaged and resumed
            )
            resumed = False
            for one in walked:
                position, header, claimed = one
                if claimed != expected:
                    _compare(log, one, expected, found, rules, report)
                if epochs is not None:
                    epochs.batch(log, position, header)
                expected = header.next_offset
                found.batches += 1
                found.records += header.count
                found.max_timestamp = max(found.max_timestamp, header.max_timestamp)
                for walk in walks:
                    if walk.due <= position or walk.due_offset <= header.last_offset:
                        walk.batch(position, header, found.max_timestamp)
                if header.producer_id >= 0 and transactions is not None:
                    read = partial(file.pread, header.size, position, may_block=True)
                    transactions.batch(log, position, header, read)
                if rules.deep:
                    _check_records(
                        log,
                        position,
                        file.pread(header.size, position, may_block=True),
                        header._replace(base_offset=claimed),
                        report,
                    )
                if position - told > SCAN_CHUNK:
                    progress(position - told)
                    told = position
                found.end_position = position + header.size
            position = end
        except DamagedSegmentError as error:
            if transactions is not None:
                transactions.damaged()
            position = _after_damage(log, file, error, end, found, rules, report)
            resumed = True
    found.next_offset = expected
    progress(end - told)
    for walk in walks:
        walk.finish(found.end_position, expected, found.damaged or rules.open_tail is not None)
    if transactions is not None:
        transactions.finish(log.with_suffix(".txnindex"), found.damaged or rules.open_tail is not None)
    return found


def _compare(
    log: Path,
    batch: Placed,
    expected: int,
    found: SegmentChecked,
    rules: SegmentRules,
    report: Report,
) -> None:
    position, header, claimed = batch
    if claimed != header.base_offset:
        tail = (
            rules.open_tail is not None and position >= rules.open_tail and expected >= rules.recovered_from
        )
        text = f"base offset {claimed}, {header.base_offset} is due; the batch is sound, and "
        text += "the next start" if tail else "`leafcuttr repair --execute`"
        severity = Severity.NOTE if tail else Severity.PROBLEM
        report(FileFinding(severity, log, position, f"{text} gives it back"))
    elif not found.damaged:
        text = f"offsets {expected} to {header.base_offset - 1} are not there"
        report(FileFinding(rules.gaps, log, position, text))


def _after_damage(
    log: Path,
    file: OpenFile,
    error: DamagedSegmentError,
    end: int,
    found: SegmentChecked,
    rules: SegmentRules,
    report: Report,
) -> int:
    """Report the damage; return where to go on: behind the batch if its length can be believed, else the end."""
    at = error.position
    if rules.open_tail is not None and at >= rules.open_tail:
        text = f"{error.reason}; the next start cuts the last {end - at} bytes"
        report(FileFinding(Severity.NOTE, log, at, text))
        return end
    report(FileFinding(Severity.PROBLEM, log, at, error.reason))
    found.damaged = True
    return resume_after(file, at, end, found.base_offset)


def resume_after(file: OpenFile, at: int, end: int, base_offset: int) -> int:
    """Where the batch after the damaged one at `at` begins, if the length of that one can be believed; else `end`."""
    head = file.pread(HEADER_SIZE, at, may_block=True)
    if len(head) == HEADER_SIZE:
        header = parse(head)
        following = at + header.size
        if header.length >= MIN_LENGTH and _base_offset_at(file, following, end) >= base_offset:
            return following
    return end


def _base_offset_at(file: OpenFile, position: int, end: int) -> int:
    """The base offset of what looks like a batch there, else -1."""
    head = file.pread(HEADER_SIZE, position, may_block=True) if position < end else b""
    if len(head) < HEADER_SIZE:
        return -1
    header = parse(head)
    sound = header.magic == 2 and header.length >= MIN_LENGTH and position + header.size <= end
    return header.base_offset if sound else -1


def _check_records(log: Path, position: int, batch: bytes, header: BatchHeader, report: Report) -> None:
    from leafcuttr.wire.records import decode_records

    last = header.base_offset - 1
    try:
        for record in decode_records(batch):
            if not last < record.offset <= header.last_offset:
                text = f"a record has offset {record.offset}, in a batch up to {header.last_offset}, behind {last}"
                report(FileFinding(Severity.PROBLEM, log, position, text))
                return
            last = record.offset
    except WireError as error:
        report(FileFinding(Severity.PROBLEM, log, position, f"the records cannot be read: {error}"))


def check_index_alone(path: Path, base_offset: int, report: Report) -> int:
    """What can be said of an index without its log: whole entries, ascending. Returns how many there are."""
    walk = (_OffsetWalk if path.suffix == ".index" else _TimeWalk)(path, base_offset, report)
    entries = 0
    while walk.current is not None:
        entries += 1
        walk.advance()
    return entries


_NEVER: Final = 1 << 63


class _Walk:
    """The entries of one index, taken as the batches go by. `due` and `due_offset` say when the next one is."""

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

    def arm(self, first: int, second: int) -> None:
        """Say when the entry is due."""
        raise AssertionError("each index has its own")

    def batch(self, position: int, header: BatchHeader, max_timestamp: int) -> None:
        """Judge the entries that are due with this batch, which is the newest of those gone by."""
        raise AssertionError("each index has its own")

    def finish(self, end: int, next_offset: int, tolerant: bool) -> None:
        """The log has ended: an entry that is left points to nothing."""
        if self.current is not None:
            severity = Severity.NOTE if tolerant else Severity.PROBLEM
            self.fault(
                f"the entry {self.current} points behind the end of the log file ({end} bytes)", severity
            )


class _OffsetWalk(_Walk):
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


class _TimeWalk(_Walk):
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

"""Checks one segment: its log file batch by batch, and in step with it the entries of its two indexes
(`verify_indexes`).

What is checked is what a reader relies on, so that a segment which passes can be served. What a finding means for
the data directory, and everything outside the segment's own files, belongs to `leafcuttr.offline.verify`.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from leafcuttr.log.files.open_file import OpenFile
from leafcuttr.log.layout.epochs import EpochsWalk
from leafcuttr.log.segment.scan import SCAN_CHUNK, DamagedSegmentError
from leafcuttr.offline.findings import FileFinding, Report, Severity
from leafcuttr.offline.placing import EVERYTHING, Placed, Placing, placed
from leafcuttr.offline.verify_indexes import OffsetIndexWalk, TimeIndexWalk
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
        OffsetIndexWalk(log.with_suffix(".index"), base_offset, report),
        TimeIndexWalk(log.with_suffix(".timeindex"), base_offset, report),
    ]
    expected = base_offset if rules.expected < 0 else max(base_offset, rules.expected)
    position = reported = 0
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
                if position - reported > SCAN_CHUNK:
                    progress(position - reported)
                    reported = position
                found.end_position = position + header.size
            position = end
        except DamagedSegmentError as error:
            if transactions is not None:
                transactions.damaged()
            position = _after_damage(log, file, error, end, found, rules, report)
            resumed = True
    found.next_offset = expected
    progress(end - reported)
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
    """Report the damage; return where to go on: behind the batch if its length is plausible, else the end."""
    at = error.position
    if rules.open_tail is not None and at >= rules.open_tail:
        text = f"{error.reason}; the next start cuts the last {end - at} bytes"
        report(FileFinding(Severity.NOTE, log, at, text))
        return end
    report(FileFinding(Severity.PROBLEM, log, at, error.reason))
    found.damaged = True
    return resume_after(file, at, end, found.base_offset)


def resume_after(file: OpenFile, at: int, end: int, base_offset: int) -> int:
    """Where the batch after the damaged one at `at` begins, if the length of that one is plausible; else `end`."""
    head = file.pread(HEADER_SIZE, at, may_block=True)
    if len(head) == HEADER_SIZE:
        header = parse(head)
        following = at + header.size
        if header.length >= MIN_LENGTH and _base_offset_at(file, following, end) >= base_offset:
            return following
    return end


def _base_offset_at(file: OpenFile, position: int, end: int) -> int:
    """The base offset of the batch there, -1 if it is none."""
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

"""Checks the transactions of a partition: that every marker can be read, and that the `.txnindex` files say what the
log says.

The log is walked in order, with the producers' state brought forward from it, so that for each marker that aborts it
is known what the index has to have. What the state was before the first segment is only known where the log begins, or
from the snapshot there; and compaction removes records and keeps entries. Where something of this is not known, only
what no reader can do without is checked: entries in order, of markers of that segment.
"""

from collections.abc import Callable
from pathlib import Path

from leafcuttr.log.producers.snapshot import DamagedSnapshotError, read_snapshot
from leafcuttr.log.producers.state import ProducerStateTable
from leafcuttr.log.segment.txn_index import VERSION, AbortedTransaction, TransactionIndex
from leafcuttr.offline.findings import FileFinding, Report, Severity
from leafcuttr.wire.batch import BatchHeader
from leafcuttr.wire.errors import MalformedRecord
from leafcuttr.wire.markers import read_marker

_ENTRY = TransactionIndex.ENTRY


class TransactionsWalk:
    """The transactions of one partition, segment after segment."""

    def __init__(self, folder: Path, base_offset: int, report: Report, *, exact: bool) -> None:
        self._report = report
        self._producers = ProducerStateTable()
        self._exact = exact
        self._due: list[AbortedTransaction] = []
        self._ends: set[tuple[int, int]] = (
            set()
        )  # producer and offset of each marker of the segment that aborts
        if base_offset:
            try:
                self._producers = read_snapshot(folder / f"{base_offset:020d}.snapshot")
            except (FileNotFoundError, DamagedSnapshotError):
                self._exact = False

    def batch(self, log: Path, position: int, header: BatchHeader, read: Callable[[], bytes]) -> None:
        """Take up a sound batch that has a producer."""
        marker = None
        if header.is_control:
            try:
                marker = read_marker(read())
            except MalformedRecord as error:
                self._report(FileFinding(Severity.PROBLEM, log, position, str(error)))
                return
            if marker is not None and not marker.commit:
                self._ends.add((header.producer_id, header.base_offset))
        aborted = self._producers.replay(header, marker)
        if aborted is not None:
            self._due.append(aborted)

    def damaged(self) -> None:
        """Something of the log cannot be read: what is open from here on is not known."""
        self._exact = False

    def finish(self, path: Path, tolerant: bool) -> None:
        """The segment whose index is `path` has ended. `tolerant`: entries may not have been written yet."""
        due, ends, self._due, self._ends = self._due, self._ends, [], set()
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            data = b""
        if len(data) % _ENTRY.size:
            self._problem(path, None, f"{len(data)} bytes are not a multiple of {_ENTRY.size}")
            return
        entries = list(_ENTRY.iter_unpack(data))
        last = -1
        for number, (version, *fields) in enumerate(entries):
            entry = AbortedTransaction(*fields)
            at = number * _ENTRY.size
            fault = None
            if version != VERSION:
                fault = f"version {version} of an entry is not known, {VERSION} is"
            elif entry.last_offset <= last:
                fault = f"the last offset {entry.last_offset} does not ascend after {last}"
            elif not 0 <= entry.first_offset <= entry.last_offset:
                fault = f"the transaction goes from offset {entry.first_offset} to {entry.last_offset}"
            elif self._exact and (entry.producer_id, entry.last_offset) not in ends:
                text = f"no marker at offset {entry.last_offset} aborts a transaction of producer {entry.producer_id}"
                if tolerant:
                    self._report(FileFinding(Severity.NOTE, path, at, text))
                    return
                fault = text
            elif self._exact and (number >= len(due) or entry != due[number]):
                expected = f", {due[number]} is due" if number < len(due) else ""
                fault = f"{entry} is not what the log says{expected}"
            if fault is not None:
                self._problem(path, at, fault)
                return
            last = entry.last_offset
        if self._exact and len(entries) < len(due):
            text = f"{len(due) - len(entries)} aborted transactions are missing, {due[len(entries)]} first"
            severity = Severity.NOTE if tolerant else Severity.PROBLEM
            self._report(FileFinding(severity, path, len(data), text))

    def _problem(self, path: Path, position: int | None, text: str) -> None:
        self._report(FileFinding(Severity.PROBLEM, path, position, text))

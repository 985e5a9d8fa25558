"""Producer state and aborted transactions from what is in the log: for recovery, for the tools.

It is not checked again: it was accepted once. The state at an offset is that of the last snapshot before
it, brought forward by the batches between.
"""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from leafcuttr.log.producers.snapshot import DamagedSnapshotError, read_snapshot
from leafcuttr.log.producers.state import ProducerStateTable
from leafcuttr.log.segment.segment import Segment
from leafcuttr.log.segment.txn_index import AbortedTransaction
from leafcuttr.wire.batch import BatchHeader
from leafcuttr.wire.errors import MalformedRecord
from leafcuttr.wire.markers import read_marker

_log = logging.getLogger(__name__)


def replay(
    producers: ProducerStateTable, header: BatchHeader, batch: Callable[[], bytes]
) -> AbortedTransaction | None:
    """Take up a batch that is in the log, and read it if it is a control batch; returns the entry that the transaction
    index has of it, if any. Raises OSError."""
    if header.producer_id < 0:
        return None
    if not header.is_control:
        return producers.replay(header)
    try:
        marker = read_marker(batch())
    except MalformedRecord as error:
        # Its CRC is right, so it was written like this; `leafcuttr verify` names it.
        _log.warning("offset %d is passed over: %s", header.base_offset, error)
        return None
    return producers.replay(header, marker)


def producers_at(folder: Path, segments: Iterable[Segment], offset: int) -> ProducerStateTable:
    """The producer state at `offset`: the last sound snapshot, and the batches of `segments` (those before the offset,
    in order) from there on. Raises OSError, DamagedSegmentError."""
    table, at = _last_snapshot(folder, offset)
    before = list(segments)
    for number, segment in enumerate(before):
        after = before[number + 1].base_offset if number + 1 < len(before) else offset
        if after <= at:
            continue
        for position, header in segment.scan():
            if at <= header.last_offset and header.last_offset < offset:
                read = partial(segment.open_file().pread, header.size, position, may_block=True)
                replay(table, header, read)
    return table


def _last_snapshot(folder: Path, offset: int) -> tuple[ProducerStateTable, int]:
    for name in sorted(folder.glob("*.snapshot"), reverse=True):
        if name.stem.isdecimal() and int(name.stem) <= offset:
            try:
                return read_snapshot(name), int(name.stem)
            except DamagedSnapshotError as error:
                _log.warning("%s: %s is not used: %s", folder.name, name.name, error)
    return ProducerStateTable(), -1

"""What a leader's answer holds of one partition: whole batches of magic 2, and where to go on. No I/O.

Brokers send a piece of their log that is as long as was requested, so the last batch may be cut off (KIP-74), and the
first may begin before the offset that was requested. Batches of magic 0 and 1 are converted (`message_sets`). CRCs of
batches of magic 2 are not checked here: who writes such a batch anew checks its CRC first, who decodes it may.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from leafcuttr.client.fetching.message_sets import convert
from leafcuttr.wire.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    CorruptBatch,
    parse,
)
from leafcuttr.wire.errors import WireError
from leafcuttr.wire.markers import read_marker
from leafcuttr.wire.primitives import LONG_MAX
from leafcuttr_sdk.records import AbortedRange

_FRAME: Final = Struct(">qiib")
"""Base offset, length, leader epoch and magic."""
_LAST_OFFSET_DELTA: Final = Struct(">23xi")


class Whole(NamedTuple):
    """Whole batches of magic 2, as views of the answer unless they were converted."""

    data: bytes | bytearray | memoryview
    next_offset: int
    """Behind the last batch; the position where there is none."""
    leader_epoch: int
    """Of the last batch; -1 where there is none."""


def whole_batches(records: memoryview, position: int) -> Whole:
    """Raises WireError where it begins with bytes that are no batch. Those behind whole batches are left for the next
    fetch, which begins with them."""
    at, end, last = 0, len(records), -1
    while end - at > LOG_OVERHEAD + 4:
        base_offset, length, _, magic = _FRAME.unpack_from(records, at)
        if magic != MAGIC:
            return _whole(*_converted(records, at, last), position)
        if length < HEADER_SIZE - LOG_OVERHEAD:
            if last >= 0:
                break
            raise CorruptBatch(f"a batch of {length} bytes at offset {base_offset}")
        behind = at + LOG_OVERHEAD + length
        if behind > end:
            break
        last, at = at, behind
    return _whole(records[:at], last, position)


def _converted(records: memoryview, at: int, last: int) -> tuple[bytearray, int]:
    """The same with what is of magic 0 or 1 from `at` on converted, and where the last batch begins, -1 for none."""
    out = bytearray(records[:at])
    while rest := records[at:]:
        try:
            found = _next(rest)
        except WireError:
            if last < 0:
                raise
            break
        if found is None:
            break
        batch, size = found
        last = len(out)
        out += batch
        at += size
    return out, last


def _next(rest: memoryview) -> tuple[bytearray | memoryview, int] | None:
    """The next batch as one of magic 2, and how many bytes it had; None if it is not whole."""
    if len(rest) <= LOG_OVERHEAD + 4:
        return None
    base_offset, length, _, magic = _FRAME.unpack_from(rest)
    if magic in (0, 1):
        return convert(rest)
    if magic != MAGIC or length < HEADER_SIZE - LOG_OVERHEAD:
        raise CorruptBatch(f"a batch of magic {magic} and {length} bytes at offset {base_offset}")
    size = LOG_OVERHEAD + length
    return None if size > len(rest) else (rest[:size], size)


def _whole(data: bytearray | memoryview, last: int, position: int) -> Whole:
    if last < 0:
        return Whole(b"", position, -1)
    base_offset, _, leader_epoch, _ = _FRAME.unpack_from(data, last)
    (delta,) = _LAST_OFFSET_DELTA.unpack_from(data, last)
    behind = base_offset + delta + 1
    if base_offset < 0 or delta < 0 or behind > LONG_MAX:
        raise CorruptBatch(f"a batch from offset {base_offset} to {base_offset + delta}")
    return Whole(data, max(behind, position), leader_epoch)


def aborted_ranges(
    aborted: Sequence[tuple[int, int]], data: bytes | bytearray | memoryview, next_offset: int
) -> list[AbortedRange]:
    """The aborted transactions, of which the answer has producer id and first offset, with their ends: the marker in
    `data`, or its end, where the marker is not in there. In the order of their ends."""
    if not aborted:
        return []
    starts: dict[int, list[int]] = {}
    for producer_id, first_offset in sorted(aborted, key=lambda one: one[1]):
        starts.setdefault(producer_id, []).append(first_offset)
    found: list[AbortedRange] = []
    at = 0
    while at < len(data):
        header = parse(data, at)
        if header.is_control and (open_ := starts.get(header.producer_id)):
            marker = _marker_is_abort(data, at, header.size)
            # An abort marker ends the oldest one; a commit of this producer lies between two that were aborted.
            if marker and open_[0] <= header.base_offset:
                found.append(AbortedRange(header.producer_id, open_.pop(0), header.base_offset))
        at += header.size
    found += [
        AbortedRange(producer_id, first, next_offset - 1)
        for producer_id, firsts in starts.items()
        for first in firsts[:1]
    ]
    return found


def _marker_is_abort(data: bytes | bytearray | memoryview, at: int, size: int) -> bool:
    try:
        marker = read_marker(memoryview(data)[at : at + size])
    except WireError:
        return False
    return marker is not None and not marker.commit

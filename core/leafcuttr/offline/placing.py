"""Walking a segment file as its batches should be: base offsets lie outside the CRC, so a sound batch may claim another
than its own.

Nothing is written here; what a walk says is reported by `verify` and carried out by `repair`. The rule that tells a
displaced batch from a gap is `leafcuttr.log.recovery.displaced`.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from leafcuttr.log.files.open_file import OpenFile
from leafcuttr.log.recovery.displaced import is_displaced
from leafcuttr.log.segment.scan import SCAN_CHUNK, DamagedSegmentError, headers
from leafcuttr.wire.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, MIN_LENGTH, BatchHeader, parse

EVERYTHING: Final = 1 << 63
_LOOK_AHEAD: Final = 4  # batches


class Placing(NamedTuple):
    """What is known of a segment beside its bytes."""

    following: int | None = None
    """The base offset of the next segment."""
    compact: bool = True
    """Whether compaction may have left gaps, also if that is unknown."""
    sure_below: int = 0
    """Below this offset the bytes are those that were written here: a loss of power has not come between."""


class Placed(NamedTuple):
    """A sound batch: where it is in the file, its header with the base offset it should have, and the one it claims."""

    position: int
    header: BatchHeader
    claimed: int


def placed(
    file: OpenFile,
    position: int,
    end: int,
    due: int,
    placing: Placing,
    *,
    after_damage: bool = False,
    check_crc: bool = True,
) -> Iterator[Placed]:
    """The batches in [position, end), of which the first should have the base offset `due`, or with `after_damage`
    that or a later one. Raises DamagedSegmentError at the first that is not sound or can be put nowhere; OSError."""
    while position < end:
        begun = position
        try:
            # `headers` ends where base offsets go back; with a new start it takes the batch as it is.
            walked = headers(file, position, end, chunk=SCAN_CHUNK, check_crc=check_crc, least=-1 << 63)
            for position, header in walked:
                claimed = header.base_offset
                if claimed != due:
                    belongs = _belongs(file, position, end, header, due, placing, after_damage)
                    header = header._replace(base_offset=belongs)
                after_damage = False
                yield Placed(position, header, claimed)
                due = header.next_offset
            return
        except DamagedSegmentError as error:
            if error.position == begun:
                raise
            position = error.position


def _belongs(
    file: OpenFile,
    position: int,
    end: int,
    header: BatchHeader,
    due: int,
    placing: Placing,
    after_damage: bool,
) -> int:
    claimed = header.base_offset
    displaced = is_displaced(file, position, end, due, placing.following)
    if displaced is None and not placing.compact and not after_damage and due < placing.sure_below:
        displaced = True  # the log is append-only: the place in the file says which offset it has
    if displaced:
        return due
    if claimed < due:
        raise DamagedSegmentError(file.path, position, f"base offset {claimed} goes back, {due} is next")
    if displaced is None and not placing.compact and not after_damage:
        raise DamagedSegmentError(file.path, position, f"base offset {claimed}, {due} is due")
    if displaced is None and _overtaken(file, position, end, header, placing.following):
        text = f"base offset {claimed} goes past those of the batches behind it"
        raise DamagedSegmentError(file.path, position, text)
    return claimed


def _overtaken(file: OpenFile, position: int, end: int, header: BatchHeader, following: int | None) -> bool:
    """Whether all that comes behind goes on below what the batch claims: then it is the one that is wrong. Between
    gaps of compaction its own offset cannot be determined."""
    position += header.size
    below = False
    for _ in range(_LOOK_AHEAD):
        head = file.pread(HEADER_SIZE, position, may_block=True) if position + HEADER_SIZE <= end else b""
        if len(head) < HEADER_SIZE:
            break
        behind = parse(head)
        if behind.magic != MAGIC or behind.length < MIN_LENGTH:
            break
        if behind.base_offset >= header.next_offset:
            return False
        below = True
        position += behind.length + LOG_OVERHEAD
    if position >= end and following is not None:
        return following < header.next_offset
    return below

"""Walking the batch headers of a segment file, in large reads.

Lookups walk a few headers from an indexed position; recovery and tools walk whole files, with CRCs.
"""

from collections.abc import Iterator
from typing import Final

from leafcuttr.log.files.open_file import OpenFile
from leafcuttr.wire.batch import (
    ATTRIBUTES_AT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MIN_LENGTH,
    BatchHeader,
    unpack,
)
from leafcuttr.wire.primitives import LONG_MAX
from leafcuttr_sdk.batches.checksum import crc32c

LOOKUP_CHUNK: Final = 8 * 1024
SCAN_CHUNK: Final = 1024 * 1024
ZEROS: Final = "zeros, as an unused preallocation or a lost write leaves them"


class DamagedSegmentError(Exception):
    """A segment file stops making sense at `position`. The message says where and why."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path}: at byte {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


def headers(
    file: OpenFile,
    position: int,
    end: int,
    *,
    chunk: int = LOOKUP_CHUNK,
    check_crc: bool = False,
    may_block: bool = True,
    least: int = -1,
) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of every batch in [position, end), each checked to fit into it and to follow the last.

    `least` is what the first base offset must be at least. With `check_crc` the whole of every batch is read and its
    CRC compared. Raises DamagedSegmentError at the first byte that is not the beginning of a whole, sound batch;
    NotCached if `may_block` is False; OSError.
    """
    buffer, start = b"", position
    expected = least
    while position < end:
        at = position - start
        if at + HEADER_SIZE > len(buffer):
            buffer, start, at = (
                file.pread(min(chunk, end - position), position, may_block=may_block),
                position,
                0,
            )
            if len(buffer) < HEADER_SIZE:
                few = f"{len(buffer)} bytes are too few for a batch"
                raise DamagedSegmentError(file.path, position, few if any(buffer) else ZEROS)
        header = BatchHeader._make(unpack(buffer, at))
        size = header.length + LOG_OVERHEAD
        fault = _fault(header, expected, end - position)
        if fault is not None:
            raise DamagedSegmentError(file.path, position, fault)
        if check_crc:
            if at + size > len(buffer):
                buffer = file.pread(min(max(chunk, size), end - position), position, may_block=may_block)
                start, at = position, 0
            body = memoryview(buffer)[at + ATTRIBUTES_AT : at + size]
            if len(body) != size - ATTRIBUTES_AT or crc32c(body) != header.crc:
                raise DamagedSegmentError(file.path, position, "the CRC of the batch does not match")
        yield position, header
        position += size
        expected = header.base_offset + header.last_offset_delta + 1


def _fault(header: BatchHeader, expected: int, left: int) -> str | None:
    if header.length == 0 and header.base_offset == 0 and header.magic == 0:
        return ZEROS
    if header.magic != MAGIC:
        return f"magic {header.magic} is not {MAGIC}"
    if header.length < MIN_LENGTH:
        return f"a batch length of {header.length} is too small"
    if header.length + LOG_OVERHEAD > left:
        return f"a batch of {header.length + LOG_OVERHEAD} bytes goes past the end, {left} bytes are left"
    if header.last_offset_delta < 0:
        return f"a last offset delta of {header.last_offset_delta}"
    if header.base_offset >= LONG_MAX - header.last_offset_delta:
        return (
            f"base offset {header.base_offset}, and {header.last_offset_delta} more are no offsets any more"
        )
    if header.base_offset < expected:
        return f"base offset {header.base_offset} does not follow {expected - 1}"
    return None

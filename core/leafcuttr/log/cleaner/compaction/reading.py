"""The batches of a segment file, one after the other, each checked, in buffers of bounded size.

A batch is handed out where it lies: a buffer of bytes and the place in it, so that nothing is copied that is kept.
"""

import os
from collections.abc import Iterator
from typing import Final

from leafcuttr.log.cleaner.compaction.pages import Throttle
from leafcuttr.log.cleaner.job import SourceSegment
from leafcuttr.wire.batch import (
    ATTRIBUTES_AT,
    HEADER_SIZE,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC,
    MIN_LENGTH,
    BatchHeader,
    unpack,
)
from leafcuttr_sdk.batches.checksum import crc32c

_MOST: Final = 1 << 30


class DamagedDataError(Exception):
    """What is in the file cannot be compacted. The message says where and why."""


def batches(
    fd: int, path: str, source: SourceSegment, chunk: int, throttle: Throttle
) -> Iterator[tuple[bytes, int, BatchHeader, int]]:
    """(buffer, place in it, header, position in the file) of every batch. Raises DamagedDataError, OSError."""
    position, size, expected, end = 0, source.size, source.base, source.end
    buffer, at = b"", 0
    make, check = BatchHeader._make, crc32c
    while position < size:
        left = len(buffer) - at
        need = chunk
        if left >= HEADER_SIZE:
            need = int.from_bytes(buffer[at + LENGTH_AT : at + LOG_OVERHEAD], "big") + LOG_OVERHEAD
        if left < need:
            want = min(max(chunk, need), size - position)
            if (need > want and left >= HEADER_SIZE) or need > _MOST:
                raise DamagedDataError(
                    f"{path}: at byte {position}: a batch of {need} bytes goes past the end"
                )
            if want > left:
                more = os.pread(fd, want - left, position + left)
                if len(more) < want - left:
                    raise DamagedDataError(f"{path} ends before byte {size}")
                throttle.spend(len(more))
                buffer, at = buffer[at:] + more, 0
        buffer_end = len(buffer)
        view = memoryview(buffer)
        while buffer_end - at >= HEADER_SIZE:
            header = make(unpack(buffer, at))
            whole = header.length + LOG_OVERHEAD
            if header.magic != MAGIC or header.length < MIN_LENGTH or header.last_offset_delta < 0:
                raise DamagedDataError(f"{path}: at byte {position}: what is there is not a batch of magic 2")
            following = header.base_offset + header.last_offset_delta + 1
            if header.base_offset < expected or following > end:
                raise DamagedDataError(
                    f"{path}: at byte {position}: offsets {header.base_offset} to {following - 1} are not in "
                    f"[{expected}, {end})"
                )
            if at + whole > buffer_end:
                break
            if check(view[at + ATTRIBUTES_AT : at + whole]) != header.crc:
                raise DamagedDataError(f"{path}: at byte {position}: the CRC of the batch does not match")
            yield buffer, at, header, position
            at += whole
            position += whole
            expected = following
        else:
            if position + (buffer_end - at) == size and at < buffer_end:
                raise DamagedDataError(
                    f"{path}: at byte {position}: {buffer_end - at} bytes are too few for a batch"
                )

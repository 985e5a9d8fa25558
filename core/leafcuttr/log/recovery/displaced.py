"""A sound batch whose header has another base offset than its place in the log: base offsets lie outside the CRC, which
does not notice their damage.

An append-only log has no gaps: the place of a batch in the file says which offset it has, and the batches behind it, or
the name of the next segment, say it again. Compaction makes gaps, but then what follows goes on behind the gap. So the
batches that follow tell the two apart. What is done about it is recovery's and repair's.
"""

import os
from typing import Final

from leafcuttr.log.files.open_file import OpenFile
from leafcuttr.wire.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, MIN_LENGTH, BatchHeader, unpack

_LOOK_AHEAD: Final = 1024  # batches; one that goes on from where the first should be decides,
_AGREE: Final = 4  # as do so many behind the gap: some may be damaged in the same way


def is_displaced(
    file: OpenFile, position: int, end: int, expected: int, following: int | None
) -> bool | None:
    """Whether the batch at `position`, whose base offset is not `expected`, should have that one: True if what comes
    behind goes on from `expected`, False if it goes on behind the gap, None if nothing says. `following` is the base
    offset of the next segment. Raises OSError."""
    belongs, claimed, agree = expected, None, 0
    for _ in range(_LOOK_AHEAD):
        head = file.pread(HEADER_SIZE, position, may_block=True) if position + HEADER_SIZE <= end else b""
        if len(head) < HEADER_SIZE:
            break
        header = BatchHeader._make(unpack(head, 0))
        if header.magic != MAGIC or header.length < MIN_LENGTH or header.last_offset_delta < 0:
            break
        if claimed is not None:
            if header.base_offset == belongs:
                return True
            if header.base_offset >= claimed > belongs:
                agree += 1
                if agree == _AGREE:
                    return False
            claimed += header.last_offset_delta + 1
        else:
            claimed = header.next_offset
        belongs += header.last_offset_delta + 1
        position += header.length + LOG_OVERHEAD
    if following is not None and following == belongs:
        return True
    if agree or (following is not None and claimed is not None and following >= claimed > belongs):
        return False
    return None


def put_right(file: OpenFile, position: int, base_offset: int) -> None:
    """Give the batch at `position` its base offset; its CRC does not cover it. Raises OSError."""
    os.pwrite(file.fd, base_offset.to_bytes(8, "big"), position)

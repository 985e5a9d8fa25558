"""The records of a batch as (offset, key, value): for reading a whole log of them at once."""

from collections.abc import Callable
from typing import Final

from leafcuttr.wire.batch import HEADER_SIZE, BatchHeader
from leafcuttr.wire.primitives import Buffer
from leafcuttr.wire.record_frames import compile_frame
from leafcuttr.wire.records import record_bytes

OffsetKeyValue = tuple[int, bytes | None, bytes | None]
"""Offset, key and value of a record."""


def decode_entries(header: BatchHeader, batch: Buffer) -> list[OffsetKeyValue]:
    """The records of a batch that begins and ends with `batch`; `header` is its header. Raises as `decode_records`."""
    data = bytes(memoryview(batch)[HEADER_SIZE:]) if not header.codec else record_bytes(batch).tobytes()
    return _read(data, header.base_offset, header.count)


def _compile(data: bytes, base_offset: int, count: int) -> list[OffsetKeyValue]:
    global _read  # noqa: PLW0603 - compiled once, at the first use
    _read = compile_frame(_compile, _ENTRIES, misfit="record {index} does not end where its length says")
    return _read(data, base_offset, count)


_read: Callable[[bytes, int, int], list[OffsetKeyValue]] = _compile
_ENTRIES: Final = """
    def read(data, base_offset, count):
        found, at, index, total = [], 0, 0, len(data)
        try:
            for index in range(count):
                @end length total:
                    raise Bad(f"record {index} claims {length} bytes with {total - at} left")
                @skip attributes
                @skip timestamp_delta
                @read offset_delta
                @read key
                @read value
                @skip headers
                if at != end:
                    raise Bad(f"record {index} does not end where its length says")
                found.append((base_offset + offset_delta, key, value))
        except IndexError:
            raise Bad(f"record {index} ends in the middle of a number") from None
        if at != total:
            raise Bad(f"{total - at} bytes follow the last of {count} records")
        return found
    """

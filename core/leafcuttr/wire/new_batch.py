"""A record batch as a producer makes one: records that have no offsets yet, encoded piece by piece.

`wire.records.encode_batch` can say everything that a batch can say; this says what a producer in this process needs, at
a third of the cost a record. Layout: see `wire.records`.
"""

from collections.abc import Iterable
from typing import Final

from leafcuttr.wire.batch import (
    ATTRIBUTES_AT,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
)
from leafcuttr.wire.checksum import crc32c
from leafcuttr.wire.primitives import write_varlong

Headers = tuple[tuple[str, bytes | None], ...]
NewRecord = tuple[bytes | None, bytes | None, Headers, int]
"""Value, key, headers and timestamp (ms)."""

_REMEMBERED: Final = 4096
_NO_EPOCH: Final = -1


class _Varints(dict[int, bytes]):
    """Zigzag varints by their value; the small ones are remembered."""

    def __missing__(self, value: int) -> bytes:
        out = bytearray()
        write_varlong(out, value)
        encoded = bytes(out)
        if 0 <= value < _REMEMBERED:
            self[value] = encoded
        return encoded


_VARINTS: Final = _Varints()


class BatchBuilder:
    """A batch in the making. `size` is how long it is so far, `count` how many records it has."""

    __slots__ = ("_base_timestamp", "_max_timestamp", "_parts", "count", "size")

    def __init__(self) -> None:
        self._parts: list[bytes] = [bytes(HEADER_SIZE)]
        self._base_timestamp = self._max_timestamp = -1
        self.count = 0
        self.size = HEADER_SIZE

    def add(self, records: Iterable[NewRecord], at_most: int) -> bool:
        """Encode some more records; False, and nothing is added, if the batch would grow beyond `at_most` bytes.

        Raises UnicodeEncodeError for the name of a header that has no UTF-8 (half of a surrogate pair), with nothing
        added.
        """
        varints, number, size = _VARINTS, self.count, self.size
        base, highest = self._base_timestamp, self._max_timestamp
        parts: list[bytes] = []
        add = parts.extend
        for value, key, headers, timestamp in records:
            if not number:
                base = timestamp
            if timestamp > highest:
                highest = timestamp
            time_delta, offset_delta = varints[timestamp - base], varints[number]
            if key is None:
                key, key_length = b"", b"\x01"
            else:
                key_length = varints[len(key)]
            if value is None:
                value, value_length = b"", b"\x01"
            else:
                value_length = varints[len(value)]
            tail = _headers(headers) if headers else b"\x00"
            length = (
                1
                + len(time_delta)
                + len(offset_delta)
                + len(key_length)
                + len(key)
                + len(value_length)
                + len(value)
                + len(tail)
            )
            head = varints[length]
            add((head, b"\x00", time_delta, offset_delta, key_length, key, value_length, value, tail))
            size += length + len(head)
            number += 1
        if size > at_most:
            return False
        self._parts.append(b"".join(parts))
        self._base_timestamp, self._max_timestamp = base, highest
        self.count, self.size = number, size
        return True

    def finish(self) -> bytearray:
        """The batch, uncompressed, with its CRC, without a producer id. Not without records."""
        out = bytearray().join(self._parts)
        HEADER.pack_into(
            out, 0, 0, len(out) - LOG_OVERHEAD, -1, MAGIC, 0, 0, self.count - 1, self._base_timestamp,
            self._max_timestamp, NO_PRODUCER_ID, _NO_EPOCH, NO_SEQUENCE, self.count,
        )  # fmt: skip
        out[CRC_AT:ATTRIBUTES_AT] = crc32c(memoryview(out)[ATTRIBUTES_AT:]).to_bytes(4, "big")
        return out


def _headers(headers: Headers) -> bytes:
    parts = [_VARINTS[len(headers)]]
    for name, content in headers:
        encoded = name.encode("utf-8", "surrogateescape")
        parts += (_VARINTS[len(encoded)], encoded)
        if content is None:
            parts.append(b"\x01")
        else:
            parts += (_VARINTS[len(content)], content)
    return b"".join(parts)

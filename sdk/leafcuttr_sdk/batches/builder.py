"""A record batch in the making: records that have no offsets yet, encoded piece by piece.

What is the same in many records, their key or their headers, is encoded once (`encode_key`, `encode_headers`) and used
again. The batch is as a producer makes it: magic 2, base offset 0, uncompressed, without a producer id.

Layout of a record (KIP-98; numbers are zigzag varints, a length of -1 is null):

    length | attributes int8 (unused) | timestamp delta | offset delta | key length, key | value length, value
    | header count | each header: name length, name, value length, value
"""

from collections.abc import Iterable
from typing import Final, NewType

from leafcuttr_sdk.batches.checksum import crc32c
from leafcuttr_sdk.batches.header import (
    ATTRIBUTES_AT,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_SEQUENCE,
)
from leafcuttr_sdk.batches.varints import VARINTS
from leafcuttr_sdk.records import Headers

EncodedKey = NewType("EncodedKey", bytes)
"""A key as it stands in a record: its length, then its bytes."""

EncodedHeaders = NewType("EncodedHeaders", bytes)
"""Headers as they stand in a record: their number, then each name and value."""

NO_KEY: Final = EncodedKey(b"\x01")
NO_HEADERS: Final = EncodedHeaders(b"\x00")

NewRecord = tuple[bytes | None, bytes | None, Headers, int]
"""Value, key, headers and timestamp (ms)."""

EncodedRecord = tuple[bytes | None, EncodedKey, EncodedHeaders, int]
"""Value, encoded key, encoded headers and timestamp (ms)."""


def encode_key(key: bytes | None) -> EncodedKey:
    """The key as records carry it."""
    return NO_KEY if key is None else EncodedKey(VARINTS[len(key)] + key)


def encode_headers(headers: Headers) -> EncodedHeaders:
    """The headers as records carry them; what surrogate escapes stand for in names is written as it was.

    Raises UnicodeEncodeError for a name that has no UTF-8 (half of a surrogate pair).
    """
    parts = [VARINTS[len(headers)]]
    for name, content in headers:
        encoded = name.encode("utf-8", "surrogateescape")
        parts += (VARINTS[len(encoded)], encoded)
        if content is None:
            parts.append(b"\x01")
        else:
            parts += (VARINTS[len(content)], content)
    return EncodedHeaders(b"".join(parts))


class BatchBuilder:
    """A batch in the making, of at most `max_bytes` (no limit: None). `size` is how long it is so far, `count` how many
    records it has.

    Not thread-safe. What is given to it must not be changed before `finish`.
    """

    __slots__ = ("_base_timestamp", "_max_timestamp", "_parts", "count", "max_bytes", "size")

    def __init__(self, max_bytes: int | None = None) -> None:
        self.max_bytes: float = float("inf") if max_bytes is None else max_bytes
        self.clear()

    def clear(self) -> None:
        """Begin a new batch; what was added is forgotten."""
        self._parts: list[bytes] = [bytes(HEADER_SIZE)]
        self._base_timestamp = self._max_timestamp = -1
        self.count = 0
        self.size = HEADER_SIZE

    def add(
        self,
        value: bytes | None,
        timestamp: int,
        key: EncodedKey = NO_KEY,
        headers: EncodedHeaders = NO_HEADERS,
    ) -> bool:
        """Add one record, with its time in ms since 1970; False, and nothing is added, if the batch would grow beyond
        its limit."""
        number = self.count
        base = self._base_timestamp if number else timestamp
        time_delta, offset_delta = VARINTS[timestamp - base], VARINTS[number]
        if value is None:
            value, value_length = b"", b"\x01"
        else:
            value_length = VARINTS[len(value)]
        length = (
            1 + len(time_delta) + len(offset_delta) + len(key) + len(value_length) + len(value) + len(headers)
        )
        head = VARINTS[length]
        size = self.size + length + len(head)
        if size > self.max_bytes:
            return False
        self._base_timestamp = base
        if timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
        self._parts += (head, b"\x00", time_delta, offset_delta, key, value_length, value, headers)
        self.count, self.size = number + 1, size
        return True

    def extend(
        self,
        values: Iterable[bytes | None],
        timestamp: int,
        key: EncodedKey = NO_KEY,
        headers: EncodedHeaders = NO_HEADERS,
    ) -> bool:
        """Add a record for each of the values, all with this time, key and headers; False, and nothing is added, if the
        batch would grow beyond its limit."""
        varints, number = VARINTS, self.count
        base = timestamp if not number else self._base_timestamp
        # Between the length and the offset delta, and behind it, all records are the same.
        before, rest = b"\x00" + varints[timestamp - base], len(key) + len(headers)
        fixed, size = len(before) + rest, self.size
        parts: list[bytes] = []
        add = parts.extend
        for value in values:
            offset_delta = varints[number]
            if value is None:
                value, value_length = b"", b"\x01"
            else:
                value_length = varints[len(value)]
            length = fixed + len(offset_delta) + len(value_length) + len(value)
            head = varints[length]
            add((head, before, offset_delta, key, value_length, value, headers))
            size += length + len(head)
            number += 1
        if size > self.max_bytes:
            return False
        if number > self.count:
            self._base_timestamp, self._max_timestamp = base, max(self._max_timestamp, timestamp)
            self._parts += parts
            self.count, self.size = number, size
        return True

    def extend_records(self, records: Iterable[NewRecord]) -> bool:
        """Add records that have nothing in common; False, and nothing is added, if the batch would grow beyond its
        limit. Raises UnicodeEncodeError as `encode_headers`, with nothing added."""
        varints, number, size = VARINTS, self.count, self.size
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
            tail = encode_headers(headers) if headers else b"\x00"
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
        if size > self.max_bytes:
            return False
        self._parts.append(b"".join(parts))
        self._base_timestamp, self._max_timestamp = base, highest
        self.count, self.size = number, size
        return True

    def extend_encoded(self, records: Iterable[EncodedRecord]) -> bool:
        """Add records whose keys and headers are encoded; False, and nothing is added, if the batch would grow beyond
        its limit."""
        varints, number, size = VARINTS, self.count, self.size
        base, highest = self._base_timestamp, self._max_timestamp
        parts: list[bytes] = []
        add = parts.extend
        last: int | None = None
        before, fixed = b"", 0
        for value, key, headers, timestamp in records:
            if timestamp != last:
                if not number:
                    base = timestamp
                if timestamp > highest:
                    highest = timestamp
                last = timestamp
                before = b"\x00" + varints[timestamp - base]
                fixed = len(before)
            offset_delta = varints[number]
            if value is None:
                value, value_length = b"", b"\x01"
            else:
                value_length = varints[len(value)]
            length = fixed + len(offset_delta) + len(key) + len(value_length) + len(value) + len(headers)
            head = varints[length]
            add((head, before, offset_delta, key, value_length, value, headers))
            size += length + len(head)
            number += 1
        if size > self.max_bytes:
            return False
        self._parts += parts
        self._base_timestamp, self._max_timestamp = base, highest
        self.count, self.size = number, size
        return True

    def finish(self) -> bytearray:
        """The batch with its CRC. Raises ValueError if it has no records."""
        if not self.count:
            raise ValueError("a batch without records")
        out = bytearray().join(self._parts)
        HEADER.pack_into(
            out, 0, 0, len(out) - LOG_OVERHEAD, -1, MAGIC, 0, 0, self.count - 1, self._base_timestamp,
            self._max_timestamp, -1, -1, NO_SEQUENCE, self.count,
        )  # fmt: skip
        out[CRC_AT:ATTRIBUTES_AT] = crc32c(memoryview(out)[ATTRIBUTES_AT:]).to_bytes(4, "big")
        return out

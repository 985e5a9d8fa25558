"""What is before the data of a record that was written by a schema of a registry: Confluent's wire format.

- magic byte 0, then the id of the schema, four bytes, big-endian;
- or, in a header, magic byte 1 and the 16 bytes of the schema's guid;
- for Protobuf, behind the id or the guid, so in the header where that is there: the path of indexes to the message in
  its schema, as a number of zigzag varints that is one itself. The path [0], the first message, is the single byte 0.

Source: https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from leafcuttr_sdk.schemas import DataError

MAGIC_ID: Final = 0
MAGIC_GUID: Final = 1
ID_SIZE: Final = 5
GUID_SIZE: Final = 17
KEY_HEADER: Final = "__key_schema_id"
VALUE_HEADER: Final = "__value_schema_id"
MAX_INDEXES: Final = 64
"""Deeper paths than messages can be nested are refused."""
FIRST_MESSAGE: Final[tuple[int, ...]] = (0,)


class Prefix(NamedTuple):
    """Which schema, and where the rest begins."""

    schema: int | UUID
    end: int


def read_prefix(data: bytes) -> Prefix:
    """Raises DataError for data without one."""
    if not data:
        raise DataError("there are no bytes where the magic byte is expected")
    if data[0] == MAGIC_ID:
        if len(data) < ID_SIZE:
            raise DataError(f"{len(data)} bytes end before the schema id, which is in the first {ID_SIZE}")
        return Prefix(int.from_bytes(data[1:ID_SIZE], "big", signed=True), ID_SIZE)
    if data[0] == MAGIC_GUID:
        if len(data) < GUID_SIZE:
            raise DataError(
                f"{len(data)} bytes end before the schema's guid, which is in the first {GUID_SIZE}"
            )
        return Prefix(UUID(bytes=bytes(data[1:GUID_SIZE])), GUID_SIZE)
    raise DataError(f"the magic byte is {data[0]}; it is {MAGIC_ID} before an id, {MAGIC_GUID} before a guid")


def id_prefix(schema_id: int) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big", signed=True)


def guid_prefix(guid: UUID) -> bytes:
    return b"\1" + guid.bytes


def read_indexes(data: bytes, at: int = 0) -> tuple[tuple[int, ...], int]:
    """The path to the message, and where the data begin. Raises DataError."""
    size, at = _read_zigzag(data, at)
    if size == 0:
        return FIRST_MESSAGE, at
    if not 0 < size <= MAX_INDEXES:
        raise DataError(f"a path of {size} message indexes; it has 1 to {MAX_INDEXES}")
    path: list[int] = []
    for _ in range(size):
        index, at = _read_zigzag(data, at)
        if index < 0:
            raise DataError(f"the message index {index}; it is at least 0")
        path.append(index)
    return tuple(path), at


def indexes(path: Sequence[int]) -> bytes:
    """The bytes of a path. Raises DataError for one that no reader takes."""
    if tuple(path) == FIRST_MESSAGE:
        return b"\0"
    if not 0 < len(path) <= MAX_INDEXES or min(path) < 0:
        raise DataError(f"the path of message indexes {list(path)[:8]}")
    return b"".join(map(_zigzag, (len(path), *path)))


def _zigzag(value: int) -> bytes:
    value = value << 1 ^ value >> 31
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def _read_zigzag(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        if at >= len(data):
            raise DataError("the data end within the message indexes")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
    raise DataError("a message index has more than five bytes")

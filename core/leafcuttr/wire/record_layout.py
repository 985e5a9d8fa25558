"""The layout of a record, as data: what all readers of records are generated from (`wire/record_frames.py`)."""

from typing import Final, NamedTuple


class Byte(NamedTuple):
    """A single byte, unused."""

    name: str


class Number(NamedTuple):
    """A zigzag varint of 32 bits, or of 64."""

    name: str
    is_long: bool = False


class Bytes(NamedTuple):
    """A length as a zigzag varint, -1 for null, and so many bytes."""

    name: str
    nullable: bool = True
    is_text: bool = False


class Repeated(NamedTuple):
    """A count as a zigzag varint, and so many times the fields."""

    name: str
    singular: str
    fields: tuple[Bytes, ...]


Field = Byte | Number | Bytes | Repeated

RECORD: Final[tuple[Field, ...]] = (
    Number("length"),  # of all that follows
    Byte("attributes"),
    Number("timestamp_delta", is_long=True),
    Number("offset_delta"),
    Bytes("key"),
    Bytes("value"),
    Repeated("headers", "header", (Bytes("key", nullable=False, is_text=True), Bytes("value"))),
)
"""KIP-98."""

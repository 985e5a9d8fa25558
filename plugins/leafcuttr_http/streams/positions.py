"""Where a stream is in each partition of its topic, as numbers and as the id of an event. Pure.

An id is base64url of: a version byte, five bytes of the topic's id (one that is deleted and made again has another),
and the next offset of each partition from 0 on, as unsigned varints. So a stream goes on after any event, on any
connection, without a server that remembers it.
"""

import base64
import binascii
from collections.abc import Iterable
from typing import Final, NamedTuple

_VERSION: Final = b"\x01"
_TAG: Final = 5
LONGEST: Final = 128 * 1024
"""Characters of an id: of ten thousand partitions with nine bytes each."""
_LARGEST: Final = 2**63 - 1


class EventId(NamedTuple):
    """What an id says."""

    tag: bytes
    offsets: list[int]


def tag_of(topic_id: bytes) -> bytes:
    return topic_id[:_TAG]


def parse(text: str) -> EventId:
    """Raises ValueError for what is no id."""
    if len(text) > LONGEST:
        raise ValueError("it is too long")
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise ValueError("it is not base64url") from None
    if data[:1] != _VERSION or len(data) < 1 + _TAG:
        raise ValueError("its version is not known")
    offsets: list[int] = []
    value = shift = 0
    for byte in data[1 + _TAG :]:
        value |= (byte & 0x7F) << shift
        if byte & 0x80:
            shift += 7
            if shift > 56:
                raise ValueError("an offset is too large")
        else:
            offsets.append(value)
            value = shift = 0
    if shift:
        raise ValueError("it is cut off")
    return EventId(data[1 : 1 + _TAG], offsets)


class Positions:
    """The next offset of each partition. `offsets` is for reading only."""

    __slots__ = ("_head", "_parts", "offsets")

    def __init__(self, tag: bytes, offsets: Iterable[int]) -> None:
        self.offsets = list(offsets)
        self._head = _VERSION + tag
        self._parts = [_varint(offset) for offset in self.offsets]

    def copy(self) -> "Positions":
        other = Positions.__new__(Positions)
        other.offsets, other._head, other._parts = self.offsets.copy(), self._head, self._parts.copy()
        return other

    def move(self, partition: int, offset: int) -> None:
        self.offsets[partition] = offset
        self._parts[partition] = _varint(offset)

    def add_partitions(self, count: int) -> None:
        """Those that have come since begin at their beginning."""
        for _ in range(len(self.offsets), count):
            self.offsets.append(0)
            self._parts.append(b"\x00")

    def id(self) -> bytes:
        text = binascii.b2a_base64(self._head + b"".join(self._parts), newline=False)
        return text.rstrip(b"=").translate(_URL_SAFE)


_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)

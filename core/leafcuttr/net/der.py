"""A reader of DER (X.690), as far as certificates need it: elements with one octet of tag and a definite length.

What the elements mean is in `distinguished_names` and `certificates`.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

BOOLEAN: Final = 0x01
INTEGER: Final = 0x02
BIT_STRING: Final = 0x03
OCTET_STRING: Final = 0x04
OBJECT_IDENTIFIER: Final = 0x06
UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18
SEQUENCE: Final = 0x30
SET: Final = 0x31

_LONG_FORM: Final = 0x80
_MOST_OCTETS_OF_LENGTH: Final = 4
_HIGH_TAG: Final = 0x1F


class DerError(ValueError):
    """The bytes are not what they should be."""


class Element(NamedTuple):
    """One element: its tag with class and form, its content, and all its bytes."""

    tag: int
    content: bytes
    raw: bytes

    def expect(self, tag: int) -> bytes:
        """The content. Raises DerError if it is of another tag."""
        if self.tag != tag:
            raise DerError(f"tag {self.tag:#04x} where {tag:#04x} belongs")
        return self.content

    def children(self) -> list["Element"]:
        """The elements that it is made of. Raises DerError."""
        return list(elements(self.content))

    def fields(self, tag: int, least: int) -> list["Element"]:
        """As `children`, of one that has this tag and no fewer than `least` of them. Raises DerError."""
        self.expect(tag)
        found = self.children()
        if len(found) < least:
            raise DerError(f"{len(found)} fields where {least} belong")
        return found


def elements(data: bytes) -> Iterator[Element]:
    """One after the other, to the end of `data`. Raises DerError."""
    at = 0
    while at < len(data):
        found, at = _element(data, at)
        yield found


def first(data: bytes) -> Element:
    """The element that `data` begins with. Raises DerError."""
    return _element(data, 0)[0]


def _element(data: bytes, start: int) -> tuple[Element, int]:
    if start + 2 > len(data):
        raise DerError("it ends too early")
    tag, length, at = data[start], data[start + 1], start + 2
    if tag & _HIGH_TAG == _HIGH_TAG:
        raise DerError("a tag of several octets")
    if length >= _LONG_FORM:
        octets = length - _LONG_FORM
        if not 0 < octets <= _MOST_OCTETS_OF_LENGTH or at + octets > len(data):
            raise DerError("a length that is none")
        length, at = int.from_bytes(data[at : at + octets], "big"), at + octets
    end = at + length
    if end > len(data):
        raise DerError("it ends too early")
    return Element(tag, data[at:end], data[start:end]), end


def object_identifier(content: bytes) -> str:
    """`2.5.4.3` (X.690, 8.19). Raises DerError."""
    if not content or content[-1] & 0x80:
        raise DerError("an object identifier that does not end")
    arcs: list[int] = []
    arc = 0
    for octet in content:
        arc = arc << 7 | octet & 0x7F
        if not octet & 0x80:
            arcs.append(arc)
            arc = 0
    first_arc = min(arcs[0] // 40, 2)
    return ".".join(str(each) for each in (first_arc, arcs[0] - 40 * first_arc, *arcs[1:]))

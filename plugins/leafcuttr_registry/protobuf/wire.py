"""The bytes of Protobuf's encoding, as far as values of options need them.

Spec: https://protobuf.dev/programming-guides/encoding/.
"""

import struct
from typing import Final, TypeAlias

VARINT, FIXED64, LENGTH, START_GROUP, END_GROUP, FIXED32 = range(6)
MASK: Final = (1 << 64) - 1

WIRE_TYPES: Final = {
    1: FIXED64, 2: FIXED32, 3: VARINT, 4: VARINT, 5: VARINT, 6: FIXED64, 7: FIXED32, 8: VARINT, 9: LENGTH,
    10: START_GROUP, 11: LENGTH, 12: LENGTH, 13: VARINT, 14: VARINT, 15: FIXED32, 16: FIXED64, 17: VARINT, 18: VARINT,
}  # fmt: skip
"""Of the types of `FieldDescriptorProto.Type`."""
_PACKED = {1: "<d", 2: "<f", 6: "<Q", 7: "<I", 15: "<i", 16: "<q"}


def varint(value: int) -> bytes:
    value &= MASK
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def tag(number: int, wire_type: int) -> bytes:
    return varint(number << 3 | wire_type)


def scalar(type_: int, value: float) -> bytes:
    """The bytes of a number, without its tag."""
    if type_ in _PACKED:
        return struct.pack(_PACKED[type_], value)
    number = int(value)
    if type_ in (17, 18):
        number = number << 1 ^ number >> 63
    return varint(number)


Raw: TypeAlias = "int | bytes | list[tuple[int, int, Raw]]"
"""What a wire type carries: a number, bytes, or the fields of a group."""
MAX_DEPTH: Final = 100


def fields(data: bytes) -> list[tuple[int, int, Raw]]:
    """Number, wire type and value of each field. Raises ValueError for what is not Protobuf's encoding."""
    found, at = _fields(data, 0, 0, 0)
    if at != len(data):
        raise ValueError("a group ends that did not begin")
    return found


def _fields(data: bytes, at: int, group: int, depth: int) -> tuple[list[tuple[int, int, Raw]], int]:
    if depth > MAX_DEPTH:
        raise ValueError("groups are nested too deep")
    found: list[tuple[int, int, Raw]] = []
    while at < len(data):
        key, at = read_varint(data, at)
        number, wire_type = key >> 3, key & 7
        value: Raw
        if wire_type == VARINT:
            value, at = read_varint(data, at)
        elif wire_type in (FIXED64, FIXED32):
            size = 8 if wire_type == FIXED64 else 4
            value, at = _piece(data, at, size)
        elif wire_type == LENGTH:
            size, at = read_varint(data, at)
            value, at = _piece(data, at, size)
        elif wire_type == START_GROUP:
            value, at = _fields(data, at, number, depth + 1)
        elif wire_type == END_GROUP and number == group and depth:
            return found, at
        else:
            raise ValueError(f"the wire type {wire_type} of field {number}")
        found.append((number, wire_type, value))
    if depth:
        raise ValueError("a group has no end")
    return found, at


def _piece(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(data):
        raise ValueError("the data end within a field")
    return data[at : at + size], at + size


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The value and where the data go on. Raises ValueError."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ValueError("the data end within a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & MASK, at
    raise ValueError("a number has more than ten bytes")


def unscalar(type_: int, value: int | bytes) -> int | float:
    """The number of a scalar type that a varint or fixed bytes are. Raises ValueError for bytes of another size."""
    if isinstance(value, bytes):
        code = _PACKED.get(type_)
        if code is None or struct.calcsize(code) != len(value):
            raise ValueError("a value has another wire type than its field")
        number: int | float = struct.unpack(code, value)[0]
        return number
    if type_ in _PACKED:
        raise ValueError("a value has another wire type than its field")
    if type_ in (17, 18):
        return value >> 1 ^ -(value & 1)
    if type_ in (3, 5, 14):
        value = value - (1 << 64) if value >> 63 else value
    if type_ == 5:
        value = (value + (1 << 31)) % (1 << 32) - (1 << 31)
    if type_ == 13:
        value &= (1 << 32) - 1
    return value


def field(number: int, type_: int, body: bytes) -> bytes:
    """A field with its tag; `body` is the encoded value."""
    wire_type = WIRE_TYPES[type_]
    if wire_type == LENGTH:
        return tag(number, LENGTH) + varint(len(body)) + body
    if wire_type == START_GROUP:
        return tag(number, START_GROUP) + body + tag(number, END_GROUP)
    return tag(number, wire_type) + body

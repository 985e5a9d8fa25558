"""Variable-length integers, shared by the compiled codecs and by the record formats.

They are independent of messages. Sources: the protocol guide's "Protocol Primitive Types"; KIP-482 for the
unsigned varints of compact types and tags; the zigzag ones are those of the v2 record format.
"""

from typing import Final

from leafcuttr.wire.errors import MalformedMessage

LONG_MAX: Final = 2**63 - 1
LONG_MIN: Final = -(2**63)

ZERO_UUID = bytes(16)
"""The uuid that stands for none."""

Buffer = bytes | bytearray | memoryview

_SHORT = "the bytes end within a variable-length integer"


def more_of_unsigned_varint(buffer: Buffer, at: int, first: int) -> tuple[int, int]:
    """Finish an unsigned varint whose first byte (`first`, above 127) stands before `at`.

    Returns the value and the position after it. Raises MalformedMessage above 32 bits, and IndexError where
    the buffer ends (compiled readers turn it into a MalformedMessage that knows the field).
    """
    value = first & 0x7F
    shift = 7
    while True:
        byte = buffer[at]
        at += 1
        if byte < 0x80:
            value |= byte << shift
            if value > 0xFFFFFFFF:
                raise MalformedMessage("a variable-length integer exceeds 32 bits")
            return value, at
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > 28:
            raise MalformedMessage("a variable-length integer has more than 5 bytes")


def read_unsigned_varint(buffer: Buffer, at: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 32 bits: (value, position after it). Raises MalformedMessage."""
    try:
        first = buffer[at]
        return (first, at + 1) if first < 0x80 else more_of_unsigned_varint(buffer, at + 1, first)
    except IndexError:
        raise MalformedMessage(_SHORT) from None


def read_varlong(buffer: Buffer, at: int) -> tuple[int, int]:
    """Read a zigzag varint of at most 64 bits: (value, position after it). Raises MalformedMessage."""
    value = shift = 0
    try:
        while True:
            byte = buffer[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > 0xFFFFFFFFFFFFFFFF:
                    raise MalformedMessage("a variable-length integer exceeds 64 bits")
                return (value >> 1) ^ -(value & 1), at
            shift += 7
            if shift > 63:
                raise MalformedMessage("a variable-length integer has more than 10 bytes")
    except IndexError:
        raise MalformedMessage(_SHORT) from None


def as_long(value: int) -> int:
    """The 64 bits of a sum or difference of longs, as Java has it: behind 2**63 - 1 comes -2**63."""
    return ((value + (1 << 63)) & 0xFFFFFFFFFFFFFFFF) - (1 << 63)


def write_unsigned_varint(out: bytearray, value: int) -> None:
    """Append a non-negative integer, seven bits a byte, the lowest first."""
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def write_varlong(out: bytearray, value: int) -> None:
    """Append an integer of at most 64 bits in zigzag form."""
    write_unsigned_varint(out, (value << 1) ^ (value >> 63))

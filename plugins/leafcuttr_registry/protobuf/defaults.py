"""Default values of fields: which are allowed, and how descriptors write them."""

import math
import struct

from leafcuttr_registry.protobuf.model import (
    REPEATED,
    SCALAR_NAMES,
    TYPE_BOOL,
    TYPE_BYTES,
    TYPE_DOUBLE,
    TYPE_ENUM,
    TYPE_FLOAT,
    TYPE_GROUP,
    TYPE_MESSAGE,
    TYPE_STRING,
    EnumInfo,
    FieldInfo,
    Source,
)
from leafcuttr_registry.protobuf.tree import Field, Number, Text, Word

INTEGERS: dict[int, tuple[int, int]] = {
    **dict.fromkeys((3, 16, 18), (-(1 << 63), (1 << 63) - 1)),
    **dict.fromkeys((5, 15, 17), (-(1 << 31), (1 << 31) - 1)),
    **dict.fromkeys((4, 6), (0, (1 << 64) - 1)),
    **dict.fromkeys((7, 13), (0, (1 << 32) - 1)),
}
"""The types of integers, by number, and what they hold."""
WORDS = {"inf": math.inf, "nan": math.nan}


def default_text(source: Source, field: FieldInfo, node: Field) -> str:
    """What the descriptor has as `default_value`. Raises SchemaError for values that are not of the type."""
    type_, value, at = field.proto.type, node.default, node.special_at
    if source.dialect == "proto3":
        raise source.error(at, "fields of proto3 have no default values of their own")
    if type_ in (TYPE_MESSAGE, TYPE_GROUP):
        raise source.error(at, "messages have no default values")
    if field.proto.label == REPEATED:
        raise source.error(at, "repeated fields have no default values")
    if type_ in INTEGERS:
        least, most = INTEGERS[type_]
        if isinstance(value, Number) and isinstance(value.value, int):
            if not least <= value.value <= most or (value.text.startswith("-") and least == 0):
                raise source.error(
                    at, f"{value.text[:40]} is not of {SCALAR_NAMES[type_]}: {least} to {most}"
                )
            return str(value.value)
    elif type_ in (TYPE_FLOAT, TYPE_DOUBLE):
        number = float_of(value)
        if number is not None:
            return (float_text if type_ == TYPE_FLOAT else double_text)(number)
    elif type_ == TYPE_BOOL:
        if isinstance(value, Word) and value.name in ("true", "false"):
            return value.name
    elif type_ == TYPE_STRING:
        if isinstance(value, Text):
            try:
                return value.data.decode()
            except UnicodeDecodeError:
                raise source.error(at, "the default value is not valid UTF-8") from None
    elif type_ == TYPE_BYTES:
        if isinstance(value, Text):
            return escaped(value.data)
    elif type_ == TYPE_ENUM:
        assert isinstance(field.type, EnumInfo)
        if isinstance(value, Word):
            if value.name not in field.type.values:
                raise source.error(at, f"{field.type.name} has no constant {value.name[:40]}")
            return value.name
    name = SCALAR_NAMES.get(type_, "the enum")
    raise source.error(at, f"the default value is not of {name}")


def float_of(value: object) -> float | None:
    """The number that a value of a float or double is; None for what is none."""
    if isinstance(value, Number):
        if not value.value and value.text.startswith("-"):
            return -0.0
        try:
            return float(value.value)
        except OverflowError:
            return math.inf if value.value > 0 else -math.inf
    if isinstance(value, Word):
        return WORDS.get(value.name)
    return None


def double_text(number: float) -> str:
    if math.isinf(number) or math.isnan(number):
        return _special(number)
    short = f"{number:.15g}"
    return short if float(short) == number else f"{number:.17g}"


def float_text(number: float) -> str:
    number = float32(number)
    if math.isinf(number) or math.isnan(number):
        return _special(number)
    short = f"{number:.6g}"
    return short if float32(float(short)) == number else f"{number:.9g}"


def _special(number: float) -> str:
    return "nan" if math.isnan(number) else ("inf" if number > 0 else "-inf")


def float32(number: float) -> float:
    """The nearest one of 32 bits."""
    try:
        nearest: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
    return nearest


_ESCAPES = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}


def escaped(data: bytes) -> str:
    """As C writes bytes: what is not printable in octal."""
    return "".join(
        _ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in data
    )

"""From bytes to values of JSON, in Avro's JSON encoding (specification, "JSON Encoding"), as Confluent's console tools
and REST proxy write it: a union is null, or an object with the branch as its key; bytes are text of the code points 0
to 255; numbers that are not finite are strings.

Functions for each type, as in `checking`, which it agrees with on what is data. It says where in the value it fails.
"""

import math
import struct
from collections.abc import Callable
from typing import Final, TypeAlias

from leafcuttr_registry.avro.functions import Functions
from leafcuttr_registry.avro.reading import Fault, block, length, value_of, varint
from leafcuttr_registry.avro.singles import shortest
from leafcuttr_registry.avro.types import (
    AvroType,
    EnumType,
    FixedType,
    MapType,
    RecordType,
    UnionType,
)
from leafcuttr_sdk.schemas import JsonValue

Decode: TypeAlias = Callable[[bytes, int], tuple[JsonValue, int]]

_INT: Final = 1 << 31
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")


def _null(data: bytes, at: int) -> tuple[JsonValue, int]:
    return None, at


def _boolean(data: bytes, at: int) -> tuple[JsonValue, int]:
    if data[at] > 1:
        raise Fault(f"the byte {data[at]} is neither true nor false")
    return data[at] == 1, at + 1


def _int(data: bytes, at: int) -> tuple[JsonValue, int]:
    value, at = varint(data, at)
    if not -_INT <= value < _INT:
        raise Fault(f"{value} is out of the range of an int")
    return value, at


def _number(value: float) -> JsonValue:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _fixed_bytes(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if size > len(data) - at:
        raise Fault(f"it takes {size} bytes, and {len(data) - at} are left")
    return data[at : at + size], at + size


def _float(data: bytes, at: int) -> tuple[JsonValue, int]:
    raw, at = _fixed_bytes(data, at, 4)
    return _number(shortest(_FLOAT.unpack(raw)[0])), at


def _double(data: bytes, at: int) -> tuple[JsonValue, int]:
    raw, at = _fixed_bytes(data, at, 8)
    return _number(_DOUBLE.unpack(raw)[0]), at


def _bytes(data: bytes, at: int) -> tuple[JsonValue, int]:
    at, end = length(data, at)
    return data[at:end].decode("latin-1"), end


def _string(data: bytes, at: int) -> tuple[str, int]:
    at, end = length(data, at)
    try:
        return data[at:end].decode(), end
    except UnicodeDecodeError as error:
        raise Fault(f"a string is not UTF-8 at its byte {error.start}") from None


_PRIMITIVES: Final[dict[str, Decode]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _int,
    "long": varint,
    "float": _float,
    "double": _double,
    "bytes": _bytes,
    "string": _string,
}


class Decodings(Functions[Decode]):
    """Makes the functions for the types of one schema."""

    primitives = _PRIMITIVES

    def _record(self, type: RecordType) -> Decode:
        fields: list[tuple[str, Decode]] = []
        for field in type.fields:
            fields.append((field.name, self.of(field.type)))
        empty, limits = self._sizes.empty_fields(type), self._limits

        def record(data: bytes, at: int) -> tuple[JsonValue, int]:
            limits.spend(empty)
            value: dict[str, JsonValue] = {}
            name = ""
            try:
                for name, decode in fields:
                    value[name], at = decode(data, at)
            except Fault as fault:
                fault.path.append(name)
                raise
            except IndexError:
                raise _short(name) from None
            return value, at

        return record

    def _union(self, type: UnionType) -> Decode:
        branches: list[tuple[str, Decode]] = []
        for branch in type.branches:
            branches.append((branch.label, self.of(branch)))

        def union(data: bytes, at: int) -> tuple[JsonValue, int]:
            number, at = varint(data, at)
            if not 0 <= number < len(branches):
                raise Fault(f"branch {number} of a union of {len(branches)}")
            label, decode = branches[number]
            if label == "null":
                return None, at
            value, at = decode(data, at)
            return {label: value}, at

        return union

    def _blocks(self, type: AvroType) -> Decode:
        return self._map(type) if isinstance(type, MapType) else self._array(type)

    def _array(self, type: AvroType) -> Decode:
        value_type = value_of(type)
        decode = self.of(value_type)
        least, empty, limits = self._sizes.least(value_type), self._sizes.empty(value_type), self._limits

        def array(data: bytes, at: int) -> tuple[JsonValue, int]:
            items: list[JsonValue] = []
            try:
                while True:
                    count, at, end = block(data, at, least, empty, limits)
                    for _ in range(count):
                        item, at = decode(data, at)
                        items.append(item)
                    _check_end(at, end)
                    if not count:
                        return items, at
            except Fault as fault:
                fault.path.append(len(items))
                raise
            except IndexError:
                raise _short(len(items)) from None

        return array

    def _map(self, type: MapType) -> Decode:
        decode = self.of(type.values)
        least, empty, limits = (
            self._sizes.least(type.values) + 1,
            self._sizes.empty(type.values),
            self._limits,
        )

        def map(data: bytes, at: int) -> tuple[JsonValue, int]:
            items: dict[str, JsonValue] = {}
            key = ""
            try:
                while True:
                    count, at, end = block(data, at, least, empty, limits)
                    limits.spend(count * empty)
                    for _ in range(count):
                        key, at = _string(data, at)
                        items[key], at = decode(data, at)
                    _check_end(at, end)
                    if not count:
                        return items, at
            except Fault as fault:
                fault.path.append(key)
                raise
            except IndexError:
                raise _short(key) from None

        return map

    def _enum(self, type: EnumType) -> Decode:
        return _enum(type.symbols)

    def _fixed(self, type: FixedType) -> Decode:
        return _fixed(type.size)


def _short(token: str | int) -> Fault:
    fault = Fault("the data end here")
    fault.path.append(token)
    return fault


def _check_end(at: int, end: int) -> None:
    if end and at != end:
        raise Fault(f"a block ends at byte {at}, and said that it would at {end}")


def _enum(symbols: list[str]) -> Decode:
    def enum(data: bytes, at: int) -> tuple[JsonValue, int]:
        symbol, at = varint(data, at)
        if not 0 <= symbol < len(symbols):
            raise Fault(f"symbol {symbol} of an enum of {len(symbols)}")
        return symbols[symbol], at

    return enum


def _fixed(size: int) -> Decode:
    def fixed(data: bytes, at: int) -> tuple[JsonValue, int]:
        raw, at = _fixed_bytes(data, at, size)
        return raw.decode("latin-1"), at

    return fixed

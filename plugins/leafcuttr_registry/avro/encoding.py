"""From values of JSON, in Avro's JSON encoding, to what fastavro writes; and the schema by which it does.

fastavro takes much: it guesses the branch of a union, drops what does not fit, writes numbers out of range. Here each
value is compared with its type, and each branch is named. What fastavro gets has names of its own making, since it
does not allow all that Avro's parser in Java does.
"""

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from leafcuttr_registry.avro.reading import Fault, Limits
from leafcuttr_registry.avro.singles import shortest
from leafcuttr_registry.avro.types import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    RecordType,
    UnionType,
)
from leafcuttr_sdk.schemas import JsonValue

Convert: TypeAlias = Callable[[JsonValue], Any]

_SPECIAL: Final = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
    "INF": math.inf,
    "-INF": -math.inf,
}


def _is_no(value: JsonValue, what: str) -> Fault:
    shown = f"{value!r}" if isinstance(value, str | int | float | None) else type(value).__name__
    return Fault(f"{shown[:80]} is no {what}")


def _null(value: JsonValue) -> Any:
    if value is not None:
        raise _is_no(value, "null")
    return None


def _boolean(value: JsonValue) -> Any:
    if not isinstance(value, bool):
        raise _is_no(value, "boolean")
    return value


def _integer(what: str, bits: int) -> Convert:
    least, most = -(1 << bits), (1 << bits) - 1

    def integer(value: JsonValue) -> Any:
        # A number with a fraction of nothing is one, as in Java's library.
        whole = int(value) if isinstance(value, float) and value.is_integer() else value
        if type(whole) is not int or not least <= whole <= most:
            raise _is_no(value, what)
        return whole

    return integer


def _double(value: JsonValue) -> Any:
    if isinstance(value, str) and value in _SPECIAL:
        return _SPECIAL[value]
    if type(value) not in (int, float):
        raise _is_no(value, "number")
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        raise _is_no(value, "double: it is out of range") from None


def _float(value: JsonValue) -> Any:
    number = _double(value)
    if math.isfinite(number) and math.isinf(shortest(number)):
        raise _is_no(value, "float: it is out of range")
    return number


def _bytes(value: JsonValue) -> Any:
    if not isinstance(value, str):
        raise _is_no(value, "bytes: they are written as a string")
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError as error:
        raise Fault(f"{value[error.start]!r} is no byte: code points 0 to 255 are") from None


def _string(value: JsonValue) -> Any:
    if not isinstance(value, str):
        raise _is_no(value, "string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Fault("the string has a lone surrogate") from None
    return value


_PRIMITIVES: Final[dict[str, Convert]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _integer("int", 31),
    "long": _integer("long", 63),
    "float": _float,
    "double": _double,
    "bytes": _bytes,
    "string": _string,
}


class Encodings:
    """Makes the functions for the types of one schema, and fastavro's schema beside."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._made: dict[int, tuple[Convert, str]] = {}
        self._making: dict[int, tuple[list[Convert], str, int]] = {}
        self._level = 0
        self._branches = 0

    def of(self, of: AvroType) -> tuple[Convert, Any]:
        """The function, and the schema: its name where it is defined already."""
        if of.kind in _PRIMITIVES:
            return _PRIMITIVES[of.kind], of.kind
        if isinstance(of, EnumType):
            return _enum(of), "int"
        key = id(of)
        if key in self._made:
            return self._made[key]
        if key in self._making:
            later, name, level = self._making[key]
            return self._recursive(later, 1 + self._level - level), name
        self._level += 1
        made = self._make(of)
        self._level -= 1
        return made

    def _make(self, of: AvroType) -> tuple[Convert, Any]:
        if isinstance(of, UnionType):
            return self._union(of)
        if isinstance(of, ArrayType):
            convert, schema = self.of(of.items)
            return _array(convert), {"type": "array", "items": schema}
        if isinstance(of, MapType):
            convert, schema = self.of(of.values)
            return _map(convert), {"type": "map", "values": schema}
        name = f"T{len(self._made) + len(self._making)}"
        later = list[Convert]()
        key = id(of)
        self._making[key] = later, name, self._level - 1
        convert, schema = self._named(of, name)
        later.append(convert)
        del self._making[key]
        self._made[key] = convert, name
        return convert, schema

    def _named(self, of: AvroType, name: str) -> tuple[Convert, Any]:
        if isinstance(of, FixedType):
            return _fixed(of.size), {"type": "fixed", "name": name, "size": of.size}
        assert isinstance(of, RecordType)
        fields: list[Any] = []
        converts: list[tuple[str, str, Convert]] = []
        for at, field in enumerate(of.fields):
            convert, schema = self.of(field.type)
            fields.append({"name": f"f{at}", "type": schema})
            converts.append((field.name, f"f{at}", convert))
        return _record(of, converts), {"type": "record", "name": name, "fields": fields}

    def _union(self, of: UnionType) -> tuple[Convert, Any]:
        """Each branch but null is a record with one field, which is written as the field is: so any branch can be
        named, also two of one type of Python."""
        branches: dict[str, tuple[str, Convert]] = {}
        schemas: list[Any] = []
        for branch in of.branches:
            convert, schema = self.of(branch)
            if branch.label == "null":
                schemas.append("null")
                continue
            self._branches += 1
            name = f"B{self._branches}"
            branches[branch.label] = name, convert
            schemas.append({"type": "record", "name": name, "fields": [{"name": "value", "type": schema}]})
        return _branch(branches, "null" in schemas), schemas

    def _recursive(self, later: list[Convert], frames: int) -> Convert:
        limits = self._limits

        def recursive(value: JsonValue) -> Any:
            limits.enter(frames)
            result = later[0](value)
            limits.depth -= frames
            return result

        return recursive


def _record(of: RecordType, fields: list[tuple[str, str, Convert]]) -> Convert:
    def record(value: JsonValue) -> Any:
        if not isinstance(value, dict):
            raise _is_no(value, f"record {of.name.full}: it is written as an object")
        made: dict[str, Any] = {}
        name = ""
        try:
            for name, short, convert in fields:
                if name not in value:
                    raise Fault("the field is missing")
                made[short] = convert(value[name])
        except Fault as fault:
            fault.path.append(name)
            raise
        if len(value) > len(fields):
            unknown = next(key for key in value if key not in of.by_name)
            raise Fault(f"the record {of.name.full} has no field {unknown[:80]!r}")
        return made

    return record


def _branch(branches: dict[str, tuple[str, Convert]], nullable: bool) -> Convert:
    def branch(value: JsonValue) -> Any:
        if value is None and nullable:
            return None
        if not isinstance(value, dict) or len(value) != 1:
            allowed = ", ".join(branches)[:200]
            raise _is_no(value, f"value of a union: an object with one key is, which is one of: {allowed}")
        ((label, inner),) = value.items()
        if label not in branches:
            raise Fault(f"{label[:80]!r} is no branch of the union: {', '.join(branches)[:200]}")
        name, convert = branches[label]
        try:
            return name, {"value": convert(inner)}
        except Fault as fault:
            fault.path.append(label)
            raise

    return branch


def _array(convert: Convert) -> Convert:
    def array(value: JsonValue) -> Any:
        if not isinstance(value, list):
            raise _is_no(value, "array")
        made: list[Any] = []
        try:
            for one in value:
                made.append(convert(one))
        except Fault as fault:
            fault.path.append(len(made))
            raise
        return made

    return array


def _map(convert: Convert) -> Convert:
    def map(value: JsonValue) -> Any:
        if not isinstance(value, dict):
            raise _is_no(value, "map: it is written as an object")
        made: dict[str, Any] = {}
        key = ""
        try:
            for key, one in value.items():
                made[_string(key)] = convert(one)
        except Fault as fault:
            fault.path.append(key)
            raise
        return made

    return map


def _enum(of: EnumType) -> Convert:
    """The position, which is written as an int is."""
    positions = {symbol: at for at, symbol in enumerate(of.symbols)}

    def enum(value: JsonValue) -> Any:
        if not isinstance(value, str) or value not in positions:
            raise _is_no(value, f"symbol of the enum {of.name.full}")
        return positions[value]

    return enum


def _fixed(size: int) -> Convert:
    def fixed(value: JsonValue) -> Any:
        raw = _bytes(value)
        if len(raw) != size:
            raise Fault(f"{len(raw)} bytes, and the fixed has {size}")
        return raw

    return fixed

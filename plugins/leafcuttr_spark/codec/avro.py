"""Avro values of one schema to a column of structs, many at a time: what a record has in a fixed order is decoded field
by field, for all values at once.

`avro_columns` is None for a schema with something else: arrays, maps, unions of more than null and one type, recursion.
Those are for a reader that makes objects.

Source: the binary encoding of Avro 1.12, https://avro.apache.org/docs/1.12.0/specification/
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from leafcuttr_sdk.batches import BatchError
from leafcuttr_spark.codec.slices import edges_of, take_slices
from leafcuttr_spark.codec.varints import Longs, Mask, Octets, read_longs

_DEEPEST: Final = 32
"""Records within records."""


class AvroValueError(ValueError):
    """Bytes that are not of the schema."""


_Made = TypeVar("_Made", bound="_Reads")


class _Data(NamedTuple):
    """The buffer of all values, twice: as octets and as it is."""

    octets: Octets
    buffer: Any


class _Reads(Protocol):
    @property
    def type(self) -> pa.DataType: ...

    def read(self, data: _Data, at: Longs, ends: Longs) -> tuple[pa.Array, Longs]:
        """What stands at these positions, and the positions behind it, none of which is behind its end."""
        ...


class AvroColumns:
    """Decodes values of one schema."""

    def __init__(self, record: "_Record") -> None:
        self._record = record

    @property
    def type(self) -> pa.DataType:
        return self._record.type

    def decode(self, values: pa.Array, skip: int = 0) -> pa.Array:
        """Structs of the fields of a binary array, whose values have so many bytes in front; null for null. Raises
        AvroValueError if any of them is not of the schema, or has more bytes."""
        edges, buffer = edges_of(values)
        octets = np.frombuffer(buffer, np.uint8)
        valid = None if not values.null_count else ~np.asarray(values.is_null())
        at, ends = edges[:-1] + skip, edges[1:]
        if valid is not None:
            at, ends = at[valid], ends[valid]
        if (at > ends).any():
            raise AvroValueError(f"a value is shorter than {skip} bytes")
        try:
            found, behind = self._record.read(_Data(octets, buffer), at, ends)
        except (IndexError, BatchError, pa.ArrowInvalid) as error:
            raise AvroValueError(f"a value is not of the schema: {error}") from None
        if not (behind == ends).all():
            raise AvroValueError("a value has bytes behind its last field")
        return found if valid is None else _scattered(found, valid)


def avro_columns(schema: Any) -> AvroColumns | None:
    """For a schema as JSON has it, a record; None for one that has something else."""
    try:
        made = _reads(schema, {}, _DEEPEST)
    except _OtherSchema:
        return None
    return AvroColumns(made) if isinstance(made, _Record) else None


class _OtherSchema(Exception):
    """A schema for a reader that makes objects."""


def _reads(schema: Any, named: dict[str, _Reads], deepest: int) -> _Reads:
    if not deepest:
        raise _OtherSchema
    if isinstance(schema, list):
        return _nullable(schema, named, deepest)
    if isinstance(schema, str):
        if schema in named:
            return named[schema]
        schema = {"type": schema}
    kind = schema.get("type")
    if isinstance(kind, dict | list):
        return _reads(kind, named, deepest)
    if kind == "record":
        return _record(schema, named, deepest)
    if kind == "enum":
        return _named(schema, _Enum(schema["symbols"]), named)
    if kind == "fixed" and "logicalType" not in schema:
        return _named(schema, _Fixed(schema["size"]), named)
    made = _PRIMITIVES.get((kind, schema.get("logicalType")))
    if made is None:
        raise _OtherSchema
    return made()


def _named(schema: Mapping[str, Any], made: _Made, named: dict[str, _Reads]) -> _Made:
    short = schema["name"].rpartition(".")[2]
    # Two types of one name in two namespaces: which of them is meant, the other reader finds out.
    if short in named:
        raise _OtherSchema
    named[short] = named[schema["name"]] = made
    if "namespace" in schema:
        named[f"{schema['namespace']}.{short}"] = made
    return made


def _record(schema: Mapping[str, Any], named: dict[str, _Reads], deepest: int) -> "_Record":
    found = [(field["name"], _reads(field["type"], named, deepest - 1)) for field in schema["fields"]]
    if not found:
        raise _OtherSchema
    # Afterwards: a record within itself is not found, and left to the other reader.
    return _named(schema, _Record(found), named)


def _nullable(schema: list[Any], named: dict[str, _Reads], deepest: int) -> "_Nullable":
    others = [each for each in schema if each != "null"]
    if len(schema) != 2 or len(others) != 1:
        raise _OtherSchema
    return _Nullable(_reads(others[0], named, deepest - 1), schema.index("null"))


class _Record:
    def __init__(self, fields: list[tuple[str, _Reads]]) -> None:
        self._fields = fields
        self.type = pa.struct([pa.field(name, reads.type) for name, reads in fields])

    def read(self, data: _Data, at: Longs, ends: Longs) -> tuple[pa.Array, Longs]:
        columns = []
        for _, reads in self._fields:
            column, at = reads.read(data, at, ends)
            columns.append(column)
        return pa.StructArray.from_arrays(columns, fields=list(self.type)), at


class _Nullable:
    def __init__(self, other: _Reads, null_at: int) -> None:
        self._other = other
        self._null_at = null_at
        self.type = other.type

    def read(self, data: _Data, at: Longs, ends: Longs) -> tuple[pa.Array, Longs]:
        branch, at = _numbers(data, at, ends)
        if ((branch < 0) | (branch > 1)).any():
            raise AvroValueError("a union has another branch than its two")
        valid = branch != self._null_at
        if valid.all():
            return self._other.read(data, at, ends)
        found, behind = self._other.read(data, at[valid], ends[valid])
        at = at.copy()
        at[valid] = behind
        return _scattered(found, valid), at


class _Null:
    type = pa.null()

    def read(self, data: _Data, at: Longs, ends: Longs) -> tuple[pa.Array, Longs]:
        return pa.nulls(len(at)), at


class _Boolean:
    type = pa.bool_()

    def read(self, data: _Data, at: Longs, ends: Longs) -> tuple[pa.Array, Longs]:
        found, behind = _bytes(data, at, ends, 1)
        if (found > 1).any():
            raise AvroValueError("a boolean is neither 0 nor 1")
        return pa.array(found[:, 0] == 1), behind


class _Long:
    def __init__(self, type_: pa.DataType, bits: int = 64) -> None:
        self.type = type_
        self._bits = bits

    def read(self, data: _Data, at: Longs, ends: Longs) -> tuple[pa.Array, Longs]:
        numbers, at = _numbers(data, at, ends)
        if self._bits == 64:
            return pa.array(numbers).view(self.type), at
        if ((numbers < -(1 << 31)) | (numbers >= 1 << 31)).any():
            raise AvroValueError("an int has more than 32 bits")
        return pa.array(numbers.astype(np.int32)).view(self.type), at


class _Float:
    def __init__(self, type_: pa.DataType, as_stored: str) -> None:
        self.type = type_
        self._as_stored = np.dtype(as_stored)

    def read(self, data: _Data, at: Longs, ends: Longs) -> tuple[pa.Array, Longs]:
        found, behind = _bytes(data, at, ends, self._as_stored.itemsize)
        return pa.array(found.view(self._as_stored).reshape(-1)), behind


class _Bytes:
    def __init__(self, type_: pa.DataType) -> None:
        self.type = type_

    def read(self, data: _Data, at: Longs, ends: Longs) -> tuple[pa.Array, Longs]:
        sizes, at = _numbers(data, at, ends)
        # Compared without a sum, which a size that is only claimed could take beyond a long.
        if ((sizes < 0) | (sizes > ends - at)).any():
            raise AvroValueError("a text or bytes field claims more than its value has, or less than none")
        return take_slices(data.buffer, at, sizes).cast(self.type), at + sizes


class _Fixed:
    def __init__(self, size: int) -> None:
        self._size = size
        self.type = pa.binary(size)

    def read(self, data: _Data, at: Longs, ends: Longs) -> tuple[pa.Array, Longs]:
        if (self._size > ends - at).any():
            raise AvroValueError("a value ends within a fixed field")
        sizes = np.full(len(at), self._size, np.int64)
        return take_slices(data.buffer, at, sizes).cast(self.type), at + self._size


class _Enum:
    type = pa.string()

    def __init__(self, symbols: list[str]) -> None:
        self._symbols = pa.array(symbols, pa.string())

    def read(self, data: _Data, at: Longs, ends: Longs) -> tuple[pa.Array, Longs]:
        index, at = _numbers(data, at, ends)
        if ((index < 0) | (index >= len(self._symbols))).any():
            raise AvroValueError("an enum has a symbol that its schema does not have")
        return self._symbols.take(pa.array(index)), at


_PRIMITIVES: Final[Mapping[tuple[Any, Any], Callable[[], _Reads]]] = {
    ("null", None): _Null,
    ("boolean", None): _Boolean,
    ("int", None): lambda: _Long(pa.int32(), 32),
    ("int", "date"): lambda: _Long(pa.date32(), 32),
    ("long", None): lambda: _Long(pa.int64()),
    ("long", "timestamp-millis"): lambda: _Long(pa.timestamp("ms", "UTC")),
    ("long", "timestamp-micros"): lambda: _Long(pa.timestamp("us", "UTC")),
    ("float", None): lambda: _Float(pa.float32(), "<f4"),
    ("double", None): lambda: _Float(pa.float64(), "<f8"),
    ("bytes", None): lambda: _Bytes(pa.binary()),
    ("string", None): lambda: _Bytes(pa.string()),
}


def _numbers(data: _Data, at: Longs, ends: Longs) -> tuple[Longs, Longs]:
    numbers, behind = read_longs(data.octets, at)
    if (behind > ends).any():
        raise AvroValueError("a value ends within a number")
    return numbers, behind


def _bytes(data: _Data, at: Longs, ends: Longs, size: int) -> tuple[Octets, Longs]:
    """So many octets at each position, a row for each."""
    if (size > ends - at).any():
        raise AvroValueError("a value ends within a field")
    if not len(at):
        return np.empty((0, size), np.uint8), at
    return np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(data.octets, size)[at]), at + size


def _scattered(found: pa.Array, valid: Mask) -> pa.Array:
    """The elements where the mask is true, and nulls elsewhere."""
    places = np.cumsum(valid) - 1
    return (
        found.take(pa.array(np.maximum(places, 0), mask=~valid))
        if len(found)
        else pa.nulls(len(valid), found.type)
    )

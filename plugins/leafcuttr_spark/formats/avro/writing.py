# pyarrow makes the functions of its module `compute` when it is imported.
# pyright: reportAttributeAccessIssue=false
"""Columns to values of Avro: the bytes of each field of all rows, and one join of them.

The binary encoding of a record is that of its fields, one behind the other, so every schema is written this way; none
needs a loop over rows. Source: the binary encoding of Avro 1.12.
"""

import io
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from leafcuttr_sdk.schemas import SchemaError
from leafcuttr_spark.codec.slices import binary_of
from leafcuttr_spark.codec.varints import Longs, Varints
from leafcuttr_spark.formats.avro.reading import expanded
from leafcuttr_spark.formats.avro.schema import AvroSchema, branches
from leafcuttr_spark.formats.pieces import PieceError
from leafcuttr_spark.formats.types import ddl

Json = Any
Write = Callable[[pa.Array], pa.Array]
"""Bytes of each element, none of which is null. Raises PieceError for one that the schema does not have."""
_UNITS_US: Final = {"timestamp-millis": 1000, "local-timestamp-millis": 1000}


def avro_writer(schema: AvroSchema, type_: pa.DataType) -> Write:
    """For rows of this type. Raises SchemaError where they are not of the schema."""
    write = _writer(schema.logical, type_, "", schema)

    def write_all(array: pa.Array) -> pa.Array:
        try:
            return write(array)
        except pa.ArrowInvalid as error:
            raise PieceError(str(error)) from None

    return write_all


def _refused(path: str, schema: Json, type_: pa.DataType) -> SchemaError:
    kind = schema if isinstance(schema, str) else "a union" if isinstance(schema, list) else schema["type"]
    return SchemaError(f"the column {path or 'value'} is {ddl(type_)}, and its schema has {kind}")


def _writer(schema: Json, type_: pa.DataType, path: str, whole: AvroSchema) -> Write:
    if isinstance(schema, list):
        return _union(schema, type_, path, whole)
    if isinstance(schema, str):
        return _required(_primitive(schema, type_, path), path)
    kind = schema["type"]
    if schema.get("logicalType") is not None:
        return _required(_logical(schema, type_, path), path)
    if kind == "record" and kinds.is_struct(type_):
        return _required(_record(schema, type_, path, whole), path)
    if kind == "array" and kinds.is_list(type_):
        return _required(_array(_writer(schema["items"], type_.value_type, f"{path}[]", whole)), path)
    if kind == "map" and kinds.is_map(type_) and type_.key_type == pa.string():
        return _required(_map(_writer(schema["values"], type_.item_type, f"{path}[]", whole)), path)
    if kind == "enum" and type_ == pa.string():
        return _required(_enum(schema["symbols"], path), path)
    if kind == "fixed" and type_ == pa.binary():
        return _required(_fixed(schema["size"], path), path)
    raise _refused(path, schema, type_)


def _required(write: Write, path: str) -> Write:
    def write_required(array: pa.Array) -> pa.Array:
        if array.null_count:
            raise PieceError(f"{path or 'the value'} is null, which its schema does not have")
        return write(array)

    return write_required


def _longs(numbers: Longs) -> pa.Array:
    varints = Varints(np.ascontiguousarray(numbers, np.int64))
    return binary_of(varints.matrix[varints.used], varints.sizes)


def _joined(*pieces: pa.Array) -> pa.Array:
    return pieces[0] if len(pieces) == 1 else pc.binary_join_element_wise(*pieces, b"")


def _sized(array: pa.Array) -> pa.Array:
    binary = array.cast(pa.binary())
    return _joined(_longs(np.asarray(pc.binary_length(binary), np.int64)), binary)


def _numbers(array: pa.Array) -> pa.Array:
    return _longs(array.cast(pa.int64()).to_numpy(zero_copy_only=False))


def _raw(dtype: str) -> Write:
    """Numbers as they are stored, the lowest byte first."""

    def write(array: pa.Array) -> pa.Array:
        numbers = np.ascontiguousarray(array.to_numpy(zero_copy_only=False).astype(dtype))
        sizes = np.full(len(numbers), numbers.itemsize, np.int64)
        return binary_of(numbers.view(np.uint8), sizes)

    return write


def _booleans(array: pa.Array) -> pa.Array:
    numbers = array.to_numpy(zero_copy_only=False).astype(np.uint8)
    return binary_of(numbers, np.ones(len(numbers), np.int64))


def _nothing(array: pa.Array) -> pa.Array:
    return pa.repeat(pa.scalar(b"", pa.binary()), len(array))


_INTS: Final = (pa.int8(), pa.int16(), pa.int32())
_PRIMITIVES: Final[Mapping[str, tuple[tuple[pa.DataType, ...], Write]]] = {
    "boolean": ((pa.bool_(),), _booleans),
    "int": (_INTS, _numbers),
    "long": ((*_INTS, pa.int64()), _numbers),
    "float": ((pa.float32(),), _raw("<f4")),
    "double": ((pa.float32(), pa.float64()), _raw("<f8")),
    "bytes": ((pa.binary(), pa.string()), _sized),
    "string": ((pa.string(),), _sized),
}


def _primitive(name: str, type_: pa.DataType, path: str) -> Write:
    types, write = _PRIMITIVES.get(name, ((), _nothing))
    if type_ not in types:
        raise _refused(path, name, type_)
    return write


def _logical(schema: Mapping[str, Json], type_: pa.DataType, path: str) -> Write:
    name = schema["logicalType"]
    if name == "decimal" and kinds.is_decimal(type_):
        inner = schema["type"]
        size = inner["size"] if isinstance(inner, dict) else schema.get("size")
        return _decimal(schema["precision"], schema["scale"], size, path)
    if name == "date" and type_ == pa.date32():
        return lambda array: _numbers(array.view(pa.int32()))
    is_local = name.startswith("local-")
    if (
        name.startswith(("timestamp", "local"))
        and kinds.is_timestamp(type_)
        and (type_.tz is None) == is_local
    ):
        unit_us = _UNITS_US.get(name, 1)

        def write_times(array: pa.Array) -> pa.Array:
            micros = array.view(pa.int64()).to_numpy(zero_copy_only=False)
            return _longs(micros // unit_us)

        return write_times
    raise _refused(path, name, type_)


def _decimal(digits: int, scale: int, size: int | None, path: str) -> Write:
    type_ = pa.decimal128(digits, scale)

    def write(array: pa.Array) -> pa.Array:
        # Wider ones whose numbers fit are written, others are refused by the cast.
        made = [int(each.scaleb(scale)) for each in array.cast(type_).to_pylist()]
        try:
            data = [
                one.to_bytes(
                    size if size is not None else (one + (one < 0)).bit_length() // 8 + 1, "big", signed=True
                )
                for one in made
            ]
        except OverflowError:
            raise PieceError(f"{path} has a decimal that does not fit into {size} bytes") from None
        found = pa.array(data, pa.binary())
        return found if size is not None else _sized(found)

    return write


def _enum(symbols: list[str], path: str) -> Write:
    known = pa.array(symbols, pa.string())

    def write(array: pa.Array) -> pa.Array:
        index = pc.index_in(array, known)
        if index.null_count:
            wrong = array.filter(pc.is_null(index))[0].as_py()
            raise PieceError(
                f"{path or 'the value'} is {wrong[:40]!r}; allowed is one of {', '.join(symbols)[:100]}"
            )
        return _numbers(index)

    return write


def _fixed(size: int, path: str) -> Write:
    def write(array: pa.Array) -> pa.Array:
        if not pc.all(pc.equal(pc.binary_length(array), size)).as_py():
            raise PieceError(f"{path or 'the value'} has not the {size} bytes that its schema has")
        return array

    return write


def _record(schema: Mapping[str, Json], type_: pa.DataType, path: str, whole: AvroSchema) -> Write:
    columns = {field.name: (place, field.type) for place, field in enumerate(type_)}
    made: list[tuple[int, Write]] = []
    for field in schema["fields"]:
        name = field["name"]
        inside = f"{path}.{name}" if path else name
        if name in columns:
            place, inner = columns.pop(name)
            made.append((place, _writer(field["type"], inner, inside, whole)))
        elif "default" in field:
            made.append((-1, _constant(_default(name, whole.defined[schema["name"]], whole))))
        else:
            raise SchemaError(
                f"the schema has a field {inside} without a default, and rows have no such column"
            )
    if columns:
        raise SchemaError(
            f"the schema has no field for the column {path}{'.' if path else ''}{next(iter(columns))}"
        )

    def write(array: pa.Array) -> pa.Array:
        if not made:
            return _nothing(array)
        return _joined(*(each(array if place < 0 else array.field(place)) for place, each in made))

    return write


def _constant(data: bytes) -> Write:
    return lambda array: pa.repeat(pa.scalar(data, pa.binary()), len(array))


def _default(name: str, record: Mapping[str, Json], whole: AvroSchema) -> bytes:
    """The bytes of the default of a field of a plain record."""
    import fastavro

    field = next(each for each in record["fields"] if each["name"] == name)
    stream = io.BytesIO()
    schema = expanded(field["type"], whole.defined)
    value = field["default"]
    kind = schema[0] if isinstance(schema, list) and schema else schema
    if kind in ("bytes",) or (isinstance(kind, dict) and kind["type"] == "fixed"):
        value = value.encode("latin-1")
    try:
        fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    except Exception as error:
        raise SchemaError(f"the default of the field {name} is not of its type: {error}") from None
    return stream.getvalue()


def _array(item: Write) -> Write:
    def write(array: pa.Array) -> pa.Array:
        return _blocks(array, item(array.flatten()))

    return write


def _map(value: Write) -> Write:
    def write(array: pa.Array) -> pa.Array:
        offsets = array.offsets
        begin, end = offsets[0].as_py(), offsets[-1].as_py()
        keys, items = array.keys.slice(begin, end - begin), array.items.slice(begin, end - begin)
        return _blocks(array, _joined(_sized(keys), value(items)))

    return write


def _blocks(array: pa.Array, items: pa.Array) -> pa.Array:
    """One block of all items of each element, and the empty one that ends it."""
    edges = np.asarray(array.offsets, np.int64)
    counts = np.diff(edges)
    lists = pa.ListArray.from_arrays(pa.array((edges - edges[0]).astype(np.int32)), items)
    joined = pc.binary_join(lists, pa.scalar(b"", pa.binary()))
    end = pa.scalar(b"\0", pa.binary())
    heads = _longs(counts)
    # An empty one is the empty block alone.
    some = pa.array(counts > 0)
    return _joined(pc.if_else(some, heads, pa.scalar(b"", pa.binary())), joined, pa.repeat(end, len(array)))


def _union(schema: list[Json], type_: pa.DataType, path: str, whole: AvroSchema) -> Write:
    others = branches(schema)
    null = _longs(np.array([schema.index("null")]))[0] if "null" in schema else None
    if kinds.is_null(type_) and null is not None:
        return lambda array: pa.repeat(null, len(array))
    errors = []
    for each in others:
        try:
            write = _writer(each, type_, path, whole)
        except SchemaError as error:
            errors.append(error)
            continue
        return _one_of(write, _longs(np.array([schema.index(each)]))[0], null, path)
    if kinds.is_struct(type_) and [field.name for field in type_] == [
        f"member{at}" for at in range(len(others))
    ]:
        members = [
            (_writer(each, field.type, path, whole), _longs(np.array([schema.index(each)]))[0])
            for each, field in zip(others, type_, strict=True)
        ]
        return _members(members, null, path)
    raise errors[0] if len(errors) == 1 else _refused(path, schema, type_)


def _one_of(write: Write, branch: pa.Scalar, null: pa.Scalar | None, path: str) -> Write:
    def write_one(array: pa.Array) -> pa.Array:
        if not array.null_count:
            return _joined(pa.repeat(branch, len(array)), write(array))
        if null is None:
            raise PieceError(f"{path or 'the value'} is null, which its schema does not have")
        valid = array.is_valid()
        some = array.filter(valid)
        return _scattered(_joined(pa.repeat(branch, len(some)), write(some)), valid, null)

    return write_one


def _members(members: list[tuple[Write, pa.Scalar]], null: pa.Scalar | None, path: str) -> Write:
    def write_members(array: pa.Array) -> pa.Array:
        found = pa.nulls(len(array), pa.binary())
        absent = array.is_null()
        for place, (write, branch) in enumerate(members):
            column = array.field(place)
            valid = pc.and_not(column.is_valid(), absent)
            some = column.filter(valid)
            if len(some):
                made = _scattered(_joined(pa.repeat(branch, len(some)), write(some)), valid, None)
                found = pc.coalesce(found, made)
        if found.null_count:
            if null is None:
                raise PieceError(f"{path or 'the value'} is null, which its schema does not have")
            found = pc.fill_null(found, null)
        return found

    return write_members


def _scattered(some: pa.Array, valid: pa.Array, other: pa.Scalar | None) -> pa.Array:
    """The elements where it is valid, and the other one elsewhere."""
    mask = np.asarray(valid)
    places = np.cumsum(mask) - 1
    found = (
        some.take(pa.array(np.maximum(places, 0), mask=~mask))
        if len(some)
        else pa.nulls(len(mask), pa.binary())
    )
    return found if other is None else pc.fill_null(found, other)

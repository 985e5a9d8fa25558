# pyarrow makes the functions of its module `compute` when it is imported.
# pyright: reportAttributeAccessIssue=false
"""Values of Avro, written by one schema, as columns of another: many at a time by `codec.avro` where both schemas allow
it, else record by record by fastavro. Both give physical values, of which `_conformer` makes Spark's.
"""

import io
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from leafcuttr_spark.codec.avro import AvroValueError, avro_columns
from leafcuttr_spark.codec.slices import edges_of
from leafcuttr_spark.formats.avro.resolution import Project, projection
from leafcuttr_spark.formats.avro.schema import PRIMITIVES, AvroSchema, arrow_type, branches, merged
from leafcuttr_spark.formats.pieces import Decoded, Fast, PieceError, Pieces
from leafcuttr_spark.formats.types import FIRST_DAY, FIRST_US, LAST_DAY, LAST_US, MOST_DIGITS, list_of

Json = Any
Conform = Callable[[pa.Array], pa.Array]
Convert = Callable[[Any], Any]
_WRAPPER: Final = "leafcuttr_value"
_DECIMAL_BYTES: Final = 24
"""More than the largest decimal has: what is in front of them repeats its sign."""


class AvroDecoder:
    """Values of the writer's schema as those of the reader's. Raises SchemaError where fastavro refuses a schema."""

    def __init__(self, writer: AvroSchema, reader: AvroSchema) -> None:
        self.type = reader.type
        conform = _conformer(reader.logical)
        physical = _physical(reader)
        self._conform: Conform = conform or _as_it_is
        self._pieces = Pieces(
            self.type,
            _fast(writer, reader, self._conform),
            _slow(writer, reader),
            lambda objects: self._conform(pa.array(objects, physical)),
        )

    def decode(self, values: pa.Array) -> Decoded:
        """Of a binary array without nulls, and without what is in front of the data."""
        return self._pieces.decode(values)


def _as_it_is(array: pa.Array) -> pa.Array:
    return array


def _physical(schema: AvroSchema) -> pa.DataType:
    return arrow_type(expanded(schema.plain, schema.defined))


def expanded(plain: Json, defined: Mapping[str, Json]) -> Json:
    """With definitions in the places of references."""
    if isinstance(plain, str):
        return plain if plain in PRIMITIVES else expanded(defined[plain], defined)
    if isinstance(plain, list):
        return [expanded(each, defined) for each in plain]
    if plain["type"] == "record":
        fields = [{**field, "type": expanded(field["type"], defined)} for field in plain["fields"]]
        return {**plain, "fields": fields}
    inner = {key: expanded(plain[key], defined) for key in ("items", "values") if key in plain}
    return {**plain, **inner}


def _fast(writer: AvroSchema, reader: AvroSchema, conform: Conform) -> Fast | None:
    project: Project | None = _as_it_is
    if writer.plain != reader.plain:
        project = projection(expanded(writer.plain, writer.defined), expanded(reader.plain, reader.defined))
    # A value is encoded as a record with this one field is.
    wrapper = {"type": "record", "name": _WRAPPER, "fields": [{"name": "value", "type": writer.plain}]}
    columns = avro_columns(wrapper)
    if project is None or columns is None:
        return None

    def fast(values: pa.Array) -> pa.Array:
        try:
            return conform(project(columns.decode(values).field(0)))
        except (AvroValueError, pa.ArrowInvalid) as error:
            raise PieceError(str(error)) from None

    return fast


def _slow(writer: AvroSchema, reader: AvroSchema) -> Callable[[bytes], Any]:
    import fastavro
    from fastavro.schema import SchemaParseException

    from leafcuttr_sdk.schemas import SchemaError

    same = writer.plain == reader.plain
    try:
        written = fastavro.parse_schema(writer.plain)
        read = None if same else fastavro.parse_schema(reader.plain)
    except (SchemaParseException, ValueError, TypeError, KeyError) as error:
        raise SchemaError(f"fastavro refuses the schema: {' '.join(str(error).split())[:200]}") from None
    convert = _converter(expanded(reader.plain, reader.defined), defaults=not same) or _as_it_is_too

    def slow(data: bytes) -> Any:
        stream = io.BytesIO(data)
        try:
            value = fastavro.schemaless_reader(stream, written, read)
        except (IndexError, EOFError, struct.error):
            raise ValueError("it ends within a field of its schema") from None
        if stream.tell() != len(data):
            raise ValueError("it has bytes behind the last field of its schema")
        return convert(value)

    return slow


def _as_it_is_too(value: Any) -> Any:
    return value


# From fastavro's objects to Arrow's


def _converter(schema: Json, *, defaults: bool) -> Convert | None:
    """None where Arrow takes them as they are. With `defaults` there may be those of a schema among them, as JSON has
    them."""
    if isinstance(schema, list):
        return _union_converter(schema, defaults=defaults)
    if isinstance(schema, str):
        schema = {"type": schema}
    kind = schema["type"]
    if kind in ("bytes", "fixed") and defaults:
        return lambda value: value.encode("latin-1") if isinstance(value, str) else value
    if kind == "array":
        item = _converter(schema["items"], defaults=defaults)
        return None if item is None else lambda value: [item(each) for each in value]
    if kind == "map":
        inner = _converter(schema["values"], defaults=defaults) or _as_it_is_too
        return lambda value: [(key, inner(each)) for key, each in value.items()]
    if kind == "record":
        return _record_converter(schema, defaults=defaults)
    return None


def _record_converter(schema: Json, *, defaults: bool) -> Convert | None:
    found = [(field["name"], _converter(field["type"], defaults=defaults)) for field in schema["fields"]]
    converts = [(name, convert) for name, convert in found if convert is not None]
    inner = (
        {field["name"]: field["default"] for field in schema["fields"] if "default" in field}
        if defaults
        else {}
    )
    if not converts and not inner:
        return None

    def convert_record(value: Any) -> Any:
        # The default of a record may leave out what has a default itself.
        made = {**inner, **value}
        for name, convert in converts:
            made[name] = convert(made[name])
        return made

    return convert_record


_KINDS: Final[Mapping[str, type]] = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": str,
    "enum": str,
    "bytes": bytes,
    "fixed": bytes,
    "array": list,
    "map": dict,
    "record": dict,
}


def _union_converter(schema: list[Json], *, defaults: bool) -> Convert | None:
    one = merged(schema)
    if one is not None:
        convert = _converter(one, defaults=defaults)
        return None if convert is None else lambda value: None if value is None else convert(value)
    members = [
        (f"member{place}", _KINDS[each if isinstance(each, str) else each["type"]], _names(each),
         _converter(each, defaults=defaults) or _as_it_is_too)
        for place, each in enumerate(branches(schema))
    ]  # fmt: skip

    def convert_union(value: Any) -> Any:
        if value is None:
            return None
        names_of = frozenset(value) if isinstance(value, dict) else None
        for name, kind, names, convert in members:
            if type(value) is kind and (names is None or names == names_of):
                return {name: convert(value)}
        raise ValueError(f"no member of its union takes a {type(value).__name__}")

    return convert_union


def _names(schema: Json) -> frozenset[str] | None:
    """Of a record's fields, by which it is told from other records of its union."""
    if isinstance(schema, dict) and schema["type"] == "record":
        return frozenset(field["name"] for field in schema["fields"])
    return None


def unclear_union(schema: Json) -> str | None:
    """Two members of a union of this schema, which is without references, that the objects of values do not tell
    apart."""
    if isinstance(schema, str):
        return None
    if isinstance(schema, list):
        if merged(schema) is None:
            seen = set()
            for each in branches(schema):
                kind = _KINDS[each if isinstance(each, str) else each["type"]]
                names = _names(each)
                if (kind, names) in seen or (kind is dict and (dict, None) in seen):
                    return f"two members of a union are alike for Python: {kind.__name__}"
                seen.add((kind, names))
        inner = branches(schema)
    elif schema["type"] == "record":
        inner = [field["type"] for field in schema["fields"]]
    else:
        inner = [schema[key] for key in ("items", "values") if key in schema]
    return next((found for each in inner if (found := unclear_union(each)) is not None), None)


# From physical values to Spark's


def _conformer(schema: Json) -> Conform | None:
    """None where they are the same."""
    if isinstance(schema, str):
        return None
    if isinstance(schema, list):
        one = merged(schema)
        if one is not None:
            return _conformer(one)
        return _struct_conformer([_conformer(each) for each in branches(schema)], arrow_type(schema))
    logical = schema.get("logicalType")
    if logical == "decimal":
        return lambda array: _decimals(array, arrow_type(schema))
    if logical == "date":
        return _dates
    if logical is not None:
        unit_us = 1000 if logical.endswith("millis") else 1
        return lambda array: _times(array, unit_us, arrow_type(schema))
    kind = schema["type"]
    if kind == "record":
        return _struct_conformer(
            [_conformer(field["type"]) for field in schema["fields"]], arrow_type(schema)
        )
    if kind == "array":
        item = _conformer(schema["items"])
        return None if item is None else lambda array: _list(array, item)
    if kind == "map":
        value = _conformer(schema["values"])
        return None if value is None else lambda array: _map(array, value)
    if kind == "fixed":
        return lambda array: array.cast(pa.binary())
    return None


def _struct_conformer(inner: list[Conform | None], type_: pa.DataType) -> Conform | None:
    if not any(inner):
        return None

    def conform(array: pa.Array) -> pa.Array:
        children = [
            array.field(place) if each is None else each(array.field(place))
            for place, each in enumerate(inner)
        ]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)

    return conform


def _list(array: pa.Array, item: Conform) -> pa.Array:
    values = item(array.values)
    return pa.Array.from_buffers(list_of(values.type), len(array), array.buffers()[:2], offset=array.offset,
                                 children=[values])  # fmt: skip


def _map(array: pa.Array, value: Conform) -> pa.Array:
    values = value(array.items)
    type_ = pa.map_(pa.string(), values.type)
    entries = pa.StructArray.from_arrays([array.keys, values], fields=[type_.key_field, type_.item_field])
    return pa.Array.from_buffers(
        type_, len(array), array.buffers()[:2], offset=array.offset, children=[entries]
    )


def _in_range(array: pa.Array, first: int, last: int, what: str) -> None:
    bounds = pc.min_max(array)
    least, most = bounds["min"].as_py(), bounds["max"].as_py()
    if least is not None and (least < first or most > last):
        raise pa.ArrowInvalid(f"{what} is outside of the years 1 to 9999")


def _dates(array: pa.Array) -> pa.Array:
    _in_range(array, FIRST_DAY, LAST_DAY, "a date")
    return array.view(pa.date32())


def _times(array: pa.Array, unit_us: int, type_: pa.DataType) -> pa.Array:
    _in_range(array, -(-FIRST_US // unit_us), LAST_US // unit_us, "a time")
    return (pc.multiply(array, unit_us) if unit_us > 1 else array).view(type_)


def _decimals(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Of numbers as bytes, the highest first, in two's complement."""
    array = array.cast(pa.binary())
    edges, buffer = edges_of(array)
    sizes = np.diff(edges)
    if not len(array) or (sizes > 16).any() or type_.precision == MOST_DIGITS or (sizes == 0).any():
        return _few_decimals(array, type_)
    octets = np.frombuffer(buffer, np.uint8)
    sign = np.where(octets[edges[:-1]] >= 0x80, 0xFF, 0).astype(np.uint8)
    made = np.empty((len(array), 16), np.uint8)
    for place in range(16):
        at = np.maximum(edges[1:] - 1 - place, 0)
        made[:, place] = np.where(place < sizes, octets[at], sign)
    whole = pa.decimal128(MOST_DIGITS, type_.scale)
    found = pa.Array.from_buffers(whole, len(array), [None, pa.py_buffer(made)])
    return found.cast(type_)


def _few_decimals(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """One by one: with nulls, empty ones, and those of more than 16 bytes."""
    with localcontext() as context:
        context.prec = 2 * MOST_DIGITS
        found = []
        for value in array.to_pylist():
            found.append(None if value is None else _decimal(value, type_.scale))
        return pa.array(found, type_)


def _decimal(data: bytes, scale: int) -> Decimal:
    number = int.from_bytes(data[-_DECIMAL_BYTES:], "big", signed=True)
    if len(data) > _DECIMAL_BYTES and data != number.to_bytes(len(data), "big", signed=True):
        raise pa.ArrowInvalid(f"a decimal of {len(data)} bytes is larger than any that Spark has")
    return Decimal(number).scaleb(-scale)

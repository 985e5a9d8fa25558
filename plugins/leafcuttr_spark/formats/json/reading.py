# pyarrow makes the functions of its module `compute` when it is imported.
# pyright: reportAttributeAccessIssue=false
"""Values that are JSON texts as columns of a type: many at a time by Arrow's reader where the type allows it, else text
by text by Python's.

A field that is absent is null, one that the type does not have is left out. Integers take numbers without a fraction,
`string` takes any value, as its text; `binary` base64; dates and times the forms of ISO 8601, a time without a zone is
UTC; decimals numbers or texts. All else is an error of the record.
"""

import base64
import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from leafcuttr_spark.codec.slices import edges_of
from leafcuttr_spark.formats.pieces import Decoded, PieceError, Pieces
from leafcuttr_spark.formats.types import TIMESTAMP

_NO_NUMBER: Final = re.compile(rb"(?:NaN|Inf(?:inity)?)\s*[],}]")
"""What Arrow's reader takes, and JSON does not have; within a text it only costs time."""
Convert = Callable[[Any, str], Any]
_JOINED: Final = 32 << 20
"""Bytes of texts that are read together."""
_BEGIN, _END, _LIST = ord("{"), ord("}"), ord("[")
_DEEPEST: Final = 500
"""Arrow's reader takes texts of any depth, Python's those of less than 1000."""
_FAST: Final = (pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float64(), pa.string())


class JsonDecoder:
    """Raises ValueError for a type that no JSON text has: a map whose keys are not texts."""

    def __init__(self, type_: pa.DataType) -> None:
        self.type = type_
        convert = converter(type_)
        self._has_floats = _has(type_, kinds.is_floating)
        floats: Any = Decimal if _has(type_, kinds.is_decimal) else float

        def slow(data: bytes) -> Any:
            text = data.decode()
            try:
                value = json.loads(text, parse_constant=_refused, parse_float=floats)
            except json.JSONDecodeError:
                raise
            except ValueError:
                # Python makes no integer of more than 4300 digits, and nobody may have wanted it.
                value = json.loads(text, parse_constant=_refused, parse_float=floats, parse_int=float)
            return convert(value, "")

        self._pieces = Pieces(
            type_, self._fast if _is_fast(type_) else None, slow, lambda objects: pa.array(objects, type_)
        )

    def decode(self, values: pa.Array) -> Decoded:
        """Of a binary array without nulls."""
        return self._pieces.decode(values)

    def _fast(self, values: pa.Array) -> pa.Array:
        from pyarrow import json as arrow_json

        joined = _joined(values)
        try:
            found = arrow_json.read_json(
                pa.BufferReader(joined),
                read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(joined) + 1),
                parse_options=arrow_json.ParseOptions(
                    explicit_schema=pa.schema(list(self.type)), unexpected_field_behavior="ignore"
                ),
            )
        except pa.ArrowException as error:
            raise PieceError(str(error)) from None
        if found.num_rows != len(values):
            raise PieceError("a text has several objects")
        batch = found.combine_chunks()
        columns = [column.chunk(0) for column in batch.columns]
        made = pa.StructArray.from_arrays(columns, fields=list(self.type))
        if self._has_floats and _has_infinite(made):
            raise PieceError("a number is too large")
        return made


def _joined(values: pa.Array) -> Any:
    """All texts, one behind the other. Raises PieceError where some may be no object: each has to begin and end with a
    brace, so that none is without an object, and none goes on in the next one, because between two braces within an
    object there is a comma. Arrow's reader takes line ends between words, not within texts."""
    edges, buffer = edges_of(values)
    octets = np.frombuffer(buffer, np.uint8)
    begin, end = int(edges[0]), int(edges[-1])
    if end - begin > _JOINED or (np.diff(edges) < 2).any():
        raise PieceError("too much at once, or a text that is no object")
    if (octets[edges[:-1]] != _BEGIN).any() or (octets[edges[1:] - 1] != _END).any():
        raise PieceError("a text is no object")
    some = octets[begin:end]
    opened = np.add.reduceat((some == _BEGIN) | (some == _LIST), edges[:-1] - begin, dtype=np.int64)
    if opened.max() > _DEEPEST:
        raise PieceError("a text may be nested deeper than Python reads")
    try:
        texts = values.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise PieceError(str(error)) from None
    lines = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    joined = pc.binary_join(lines, "\n")[0].as_buffer()
    data = joined.to_pybytes()
    # To find a word costs little, by an expression as much as all else.
    if (b"NaN" in data or b"Inf" in data) and _NO_NUMBER.search(data) is not None:
        raise PieceError("a text may have NaN")
    return joined


def _is_fast(type_: pa.DataType) -> bool:
    """Whether Arrow's reader takes what Python's takes, and makes the same of it."""
    return kinds.is_struct(type_) and type_.num_fields > 0 and all(map(_is_fast_inside, type_))


def _is_fast_inside(field: pa.Field) -> bool:
    type_ = field.type
    if kinds.is_struct(type_):
        return _is_fast(type_)
    if kinds.is_list(type_):
        return _is_fast_inside(type_.value_field)
    return type_ in _FAST


def _has(type_: pa.DataType, is_one: Callable[[pa.DataType], bool]) -> bool:
    return is_one(type_) or any(_has(type_.field(place).type, is_one) for place in range(type_.num_fields))


def _has_infinite(array: pa.Array) -> bool:
    if kinds.is_floating(array.type):
        return bool(pc.any(pc.is_inf(array)).as_py())
    return (
        any(map(_has_infinite, array.flatten()))
        if kinds.is_struct(array.type)
        else (kinds.is_list(array.type) and _has_infinite(array.flatten()))
    )


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


# From Python's values to Arrow's


def converter(type_: pa.DataType) -> Convert:
    """Raises ValueError, as do the conversions."""
    if kinds.is_struct(type_):
        return _struct([(field.name, converter(field.type)) for field in type_])
    if kinds.is_map(type_):
        if type_.key_type != pa.string():
            raise ValueError("the keys of a map in JSON are texts: allowed is map<string, ...>")
        return _map(converter(type_.item_type))
    if kinds.is_list(type_):
        return _list(converter(type_.value_type))
    if kinds.is_integer(type_):
        return _integer(1 << type_.bit_width - 1)
    if kinds.is_floating(type_):
        return _leaf("a number", (int, float, Decimal), _float)
    if kinds.is_decimal(type_):
        return _leaf("a number", (int, Decimal, str), _decimal)
    if kinds.is_timestamp(type_):
        return _leaf("a text as 2026-01-31T10:00:00Z", (str,), _time if type_ == TIMESTAMP else _local_time)
    return {
        pa.bool_(): _leaf("true or false", (bool,), bool),
        pa.string(): _text,
        pa.binary(): _leaf("base64", (str,), lambda value: base64.b64decode(value, validate=True)),
        pa.date32(): _leaf("a text as 2026-01-31", (str,), date.fromisoformat),
        pa.null(): _leaf("null", (), bool),
    }[type_]


def _wrong(path: str, wanted: str, value: Any) -> ValueError:
    shown = json.dumps(value, default=str)
    return ValueError(f"{path or 'the value'} is {shown[:40]}, where {wanted} is expected")


def _leaf(wanted: str, kinds_: tuple[type, ...], make: Callable[[Any], Any]) -> Convert:
    def convert(value: Any, path: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, kinds_) or (isinstance(value, bool) and bool not in kinds_):
            raise _wrong(path, wanted, value)
        try:
            return make(value)
        except (ValueError, OverflowError, InvalidOperation):
            raise _wrong(path, wanted, value) from None

    return convert


def _integer(end: int) -> Convert:
    def make(value: Any) -> int:
        number = int(value)
        if number != value or not -end <= number < end:
            raise ValueError
        return number

    return _leaf(f"an integer from {-end} to {end - 1}", (int, float, Decimal), make)


def _float(value: Any) -> float:
    found = float(value)
    if not isfinite(found):
        raise ValueError
    return found


def _decimal(value: Any) -> Decimal:
    found = Decimal(value)
    if not found.is_finite():
        raise ValueError
    return found


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _local_time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is not None:
        raise ValueError
    return found


def _text(value: Any, path: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=float)


def _struct(fields: list[tuple[str, Convert]]) -> Convert:
    def convert(value: Any, path: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _wrong(path, "an object", value)
        return {
            name: each(value[name], f"{path}.{name}" if path else name) if name in value else None
            for name, each in fields
        }

    return convert


def _map(inner: Convert) -> Convert:
    def convert(value: Any, path: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _wrong(path, "an object", value)
        return [(key, inner(each, f"{path}[{key[:20]!r}]")) for key, each in value.items()]

    return convert


def _list(inner: Convert) -> Convert:
    def convert(value: Any, path: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, list):
            raise _wrong(path, "an array", value)
        return [inner(each, f"{path}[{place}]") for place, each in enumerate(value)]

    return convert

# pyarrow makes the functions of its module `compute` when it is imported.
# pyright: reportAttributeAccessIssue=false
"""Columns to JSON texts, the other way around of `reading`: the text of each field of all rows, and one join of them.

Each field of a row is in its object, null ones too. Numbers that are none are refused.
"""

import base64
import json
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from leafcuttr_spark.codec.slices import edges_of
from leafcuttr_spark.formats.pieces import PieceError
from leafcuttr_spark.formats.types import ddl

_QUOTE, _BACKSLASH, _BLANK = ord('"'), ord("\\"), ord(" ")
_NULL: Final = pa.scalar("null")


def json_writer(type_: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    """Bytes of each element, null ones too. Raises PieceError for an array with one that has no text."""

    def write(array: pa.Array) -> pa.Array:
        try:
            return _text(array).cast(pa.binary())
        except pa.ArrowInvalid as error:
            raise PieceError(str(error)) from None

    return write


def _text(column: pa.Array) -> pa.Array:
    """`null` for null."""
    type_ = column.type
    if kinds.is_null(type_):
        return pa.repeat(_NULL, len(column))
    text = _WRITERS[_kind(type_)](column)
    return pc.if_else(column.is_valid(), text, _NULL) if column.null_count else text


def _kind(type_: pa.DataType) -> str:
    for name, is_one in _KINDS.items():
        if is_one(type_):
            return name
    raise PieceError(f"JSON has nothing for {ddl(type_)}")


def _joined(*pieces: Any) -> pa.Array:
    return pc.binary_join_element_wise(*pieces, "")


def _objects(array: pa.Array) -> pa.Array:
    if not array.type.num_fields:
        return pa.repeat(pa.scalar("{}"), len(array))
    pieces: list[Any] = []
    before = "{"
    for place, field in enumerate(array.type):
        pieces.append(pa.scalar(f"{before}{json.dumps(field.name, ensure_ascii=False)}:"))
        pieces.append(_text(array.field(place)))
        before = ","
    return _joined(*pieces, pa.scalar("}"))


def _lists(array: pa.Array) -> pa.Array:
    edges = np.asarray(pc.fill_null(pc.list_value_length(array), 0), np.int64)
    return _joined(pa.scalar("["), _listed(edges, _text(array.flatten())), pa.scalar("]"))


def _maps(array: pa.Array) -> pa.Array:
    lists = array.cast(pa.list_(pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])))
    entries = lists.flatten()
    keys = entries.field(0) if entries.field(0).type == pa.string() else entries.field(0).cast(pa.string())
    items = _joined(_strings(keys), pa.scalar(":"), _text(entries.field(1)))
    counts = np.asarray(pc.fill_null(pc.list_value_length(lists), 0), np.int64)
    return _joined(pa.scalar("{"), _listed(counts, items), pa.scalar("}"))


def _listed(counts: Any, items: pa.Array) -> pa.Array:
    edges = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=edges[1:])
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(edges), items), ",")


def _strings(column: pa.Array) -> pa.Array:
    edges, buffer = edges_of(column.cast(pa.binary()))
    octets = np.frombuffer(buffer, np.uint8)[edges[0] : edges[-1]]
    if (octets < _BLANK).any():
        texts = [None if one is None else json.dumps(one, ensure_ascii=False) for one in column.to_pylist()]
        return pa.array(texts, pa.string())
    if (octets == _BACKSLASH).any():
        column = pc.replace_substring(column, "\\", "\\\\")
    if (octets == _QUOTE).any():
        column = pc.replace_substring(column, '"', '\\"')
    return _joined(pa.scalar('"'), column, pa.scalar('"'))


def _floats(column: pa.Array) -> pa.Array:
    if not pc.all(pc.is_finite(column), min_count=0).as_py():
        raise PieceError("a number is NaN or infinite, which JSON does not have")
    return column.cast(pa.string())


def _binary(column: pa.Array) -> pa.Array:
    texts = [None if one is None else f'"{base64.b64encode(one).decode()}"' for one in column.to_pylist()]
    return pa.array(texts, pa.string())


def _dates(column: pa.Array) -> pa.Array:
    return _joined(pa.scalar('"'), column.cast(pa.string()), pa.scalar('"'))


def _times(column: pa.Array) -> pa.Array:
    """By Python: years below 1000 have four digits."""
    made = [
        None if one is None else f'"{one.isoformat().replace("+00:00", "Z")}"' for one in column.to_pylist()
    ]
    return pa.array(made, pa.string())


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(pa.string())


_KINDS: Final[dict[str, Callable[[pa.DataType], bool]]] = {
    "struct": kinds.is_struct,
    "map": kinds.is_map,
    "list": kinds.is_list,
    "string": kinds.is_string,
    "float": kinds.is_floating,
    "binary": kinds.is_binary,
    "date": kinds.is_date,
    "time": kinds.is_timestamp,
    "boolean": kinds.is_boolean,
    "integer": kinds.is_integer,
    "decimal": kinds.is_decimal,
}
_WRITERS: Final[dict[str, Callable[[pa.Array], pa.Array]]] = {
    "struct": _objects,
    "map": _maps,
    "list": _lists,
    "string": _strings,
    "float": _floats,
    "binary": _binary,
    "date": _dates,
    "time": _times,
    "boolean": _plain,
    "integer": _plain,
    "decimal": _plain,
}

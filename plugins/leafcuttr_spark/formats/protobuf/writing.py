"""Columns to data of messages of Protobuf, row by row: google.protobuf makes each message of the row's objects."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from leafcuttr_sdk.schemas import SchemaError
from leafcuttr_spark.formats.pieces import PieceError, line_of
from leafcuttr_spark.formats.protobuf import schema as schemas
from leafcuttr_spark.formats.types import ddl

Value = Callable[[Any], Any]


def protobuf_writer(message: Descriptor, type_: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    """Bytes of each element, none of which is null. Raises SchemaError where rows of this type are no such messages;
    what it returns raises PieceError for an array with one that is none."""
    make = _maker(message, type_, "", frozenset())

    def write(array: pa.Array) -> pa.Array:
        made = []
        for row in array.to_pylist(maps_as_pydicts="lossy"):
            if row is None:
                raise PieceError("the value is null, which a message of Protobuf cannot be")
            try:
                made.append(make(row).SerializeToString())
            except Exception as error:
                raise PieceError(line_of(error)) from None
        return pa.array(made, pa.binary())

    return write


def _maker(message: Descriptor, type_: pa.DataType, path: str, open_: frozenset[str]) -> Value:
    if not kinds.is_struct(type_):
        raise SchemaError(f"the column {path or 'value'} is {ddl(type_)}, and its schema has a message")
    make: Any = message_factory.GetMessageClass(message)
    inside = open_ | {message.full_name}
    fields: list[tuple[str, Value]] = []
    for field in type_:
        place = f"{path}.{field.name}" if path else field.name
        of = message.fields_by_name.get(field.name)
        if of is None:
            raise SchemaError(f"the message {message.full_name} has no field for the column {place}")
        fields.append((field.name, _value(of, field.type, place, inside)))

    def build(row: Any) -> Any:
        return make(**{name: value(row[name]) for name, value in fields if row[name] is not None})

    return build


def _value(field: FieldDescriptor, type_: pa.DataType, path: str, open_: frozenset[str]) -> Value:
    if (entry := schemas.map_entry(field)) is not None:
        if not kinds.is_map(type_):
            raise SchemaError(f"the column {path} is {ddl(type_)}, and its schema has a map")
        value = _one(entry["value"], type_.item_type, path, open_)
        return lambda given: {key: value(each) for key, each in given.items()}
    if schemas.is_repeated(field):
        if not kinds.is_list(type_):
            raise SchemaError(f"the column {path} is {ddl(type_)}, and its schema has a repeated field")
        item = _one(field, type_.value_type, path, open_)
        return lambda given: [item(each) for each in given]
    return _one(field, type_, path, open_)


def _one(field: FieldDescriptor, type_: pa.DataType, path: str, open_: frozenset[str]) -> Value:
    message = field.message_type
    if message is None:
        wanted = schemas.field_type_of_one(field)
        if not _takes(wanted, type_):
            raise SchemaError(f"the column {path} is {ddl(type_)}, and its schema has {ddl(wanted)}")
        return int if kinds.is_decimal(type_) else _as_it_is
    if message.full_name == schemas.TIMESTAMP_NAME and kinds.is_timestamp(type_):
        make: Any = message_factory.GetMessageClass(message)
        return lambda given: _timestamp(make(), given)
    if message.full_name in schemas.WRAPPERS:
        inner = _one(message.fields_by_name["value"], type_, path, open_)
        wrap: Any = message_factory.GetMessageClass(message)
        return lambda given: wrap(value=inner(given))
    if schemas.is_json_text(message, open_) and type_ == pa.string():
        parsed: Any = message_factory.GetMessageClass(message)
        return lambda given: json_format.Parse(given, parsed())
    return _maker(message, type_, path, open_)


def _takes(wanted: pa.DataType, given: pa.DataType) -> bool:
    if kinds.is_signed_integer(wanted) and kinds.is_signed_integer(given):
        return bool(given.bit_width <= wanted.bit_width)
    if kinds.is_floating(wanted) and kinds.is_floating(given):
        return bool(given.bit_width <= wanted.bit_width)
    if kinds.is_decimal(wanted):
        return kinds.is_signed_integer(given) or (kinds.is_decimal(given) and not given.scale)
    return bool(wanted == given)


def _as_it_is(value: Any) -> Any:
    return value


def _timestamp(message: Any, time: datetime) -> Any:
    message.FromDatetime(time)
    return message

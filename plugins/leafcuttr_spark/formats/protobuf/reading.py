"""Data of messages of Protobuf as columns, message by message: parsed by google.protobuf, then column by column.

Whatever schema a message was written by, it is parsed by the reader's: fields are known by their numbers. The writer's
says which message it is.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor

from leafcuttr_sdk.http_schemas.memory import Bounded
from leafcuttr_sdk.schema_framing import read_indexes
from leafcuttr_sdk.schemas import DataError, RegisteredSchema, SchemaError
from leafcuttr_spark.codec.slices import edges_of, take_slices
from leafcuttr_spark.formats.pieces import Decoded, Pieces
from leafcuttr_spark.formats.protobuf import schema as schemas
from leafcuttr_spark.formats.registry import RegistrySchemas
from leafcuttr_spark.formats.types import FIRST_US, LAST_US

Column = Callable[[list[Any]], pa.Array]
"""A column of messages, of which some are None."""
Value = Callable[[Any], Any]
DecodeSome = Callable[[pa.Array, bytes], Decoded]
_NUMBERS_KEPT: Final = 100


class ProtobufReading:
    """The message that rows have. Raises SchemaError."""

    def __init__(self, schema: bytes, message: str | None) -> None:
        self._message = schemas.message_of(schemas.files_of(schema), message)
        self.type = schemas.arrow_type_of(self._message)
        self._pieces = pieces_of(self._message, self.type)

    def bare(self) -> DecodeSome:
        return lambda data, _: self._pieces.decode(data)

    def written_by(
        self, schema: RegisteredSchema, subject: str | None, registry: RegistrySchemas
    ) -> DecodeSome:
        """Raises SchemaError."""
        data = registry.waited(lambda: schemas.descriptor_set(registry.client, schema, subject))
        writer = schemas.files_of(data)[-1]
        return _Written(writer, self._message, self._pieces).decode


class _Written:
    """Data with paths to one of a schema's messages, in front of them or in a header."""

    def __init__(self, writer: FileDescriptor, message: Descriptor, pieces: Pieces) -> None:
        self._writer = writer
        self._message = message
        self._pieces = pieces
        self._paths: Bounded[bytes, str] = Bounded(_NUMBERS_KEPT)
        """What is wrong with a path; empty for one that leads to the message."""

    def decode(self, data: pa.Array, header_path: bytes) -> Decoded:
        if header_path:
            wrong = self._wrong(header_path)
            return self._pieces.decode(data) if not wrong else _all_wrong(data, self._pieces.type, wrong)
        edges, buffer = edges_of(data)
        view = memoryview(buffer)
        errors: dict[int, str] = {}
        skips = []
        for row, (begin, end) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
            if begin < end and not view[begin]:
                path, size = b"\0", 1
            else:
                try:
                    _, size = read_indexes(bytes(view[begin : min(end, begin + 400)]))
                except DataError as error:
                    errors[row] = str(error)
                    skips.append(0)
                    continue
                path = bytes(view[begin : begin + size])
            if wrong := self._wrong(path):
                errors[row] = wrong
            skips.append(size)
        starts = edges[:-1] + skips
        found = self._pieces.decode(take_slices(buffer, starts, edges[1:] - starts))
        # What is wrong with the path is said rather than what came of its data.
        all_errors = found.errors | errors
        if not errors:
            return found
        mask = [row in all_errors for row in range(len(data))]
        places = pa.array(range(len(data)), pa.int64(), mask=pa.array(mask).to_numpy(zero_copy_only=False))
        return Decoded(found.values.take(places), all_errors)

    def _wrong(self, path: bytes) -> str:
        known = self._paths.get(path)
        if known is None:
            try:
                written = schemas.message_at(self._writer, read_indexes(path)[0]).full_name
                same = written == self._message.full_name
                known = (
                    "" if same else f"it is a message {written}, where {self._message.full_name} is expected"
                )
            except (DataError, SchemaError) as error:
                known = str(error)
            self._paths.put(path, known)
        return known


def _all_wrong(data: pa.Array, type_: pa.DataType, line: str) -> Decoded:
    return Decoded(pa.nulls(len(data), type_), dict.fromkeys(range(len(data)), line))


def pieces_of(message: Descriptor, type_: pa.DataType) -> Pieces:
    """Decodes data of this message."""
    parse: Any = message_factory.GetMessageClass(message).FromString
    column = _struct(message, type_, frozenset())

    def slow(data: bytes) -> Any:
        found = parse(data)
        if not found.IsInitialized():
            raise ValueError(f"a message {message.full_name} lacks required fields")
        return found

    return Pieces(type_, None, slow, column)


# Columns of messages


def _struct(message: Descriptor, type_: pa.DataType, open_: frozenset[str]) -> Column:
    inside = open_ | {message.full_name}
    columns = [_column(each, of.type, inside) for each, of in zip(message.fields, type_, strict=True)]

    def build(messages: list[Any]) -> pa.Array:
        arrays = [make(messages) for make in columns]
        absent = [each is None for each in messages]
        mask = pa.array(absent, pa.bool_()) if any(absent) else None
        if not arrays:
            return pa.array([None if each is None else {} for each in messages], type_)
        return pa.StructArray.from_arrays(arrays, fields=list(type_), mask=mask)

    return build


def _column(field: FieldDescriptor, type_: pa.DataType, open_: frozenset[str]) -> Column:
    name = field.name
    if (entry := schemas.map_entry(field)) is not None:
        key, value = _value(entry["key"], open_), _value(entry["value"], open_)

        def maps(messages: list[Any]) -> pa.Array:
            made = [
                None if one is None else [(key(k), value(v)) for k, v in getattr(one, name).items()]
                for one in messages
            ]
            return pa.array(made, type_)

        return maps
    one_value = _value(field, open_)
    if schemas.is_repeated(field):

        def lists(messages: list[Any]) -> pa.Array:
            made = [None if one is None else list(map(one_value, getattr(one, name))) for one in messages]
            return pa.array(made, type_)

        return lists
    if field.message_type is not None and pa.types.is_struct(type_):
        inner = _struct(field.message_type, type_, open_)

        def structs(messages: list[Any]) -> pa.Array:
            return inner(
                [None if one is None or not one.HasField(name) else getattr(one, name) for one in messages]
            )

        return structs
    present = field.has_presence

    def leaves(messages: list[Any]) -> pa.Array:
        made = [
            None if one is None or (present and not one.HasField(name)) else one_value(getattr(one, name))
            for one in messages
        ]
        return pa.array(made, type_)

    return leaves


def _value(field: FieldDescriptor, open_: frozenset[str]) -> Value:
    """What Arrow takes, of what protobuf gives."""
    message = field.message_type
    if message is not None:
        return _message_value(message, open_)
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        # A number that the reader's schema has no name for, of an open enum.
        return lambda number: names.get(number, str(number))
    if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64:
        return Decimal
    return lambda value: value


def _message_value(message: Descriptor, open_: frozenset[str]) -> Value:
    if message.full_name == schemas.TIMESTAMP_NAME:
        return _microseconds
    if message.full_name in schemas.WRAPPERS:
        inner = _value(message.fields_by_name["value"], open_)
        return lambda one: inner(one.value)
    if schemas.is_json_text(message, open_):
        return _json_text
    inside = open_ | {message.full_name}
    fields = [(each.name, _field_value(each, inside)) for each in message.fields]
    return lambda one: {name: read(one) for name, read in fields}


def _field_value(field: FieldDescriptor, open_: frozenset[str]) -> Value:
    """Of a message within a list or map."""
    name = field.name
    if (entry := schemas.map_entry(field)) is not None:
        key, inner = _value(entry["key"], open_), _value(entry["value"], open_)
        return lambda one: [(key(k), inner(v)) for k, v in getattr(one, name).items()]
    value = _value(field, open_)
    if schemas.is_repeated(field):
        return lambda one: list(map(value, getattr(one, name)))
    if field.has_presence:
        return lambda one: value(getattr(one, name)) if one.HasField(name) else None
    return lambda one: value(getattr(one, name))


def _microseconds(one: Any) -> int:
    found: int = one.seconds * 1_000_000 + one.nanos // 1000
    if not FIRST_US <= found <= LAST_US:
        raise ValueError("a time is outside of the years 1 to 9999")
    return found


def _json_text(one: Any) -> str:
    text: str = json_format.MessageToJson(
        one, indent=None, preserving_proto_field_name=True, ensure_ascii=False
    )
    return text

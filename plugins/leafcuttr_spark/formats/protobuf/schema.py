"""Messages of Protobuf: their descriptors from a descriptor set or from a registry, and the type that they have in
Arrow.

A registry gives descriptors instead of `.proto` texts where it is requested (`format=serialized`), as Confluent's
client in Python does. A pool has the files of one schema: nothing of it gets into the one that the process shares.

Types: unsigned numbers are the next wider ones, an enum is the name of its value, wrappers of the well-known types are
what they wrap, `Timestamp` is a time; messages within themselves, and those of JSON, are JSON texts. A field without a
presence of its own has its default, any other is null where it is absent.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from google.protobuf import (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from leafcuttr_sdk.http_schemas import HttpRegistry
from leafcuttr_sdk.schemas import RegisteredSchema, SchemaError
from leafcuttr_spark.formats.types import DEEPEST, MOST_FIELDS, TIMESTAMP, list_of

_KNOWN: Final = (
    any_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
    type_pb2,
    api_pb2,
)
_MOST_FILES: Final = 1000
ROOT: Final = "leafcuttr-root.proto"
TIMESTAMP_NAME: Final = "google.protobuf.Timestamp"
WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_JSON_NAMES: Final = frozenset(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))
_TYPES: Final = {
    FieldDescriptor.CPPTYPE_BOOL: pa.bool_(),
    FieldDescriptor.CPPTYPE_INT32: pa.int32(),
    FieldDescriptor.CPPTYPE_UINT32: pa.int64(),
    FieldDescriptor.CPPTYPE_INT64: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT64: pa.decimal128(20, 0),
    FieldDescriptor.CPPTYPE_FLOAT: pa.float32(),
    FieldDescriptor.CPPTYPE_DOUBLE: pa.float64(),
    FieldDescriptor.CPPTYPE_ENUM: pa.string(),
}


def descriptor_set(client: HttpRegistry, schema: RegisteredSchema, subject: str | None = None) -> bytes:
    """The files of a schema, each behind those that it imports. Raises SchemaError, and as `HttpRegistry`."""
    found = FileDescriptorSet()
    seen: set[str] = set()
    _add(client, schema, ROOT, subject, found, seen)
    return found.SerializeToString()


def _add(
    client: HttpRegistry,
    schema: RegisteredSchema,
    name: str,
    subject: str | None,
    found: FileDescriptorSet,
    seen: set[str],
) -> None:
    seen.add(name)
    if len(seen) > _MOST_FILES:
        raise SchemaError(f"the schema imports more than {_MOST_FILES} files")
    for each in schema.references:
        if each.name not in seen:
            imported = client.by_version(each.subject, each.version).schema
            _add(client, imported, each.name, subject, found, seen)
    text = client.formatted(schema.id, "serialized", subject)
    try:
        proto = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (DecodeError, binascii.Error, ValueError):
        raise SchemaError(
            f"the registry gives no descriptor of schema {schema.id}: give a descriptor set as the schema"
        ) from None
    proto.name = name
    found.file.append(proto)


def files_of(data: bytes) -> list[FileDescriptor]:
    """The files of a descriptor set in a pool of their own, in its order. Raises SchemaError."""
    try:
        given = FileDescriptorSet.FromString(data)
    except DecodeError:
        raise SchemaError("it is no descriptor set, as protoc --descriptor_set_out writes it") from None
    pool: Any = DescriptorPool()
    wanted = {name for file in given.file for name in file.dependency} - {file.name for file in given.file}
    # Those that import others are the last ones. What is not imported may be defined by the set itself.
    known = {module.DESCRIPTOR.name: module.DESCRIPTOR for module in _KNOWN}
    for name, one in reversed(known.items()):
        if name in wanted:
            wanted |= {each.name for each in one.dependencies}
    for name, one in known.items():
        if name in wanted:
            pool.AddSerializedFile(one.serialized_pb)
    try:
        for file in _in_order(list(given.file)):
            pool.AddSerializedFile(file.SerializeToString())
        return [pool.FindFileByName(file.name) for file in given.file]
    except (TypeError, KeyError) as error:
        raise SchemaError(f"protobuf refuses the schema: {' '.join(str(error).split())[:200]}") from None


def _in_order(files: list[FileDescriptorProto]) -> list[FileDescriptorProto]:
    """Each behind those that it imports."""
    by_name = {file.name: file for file in files}
    found: dict[str, FileDescriptorProto] = {}
    left = [(file.name, False) for file in reversed(files)]
    while left:
        name, done = left.pop()
        if done:
            found.setdefault(name, by_name[name])
        elif name not in found and name in by_name:
            left.append((name, True))
            left += [(each, False) for each in by_name[name].dependency if each not in found]
            if len(left) > _MOST_FILES * _MOST_FILES:
                raise SchemaError("the files of the schema import each other in a circle")
    return list(found.values())


def message_of(files: list[FileDescriptor], name: str | None) -> Descriptor:
    """The message of this full name, or the first one of the last file. Raises SchemaError."""
    if name is None:
        first: list[Descriptor] = list(files[-1].message_types_by_name.values()) if files else []
        if not first:
            raise SchemaError("the schema has no message")
        return first[0]
    for file in files:
        try:
            found: Descriptor = file.pool.FindMessageTypeByName(name)
            return found
        except KeyError:
            break
    some = (file for file in files if not file.name.startswith("google/protobuf/"))
    known = sorted({each.full_name for file in some for each in file.message_types_by_name.values()})
    raise SchemaError(f"the schema has no message {name}; it has {', '.join(known)[:300]}")


def path_of(message: Descriptor) -> tuple[int, ...]:
    """The path of indexes that leads to a message of its file."""
    outer = message.containing_type
    if outer is None:
        return (list(message.file.message_types_by_name.values()).index(message),)
    return (*path_of(outer), list(outer.nested_types).index(message))


def message_at(file: FileDescriptor, path: tuple[int, ...]) -> Descriptor:
    """The message that a path of indexes leads to. Raises SchemaError."""
    some: list[Descriptor] = list(file.message_types_by_name.values())
    found: Descriptor | None = None
    for index in path:
        if index >= len(some):
            raise SchemaError(f"its schema has no message at the path {list(path)}")
        found = some[index]
        some = list(found.nested_types)
    assert found is not None
    return found


def is_json_text(message: Descriptor, open_: frozenset[str]) -> bool:
    """Whether messages of this kind are JSON texts in a column."""
    return message.full_name in _JSON_NAMES or message.full_name in open_


def map_entry(field: FieldDescriptor) -> Mapping[str, FieldDescriptor] | None:
    """The fields `key` and `value` of a map; None for any other field."""
    kind = field.message_type
    if kind is None or not is_repeated(field) or not kind.GetOptions().map_entry:
        return None
    found: Mapping[str, FieldDescriptor] = kind.fields_by_name
    return found


def is_repeated(field: FieldDescriptor) -> bool:
    if hasattr(field, "is_repeated"):
        return bool(field.is_repeated)
    return getattr(field, "label", None) == FieldDescriptor.LABEL_REPEATED  # before protobuf 6.31


def arrow_type_of(message: Descriptor) -> pa.DataType:
    """Raises SchemaError."""
    return _Reader().struct(message, frozenset(), 0)


def field_type_of_one(field: FieldDescriptor) -> pa.DataType:
    """Of a field that is no message; of one value where it is repeated."""
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return pa.string() if field.type == FieldDescriptor.TYPE_STRING else pa.binary()
    return _TYPES[field.cpp_type]


class _Reader:
    def __init__(self) -> None:
        self._fields = 0

    def struct(self, message: Descriptor, open_: frozenset[str], depth: int) -> pa.DataType:
        self._fields += len(message.fields)
        if self._fields > MOST_FIELDS or depth > DEEPEST:
            raise SchemaError(f"the schema has more than {MOST_FIELDS} fields, those of repeated messages counted each"
                              f" time, or messages deeper than {DEEPEST}")  # fmt: skip
        inside = open_ | {message.full_name}
        return pa.struct([pa.field(each.name, self.field(each, inside, depth)) for each in message.fields])

    def field(self, field: FieldDescriptor, open_: frozenset[str], depth: int) -> pa.DataType:
        if (entry := map_entry(field)) is not None:
            key, value = (self._one(entry[name], open_, depth) for name in ("key", "value"))
            return pa.map_(key, value)
        one = self._one(field, open_, depth)
        return list_of(one) if is_repeated(field) else one

    def _one(self, field: FieldDescriptor, open_: frozenset[str], depth: int) -> pa.DataType:
        message = field.message_type
        if message is None:
            return field_type_of_one(field)
        if message.full_name == TIMESTAMP_NAME:
            return TIMESTAMP
        if message.full_name in WRAPPERS:
            return self._one(message.fields_by_name["value"], open_, depth)
        if is_json_text(message, open_):
            return pa.string()
        return self.struct(message, open_, depth + 1)

"""Descriptors that are known to be right, those that are built in: their symbols, without a tree and without checks."""

from functools import lru_cache
from typing import NamedTuple

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from leafcuttr_registry.protobuf.builtin import MODULES, builtin_descriptor
from leafcuttr_registry.protobuf.model import (
    REQUIRED,
    TYPE_GROUP,
    EnumInfo,
    FieldInfo,
    MessageInfo,
    Other,
    Source,
    Symbol,
)


class Adopted(NamedTuple):
    """A file and its symbols; shared by all schemas that import it, and changed by none."""

    source: Source
    symbols: dict[str, Symbol]


@lru_cache(maxsize=len(MODULES))
def adopted(name: str) -> Adopted:
    """A file of `MODULES`, with those that it imports."""
    proto = builtin_descriptor(name)
    source = Source(name, root=False, proto=proto)
    imports = [adopted(each) for each in proto.dependency]
    source.imports = [each.source for each in imports]
    source.public = [source.imports[index] for index in proto.public_dependency]
    source.visible = {source, *source.imports}
    symbols = _Adopter(source).adopt(proto)
    known = {
        symbol_name: symbol for each in imports for symbol_name, symbol in each.symbols.items()
    } | symbols
    for field in (*source.fields, *source.extensions):
        if field.proto.type_name:
            found = known[field.proto.type_name[1:]]
            assert isinstance(found, (MessageInfo, EnumInfo))
            field.type = found
    for field in source.extensions:
        extended = known[field.proto.extendee[1:]]
        assert isinstance(extended, MessageInfo)
        field.message = extended
    return Adopted(source, symbols)


class _Adopter:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._symbols: dict[str, Symbol] = {}

    def adopt(self, proto: FileDescriptorProto) -> dict[str, Symbol]:
        prefix = f"{proto.package}." if proto.package else ""
        for message in proto.message_type:
            self._message(message, prefix, None)
        for enum in proto.enum_type:
            self._enum(enum, prefix)
        for extension in proto.extension:
            self._extension(extension, prefix)
        for service in proto.service:
            self._other(prefix + service.name, "service")
        return self._symbols

    def _other(self, name: str, what: str) -> None:
        self._symbols[name] = Other(name, self._source, what)

    def _message(self, proto: DescriptorProto, prefix: str, parent: MessageInfo | None) -> None:
        name = prefix + proto.name
        info = MessageInfo(name, self._source, proto, None, parent, map_entry=proto.options.map_entry)
        self._symbols[name] = info
        self._source.messages.append(info)
        if parent is not None:
            parent.children.append(info)
        for field in proto.field:
            field_info = FieldInfo(f"{name}.{field.name}", self._source, field, None, info)
            field_info.required = field.label == REQUIRED
            field_info.delimited = field.type == TYPE_GROUP
            info.fields[field.name] = field_info
            self._symbols[field_info.name] = field_info
            self._source.fields.append(field_info)
        for oneof in proto.oneof_decl:
            self._other(f"{name}.{oneof.name}", "oneof")
        for nested in proto.nested_type:
            self._message(nested, f"{name}.", info)
        for enum in proto.enum_type:
            info.enums.append(self._enum(enum, f"{name}."))
        for extension in proto.extension:
            self._extension(extension, f"{name}.")

    def _enum(self, proto: EnumDescriptorProto, prefix: str) -> EnumInfo:
        info = EnumInfo(prefix + proto.name, self._source, proto)
        info.closed = self._source.proto.syntax in ("", "proto2")
        self._symbols[info.name] = info
        self._source.enums.append(info)
        for value in proto.value:
            info.values[value.name] = value.number
            self._other(prefix + value.name, "constant")
        return info

    def _extension(self, proto: FieldDescriptorProto, prefix: str) -> None:
        info = FieldInfo(prefix + proto.name, self._source, proto, extension=True)
        self._symbols[info.name] = info
        self._source.extensions.append(info)

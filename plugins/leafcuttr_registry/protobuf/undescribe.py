"""From a descriptor to the tree of the `.proto` text that says the same, as far as texts can say it.

Entries of maps stay messages of their own, with the option `map_entry`, as Confluent's registry writes them: clients
that register descriptors count them in message indexes.
"""

import re
from functools import lru_cache
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from leafcuttr_registry.protobuf import tree
from leafcuttr_registry.protobuf.lexer import unquoted
from leafcuttr_registry.protobuf.messages import MAX_NESTING
from leafcuttr_registry.protobuf.model import (
    OPTIONAL,
    REPEATED,
    REQUIRED,
    SCALAR_NAMES,
    TYPE_BOOL,
    TYPE_BYTES,
    TYPE_DOUBLE,
    TYPE_ENUM,
    TYPE_FLOAT,
    TYPE_GROUP,
    TYPE_STRING,
)
from leafcuttr_sdk.schemas import SchemaError

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FULL_NAME: Final = re.compile(r"\.?[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_VISIBILITY: Final = {0: None, 1: "local", 2: "export"}
_EDITIONS: Final = {1000: "2023", 1001: "2024"}


@lru_cache(maxsize=1)
def plain_class() -> Any:
    """FileDescriptorProto without any extension: custom options are unknown fields there, whatever else the process
    has loaded."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(descriptor_pb2.DESCRIPTOR.serialized_pb)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("google.protobuf.FileDescriptorProto"))


def tree_of(proto: Any) -> tree.File:
    """`proto` is one of `plain_class`. Raises SchemaError for a descriptor that no text can give."""
    file = tree.File()
    if proto.syntax in ("", "proto2", "proto3"):
        file.syntax = proto.syntax or None
    elif proto.syntax == "editions" and proto.edition in _EDITIONS:
        file.edition = _EDITIONS[proto.edition]
    else:
        raise SchemaError(f"the descriptor has the syntax {proto.syntax[:40]!r}, edition {proto.edition}")
    if proto.package:
        file.package = _full_name(proto.package)
    _imports(proto, file)
    file.options = _options(proto)
    messages = {each.name: _message(each, file, 1) for each in proto.message_type}
    if len(messages) != len(proto.message_type):
        raise SchemaError("the descriptor has two messages of the same name")
    extends = _extends(proto, file, messages)
    file.body.extend(messages.values())
    file.body.extend(_enum(each, file) for each in proto.enum_type)
    file.body.extend(extends)
    for service in proto.service:
        node = tree.RpcService(_identifier(service.name), -1, options=_options(service))
        file.body.append(node)
        for method in service.method:
            node.methods.append(
                tree.Method(
                    _identifier(method.name),
                    -1,
                    _full_name(method.input_type),
                    _full_name(method.output_type),
                    method.client_streaming,
                    method.server_streaming,
                    _options(method),
                    method.HasField("options"),
                )
            )
    return file


def _imports(proto: Any, file: tree.File) -> None:
    public, weak = set(proto.public_dependency), set(proto.weak_dependency)
    for index, name in enumerate(proto.dependency):
        kind: tree.ImportKind = "public" if index in public else "weak" if index in weak else ""
        file.imports.append(tree.Import(name, kind, -1))
    for name in proto.option_dependency:
        file.imports.append(tree.Import(name, "option", -1))


def _identifier(name: str) -> str:
    if _IDENTIFIER.fullmatch(name) is None:
        raise SchemaError(f"the descriptor has the name {name[:40]!r}, which is no identifier")
    return name


def _full_name(name: str) -> str:
    if _FULL_NAME.fullmatch(name) is None:
        raise SchemaError(f"the descriptor has the type {name[:40]!r}, which is no name")
    return name


def _options(proto: Any) -> list[tree.Option]:
    if not proto.HasField("options"):
        return []
    return [tree.Encoded((), tree.Word(""), -1, proto.options.SerializeToString())]


def _message(proto: Any, file: tree.File, depth: int) -> tree.Message:
    if depth > MAX_NESTING:
        raise SchemaError(f"messages are nested more than {MAX_NESTING} deep")
    message = tree.Message(_identifier(proto.name), -1, options=_options(proto))
    message.visibility = _VISIBILITY.get(proto.visibility)
    nested = {each.name: _message(each, file, depth + 1) for each in proto.nested_type}
    if len(nested) != len(proto.nested_type):
        raise SchemaError(f"{message.name} has two messages of the same name within it")
    synthetic = {field.oneof_index for field in proto.field if field.proto3_optional}
    oneofs = [tree.Oneof(_identifier(each.name), -1, options=_options(each)) for each in proto.oneof_decl]
    message.oneofs = [each for index, each in enumerate(oneofs) if index not in synthetic]
    for each in proto.field:
        field = _field(each, file, nested)
        if each.HasField("oneof_index") and not each.proto3_optional:
            if not 0 <= each.oneof_index < len(oneofs):
                raise SchemaError(f"{message.name}.{field.name} is of a oneof that does not exist")
            field.oneof = oneof = oneofs[each.oneof_index]
            oneof.fields.append(field)
            field.label = None
        message.body.append(field)
    extends = _extends(proto, file, nested)
    message.body.extend(nested.values())
    message.body.extend(_enum(each, file) for each in proto.enum_type)
    message.body.extend(extends)
    for each in proto.extension_range:
        message.extensions.append(tree.Extensions([_range(each.start, each.end - 1)], _options(each)))
    for each in proto.reserved_range:
        message.reserved.append(tree.Reserved([_range(each.start, each.end - 1)], []))
    _reserved_names(message.reserved, proto.reserved_name, file)
    return message


def _range(start: int, end: int) -> tree.Range:
    return tree.Range(start, end, -1, end in (tree.MAX_FIELD_NUMBER, tree.MAX_INT32, tree.MAX_INT32 - 1))


def _reserved_names(reserved: list[tree.Reserved], names: Any, file: tree.File) -> None:
    for name in names:
        quoted = file.edition is None
        reserved.append(tree.Reserved([], [(name if quoted else _identifier(name), -1)], quoted))


def _field(proto: Any, file: tree.File, nested: dict[str, tree.Message]) -> tree.Field:
    label: tree.Label | None = None
    if proto.label == REPEATED:
        label = "repeated"
    elif proto.proto3_optional or (proto.label == OPTIONAL and file.dialect == "proto2"):
        label = "optional"
    elif proto.label == REQUIRED:
        if file.dialect != "proto2":
            raise SchemaError(f"{proto.name[:80]}: required fields are of proto2")
        label = "required"
    kind: str | tree.Message
    if proto.type == TYPE_GROUP:
        kind = _group(proto, nested)
    elif proto.HasField("type") and proto.type in SCALAR_NAMES:
        kind = SCALAR_NAMES[proto.type]
    else:
        kind = _full_name(proto.type_name)
    field = tree.Field(label, kind, _identifier(proto.name), proto.number, -1, -1, _options(proto))
    if proto.HasField("json_name") and not proto.HasField("extendee"):
        field.json_name = proto.json_name
    if proto.HasField("default_value"):
        field.default = _default(proto)
    return field


def _group(proto: Any, nested: dict[str, tree.Message]) -> tree.Message:
    """The message of a group, which is taken out of those beside it."""
    name = proto.type_name.rpartition(".")[2]
    if name not in nested or name.lower() != proto.name:
        raise SchemaError(f"the group {proto.name[:80]} has no message of its name beside it")
    return nested.pop(name)


def _default(proto: Any) -> tree.Value:
    text: str = proto.default_value
    if not proto.HasField("type"):
        return tree.Word(_identifier(text))
    if proto.type == TYPE_STRING:
        return tree.Text(text.encode())
    if proto.type == TYPE_BYTES:
        return tree.Text(unquoted("", -1, f'"{text}"'))
    if proto.type in (TYPE_BOOL, TYPE_ENUM) or text in ("inf", "nan"):
        return tree.Word(_identifier(text))
    if proto.type not in (TYPE_DOUBLE, TYPE_FLOAT):
        if re.fullmatch("-?[0-9]{1,20}", text) is None:
            raise SchemaError(f"{proto.name[:80]}: the default value {text[:40]!r}")
        return tree.Number(text, int(text))
    try:
        value = float(text)
    except ValueError:
        raise SchemaError(f"{proto.name[:80]}: the default value {text[:40]!r}") from None
    if re.fullmatch(r"-?(inf|nan|[0-9][0-9.eE+-]*)", text) is None:
        raise SchemaError(f"{proto.name[:80]}: the default value {text[:40]!r}")
    return tree.Number(text, value)


def _extends(proto: Any, file: tree.File, nested: dict[str, tree.Message]) -> list[tree.Extend]:
    """Extensions of one message that follow each other are of one `extend`."""
    found: list[tree.Extend] = []
    for each in proto.extension:
        extendee = _full_name(each.extendee)
        if not found or found[-1].extendee != extendee:
            found.append(tree.Extend(extendee, -1))
        found[-1].fields.append(_field(each, file, nested))
    return found


def _enum(proto: Any, file: tree.File) -> tree.Enum:
    enum = tree.Enum(_identifier(proto.name), -1, options=_options(proto))
    enum.visibility = _VISIBILITY.get(proto.visibility)
    for value in proto.value:
        enum.values.append(tree.EnumValue(_identifier(value.name), value.number, -1, _options(value)))
    for each in proto.reserved_range:
        enum.reserved.append(tree.Reserved([_range(each.start, each.end)], []))
    _reserved_names(enum.reserved, proto.reserved_name, file)
    return enum

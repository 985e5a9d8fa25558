"""From the tree of a file to its descriptor and its symbols; types are still names, options are left out.

What protoc's parser adds is added here: JSON names, messages of maps and groups, oneofs of optional fields.
"""

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    ServiceDescriptorProto,
)

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.protobuf import tree
from leafcuttr_registry.protobuf.model import (
    LABELS,
    REPEATED,
    SCALARS,
    TYPE_GROUP,
    TYPE_MESSAGE,
    EnumInfo,
    FieldInfo,
    MessageInfo,
    Other,
    Source,
    Universe,
    set_label,
    set_type,
)

MESSAGE_STEPS, FIELD_STEPS = 10, 3
"""What they cost in all later steps, where a token costs one."""
VISIBILITIES = {"local": 1, "export": 2}


class Describer:
    """Fills `source.proto` and the symbols of the universe from `source.tree`."""

    def __init__(self, universe: Universe, source: Source, budget: Budget) -> None:
        self._universe = universe
        self._source = source
        self._budget = budget
        assert source.tree is not None
        self._tree = source.tree
        self._proto3 = self._tree.dialect == "proto3"

    def describe(self) -> None:
        """Raises SchemaError for names that are taken."""
        file, source, proto = self._tree, self._source, self._source.proto
        proto.name = source.name
        if self._proto3:
            proto.syntax = "proto3"
        elif file.edition is not None:
            proto.syntax = "editions"
            proto.edition = int(file.edition) - 1023  # type: ignore[assignment]
        package = file.package or ""
        if package:
            proto.package = package
            self._universe.add_package(package, source, file.package_at)
        self._imports()
        for node in file.body:
            match node:
                case tree.Message():
                    self._message(node, proto.message_type.add(), package, None)
                case tree.Enum():
                    self._enum(node, proto.enum_type.add(), package)
                case tree.Extend():
                    for field in node.fields:
                        if isinstance(field.type, tree.Message):
                            self._message(field.type, proto.message_type.add(), package, None, synthetic=True)
                        self._extension(node, field, proto.extension.add(), package)
                case tree.RpcService():
                    self._service(node, proto.service.add(), package)

    def _imports(self) -> None:
        proto = self._source.proto
        for each in self._tree.imports:
            if each.kind == "option":
                proto.option_dependency.append(each.name)
                continue
            if each.kind == "public":
                proto.public_dependency.append(len(proto.dependency))
            elif each.kind == "weak":
                proto.weak_dependency.append(len(proto.dependency))
            proto.dependency.append(each.name)

    def _message(
        self,
        node: tree.Message,
        proto: DescriptorProto,
        scope: str,
        parent: MessageInfo | None,
        *,
        synthetic: bool = False,
    ) -> MessageInfo:
        proto.name = node.name
        name = f"{scope}.{node.name}" if scope else node.name
        info = MessageInfo(name, self._source, proto, node, parent, synthetic=synthetic)
        self._universe.add(info, self._source, node.at)
        self._source.messages.append(info)
        if parent is not None:
            parent.children.append(info)
        if node.visibility is not None:
            proto.visibility = VISIBILITIES[node.visibility]  # type: ignore[assignment]
        oneofs = {id(oneof): index for index, oneof in enumerate(node.oneofs)}
        for oneof in node.oneofs:
            proto.oneof_decl.add().name = oneof.name
            self._universe.add(Other(f"{name}.{oneof.name}", self._source, "oneof"), self._source, oneof.at)
        optional: list[FieldDescriptorProto] = []
        self._budget.spend(MESSAGE_STEPS + FIELD_STEPS * len(node.body))
        for child in node.body:
            match child:
                case tree.Field():
                    field = proto.field.add()
                    if child.oneof is not None:
                        field.oneof_index = oneofs[id(child.oneof)]
                    elif self._proto3 and child.label == "optional":
                        optional.append(field)
                    self._field(child, field, info)
                case tree.Message():
                    self._message(child, proto.nested_type.add(), name, info)
                case tree.Enum():
                    info.enums.append(self._enum(child, proto.enum_type.add(), name))
                case tree.Extend():
                    for extension in child.fields:
                        if isinstance(extension.type, tree.Message):
                            self._message(extension.type, proto.nested_type.add(), name, info, synthetic=True)
                        self._extension(child, extension, proto.extension.add(), name)
        self._synthetic_oneofs(info, optional)
        for extensions in node.extensions:
            for each in extensions.ranges:
                proto.extension_range.add(start=each.start, end=self._behind(info, each))
        for reserved in node.reserved:
            self._budget.spend(FIELD_STEPS * len(reserved.ranges))
            for each in reserved.ranges:
                proto.reserved_range.add(start=each.start, end=self._behind(info, each))
            proto.reserved_name.extend(each for each, _ in reserved.names)
        return info

    def _behind(self, info: MessageInfo, each: tree.Range) -> int:
        """Ranges of messages end before their `end`, an int32."""
        if each.end >= tree.MAX_INT32:
            raise self._source.error(
                each.at, f"{info.name}: the range ends with {each.end}, above all numbers"
            )
        return each.end + 1

    def _synthetic_oneofs(self, info: MessageInfo, optional: list[FieldDescriptorProto]) -> None:
        """One for each optional field of proto3, after those of the text (field_presence.md of protobuf)."""
        if not optional:
            return
        taken = {field.name for field in info.proto.field} | {oneof.name for oneof in info.proto.oneof_decl}
        for field in optional:
            name = field.name if field.name.startswith("_") else f"_{field.name}"
            while name in taken:
                name = f"X{name}"
            taken.add(name)
            field.proto3_optional = True
            field.oneof_index = len(info.proto.oneof_decl)
            info.proto.oneof_decl.add().name = name
            self._universe.add(Other(f"{info.name}.{name}", self._source, "oneof"), self._source, info.at)

    def _field(self, node: tree.Field, proto: FieldDescriptorProto, message: MessageInfo) -> None:
        name = f"{message.name}.{node.name}"
        info = FieldInfo(name, self._source, proto, node, message)
        self._fill(node, proto)
        self._universe.add(info, self._source, node.at)
        message.fields[node.name] = info
        self._source.fields.append(info)
        kind = node.type
        if isinstance(kind, tree.MapType):
            set_label(proto, REPEATED)
            set_type(proto, TYPE_MESSAGE)
            entry = self._map_entry(node, kind, message)
            proto.type_name = f".{entry.name}"
            info.type = entry
        elif isinstance(kind, tree.Message):
            nested = self._message(
                kind, message.proto.nested_type.add(), message.name, message, synthetic=True
            )
            set_type(proto, TYPE_GROUP)
            proto.type_name = f".{nested.name}"
            info.type = nested

    def _fill(self, node: tree.Field, proto: FieldDescriptorProto) -> None:
        proto.name = node.name
        proto.number = node.number
        set_label(proto, LABELS[node.label])
        proto.json_name = node.json_name if node.json_name is not None else json_name(node.name)
        if isinstance(node.type, str):
            scalar = SCALARS.get(node.type)
            if scalar is not None:
                set_type(proto, scalar)
            else:
                proto.type_name = node.type

    def _extension(
        self, extend: tree.Extend, node: tree.Field, proto: FieldDescriptorProto, scope: str
    ) -> None:
        self._fill(node, proto)
        proto.extendee = extend.extendee
        if self._proto3 and node.label == "optional":
            proto.proto3_optional = True
        name = f"{scope}.{node.name}" if scope else node.name
        info = FieldInfo(name, self._source, proto, node, extension=True)
        self._universe.add(info, self._source, node.at)
        self._source.extensions.append(info)
        if isinstance(node.type, tree.Message):
            set_type(proto, TYPE_GROUP)
            proto.type_name = f".{scope}.{node.type.name}" if scope else f".{node.type.name}"

    def _map_entry(self, node: tree.Field, kind: tree.MapType, message: MessageInfo) -> MessageInfo:
        proto = message.proto.nested_type.add()
        proto.name = entry_name(node.name)
        proto.options.map_entry = True
        info = MessageInfo(
            f"{message.name}.{proto.name}", self._source, proto, None, message, map_entry=True, synthetic=True
        )
        self._universe.add(info, self._source, node.at)
        self._source.messages.append(info)
        message.children.append(info)
        for number, (name, type_) in enumerate((("key", kind.key), ("value", kind.value)), 1):
            part = tree.Field(None, type_, name, number, node.at, node.at)
            field = proto.field.add()
            field_info = FieldInfo(f"{info.name}.{name}", self._source, field, part, info)
            self._fill(part, field)
            self._universe.add(field_info, self._source, node.at)
            info.fields[name] = field_info
            self._source.fields.append(field_info)
        return info

    def _enum(self, node: tree.Enum, proto: EnumDescriptorProto, scope: str) -> EnumInfo:
        proto.name = node.name
        if node.visibility is not None:
            proto.visibility = VISIBILITIES[node.visibility]  # type: ignore[assignment]
        name = f"{scope}.{node.name}" if scope else node.name
        info = EnumInfo(name, self._source, proto, node)
        self._universe.add(info, self._source, node.at)
        self._source.enums.append(info)
        self._budget.spend(len(node.values))
        prefix = f"{scope}." if scope else ""
        for value in node.values:
            proto.value.add(name=value.name, number=value.number)
            # Constants are siblings of their enum, as in C++.
            self._universe.add(Other(prefix + value.name, self._source, "constant"), self._source, value.at)
            info.values[value.name] = value.number
        for reserved in node.reserved:
            for each in reserved.ranges:
                proto.reserved_range.add(start=each.start, end=each.end)
            proto.reserved_name.extend(each for each, _ in reserved.names)
        return info

    def _service(self, node: tree.RpcService, proto: ServiceDescriptorProto, scope: str) -> None:
        proto.name = node.name
        name = f"{scope}.{node.name}" if scope else node.name
        self._universe.add(Other(name, self._source, "service"), self._source, node.at)
        for each in node.methods:
            method = proto.method.add(name=each.name, input_type=each.input, output_type=each.output)
            if each.client_streaming:
                method.client_streaming = True
            if each.server_streaming:
                method.server_streaming = True
            self._universe.add(Other(f"{name}.{each.name}", self._source, "method"), self._source, each.at)


def json_name(name: str) -> str:
    """lowerCamelCase: a letter after underscores is a capital."""
    if "_" not in name:
        return name
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def entry_name(name: str) -> str:
    """Of the message that stands for the entries of a map."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Entry"

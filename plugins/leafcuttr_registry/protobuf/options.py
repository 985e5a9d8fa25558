"""Interprets the options of all elements of a file, into the options messages of its descriptor."""

from collections.abc import Iterable
from typing import Any

from google.protobuf.message import DecodeError

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.protobuf import tree
from leafcuttr_registry.protobuf.adopt import adopted
from leafcuttr_registry.protobuf.decode_options import decode_options
from leafcuttr_registry.protobuf.interpret import Interpreter
from leafcuttr_registry.protobuf.model import FieldInfo, MessageInfo, Source, Universe

FILE, RANGE, MESSAGE, FIELD, ONEOF, ENUM, CONSTANT, SERVICE, METHOD = range(1, 10)
_NAMES = {
    FILE: "FileOptions", RANGE: "ExtensionRangeOptions", MESSAGE: "MessageOptions", FIELD: "FieldOptions",
    ONEOF: "OneofOptions", ENUM: "EnumOptions", CONSTANT: "EnumValueOptions", SERVICE: "ServiceOptions",
    METHOD: "MethodOptions",
}  # fmt: skip


def interpret_options(universe: Universe, source: Source, budget: Budget) -> None:
    """Raises SchemaError for options that do not exist and for values that are not of their types."""
    assert source.tree is not None
    _Options(universe, source, budget).file(source.tree)


class _Options:
    def __init__(self, universe: Universe, source: Source, budget: Budget) -> None:
        self._universe = universe
        self._source = source
        self._interpreter = Interpreter(universe, source, budget)

    def _set(self, proto: Any, options: list[tree.Option], target: int, scope: str) -> None:
        if not options:
            return
        name = f"google.protobuf.{_NAMES[target]}"
        found = self._universe.symbols.get(name)
        if found is None:
            found = adopted("google/protobuf/descriptor.proto").symbols[name]
        if not isinstance(found, MessageInfo):
            raise self._source.error(options[0].at, f"{name} is not a message")
        decode_options(self._universe, self._source, found, options)
        data = self._interpreter.encode(options, found, scope, target)
        try:
            # Also where all is left at its default: an element with options is another one.
            proto.options.MergeFromString(data)
            proto.options.SetInParent()
        except DecodeError:
            raise self._source.error(options[0].at, "the options cannot be encoded") from None

    def file(self, file: tree.File) -> None:
        source = self._source
        scope = f"{file.package}." if file.package else ""
        self._set(source.proto, file.options, FILE, f"{scope}dummy")
        for message in source.messages:
            self._message(message)
        for field in (*source.fields, *source.extensions):
            if field.node is not None and field.node.options:
                self._set(field.proto, field.node.options, FIELD, field.name)
                self._map_features(field)
        for enum in source.enums:
            node = enum.node
            if node is not None:
                self._set(enum.proto, node.options, ENUM, enum.name)
                parent = enum.name.rpartition(".")[0]
                for value, proto in zip(node.values, enum.proto.value, strict=True):
                    if value.options:
                        self._set(proto, value.options, CONSTANT, f"{parent}.{value.name}".lstrip("."))
        self._services(each for each in file.body if isinstance(each, tree.RpcService))
        self._interpreter.check_targets()

    def _message(self, info: MessageInfo) -> None:
        node = info.node
        if node is None:
            return
        self._set(info.proto, node.options, MESSAGE, info.name)
        for oneof, proto in zip(node.oneofs, info.proto.oneof_decl, strict=False):
            self._set(proto, oneof.options, ONEOF, f"{info.name}.{oneof.name}")
        ranges = iter(info.proto.extension_range)
        for extensions in node.extensions:
            for _ in extensions.ranges:
                self._set(next(ranges), extensions.options, RANGE, info.name)

    def _map_features(self, field: FieldInfo) -> None:
        """protoc hands the features of a map on to the fields of its entries."""
        if (
            isinstance(field.type, MessageInfo)
            and field.type.map_entry
            and field.proto.options.HasField("features")
        ):
            for each in field.type.proto.field:
                each.options.features.CopyFrom(field.proto.options.features)

    def _services(self, services: Iterable[tree.RpcService]) -> None:
        package = f"{self._source.proto.package}." if self._source.proto.package else ""
        for service, proto in zip(services, self._source.proto.service, strict=True):
            self._set(proto, service.options, SERVICE, package + service.name)
            for method, method_proto in zip(service.methods, proto.method, strict=True):
                self._set(method_proto, method.options, METHOD, f"{package}{service.name}.{method.name}")
                if method.braces:
                    method_proto.options.SetInParent()

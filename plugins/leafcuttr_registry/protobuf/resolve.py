"""Gives the names of types their meaning: in fields, extensions, maps, methods; and defaults, which depend on types."""

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.protobuf import tree
from leafcuttr_registry.protobuf.defaults import default_text
from leafcuttr_registry.protobuf.model import (
    TYPE_ENUM,
    TYPE_GROUP,
    TYPE_MESSAGE,
    EnumInfo,
    FieldInfo,
    MessageInfo,
    Source,
    Symbol,
    Universe,
    set_type,
)
from leafcuttr_sdk.schemas import SchemaError

_LOCAL = 1
_EXPORT_ALL, _EXPORT_TOP_LEVEL = 1, 2
"""Of `SymbolVisibility` and `FeatureSet.VisibilityFeature.DefaultSymbolVisibility`."""


def resolve_types(universe: Universe, source: Source, budget: Budget) -> None:
    """Raises SchemaError for names without a meaning and for those of the wrong kind."""
    budget.spend(len(source.fields) + len(source.extensions))
    for field in source.fields:
        _resolve_field(universe, source, field)
    for field in source.extensions:
        _extendee(universe, source, field)
        _resolve_field(universe, source, field)
    assert source.tree is not None
    services = [each for each in source.tree.body if isinstance(each, tree.RpcService)]
    package = f"{source.tree.package}." if source.tree.package else ""
    for service, proto in zip(services, source.proto.service, strict=True):
        for method, method_proto in zip(service.methods, proto.method, strict=True):
            scope = f"{package}{service.name}.{method.name}"
            method_proto.input_type = _message(universe, source, method.input, scope, method.at)
            method_proto.output_type = _message(universe, source, method.output, scope, method.at)


def _resolve_field(universe: Universe, source: Source, field: FieldInfo) -> None:
    proto, node = field.proto, field.node
    assert node is not None
    if proto.type_name and field.type is None:
        if proto.type == TYPE_GROUP:
            field.type = _type(universe, source, proto.type_name, "", node.at)
        else:
            name = proto.type_name
            field.type = found = _type(universe, source, name, _scope(field.name), node.at)
            set_type(proto, TYPE_MESSAGE if isinstance(found, MessageInfo) else TYPE_ENUM)
            proto.type_name = f".{found.name}"
            if isinstance(found, MessageInfo) and found.map_entry:
                raise source.error(node.at, f"{name} is the entry of a map: write map<key, value>")
    if node.default is not None:
        proto.default_value = default_text(source, field, node)


def _scope(name: str) -> str:
    return name.rpartition(".")[0]


def _type(universe: Universe, source: Source, name: str, scope: str, at: int) -> MessageInfo | EnumInfo:
    found = universe.find(name, scope, source, types=True)
    if isinstance(found, (MessageInfo, EnumInfo)):
        _check_visible(source, found, at)
        return found
    raise _no(universe, source, name, scope, at, found, "a type")


def _message(universe: Universe, source: Source, name: str, scope: str, at: int) -> str:
    found = universe.find(name, _scope(scope), source)
    if not isinstance(found, MessageInfo):
        raise _no(universe, source, name, scope, at, found, "a message")
    _check_visible(source, found, at)
    return f".{found.name}"


def _check_visible(source: Source, found: MessageInfo | EnumInfo, at: int) -> None:
    """Types are of their file alone from edition 2024 on, where they or their file say so, or are within messages."""
    if found.source is source or found.source.tree is None or found.source.tree.edition in (None, "2023"):
        return
    visibility = found.proto.visibility
    if not visibility:
        default = found.source.proto.options.features.default_symbol_visibility
        package = found.source.proto.package
        within = found.name.rpartition(".")[0] != package
        local = within if default in (0, _EXPORT_TOP_LEVEL) else default != _EXPORT_ALL
    else:
        local = visibility == _LOCAL
    if local:
        raise source.error(at, f"{found.name} is local to {found.source.name}")


def _extendee(universe: Universe, source: Source, field: FieldInfo) -> None:
    name = field.proto.extendee
    found = universe.find(name, _scope(field.name), source)
    if not isinstance(found, MessageInfo):
        raise _no(universe, source, name, _scope(field.name), field.at, found, "a message")
    _check_visible(source, found, field.at)
    field.message = found
    field.proto.extendee = f".{found.name}"


def _no(
    universe: Universe, source: Source, name: str, scope: str, at: int, found: Symbol | None, what: str
) -> SchemaError:
    if found is not None:
        return source.error(at, f"{name} is not {what}")
    return source.error(at, universe.missing(name, scope, source))

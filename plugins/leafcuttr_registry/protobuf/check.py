"""What protoc refuses besides names that mean nothing: numbers, reserved ones, ranges, labels and options.

`check_names` needs no options, `check_whole` does. Enums are in `check_enums.py`, editions in `check_editions.py`.
Rules: the language specifications, and protoc where these are silent.
"""

from bisect import bisect_right
from typing import Final

from leafcuttr_registry.protobuf import tree
from leafcuttr_registry.protobuf.check_editions import check_features, check_style
from leafcuttr_registry.protobuf.check_enums import check_enum, check_open
from leafcuttr_registry.protobuf.check_messages import (
    check_declarations,
    check_json_names,
    check_map_entry,
    check_message_set,
    check_ranges,
)
from leafcuttr_registry.protobuf.features import Features
from leafcuttr_registry.protobuf.model import (
    REPEATED,
    REQUIRED,
    SCALARS,
    TYPE_BYTES,
    TYPE_GROUP,
    TYPE_MESSAGE,
    TYPE_STRING,
    EnumInfo,
    FieldInfo,
    MessageInfo,
    Source,
    Universe,
)
from leafcuttr_registry.protobuf.tree import MAX_FIELD_NUMBER

FIRST_RESERVED, LAST_RESERVED = 19_000, 19_999
"""Field numbers that implementations of Protobuf use themselves."""
_INTEGERS_64: Final = (3, 4, 6, 16, 18)
_LENGTH: Final = (TYPE_STRING, TYPE_BYTES, TYPE_MESSAGE, TYPE_GROUP)
_OPTIONS: Final = frozenset(
    f"google.protobuf.{name}Options"
    for name in (
        "File",
        "Message",
        "Field",
        "Enum",
        "EnumValue",
        "Service",
        "Method",
        "Oneof",
        "ExtensionRange",
    )
)


def check_names(source: Source) -> None:
    """Names and numbers of messages and fields. Raises SchemaError."""
    for message in source.messages:
        if message.node is not None:
            _numbers(source, message)
    for field in source.fields:
        if field.node is not None:
            _number(source, field, field.node)


def _number(source: Source, field: FieldInfo, node: tree.Field) -> None:
    number = node.number
    if number <= 0:
        raise source.error(node.number_at, f"{field.name}: the number {number}; numbers begin with 1")
    if FIRST_RESERVED <= number <= LAST_RESERVED:
        raise source.error(
            node.number_at,
            f"{field.name}: the numbers {FIRST_RESERVED} to {LAST_RESERVED} belong to implementations of Protobuf",
        )
    kind = node.type
    if isinstance(kind, tree.MapType):
        assert isinstance(field.type, MessageInfo)
        if kind.key not in SCALARS or kind.key in ("float", "double", "bytes"):
            raise source.error(
                node.at, f"{field.name}: the keys of maps are integers, bool or string, not {kind.key[:80]}"
            )


def _numbers(source: Source, message: MessageInfo) -> None:
    node = message.node
    assert node is not None
    numbers: dict[int, str] = {}
    check_ranges(source, message)
    reserved = sorted((each.start, each.end) for each in message.proto.reserved_range)
    starts = [start for start, _ in reserved]
    names = set(message.proto.reserved_name)
    ranges = sorted((each.start, each.end) for each in message.proto.extension_range)
    range_starts = [start for start, _ in ranges]
    for field in message.fields.values():
        proto, at = field.proto, field.at
        number = proto.number
        known = numbers.setdefault(number, proto.name)
        if known is not proto.name and known != proto.name:
            raise source.error(at, f"{field.name}: the number {number} is that of {known} already")
        if starts:
            index = bisect_right(starts, number) - 1
            if index >= 0 and number < reserved[index][1]:
                raise source.error(at, f"{field.name}: the number {number} is reserved")
        if range_starts:
            index = bisect_right(range_starts, number) - 1
            if index >= 0 and number < ranges[index][1]:
                raise source.error(at, f"{field.name}: the number {number} is of a range for extensions")
        if names and proto.name in names:
            raise source.error(at, f"{field.name}: the name {proto.name} is reserved")
    for oneof in node.oneofs:
        if not oneof.fields:
            raise source.error(oneof.at, f"the oneof {message.name}.{oneof.name} has no fields")
    if node.extensions and source.dialect == "proto3":
        raise source.error(node.at, f"{message.name}: messages of proto3 have no ranges for extensions")


def check_whole(universe: Universe, source: Source, defaults: Features) -> None:
    """What depends on options and on types. Raises SchemaError."""
    for message in source.messages:
        check_map_entry(source, message)
    check_features(source, defaults)
    for message in source.messages:
        check_message_set(source, message)
        check_declarations(source, message)
        check_json_names(source, message)
    for enum in source.enums:
        check_enum(source, enum)
    for field in source.fields:
        _field(source, field)
        if source.dialect == "proto3" and isinstance(field.type, EnumInfo):
            check_open(source, field, field.type)
    _extensions(universe, source)
    if source.tree is not None and source.tree.edition not in (None, "2023"):
        check_style(source, defaults)


def _field(source: Source, field: FieldInfo) -> None:
    proto = field.proto
    number = proto.number
    if number > MAX_FIELD_NUMBER and not _of_message_set(field):
        raise source.error(
            field.at, f"{field.name}: the number {number}; numbers end with {MAX_FIELD_NUMBER}"
        )
    if not proto.HasField("options"):
        return
    options = proto.options
    if options.HasField("packed") and options.packed and (proto.label != REPEATED or proto.type in _LENGTH):
        raise source.error(
            field.at, f"{field.name}: only repeated fields of numbers, bool or an enum are packed"
        )
    if (options.lazy or options.unverified_lazy) and proto.type != TYPE_MESSAGE:
        raise source.error(field.at, f"{field.name}: only fields of messages are lazy")
    if options.jstype and proto.type not in _INTEGERS_64:
        raise source.error(field.at, f"{field.name}: jstype is for integers of 64 bits")
    if options.HasField("ctype") and source.tree is not None and source.tree.edition not in (None, "2023"):
        raise source.error(field.at, f"{field.name}: ctype is not of edition 2024 and later ones")


def _of_message_set(field: FieldInfo) -> bool:
    message = field.message
    return field.extension and message is not None and message.proto.options.message_set_wire_format


def _extensions(universe: Universe, source: Source) -> None:
    for field in source.extensions:
        node = field.node
        assert node is not None
        _number(source, field, node)
        _field(source, field)
        extended = field.message
        assert extended is not None
        if field.proto.label == REQUIRED:
            raise source.error(field.at, f"{field.name}: extensions are never required")
        if node.json_name is not None:
            raise source.error(node.special_at, f"{field.name}: extensions have no json_name")
        if source.dialect == "proto3":
            if extended.name not in _OPTIONS:
                raise source.error(field.at, f"{field.name}: proto3 extends nothing but options")
            if isinstance(field.type, EnumInfo):
                check_open(source, field, field.type)
        if _of_message_set(field) and (field.proto.label == REPEATED or field.proto.type != TYPE_MESSAGE):
            raise source.error(field.at, f"{field.name}: message sets are extended by optional messages only")
        _declared(source, field, extended)
        universe.add_extension(field, source)


def _declared(source: Source, field: FieldInfo, extended: MessageInfo) -> None:
    number = field.proto.number
    for each in extended.proto.extension_range:
        if each.start <= number < each.end:
            break
    else:
        raise source.error(field.at, f"{field.name}: {extended.name} has no range for the extension {number}")
    options = each.options
    if not options.declaration:
        if each.HasField("options") and options.verification == options.DECLARATION:
            raise source.error(field.at, f"{field.name}: {extended.name} declares no extension {number}")
        return
    for declaration in options.declaration:
        if declaration.number == number:
            break
    else:
        raise source.error(field.at, f"{field.name}: {extended.name} declares no extension {number}")
    type_ = field.proto.type_name or next(name for name, kind in SCALARS.items() if kind == field.proto.type)
    repeated = field.proto.label == REPEATED
    if (
        declaration.reserved
        or declaration.full_name not in ("", f".{field.name}")
        or declaration.type not in ("", type_)
        or declaration.repeated != repeated
    ):
        raise source.error(
            field.at,
            f"{field.name} is not as {extended.name} declares the extension {number}: "
            f"{declaration.full_name or 'reserved'}, {declaration.type}{', repeated' if declaration.repeated else ''}",
        )

"""Checks of a message as a whole: ranges, JSON names, entries of maps, message sets."""

import re

from leafcuttr_registry.protobuf.describe import entry_name, json_name
from leafcuttr_registry.protobuf.model import (
    OPTIONAL,
    REPEATED,
    SCALARS,
    EnumInfo,
    MessageInfo,
    Source,
)
from leafcuttr_registry.protobuf.tree import MAX_FIELD_NUMBER, MAX_INT32, Range

_DECLARED_NAME = re.compile(r"(?:\.[A-Za-z_][A-Za-z0-9_]*)+")


def check_ranges(source: Source, message: MessageInfo) -> None:
    """Raises SchemaError for ranges that are empty or overlap, and for names that are reserved twice."""
    node = message.node
    assert node is not None
    extensions = [each for extension in node.extensions for each in extension.ranges]
    reserved = [each for part in node.reserved for each in part.ranges]
    for each in (*extensions, *reserved):
        if each.start <= 0:
            raise source.error(
                each.at, f"{message.name}: the range begins with {each.start}; numbers begin with 1"
            )
        if each.start > each.end and not each.to_max:
            raise source.error(each.at, f"{message.name}: the range {each.start} to {each.end} is empty")
    apart(source, message.name, [*extensions, *reserved])
    reserved_once(source, message.name, [name for part in node.reserved for name in part.names])


def apart(source: Source, name: str, ranges: list[Range]) -> None:
    """Raises SchemaError where two ranges have a number in common."""
    before: Range | None = None
    for each in sorted(ranges, key=lambda each: each.start):
        if before is not None and each.start <= before.end:
            at = max(each.at, before.at)
            raise source.error(
                at,
                f"{name}: the ranges {before.start} to {before.end} and {each.start} to {each.end} overlap",
            )
        before = each


def reserved_once(source: Source, owner: str, names: list[tuple[str, int]]) -> None:
    """Raises SchemaError for a name that is reserved twice."""
    seen: set[str] = set()
    for name, at in names:
        if name in seen:
            raise source.error(at, f"{owner}: the name {name[:80]} is reserved twice")
        seen.add(name)


def check_message_set(source: Source, message: MessageInfo) -> None:
    """Where ranges end, which depends on the option. Raises SchemaError."""
    node, proto = message.node, message.proto
    if node is None:
        return
    is_set = proto.options.message_set_wire_format
    if is_set and source.dialect == "proto3":
        raise source.error(node.at, f"{message.name}: proto3 has no message sets")
    if is_set and (proto.field or not proto.extension_range):
        raise source.error(node.at, f"{message.name}: message sets have extensions and no fields")
    most = MAX_INT32 if is_set else MAX_FIELD_NUMBER + 1
    ranges = iter(proto.extension_range)
    for extensions in node.extensions:
        for each in extensions.ranges:
            described = next(ranges)
            if each.to_max:
                described.end = most
                if each.start >= most:
                    raise source.error(each.at, f"{message.name}: the range {each.start} to max is empty")
            elif described.end > most:
                raise source.error(
                    each.at, f"{message.name}: the range ends with {each.end}, above {most - 1}"
                )


def check_declarations(source: Source, message: MessageInfo) -> None:
    """Declarations of extensions in ranges (extension_declarations.md of protobuf). Raises SchemaError."""
    numbers: set[int] = set()
    names: set[str] = set()
    for each in message.proto.extension_range:
        options = each.options
        if not options.declaration:
            continue
        if options.HasField("verification") and options.verification == options.UNVERIFIED:
            raise source.error(message.at, f"{message.name}: a range with declarations cannot be UNVERIFIED")
        for declaration in options.declaration:
            number, name, type_ = declaration.number, declaration.full_name, declaration.type
            here = f"{message.name}: the declaration of the extension {number}"
            if not each.start <= number < each.end:
                raise source.error(message.at, f"{here} is not in its range")
            if number in numbers:
                raise source.error(message.at, f"{here} is there twice")
            numbers.add(number)
            if name:
                if name in names:
                    raise source.error(
                        message.at, f"{message.name}: the extension {name[:80]} is declared twice"
                    )
                names.add(name)
            if declaration.HasField("full_name") != declaration.HasField("type") or not (
                declaration.HasField("full_name") or declaration.reserved
            ):
                raise source.error(message.at, f"{here} needs both, full_name and type")
            if declaration.HasField("full_name") and not _DECLARED_NAME.fullmatch(name):
                raise source.error(message.at, f"{here}: {name[:80]!r} is no full name with a dot before it")
            if declaration.HasField("type") and type_ not in SCALARS and not _DECLARED_NAME.fullmatch(type_):
                raise source.error(
                    message.at, f"{here}: {type_[:80]!r} is no scalar and no full name with a dot"
                )


def check_json_names(source: Source, message: MessageInfo) -> None:
    """No two fields of a message have one name in JSON. Raises SchemaError."""
    if message.proto.options.deprecated_legacy_json_field_conflicts or message.node is None:
        return
    # proto2 never promised a JSON form, so there protoc only warns of names that it made itself.
    strict = message.strict_json
    for custom in (False, True):
        seen: dict[str, tuple[str, bool]] = {}
        for field in message.fields.values():
            default = json_name(field.proto.name)
            given = custom and field.proto.json_name != default
            name = field.proto.json_name if given else default
            known = seen.setdefault(name, (field.proto.name, given))
            if known[0] == field.proto.name:
                continue
            if custom and not given and not known[1]:
                continue
            if strict or (given and known[1]):
                raise source.error(
                    field.at, f"{field.name} and {known[0]} have the same JSON name, {name[:80]}"
                )
    for field in message.fields.values():
        if field.node is not None and field.node.json_name is not None:
            name = field.node.json_name
            if name.startswith("[") and name.endswith("]"):
                raise source.error(
                    field.node.special_at, f"{field.name}: a JSON name in brackets is that of an extension"
                )
            if "\0" in name:
                raise source.error(field.node.special_at, f"{field.name}: the JSON name has a zero character")


def check_map_entry(source: Source, message: MessageInfo) -> None:
    """Maps, and messages with the option `map_entry`. Raises SchemaError.

    protoc refuses the option in texts. Confluent's registry writes it where a schema came as a descriptor, so an entry
    that is just what protoc makes of a map is taken as one.
    """
    if not message.proto.options.HasField("map_entry"):
        return
    if not message.map_entry:
        parent = message.parent
        users = (
            [field for field in parent.fields.values() if field.type is message] if parent is not None else []
        )
        proto = message.proto
        right = (
            proto.options.map_entry
            and len(users) == 1
            and users[0].proto.label == REPEATED
            and not users[0].extension
            and entry_name(users[0].proto.name) == proto.name
            and [(field.name, field.number, field.label) for field in proto.field]
            == [("key", 1, OPTIONAL), ("value", 2, OPTIONAL)]
            and not (proto.nested_type or proto.enum_type or proto.extension or proto.extension_range)
            and proto.field[0].type not in (1, 2, 10, 11, 12, 14)
        )
        if not right:
            raise source.error(
                message.at, f"{message.name}: map_entry is not set by hand: write map<key, value>"
            )
        message.map_entry = True
    value = message.fields["value"].type
    if isinstance(value, EnumInfo) and value.values and next(iter(value.values.values())) != 0:
        raise source.error(
            message.fields["value"].at,
            f"{value.name} is the value of a map, so its first constant has to be zero",
        )

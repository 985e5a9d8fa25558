"""Checks of enums."""

from bisect import bisect_right

from leafcuttr_registry.protobuf.check_messages import apart, reserved_once
from leafcuttr_registry.protobuf.model import EnumInfo, FieldInfo, Source


def check_enum(source: Source, enum: EnumInfo) -> None:
    """Raises SchemaError."""
    node = enum.node
    if node is None:
        return
    if not node.values:
        raise source.error(node.at, f"the enum {enum.name} has no constants")
    if not enum.closed and node.values[0].number != 0:
        raise source.error(
            node.values[0].at, f"{enum.name}: the first constant of an open enum, as those of proto3, is zero"
        )
    _numbers(source, enum)
    _reserved(source, enum)
    _json_names(source, enum)


def _numbers(source: Source, enum: EnumInfo) -> None:
    assert enum.node is not None
    options = enum.proto.options
    numbers: dict[int, str] = {}
    alias = False
    for value in enum.node.values:
        known = numbers.setdefault(value.number, value.name)
        if known != value.name:
            alias = True
            if not options.allow_alias:
                raise source.error(
                    value.at,
                    f"{enum.name}.{value.name} has the number {value.number} of {known}; "
                    "option allow_alias = true allows it",
                )
    if options.HasField("allow_alias"):
        if not options.allow_alias:
            raise source.error(enum.at, f"{enum.name}: allow_alias = false is the default and has no effect")
        if not alias:
            raise source.error(enum.at, f"{enum.name}: allow_alias without constants of the same number")


def _reserved(source: Source, enum: EnumInfo) -> None:
    node = enum.node
    assert node is not None
    ranges = [each for part in node.reserved for each in part.ranges]
    for each in ranges:
        if each.start > each.end:
            raise source.error(each.at, f"{enum.name}: the range {each.start} to {each.end} is empty")
    apart(source, enum.name, ranges)
    reserved_once(source, enum.name, [name for part in node.reserved for name in part.names])
    names = {name for part in node.reserved for name, _ in part.names}
    ordered = sorted((each.start, each.end) for each in ranges)
    starts = [start for start, _ in ordered]
    for value in node.values:
        index = bisect_right(starts, value.number) - 1
        if index >= 0 and value.number <= ordered[index][1]:
            raise source.error(value.at, f"{enum.name}.{value.name}: the number {value.number} is reserved")
        if value.name in names:
            raise source.error(value.at, f"{enum.name}.{value.name}: the name is reserved")


def _json_names(source: Source, enum: EnumInfo) -> None:
    """Constants whose names differ in the enum's name as a prefix, case and underscores alone."""
    assert enum.node is not None
    if enum.proto.options.deprecated_legacy_json_field_conflicts:
        return
    prefix = enum.proto.name.replace("_", "").lower()
    seen: dict[str, tuple[str, int]] = {}
    for value in enum.node.values:
        short = _pascal(_without(prefix, value.name))
        name, number = seen.setdefault(short, (value.name, value.number))
        if name != value.name and number != value.number:
            raise source.error(
                value.at,
                f"{enum.name}: {value.name} and {name} are the same constant without case and the enum's name",
            )


def _without(prefix: str, name: str) -> str:
    """The name without the enum's, if something is left."""
    at = 0
    matched = 0
    while at < len(name) and matched < len(prefix):
        if name[at] == "_":
            at += 1
            continue
        if name[at].lower() != prefix[matched]:
            return name
        at += 1
        matched += 1
    if matched < len(prefix):
        return name
    rest = name[at:].lstrip("_")
    return rest or name


def _pascal(name: str) -> str:
    return "".join(part[:1].upper() + part[1:].lower() for part in name.split("_"))


def check_open(source: Source, field: FieldInfo, enum: EnumInfo) -> None:
    """Messages of proto3 know no closed enums, those of proto2. Raises SchemaError."""
    if enum.closed:
        raise source.error(field.at, f"{field.name}: {enum.name} is a closed enum, which proto3 cannot use")

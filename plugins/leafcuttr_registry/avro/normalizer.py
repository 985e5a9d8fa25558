"""What `normalize=true` changes, as Confluent's registry does it: properties and aliases are sorted, with the logical
type first; defaults are written as their type is; documentation that is empty is left out."""

from typing import Final

from leafcuttr_registry.avro.names import Name
from leafcuttr_registry.avro.singles import shortest
from leafcuttr_registry.avro.types import (
    ArrayType,
    AvroType,
    MapType,
    RecordType,
    UnionType,
)
from leafcuttr_sdk.schemas import JsonValue

_DECIMAL: Final = ("precision", "scale")
_FITTING: Final = {
    str: ("string", "enum", "bytes", "fixed"),
    bool: ("boolean",),
    int: ("int", "long", "float", "double"),
    float: ("float", "double"),
}


def _by_utf16(text: str) -> bytes:
    """Java compares texts by their UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def properties(of: AvroType) -> dict[str, JsonValue]:
    first: dict[str, JsonValue] = {}
    if of.logical:
        first["logicalType"] = of.logical
        if of.logical == "decimal":
            first |= {key: of.props[key] for key in _DECIMAL if of.props.get(key)}
    return first | sorted_properties(of.props)


def sorted_properties(props: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {key: _sorted(props[key]) for key in sorted(props, key=_by_utf16)}


def _sorted(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return sorted_properties(value)
    return [_sorted(one) for one in value] if isinstance(value, list) else value


def sorted_aliases(aliases: list[Name]) -> list[Name]:
    return sorted(aliases, key=lambda one: _by_utf16(one.full if one.namespace else f".{one.full}"))


def sorted_texts(texts: list[str]) -> list[str]:
    return sorted(texts, key=_by_utf16)


def default(value: JsonValue, of: AvroType | None) -> JsonValue:
    """A whole number of a float has its fraction, and a float no more digits than it takes."""
    if isinstance(of, UnionType):
        branch = next((one for one in of.branches if _fits(value, one)), None)
        return default(value, branch)
    if isinstance(value, dict):
        return {key: default(value[key], _inner(of, key)) for key in sorted(value, key=_by_utf16)}
    if isinstance(value, list):
        items = of.items if isinstance(of, ArrayType) else None
        return [default(one, items) for one in value]
    if of is not None and of.kind in ("float", "double") and type(value) in (int, float):
        number = float(value)  # type: ignore[arg-type]
        return shortest(number) if of.kind == "float" else number
    return value


def _inner(of: AvroType | None, key: str) -> AvroType | None:
    if isinstance(of, MapType):
        return of.values
    field = of.by_name.get(key) if isinstance(of, RecordType) else None
    return field.type if field else None


def _fits(value: JsonValue, branch: AvroType) -> bool:
    """The first branch that Java's library can make a value of, which is not always the one that reads it."""
    if isinstance(value, list):
        return branch.kind == "array"
    if isinstance(value, dict):
        return branch.kind in ("map", "record")
    return value is not None and branch.kind in _FITTING[type(value)]

"""Whether two types say the same, as Java's Schema.equals: names, order of fields, defaults and properties count, while
documentation and aliases do not. For a name that is defined twice."""

from leafcuttr_registry.avro.types import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    Forward,
    MapType,
    NamedType,
    NoDefault,
    RecordType,
    UnionType,
    children,
)
from leafcuttr_registry.budget import Budget
from leafcuttr_sdk.schemas import JsonValue


def same(first: AvroType, second: AvroType, budget: Budget) -> bool:
    seen: set[tuple[int, int]] = set()
    pending = [(first, second)]
    while pending:
        one, other = pending.pop()
        if one is other or (id(one), id(other)) in seen:
            continue
        budget.spend()
        seen.add((id(one), id(other)))
        if not _alike(one, other):
            return False
        if not isinstance(one, Forward) and not isinstance(other, Forward):
            pending += zip(children(one), children(other), strict=True)
    return True


def _alike(one: AvroType, other: AvroType) -> bool:
    if isinstance(one, Forward) or isinstance(other, Forward):
        # A name that is not defined yet: that name is all that it says.
        return _full(one) == _full(other) is not None
    if one.kind != other.kind or not equal(one.props, other.props):
        return False
    if isinstance(one, NamedType) and isinstance(other, NamedType) and one.name != other.name:
        return False
    if isinstance(one, EnumType) and isinstance(other, EnumType):
        return one.symbols == other.symbols
    if isinstance(one, FixedType) and isinstance(other, FixedType):
        return one.size == other.size
    if isinstance(one, RecordType) and isinstance(other, RecordType):
        return len(one.fields) == len(other.fields) and all(
            a.name == b.name
            and a.order == b.order
            and equal(a.default, b.default)
            and equal(a.props, b.props)
            for a, b in zip(one.fields, other.fields, strict=True)
        )
    if isinstance(one, UnionType) and isinstance(other, UnionType):
        return len(one.branches) == len(other.branches)
    return isinstance(one, ArrayType | MapType) or one.kind == other.kind


def _full(of: AvroType) -> str | None:
    return of.full if isinstance(of, Forward) else of.name.full if isinstance(of, NamedType) else None


def equal(one: "JsonValue | NoDefault", other: "JsonValue | NoDefault") -> bool:
    """JSON values; 1 is neither 1.0 nor true, and NaN is itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return one == other or (one != one and other != other)

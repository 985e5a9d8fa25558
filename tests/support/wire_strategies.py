"""Hypothesis strategies that make messages from their declarations, for any version.

`values` reads the class alone; `Limits` narrows it where an oracle cannot hold every value.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from leafcuttr.wire.emit import present_fields
from leafcuttr.wire.schema import (
    BOOL,
    BYTES,
    FLOAT64,
    RECORDS,
    STRING,
    UUID,
    Array,
    FieldSpec,
    FieldType,
    PrimitiveType,
    Versions,
    declaration,
)

Limits = Callable[[type[Any], FieldSpec], st.SearchStrategy[Any] | None]
"""(struct, field) -> a strategy to use instead, or None. For an array of a kind it makes the elements."""

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.just("long-" * 40)
_BYTES = st.binary(max_size=8) | st.just(bytes(200))


def unlimited(struct: type[Any], spec: FieldSpec) -> None:
    """No limits: every value the type can hold."""


def every_version(cls: type[Any]) -> range:
    found: Versions = declaration(cls).versions
    return range(found.first, found.last + 1)


def messages(cls: type[Any], version: int, limits: Limits = unlimited) -> st.SearchStrategy[Any]:
    """Objects of a message or struct whose fields outside the version have their defaults."""
    plain, tagged = present_fields(cls, version)
    return st.builds(cls, **{spec.name: _field(cls, spec, version, limits) for spec in (*plain, *tagged)})


def _field(cls: type[Any], spec: FieldSpec, version: int, limits: Limits) -> st.SearchStrategy[Any]:
    made = _value(spec.type, version, limits, limits(cls, spec))
    if version in spec.nullable:
        made = st.none() | made
    return st.just(spec.default) | made if version in spec.tagged else made


def _value(
    type_: FieldType, version: int, limits: Limits, narrowed: st.SearchStrategy[Any] | None
) -> st.SearchStrategy[Any]:
    if isinstance(type_, Array):
        return st.lists(_value(type_.element, version, limits, narrowed), max_size=3).map(tuple)
    if not isinstance(type_, PrimitiveType):
        return messages(type_, version, limits)
    return narrowed if narrowed is not None else _kind(type_)


def _kind(kind: PrimitiveType) -> st.SearchStrategy[Any]:
    simple = {
        BOOL.name: st.booleans(),
        STRING.name: _TEXT,
        BYTES.name: _BYTES,
        RECORDS.name: _BYTES,
        UUID.name: st.binary(min_size=16, max_size=16),
        FLOAT64.name: st.floats(allow_nan=False),
    }
    if kind.name in simple:
        return simple[kind.name]
    bits = kind.size * 8
    signed = kind.code.islower()
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return st.integers(low, high)

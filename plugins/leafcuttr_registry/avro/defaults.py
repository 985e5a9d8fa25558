"""Whether a default is one of its field's type (specification, "Complex Types": the table of JSON forms).

For a union the value has to be one of any branch, as since Avro 1.12; before, it had to be one of the first.
"""

import math
import re
from typing import Final

from leafcuttr_registry.avro.types import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    NoDefault,
    RecordType,
    UnionType,
)
from leafcuttr_registry.budget import Budget
from leafcuttr_sdk.schemas import JsonValue, SchemaError

_RANGES: Final = {"int": range(-(1 << 31), 1 << 31), "long": range(-(1 << 63), 1 << 63)}
_MOST_LEVELS: Final = 200
_NUMBER: Final = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?\s*")
_SPECIAL: Final = re.compile(r"\s*([+-]?)(NaN|Infinity)\s*")


def number_in(text: str) -> float | None:
    """A number that is written as a string, as Java's Double.parseDouble reads it: the only way to write NaN in JSON.
    Not its hexadecimal form."""
    if match := _SPECIAL.fullmatch(text):
        return math.nan if match[2] == "NaN" else -math.inf if match[1] == "-" else math.inf
    return float(match[1]) if (match := _NUMBER.fullmatch(text)) else None


def valid(value: "JsonValue | NoDefault", of: AvroType, budget: Budget, level: int = 0) -> bool:
    """Raises SchemaError where that takes too many steps."""
    budget.spend()
    if level > _MOST_LEVELS:
        raise SchemaError(f"too complex: defaults are nested more than {_MOST_LEVELS} levels deep")
    if isinstance(of, UnionType):
        return any(valid(value, branch, budget, level + 1) for branch in of.branches)
    if isinstance(value, dict):
        if isinstance(of, MapType):
            return all(valid(one, of.values, budget, level + 1) for one in value.values())
        # A field that the default leaves out has its own.
        return isinstance(of, RecordType) and all(
            valid(value.get(field.name, field.default), field.type, budget, level + 1) for field in of.fields
        )
    if isinstance(value, list):
        return isinstance(of, ArrayType) and all(valid(one, of.items, budget, level + 1) for one in value)
    return _scalar(value, of)


def _scalar(value: "bool | int | float | str | NoDefault | None", of: AvroType) -> bool:
    if isinstance(value, str):
        if isinstance(of, EnumType):
            return value in of.symbols
        if isinstance(of, FixedType):
            return len(value) == of.size and _is_bytes(value)
        return of.kind == "string" or (of.kind == "bytes" and _is_bytes(value))
    if isinstance(value, bool):
        return of.kind == "boolean"
    if isinstance(value, int):
        return of.kind in ("float", "double") or (of.kind in _RANGES and value in _RANGES[of.kind])
    if isinstance(value, float):
        return of.kind in ("float", "double")
    return value is None and of.kind == "null"


def _is_bytes(text: str) -> bool:
    """Code points 0 to 255 stand for bytes."""
    return not text or max(text) <= "\xff"

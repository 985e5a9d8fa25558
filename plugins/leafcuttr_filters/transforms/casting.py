"""`cast`: Connect's Cast, with Java's rules for numbers."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from leafcuttr_filters.documents.fields import Path, update
from leafcuttr_filters.documents.json_values import CannotFilterError
from leafcuttr_filters.documents.parts import changer
from leafcuttr_filters.making import Judge
from leafcuttr_filters.transforms.fields import described, members_of
from leafcuttr_filters.transforms.numbers import BITS, single, text_of_double, whole, wrapped
from leafcuttr_sdk.filters import TopicContext
from leafcuttr_sdk.records import Record

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,30}")
_DOUBLE: Final = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?[fFdD]?\s*")
_LONGEST: Final = 400
"""Characters of a text that is read as a number."""


def make_cast(context: TopicContext, values: Mapping[str, Any]) -> Judge:
    spec: Mapping[Path, str] = values["spec"]
    parts = [(path, partial(_cast, path, kind)) for path, kind in spec.items()]
    whole_value = () in spec

    def cast(document: Any, _: Record) -> Any:
        if not whole_value:
            members_of(document)
        for path, change in parts:
            document = update(document, path, change) if path else change(document)
        return document

    return changer(context, values, cast)


def _cast(path: Path, kind: str, value: Any) -> Any:
    """Raises CannotFilterError."""
    if value is None:
        return None
    if type(value) not in (str, int, float, bool):
        raise CannotFilterError(f"{described(path)} is neither a text, a number nor true or false")
    try:
        new = _CASTS[kind](value)
    except (ValueError, OverflowError):
        raise CannotFilterError(f"{described(path)} cannot be cast to {kind}") from None
    return value if type(new) is type(value) and new == value else new


def _to_whole(bits: int, value: str | float | bool) -> int:
    if isinstance(value, str):
        if _WHOLE.fullmatch(value) is None:
            raise ValueError
        found = int(value)
        if not -(1 << bits - 1) <= found < 1 << bits - 1:
            raise ValueError
        return found
    return whole(value, bits) if isinstance(value, float) else wrapped(int(value), bits)


def _to_double(value: str | float | bool) -> float:
    if isinstance(value, str):
        if len(value) > _LONGEST or _DOUBLE.fullmatch(value) is None:
            raise ValueError
        return float(value.strip().rstrip("fFdD"))
    return float(value)


def _to_boolean(value: str | float | bool) -> bool:
    """Of a number it is the whole part that counts."""
    return value.lower() == "true" if isinstance(value, str) else _to_whole(64, value) != 0


def _to_text(value: str | float | bool) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return text_of_double(value) if isinstance(value, float) else str(value)


_CASTS: Final[dict[str, Callable[[Any], Any]]] = {
    **{name: partial(_to_whole, bits) for name, bits in BITS.items()},
    "float32": lambda value: single(_to_double(value)),
    "float64": _to_double,
    "boolean": _to_boolean,
    "string": _to_text,
}

"""Bodies as JSON. Large ones are read in worker processes: nothing else is imported here."""

from collections.abc import Collection
from typing import Any, Final

from leafcuttr_registry.storage import jackson

_MOST_VALUES: Final = 20_000
"""Texts, numbers, arrays and objects of a body. What is done with each of them holds the loop."""


class TooManyValuesError(Exception):
    """A body has more values than are worked with."""


def parse(data: bytes) -> Any:
    """A body as JSON. Raises ValueError, TooManyValuesError."""
    found = jackson.read(data)
    if len(data) > _MOST_VALUES:
        _count(found)
    return found


def _count(found: object) -> None:
    left, count = [found], 0
    while left:
        value = left.pop()
        inner: Collection[object] = ()
        if isinstance(value, dict):
            inner = value.values()
        elif isinstance(value, list):
            inner = value
        count += len(inner)
        if count > _MOST_VALUES:
            raise TooManyValuesError(f"The body has more than {_MOST_VALUES} values.")
        left += inner

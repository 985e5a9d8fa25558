"""Bodies as JSON. Large ones are read in worker processes: nothing else is imported here."""

from collections.abc import Collection
from time import process_time
from typing import Any, Final, NamedTuple

from leafcuttr_registry.storage import jackson
from leafcuttr_sdk.processor_limit import ProcessorLimitError, processor_limit
from leafcuttr_sdk.workers import WorkerDeadlineError

_MOST_VALUES: Final = 20_000
"""Texts, numbers, arrays and objects of a body. What is done with each of them holds the loop."""


class TooManyValuesError(Exception):
    """A body has more values than are worked with."""


class Parsed(NamedTuple):
    """A body, and what it took of the processor."""

    value: Any
    used_s: float


def parse_within(limit_s: float, data: bytes) -> Parsed:
    """In a worker process. Raises what `parse` raises, and WorkerDeadlineError once it has used so much of the
    processor's time; that is found at the end of each pass over the body, which no signal ends within."""
    began = process_time()
    try:
        with processor_limit(limit_s):
            value = parse(data)
    except ProcessorLimitError:
        raise WorkerDeadlineError(f"it used more than {limit_s:g} s of the processor") from None
    return Parsed(value, process_time() - began)


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

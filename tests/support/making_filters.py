"""Filters of definitions, for tests: made as a broker makes them."""

from __future__ import annotations

import json
from typing import Any

import leafcuttr_filters as plugin
from leafcuttr_filters.definitions.parsing import parse_definition
from leafcuttr_filters.making import make
from leafcuttr_sdk import DROP, DeadLetter, Record, RecordFilter, SchemaProvider
from leafcuttr_sdk.testing import HandClock, topic_context

NOW = 1_795_249_800_000
"""2026-11-21T08:30:00Z"""


def made(
    text: str,
    *,
    topic: str = "orders",
    clock: HandClock | None = None,
    routes: bool = True,
    schemas: SchemaProvider | None = None,
) -> RecordFilter:
    context = topic_context(topic, plugin=plugin, clock=clock or HandClock(NOW), schemas=schemas)
    return make(parse_definition(text), context._replace(routes=routes))


def of(value: Any, key: bytes | None = None, **fields: Any) -> Record:
    """A record with this value as JSON; bytes and None as they are."""
    data = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
    return Record(data, key, **{"timestamp": NOW, **fields})


def value_of(text: str, value: Any, **more: Any) -> Any:
    """What a filter makes of a value, as JSON; what it says where that is no record."""
    verdict = made(text, **more).filter(of(value))
    if not isinstance(verdict, Record):
        return verdict
    return None if verdict.value is None else json.loads(verdict.value)


def reason_of(text: str, value: Any, **more: Any) -> str:
    """Why a filter sets a value aside."""
    verdict = made(f"{text} on.error=dead-letter", **more).filter(of(value))
    assert isinstance(verdict, DeadLetter), verdict
    return verdict.reason


def passes(text: str, record: Record, **more: Any) -> bool:
    """Whether the very record passes; else it has to be dropped."""
    verdict = made(text, **more).filter(record)
    assert verdict is record or verdict is DROP, verdict
    return verdict is record

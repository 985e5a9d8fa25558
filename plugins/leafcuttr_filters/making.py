"""An instance of a definition for one topic: what every type has in common is put around what its own module makes.

A type's module gives a plain function of a record, or an object with `filter`. It raises CannotFilterError for a record
that it cannot handle.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, cast

from leafcuttr_filters.definitions.parsing import Definition
from leafcuttr_filters.documents.by_schema import NotReadyYetError, SchemaDocuments, waiting
from leafcuttr_filters.documents.json_values import CannotFilterError, decoded
from leafcuttr_sdk.conditions import Condition
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.filters import DROP, DeadLetter, NotReady, RecordFilter, TopicContext, Verdict
from leafcuttr_sdk.records import Headers, Record

Judge: TypeAlias = Callable[[Record], Verdict]


class MadeFilter:
    """A record filter whose methods are functions, so that a record costs one call less."""

    forget: Callable[[], None]
    """Only of one that remembers records."""
    filter_in_thread: Callable[[Sequence[Record]], Sequence[Verdict]]
    """Only of one that may have to wait for worker processes."""

    def __init__(self, judge: Judge) -> None:
        self.filter: Final = judge


def make(definition: Definition, context: TopicContext) -> RecordFilter:
    """Raises PluginError, and ValueError for what only shows now."""
    module, _, name = definition.type.make.partition(":")
    made = getattr(importlib.import_module(f"leafcuttr_filters.{module}"), name)(context, definition.values)
    forget: Callable[[], None] | None = getattr(made, "forget", None)
    judge: Judge = made.filter if hasattr(made, "filter") else made
    condition: Condition | None = definition.values["when"]
    if condition is not None:
        judge = _conditional(judge, matcher(condition, context, definition.values))
    judge = _guarded(judge, definition)
    filter_ = MadeFilter(judge)
    if forget is not None:
        filter_.forget = forget
    if definition.values.get("decode") == "schema" and not context.routes:
        filter_.filter_in_thread = partial(_in_thread, judge)
    return cast("RecordFilter", filter_)


def _in_thread(judge: Judge, records: Sequence[Record]) -> Sequence[Verdict]:
    with waiting():
        return [judge(record) for record in records]


def matcher(
    condition: Condition, context: TopicContext, values: Mapping[str, Any]
) -> Callable[[Record], bool]:
    """Whether the condition is true for a record, whose documents are those that other filters have made; by schema
    where the filter reads so. Raises PluginError."""
    matches = condition.matches
    if values.get("decode") == "schema":
        part = values.get("part", "value")
        documents = SchemaDocuments(context, part)

        def matches_by_schema(record: Record) -> bool:
            fields = _OfTopic(record, context.topic)
            return matches(fields, document=partial(_document_by_schema, documents, part, record))

        return matches_by_schema
    if "topic" not in condition.fields:
        return lambda record: matches(record, document=_document)
    topic = context.topic
    return lambda record: matches(_OfTopic(record, topic), document=_document)


def utf8(data: bytes) -> str:
    """What is no UTF-8 stays, as lone surrogates."""
    return data.decode(errors="surrogateescape")


class _OfTopic:
    """A record as a condition reads it, with its topic."""

    __slots__ = ("headers", "key", "timestamp", "topic", "value")

    def __init__(self, record: Record, topic: str) -> None:
        self.value: bytes | None
        self.key: bytes | None
        self.headers: Headers
        self.timestamp: int | None
        self.value, self.key, self.headers, self.timestamp = record
        self.topic = topic


def _document(_: str, data: bytes) -> Any:
    try:
        return decoded(data)
    except CannotFilterError:
        return None


def _document_by_schema(documents: SchemaDocuments, of: str, record: Record, part: str, data: bytes) -> Any:
    if part != of:
        return _document(part, data)
    try:
        return documents.decoded(record, data)[0]
    except CannotFilterError:
        return None


def _conditional(judge: Judge, matches: Callable[[Record], bool]) -> Judge:
    def judged(record: Record) -> Verdict:
        return judge(record) if matches(record) else record

    return judged


def _guarded(judge: Judge, definition: Definition) -> Judge:
    """With what becomes of a record that cannot be handled."""
    policy, kind = definition.on_error, definition.type.name

    def judged(record: Record) -> Verdict:
        try:
            return judge(record)
        except NotReadyYetError as error:
            return NotReady(str(error))
        except (CannotFilterError, RecursionError) as error:
            why = str(error) if isinstance(error, CannotFilterError) else "it is nested too deeply"
            if policy == "fail":
                raise PluginError(f"{kind}: {why}") from None
            return DROP if policy == "drop" else DeadLetter(f"{kind}: {why}")

    return judged

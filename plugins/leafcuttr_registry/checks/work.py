"""What a worker process does. It has nothing of the broker: a format is sent as the class that it is of."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from time import process_time
from typing import Any, Final, Generic, NamedTuple, TypeVar

from leafcuttr_registry.inline_tags import Tagged, TaggedPlace, Tags
from leafcuttr_sdk.processor_limit import ProcessorLimitError, processor_limit
from leafcuttr_sdk.schemas import Difference, ParsedSchema, ResolvedReference, SchemaError, SchemaFormat
from leafcuttr_sdk.workers import WorkerDeadlineError

T = TypeVar("T")


class Source(NamedTuple):
    """A schema as text, with those that it names."""

    text: str
    references: Mapping[str, ResolvedReference]


class Reading(NamedTuple):
    """What a format says of a text."""

    canonical: str
    normalized: str
    record_name: str | None


_MOST: Final = 1000
"""Schemas that are remembered."""
_MOST_TEXT: Final = 256 * 1024
"""Characters of one of them."""
_MOST_TEXTS: Final = 2 * 1024 * 1024
"""Characters of all."""


class _Remembered:
    """The schemas without references that were used last, by format and text."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], ParsedSchema] = OrderedDict()
        self._size = 0

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: tuple[str, str]) -> ParsedSchema | None:
        found = self._known.get(key)
        if found is not None:
            self._known.move_to_end(key)
        return found

    def put(self, key: tuple[str, str], schema: ParsedSchema) -> None:
        if key not in self._known:
            self._size += len(key[1])
        self._known[key] = schema
        self._known.move_to_end(key)
        while len(self._known) > _MOST or self._size > _MOST_TEXTS:
            (_, text), _ = self._known.popitem(last=False)
            self._size -= len(text)

    def clear(self) -> None:
        self._known.clear()
        self._size = 0


_parsed: Final = _Remembered()
"""A new version is compared with the ones before, which were read when they were new, or compared with the last one."""
_canonical: Final = _Remembered()
"""Those by their canonical texts, which say the same: what was just read is compared by that. For comparing alone,
since other forms of a schema may keep more of what was written."""

_prepared: Final[set[str]] = set()
"""The names of formats that have imported what they import late."""


class Done(NamedTuple, Generic[T]):
    """What a call has come to, and what that took of the processor."""

    value: T
    used_s: float


def within(limit_s: float, function: Callable[..., T], format: SchemaFormat, more: Sequence[Any]) -> Done[T]:
    """The function of a format and what else it takes. Raises what it raises, and WorkerDeadlineError once it has used
    so much of the processor's time. The first call in a process imports the format: that does not count, nor does the
    time in which the processor does other work."""
    if format.name not in _prepared:
        getattr(format, "prepare", _nothing)()
        _prepared.add(format.name)
    began = process_time()
    try:
        with processor_limit(limit_s):
            value = function(format, *more)
    except ProcessorLimitError:
        # It may have been ended within an entry.
        _parsed.clear()
        _canonical.clear()
        raise WorkerDeadlineError(f"it used more than {limit_s:g} s of the processor") from None
    return Done(value, process_time() - began)


def _nothing() -> None:
    pass


def read(format: SchemaFormat, source: Source) -> Reading:
    """Raises SchemaError."""
    with _shallow():
        schema = parse(format, source)
        if not source.references and len(source.text) <= _MOST_TEXT:
            _canonical.put((format.name, schema.canonical), schema)
        return Reading(schema.canonical, schema.normalized(), schema.record_name)


def render(format: SchemaFormat, source: Source, how: str) -> str:
    """Raises SchemaError."""
    with _shallow():
        return parse(format, source).formatted(how)


def tags(format: SchemaFormat, source: Source) -> dict[TaggedPlace, list[str]]:
    """What is tagged in a schema; nothing in one of a format that knows no tags. Raises SchemaError."""
    with _shallow():
        schema: object = parse(format, source)
        return schema.tags() if isinstance(schema, Tagged) else {}


def with_tags(format: SchemaFormat, source: Source, added: Tags, removed: Tags, propagated: Tags) -> str:
    """The text with these tags. `propagated` are added where their places are still there. Raises SchemaError."""
    with _shallow():
        schema: object = parse(format, source)
        if not isinstance(schema, Tagged):
            if added or removed:
                raise SchemaError(
                    f"schemas of type {format.name} have no tags in them; metadata have tags too"
                )
            return source.text
        if propagated:
            there = schema.places()
            kept = {place: each for place, each in propagated.items() if place in there}
            added = {place: (*kept.get(place, ()), *added.get(place, ())) for place in (*kept, *added)}
        return schema.with_tags(added, removed) if added or removed else source.text


def fields(format: SchemaFormat, source: Source) -> frozenset[str]:
    """The names of the fields of its top level, for `validateFields`; none of a format that does not tell them. Raises
    SchemaError for a name that is not allowed then."""
    with _shallow():
        told: Callable[[], Iterable[str]] | None = getattr(parse(format, source), "top_level_fields", None)
        return frozenset(told() if told is not None else ())


def compare(
    format: SchemaFormat,
    new: Source,
    others: Sequence[tuple[Source, bool, bool]],
    lenient: bool = False,
    budget_s: float = inf,
) -> list[list[Difference]]:
    """For each of the others why not: where the new one has to read it, and where it has to read the new one. It ends
    with the first that has reasons, or when the time is used up: at least one has been compared then. Raises
    SchemaError."""
    found: list[list[Difference]] = []
    until = process_time() + budget_s
    differences = _lenient(format) if lenient else format.differences
    with _shallow():
        schema = _to_compare(format, new)
        for source, backward, forward in others:
            other = _to_compare(format, source)
            reasons = list(differences(schema, other)) if backward else []
            if forward:
                reasons += differences(other, schema)
            found.append(reasons)
            if reasons or process_time() >= until:
                break
    return found


def _lenient(format: SchemaFormat) -> Callable[[ParsedSchema, ParsedSchema], Sequence[Difference]]:
    """How a format compares under `compatibilityPolicy=LENIENT`. Only JSON Schema makes a difference."""
    found: Callable[[ParsedSchema, ParsedSchema], Sequence[Difference]] = getattr(
        format, "lenient_differences", format.differences
    )
    return found


def _to_compare(format: SchemaFormat, source: Source) -> ParsedSchema:
    """Raises SchemaError."""
    known = None if source.references else _canonical.get((format.name, source.text))
    return parse(format, source) if known is None else known


@contextmanager
def _shallow() -> Iterator[None]:
    """What is nested deeper than a format has thought of is refused, not a failure of the registry."""
    try:
        yield
    except RecursionError:
        raise SchemaError("too complex: it is nested too deeply") from None


def parse(format: SchemaFormat, source: Source) -> ParsedSchema:
    """Raises SchemaError."""
    if source.references or len(source.text) > _MOST_TEXT:
        return format.parse(source.text, source.references)
    key = format.name, source.text
    schema = _parsed.get(key)
    if schema is None:
        schema = format.parse(source.text, source.references)
        _parsed.put(key, schema)
    return schema

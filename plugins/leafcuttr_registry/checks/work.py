"""What a worker process does. It has nothing of the broker: a format is sent as the class that it is of."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from leafcuttr_sdk.schemas import Difference, ParsedSchema, ResolvedReference, SchemaError, SchemaFormat


class Source(NamedTuple):
    """A schema as text, with those that it names."""

    text: str
    references: Mapping[str, ResolvedReference]


class Reading(NamedTuple):
    """What a format says of a text."""

    canonical: str
    normalized: str
    record_name: str | None


_MOST: Final = 256
_MOST_TEXT: Final = 256 * 1024
_parsed: Final[OrderedDict[tuple[str, str], ParsedSchema]] = OrderedDict()
"""Schemas without references that were parsed last: a new version is compared with the one before, which was read when
it was new."""
_canonical: Final[OrderedDict[tuple[str, str], ParsedSchema]] = OrderedDict()
"""Those by their canonical texts, which say the same: what was just read is compared by that. For comparing alone,
since other forms of a schema may keep more of what was written."""


def read(format: SchemaFormat, source: Source) -> Reading:
    """Raises SchemaError."""
    with _shallow():
        schema = parse(format, source)
        if not source.references and len(source.text) <= _MOST_TEXT:
            key = format.name, schema.canonical
            _canonical[key] = schema
            _canonical.move_to_end(key)
            if len(_canonical) > _MOST:
                _canonical.popitem(last=False)
        return Reading(schema.canonical, schema.normalized(), schema.record_name)


def render(format: SchemaFormat, source: Source, how: str) -> str:
    """Raises SchemaError."""
    with _shallow():
        return parse(format, source).formatted(how)


def compare(
    format: SchemaFormat, new: Source, others: Sequence[tuple[Source, bool, bool]]
) -> list[list[Difference]]:
    """For each of the others why not: where the new one has to read it, and where it has to read the new one. Raises
    SchemaError."""
    found = []
    with _shallow():
        schema = _to_compare(format, new)
        for source, backward, forward in others:
            other = _to_compare(format, source)
            reasons = list(format.differences(schema, other)) if backward else []
            if forward:
                reasons += format.differences(other, schema)
            found.append(reasons)
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
        schema = _parsed[key] = format.parse(source.text, source.references)
        if len(_parsed) > _MOST:
            _parsed.popitem(last=False)
    else:
        _parsed.move_to_end(key)
    return schema

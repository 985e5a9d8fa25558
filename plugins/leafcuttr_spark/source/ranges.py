"""Offsets to the parts that tasks read. Without I/O."""

from collections.abc import Sequence
from itertools import pairwise

from leafcuttr_spark.source.losses import Span


def divided(spans: Sequence[Span], minimum: int | None, largest: int | None) -> list[Span]:
    """The spans in parts of at most `largest` offsets, and about `minimum` parts at least: the larger a span, the more.
    Without either, as they are."""
    if largest is not None:
        spans = [part for span in spans for part in _parts(span, -(-_size(span) // largest))]
    if minimum is None or len(spans) >= minimum:
        return list(spans)
    total = sum(map(_size, spans))
    # Those that are too small to be divided leave the others more.
    small = [span for span in spans if _size(span) * minimum < total * 1.5]
    left, size = minimum - len(small), total - sum(map(_size, small))
    found = []
    for span in spans:
        if _size(span) * minimum < total * 1.5:
            found.append(span)
        else:
            found += _parts(span, max(1, round(left * _size(span) / size)))
    return found


def _size(span: Span) -> int:
    return span.end - span.first


def _parts(span: Span, count: int) -> list[Span]:
    """At most so many parts, whose sizes differ by one at most."""
    size = _size(span)
    count = max(1, min(count, size))
    edges = [span.first + size * number // count for number in range(count + 1)]
    return [Span(span.partition, first, end) for first, end in pairwise(edges)]

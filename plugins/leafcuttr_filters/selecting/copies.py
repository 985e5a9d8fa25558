"""`dedupe`: copies of records that came within a time, by key, value, both, or a field.

Each record is remembered by a digest of 16 bytes, with the time that it came; the oldest ones go first, when their time
is over or there are too many. A restart, or a change of the topic's settings, forgets all; so does `forget`, when
records that were judged were not stored. Then copies may pass, and nothing is lost.
"""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Final

from leafcuttr_filters.documents.fields import MISSING, get
from leafcuttr_filters.documents.parts import reader
from leafcuttr_filters.selecting.excess import verdict_on_excess
from leafcuttr_filters.transforms.texts import text_of
from leafcuttr_sdk.filters import TopicContext, Verdict
from leafcuttr_sdk.records import Record

_DIGEST: Final = 16
_OLD: Final = 64
"""How many that are over are forgotten for one that comes: so a record takes a bounded time."""


def make_dedupe(context: TopicContext, values: Mapping[str, Any]) -> "Dedupe":
    return Dedupe(context, values)


class Dedupe:
    def __init__(self, context: TopicContext, values: Mapping[str, Any]) -> None:
        self._identity = _identities(context, values)[values["by"]]()
        self._window = values["window"] / 1000
        self._most: int = values["most"]
        self._now = context.clock.monotonic
        self._seen: dict[bytes, float] = {}  # when; in the order in which they came
        self._copy = verdict_on_excess(values["over"], f"dedupe: a copy by {values['by']}")

    def filter(self, record: Record) -> Verdict:
        identity = self._identity(record)
        if identity is None:
            return record
        digest = blake2b(identity, digest_size=_DIGEST).digest()
        now, seen = self._now(), self._seen
        came = seen.get(digest)
        if came is not None:
            if now - came < self._window:
                return self._copy
            del seen[digest]
        elif len(seen) >= self._most:
            del seen[next(iter(seen))]
        seen[digest] = now
        for _ in range(_OLD):
            oldest = next(iter(seen))
            if now - seen[oldest] < self._window:
                break
            del seen[oldest]
        return record

    def forget(self) -> None:
        self._seen.clear()


def _identities(
    context: TopicContext, values: Mapping[str, Any]
) -> Mapping[str, Callable[[], Callable[[Record], bytes | None]]]:
    """By `by`: what makes the function to the bytes by which records are alike."""
    return {
        "key": lambda: lambda record: record.key,
        "value": lambda: lambda record: record.value,
        "key-and-value": lambda: _both,
        "field": lambda: _field(context, values),
    }


def _both(record: Record) -> bytes | None:
    key, value = record.key, record.value
    if key is None and value is None:
        return None
    # Lengths keep apart what would read the same one behind the other.
    return (
        b"%d %d " % (-1 if key is None else len(key), -1 if value is None else len(value))
        + (key or b"")
        + (value or b"")
    )


def _field(context: TopicContext, values: Mapping[str, Any]) -> Callable[[Record], bytes | None]:
    read, path = reader(context, values), values["field"]

    def identity(record: Record) -> bytes | None:
        if record.value is None:
            return None
        found = get(read(record, record.value), path)
        if found is MISSING or found is None:
            return None
        return f"{type(found).__name__} {text_of(found)}".encode(errors="surrogatepass")

    return identity

"""What a client remembers of a registry: answers that never change, a bounded number of them. Any thread. No I/O.

Ids belong to a context, guids and versions to the whole registry: what a version of a subject has is never changed, but
it may be deleted. The latest version of a subject is not remembered.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Generic, NamedTuple, TypeVar

from leafcuttr_sdk.schemas import RegisteredSchema, SchemaVersion, context_of

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Bounded(Generic[K, V]):
    """The `most` that were used last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: K, value: V) -> None:
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def drop(self, key: K) -> None:
        with self._lock:
            self._kept.pop(key, None)


class _Asked(NamedTuple):
    subject: str
    format: str
    text: str
    references: tuple[Any, ...]


class SchemaMemory:
    """`missing_s` is for how long an id that is not there is not requested again."""

    def __init__(self, capacity: int, missing_s: float) -> None:
        self._missing_s = missing_s
        self._by_id: Bounded[tuple[str, int], RegisteredSchema] = Bounded(capacity)
        self._by_guid: Bounded[str, RegisteredSchema] = Bounded(capacity)
        self._by_version: Bounded[tuple[str, int], SchemaVersion] = Bounded(capacity)
        self._by_text: Bounded[_Asked, SchemaVersion | RegisteredSchema] = Bounded(capacity)
        self._subjects: Bounded[tuple[str, int], frozenset[str]] = Bounded(capacity)
        self._missing: Bounded[tuple[str, int | str], float] = Bounded(capacity)

    def get(self, key: int | str, subject: str | None) -> RegisteredSchema | None:
        if isinstance(key, int):
            return self._by_id.get((context_of(subject), key))
        return self._by_guid.get(key.lower())

    def version(self, subject: str, version: int) -> SchemaVersion | None:
        return self._by_version.get((subject, version))

    def belongs(self, key: int | str, subject: str) -> bool:
        found = self.get(key, subject)
        if found is None:
            return False
        return subject in (self._subjects.get((context_of(subject), found.id)) or ())

    def has(self, schema: RegisteredSchema, subject: str | None) -> None:
        """A schema of the context of this subject."""
        self._by_id.put((context_of(subject), schema.id), schema)
        if schema.guid:
            self._by_guid.put(schema.guid.lower(), schema)

    def is_in(self, schema: RegisteredSchema, subject: str) -> None:
        """A version of the subject has it."""
        self.has(schema, subject)
        key = context_of(subject), schema.id
        self._subjects.put(key, (self._subjects.get(key) or frozenset()) | {subject})

    def has_version(self, found: SchemaVersion, subject: str) -> None:
        """As it was requested: an alias of a subject has another name than the answer."""
        self._by_version.put((subject, found.version), found)
        self.is_in(found.schema, subject)

    def asked(
        self, what: type[V], subject: str, format: str, text: str, references: tuple[Any, ...]
    ) -> V | None:
        """What `answered` has noted for the same."""
        found: Any = self._by_text.get(_Asked(f"{what.__name__}:{subject}", format, text, references))
        return found if isinstance(found, what) else None

    def answered(
        self,
        found: SchemaVersion | RegisteredSchema,
        subject: str,
        format: str,
        text: str,
        references: tuple[Any, ...],
    ) -> None:
        kind = type(found).__name__
        self._by_text.put(_Asked(f"{kind}:{subject}", format, text, references), found)

    def is_missing(self, key: int | str, subject: str | None, now: float) -> bool:
        until = self._missing.get((context_of(subject), key))
        return until is not None and now < until

    def lacks(self, key: int | str, subject: str | None, now: float) -> None:
        """There is no such schema, at this time."""
        if self._missing_s > 0:
            self._missing.put((context_of(subject), key), now + self._missing_s)

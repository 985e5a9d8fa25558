"""What all requests share that encode or decode by schemas: worker threads, and codecs that are not in use."""

from collections import OrderedDict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.schemas import ParsedSchema, SchemaCodec

_THREADS: Final = 3
"""They take the interpreter from the loop and from each other: more would make none of them quicker."""
_SCHEMAS: Final = 200
_SPARE: Final = _THREADS
_MISSING_S: Final = 1.0
_MOST_MISSING: Final = 1000

Key = int | str
"""An id, or a guid as text."""
Path = tuple[int, ...]


class Codecs:
    """Codecs by schema and message, each lent to one at a time. Any thread."""

    def __init__(self) -> None:
        self._spare: OrderedDict[tuple[Key, Path], tuple[ParsedSchema, list[SchemaCodec]]] = OrderedDict()
        self._lock = Lock()

    def take(self, key: Key, schema: "ParsedSchema", path: Path) -> "SchemaCodec":
        """Raises DataError for a path that leads to no message."""
        with self._lock:
            known = self._spare.get((key, path))
            # An id that was deleted for good may be imported again with another schema.
            if known is not None and known[0] is schema and known[1]:
                return known[1].pop()
        return schema.codec(path)

    def give_back(self, key: Key, schema: "ParsedSchema", path: Path, codec: "SchemaCodec") -> None:
        with self._lock:
            known = self._spare.get((key, path))
            if known is None or known[0] is not schema:
                known = self._spare[key, path] = schema, []
            if len(known[1]) < _SPARE:
                known[1].append(codec)
            self._spare.move_to_end((key, path))
            if len(self._spare) > _SCHEMAS:
                self._spare.popitem(last=False)

    @contextmanager
    def lent(self, key: Key, schema: "ParsedSchema", path: Path) -> "Iterator[SchemaCodec]":
        codec = self.take(key, schema, path)
        try:
            yield codec
        finally:
            self.give_back(key, schema, path, codec)


class Schemas:
    """One for a start of the proxy."""

    def __init__(self, broker: "Broker") -> None:
        self.broker: Final = broker
        self.codecs: Final = Codecs()
        self.registered: Final[OrderedDict[tuple[str, str, bytes], int]] = OrderedDict()
        """Ids of schemas that requests gave as texts: by subject, type and hash."""
        self._limiter = trio.CapacityLimiter(_THREADS)
        self._missing: dict[Key, float] = {}

    async def work(self, steps: Generator[None, None, None]) -> None:
        """Run all steps in a worker thread; between two of them it can be cancelled. Raises what they raise."""
        stopped = False

        def run() -> None:
            for _ in steps:
                if stopped:
                    steps.close()
                    return

        try:
            await trio.to_thread.run_sync(run, limiter=self._limiter, abandon_on_cancel=True)
        finally:
            stopped = True

    def is_missing(self, key: Key) -> bool:
        """Whether the registry has said a moment ago that it has no such schema."""
        return self._missing.get(key, 0.0) > self.broker.clock.monotonic()

    def missing(self, key: Key) -> None:
        """The registry has no such schema: it is not asked again for a moment, whatever records claim."""
        if len(self._missing) >= _MOST_MISSING:
            self._missing.clear()
        self._missing[key] = self.broker.clock.monotonic() + _MISSING_S

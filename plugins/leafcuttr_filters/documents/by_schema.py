"""Keys and values by schemas of a registry: the id is in their first bytes or in a header, and stays as it is.

The schemas are those that the registry has in memory; where it has not read them all yet, a record has to come again.

A JSON Schema with regular expressions or alternatives may keep a value busy without a bound. A worker process decodes
and encodes values of such a schema, for which only a thread can wait: a topic's filters get one, and raise NeedsThread
before; outside of a topic there is none, so that such a record cannot be handled.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import UUID

from leafcuttr_filters.documents.json_values import CannotFilterError
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.filters import NeedsThread
from leafcuttr_sdk.schema_framing import KEY_HEADER, VALUE_HEADER, read_indexes, read_prefix
from leafcuttr_sdk.schema_work import WorkerCodec, WorkTime
from leafcuttr_sdk.schemas import DataError, SchemaError

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.filters import TopicContext
    from leafcuttr_sdk.records import Record
    from leafcuttr_sdk.schemas import ParsedSchema, SchemaCodec

_time: Final[ContextVar[WorkTime | None]] = ContextVar("time of workers", default=None)
"""What is left of it for the batch that this thread judges; None where nothing can be waited for."""
_MOST: Final = 1000
_PROTOBUF: Final = "PROTOBUF"


@contextmanager
def waiting() -> Iterator[None]:
    """In the block this thread, one of `trio.to_thread`, waits for worker processes: for one batch."""
    token = _time.set(WorkTime())
    try:
        yield
    finally:
        _time.reset(token)


class NotReadyYetError(Exception):
    """The registry cannot answer yet; the text says what it lacks."""


class SchemaDocuments:
    """Of the keys or the values of one topic. Raises PluginError where there is no registry."""

    def __init__(self, context: "TopicContext", part: str) -> None:
        if context.schemas is None:
            raise PluginError(
                "decode=schema needs a schema registry in this broker: lc.schema.registry.enable=true switches it on"
            )
        self._schemas = context.schemas
        self._in_a_topic = not context.routes
        # The object that hooks and services get, which is one.
        self._broker = cast("Broker", context.broker)
        self._header = KEY_HEADER if part == "key" else VALUE_HEADER
        self._codecs: dict[tuple[int | str, tuple[int, ...]], SchemaCodec] = {}

    def decoded(self, record: "Record", data: bytes) -> tuple[Any, bytes, "SchemaCodec"]:
        """The document, the bytes before it, and what encodes it again. Raises CannotFilterError, NotReadyYetError,
        NeedsThread."""
        try:
            key, at, path = self._claim(record, data)
            codec = self._codec(key, path)
            return codec.decode(data[at:]), data[:at], codec
        except DataError as error:
            raise CannotFilterError(f"it is not of its schema: {error}") from None

    def _claim(self, record: "Record", data: bytes) -> tuple[int | str, int, tuple[int, ...]]:
        """The id, or the guid as text, where the data begin, and the path to the message of a Protobuf schema. Raises
        DataError, CannotFilterError, NotReadyYetError."""
        header = next((value for name, value in reversed(record.headers) if name == self._header), None)
        prefix = read_prefix(data if header is None else header)
        key = str(prefix.schema) if isinstance(prefix.schema, UUID) else prefix.schema
        at = prefix.end if header is None else 0
        waits_for = self._schemas.waits_for
        registered = self._schemas.get(key)
        if registered is None:
            if waits_for is not None:
                raise NotReadyYetError(waits_for)
            raise CannotFilterError(f"there is no schema {key}")
        if registered.format != _PROTOBUF:
            return key, at, ()
        if header is not None:
            return key, at, read_indexes(header, prefix.end)[0]
        path, at = read_indexes(data, at)
        return key, at, path

    def _codec(self, key: int | str, path: tuple[int, ...]) -> "SchemaCodec":
        codec = self._codecs.get((key, path))
        if codec is None:
            try:
                schema = self._schemas.parsed(key)
            except SchemaError as error:
                raise CannotFilterError(f"schema {key}: {error}") from None
            if schema is None:
                raise CannotFilterError(f"schema {key}: it is not there any more")
            if schema.needs_worker:
                return self._by_worker(schema, key, path)
            codec = schema.codec(path) if path else schema.codec()
            if len(self._codecs) >= _MOST:
                self._codecs.clear()
            self._codecs[key, path] = codec
        return codec

    def _by_worker(self, schema: "ParsedSchema", key: int | str, path: tuple[int, ...]) -> "SchemaCodec":
        """Raises NeedsThread, CannotFilterError."""
        if not self._in_a_topic:
            raise CannotFilterError(f"schema {key}: it may take too long to check values by it")
        time = _time.get()
        if time is None:
            raise NeedsThread(
                f"schema {key} may keep a value busy without a bound: it needs a worker process, for which only the "
                "filters of a topic can wait"
            )
        return WorkerCodec(self._broker, schema, path, time)

"""Stored records to JSON, by the schemas that they name.

First, on the loop, the registry gets schemas that it has not in memory (`learn`). Then a `Decoder` takes one
record after the other, in one worker thread, and waits for nothing.
"""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_http.schemas.claims import claim_of, schemas_of
from leafcuttr_http.schemas.shared import Key, Path, Schemas
from leafcuttr_http.schemas.types import PROTOBUF
from leafcuttr_sdk.records import Headers, StoredRecord
from leafcuttr_sdk.schema_framing import FIRST_MESSAGE, KEY_HEADER, VALUE_HEADER, read_indexes
from leafcuttr_sdk.schema_work import WorkerCodec, WorkTime
from leafcuttr_sdk.schemas import DataError, JsonValue, SchemaError, SchemaNotFoundError

if TYPE_CHECKING:
    from leafcuttr_sdk.schemas import ParsedSchema, SchemaCodec, SchemaProvider

_TURN: Final = 500
"""Records whose first bytes are read before others have their turn."""
_PLAIN: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_ESCAPED: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


async def learn(schemas: Schemas, provider: "SchemaProvider", records: Sequence[StoredRecord]) -> None:
    """Have the registry hold the schemas of these records in memory, as far as it has them. Raises
    SchemaProviderError."""
    asked: set[Key] = set()
    number = 0
    for key in schemas_of(records):
        if key is None:
            number += 1
            if not number % _TURN:
                await trio.lowlevel.checkpoint()
        elif key not in asked:
            asked.add(key)
            if provider.get(key) is None and not schemas.is_missing(key):
                try:
                    await provider.by_id(key)
                except SchemaNotFoundError:
                    schemas.missing(key)


class Decoder:
    """For records of one type of schemas; None is any. A context, in which it may be used by one thread at a time."""

    def __init__(
        self, schemas: Schemas, provider: "SchemaProvider", type: str | None, *, lacking: str | None = None
    ) -> None:
        """`lacking` says why the registry could not be asked."""
        self._broker = schemas.broker
        self._time = WorkTime()
        self._codecs = schemas.codecs
        self._provider = provider
        self._type = type
        self._lacking = lacking
        self._found: dict[Key, tuple[ParsedSchema, bool] | DataError] = {}
        self._lent: dict[tuple[Key, Path], SchemaCodec] = {}
        self._stack = ExitStack()

    def __enter__(self) -> "Decoder":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()
        self._lent.clear()

    def key(self, data: bytes, headers: Headers) -> JsonValue:
        """Raises DataError."""
        return self._value(data, headers, KEY_HEADER)

    def value(self, data: bytes, headers: Headers) -> JsonValue:
        """Raises DataError."""
        return self._value(data, headers, VALUE_HEADER)

    def _value(self, data: bytes, headers: Headers, header: str) -> JsonValue:
        key, source, end, in_header = claim_of(data, headers, header)
        schema, has_messages = self._schema(key)
        path = FIRST_MESSAGE
        if has_messages:
            path, end = read_indexes(source, end)
        at = 0 if in_header else end
        codec = self._lent.get((key, path))
        if codec is None:
            codec = self._lent[key, path] = self._codec(key, schema, path)
        return codec.decode(data[at:])

    def _codec(self, key: Key, schema: "ParsedSchema", path: Path) -> "SchemaCodec":
        """Raises DataError."""
        if schema.needs_worker:
            return WorkerCodec(self._broker, schema, path, self._time)
        return self._stack.enter_context(self._codecs.lent(key, schema, path))

    def _schema(self, key: Key) -> "tuple[ParsedSchema, bool]":
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._find(key)
        if isinstance(found, DataError):
            raise found
        return found

    def _find(self, key: Key) -> "tuple[ParsedSchema, bool] | DataError":
        registered = self._provider.get(key)
        if registered is None:
            return DataError(self._lacking or f"the registry has no schema {key}")
        if self._type is not None and registered.format != self._type:
            return DataError(f"schema {key} is of type {registered.format}, not {self._type}")
        try:
            schema = self._provider.parsed(key)
        except SchemaError as error:
            return DataError(f"schema {key} cannot be read: {error}")
        if schema is None:
            return DataError(f"the registry has no schema {key}")
        return schema, registered.format == PROTOBUF


def to_text(value: JsonValue) -> str:
    """Compact JSON in one line. Raises DataError for what is none."""
    try:
        text = _PLAIN(value)
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair: JSON has it as an escape alone.
        return _ESCAPED(value)
    except (ValueError, RecursionError) as error:
        raise DataError(f"it has no form in JSON: {error}") from None
    return text

"""Records as the API's JSON: in the format that the consumer was made for. Pure.

In the JSON format a value is the JSON that was stored, letter for letter. A key that is no JSON is given as its text:
that is how a key comes in with `application/json`. In formats with schemas both are decoded by the schemas that they
name; a key that names none is given as its text too.
"""

import json
from binascii import b2a_base64
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NoReturn

from leafcuttr_http.errors import ApiError
from leafcuttr_sdk.records import Headers, StoredRecord
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_http.schemas.decoding import Decoder

Render = Callable[[StoredRecord], str]


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODE: Final = json.JSONDecoder(parse_constant=_refuse).decode
_TEXT: Final = json.JSONEncoder(ensure_ascii=False).encode


def as_json(record: StoredRecord) -> str:
    """Raises ApiError 42203 for a value that is not JSON."""
    value = "null" if record.value is None else _json(record.value)
    if value is None:
        raise ApiError(
            42203,
            f"The value at offset {record.offset} of {record.topic}-{record.partition} is not JSON. Read it with a "
            f"consumer of format binary, or go on behind it: POST .../positions with offset {record.offset + 1}.",
        )
    return _record(record, "null" if record.key is None else _json(record.key) or _text(record.key), value)


def as_binary(record: StoredRecord) -> str:
    return _record(record, _base64(record.key), _base64(record.value))


def as_decoded(record: StoredRecord, decoder: "Decoder") -> str:
    """Raises ApiError 42203 for a key or value that its schema does not decode, or that names none."""
    from leafcuttr_http.schemas.claims import has_no_claim
    from leafcuttr_http.schemas.decoding import to_text
    from leafcuttr_sdk.schemas import DataError

    key = value = "null"
    part = "key"
    try:
        if record.key is not None:
            key = (
                _text(record.key)
                if has_no_claim(record.key, record.headers)
                else to_text(decoder.key(record.key, record.headers))
            )
        part = "value"
        if record.value is not None:
            value = to_text(decoder.value(record.value, record.headers))
    except DataError as error:
        raise ApiError(
            42203,
            f"The {part} at offset {record.offset} of {record.topic}-{record.partition} cannot be decoded: {error}. "
            "Read it with a consumer of format binary, or go on behind it: POST .../positions with offset "
            f"{record.offset + 1}.",
        ) from None
    return _record(record, key, value)


RENDER: Final[dict[str, Render]] = {"json": as_json, "binary": as_binary}


class Rendered:
    """Of each partition the records before the first that cannot be rendered."""

    def __init__(self, limit: int | None = None) -> None:
        self.parts: list[str] = []
        self.refused: ApiError | None = None
        """The first error."""
        self.left: dict[TopicPartition, int] = {}
        """Where to go on in partitions of which not all is here."""
        self._limit = limit
        self._size = 0

    def take(
        self, found: Mapping[TopicPartition, Sequence[StoredRecord]], render: Render
    ) -> Generator[None, None, None]:
        """A record a step. Nothing more is taken once there are as many characters as the limit."""
        for partition, records in found.items():
            for record in records:
                if self._limit is not None and self._size >= self._limit:
                    self.left[partition] = record.offset
                    break
                try:
                    text = render(record)
                except ApiError as error:
                    self.refused = self.refused or error
                    self.left[partition] = record.offset
                    break
                self.parts.append(text)
                self._size += len(text)
                yield

    def decode(
        self, found: Mapping[TopicPartition, Sequence[StoredRecord]], decoder: "Decoder"
    ) -> Generator[None, None, None]:
        """The same in a format with schemas."""
        with decoder:
            yield from self.take(found, lambda record: as_decoded(record, decoder))


def _record(record: StoredRecord, key: str, value: str) -> str:
    headers = f',"headers":{_headers(record.headers)}' if record.headers else ""
    return (
        f'{{"topic":{_TEXT(record.topic)},"key":{key},"value":{value},"partition":{record.partition},'
        f'"offset":{record.offset},"timestamp":{record.timestamp}{headers}}}'
    )


def _json(data: bytes) -> str | None:
    """The text, if it is JSON."""
    try:
        text = data.decode()
        _DECODE(text)
    except (ValueError, RecursionError):
        return None
    return text.strip(" \t\n\r")


def _text(data: bytes) -> str:
    """As a JSON string; bytes that are no UTF-8 become the sign for that."""
    return _TEXT(data.decode(errors="replace"))


def _base64(data: bytes | None) -> str:
    return "null" if data is None else f'"{b2a_base64(data, newline=False).decode()}"'


def _headers(headers: Headers) -> str:
    """As they can be produced again: `value`, or `value_base64` for what is not UTF-8."""
    parts = []
    for name, value in headers:
        member = '"value":null'
        if value is not None:
            try:
                member = f'"value":{_TEXT(value.decode())}'
            except UnicodeDecodeError:
                member = f'"value_base64":{_base64(value)}'
        parts.append(f'{{"name":{_TEXT(_whole(name))},{member}}}')
    return f"[{','.join(parts)}]"


def _whole(name: str) -> str:
    """Without the escapes that stand for bytes that are no UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode(errors="replace")

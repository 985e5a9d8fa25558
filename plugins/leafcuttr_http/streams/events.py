"""Records as the data of events: one line of JSON each, made once for all streams that get it. Pure.

    {"topic": "t", "partition": 0, "offset": 5, "timestamp": 1700000000000, "key": "k", "value": ..., "headers": [...]}

In the format `json` a key is its text and a value is the JSON that was stored, byte for byte but for line ends; what is
no UTF-8, or no JSON, comes as `key_base64` or `value_base64` instead. In `binary` both are base64. In formats with
schemas both are decoded by the schemas that they name; what cannot be decoded comes as base64 too, and `key_error` or
`value_error` says why. A key that names no schema is its text. Headers are as in a produce request: a name, and a value
or a value_base64.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Generator, Iterable
from functools import cached_property
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from leafcuttr_http.streams.positions import Positions
from leafcuttr_sdk.records import Headers, StoredRecord

if TYPE_CHECKING:
    from leafcuttr_http.schemas.decoding import Decoder


class Event(NamedTuple):
    """One record. `id` is where a stream is after it; `data` is JSON without line ends."""

    partition: int
    offset: int
    key: bytes | None
    id: str
    data: str


class Notice(NamedTuple):
    """What a stream says that is no record: `gap`, `unreadable`, `reset`, `end`."""

    name: str
    data: str


class Chunk:
    """Some events, one behind the other, after what is to be said first. `after` is where a stream is behind them."""

    def __init__(self, events: list[Event], after: Positions, notices: tuple[Notice, ...] = ()) -> None:
        self.events = events
        self.after = after
        self.notices = notices
        self.size = sum(len(event.data) + len(event.id) for event in events)

    def matching(self, keys: frozenset[bytes]) -> "Chunk":
        """Only the records with these keys."""
        return Chunk([event for event in self.events if event.key in keys], self.after, self.notices)

    @cached_property
    def sse(self) -> bytes:
        """As server-sent events. The id comes last: some clients take it over at once, and would miss an event of which
        a broken connection has brought no more than the id."""
        parts = [f"event: {name}\ndata: {data}\n\n" for name, data in self.notices]
        parts += [f"data: {event.data}\nid: {event.id}\n\n" for event in self.events]
        return "".join(parts).encode()


Encode = Callable[[StoredRecord], str]


def as_json(record: StoredRecord) -> str:
    topic, partition, offset, timestamp, key, value, headers = record
    return (
        f'{{"topic":"{topic}","partition":{partition},"offset":{offset},"timestamp":{timestamp},'
        f'{_text("key", key)},{_json(value)},"headers":{_headers(headers)}}}'
    )


def as_binary(record: StoredRecord) -> str:
    topic, partition, offset, timestamp, key, value, headers = record
    return (
        f'{{"topic":"{topic}","partition":{partition},"offset":{offset},"timestamp":{timestamp},'
        f'"key":{_base64(key)},"value":{_base64(value)},"headers":{_headers(headers)}}}'
    )


FORMATS: Final[dict[str, Encode]] = {"json": as_json, "binary": as_binary}


def encoded(records: Iterable[StoredRecord], positions: Positions, encode: Encode) -> list[Event]:
    """The events of records that follow `positions`, which is moved behind them."""
    events: list[Event] = []
    for record in records:
        partition, offset = record.partition, record.offset
        positions.move(partition, offset + 1)
        events.append(Event(partition, offset, record.key, positions.id().decode(), encode(record)))
    return events


def decode(
    records: Iterable[StoredRecord],
    positions: Positions,
    decoder: "Decoder",
    most: int,
    events: list[Event],
) -> Generator[None, None, None]:
    """The same in a format with schemas, a record a step; no more of them once the events have `most` characters."""
    size = 0
    with decoder:
        for record in records:
            if size >= most:
                return
            key, data = as_decoded(record, decoder)
            size += len(data)
            positions.move(record.partition, record.offset + 1)
            events.append(Event(record.partition, record.offset, key, positions.id().decode(), data))
            yield


def as_decoded(record: StoredRecord, decoder: "Decoder") -> tuple[bytes | None, str]:
    """The key as requests name it, and the data."""
    from leafcuttr_http.schemas.claims import has_no_claim
    from leafcuttr_http.schemas.decoding import to_text
    from leafcuttr_sdk.schemas import DataError

    topic, partition, offset, timestamp, key, value, headers = record
    named = key
    if key is None or has_no_claim(key, headers):
        key_member = _text("key", key)
    else:
        try:
            found = decoder.key(key, headers)
            text = to_text(found)
            named = (found if isinstance(found, str) else text).encode("utf-8", "replace")
            key_member = f'"key":{text}'
        except DataError as error:
            key_member = _undecoded("key", key, error)
    value_member = '"value":null'
    if value is not None:
        try:
            value_member = f'"value":{to_text(decoder.value(value, headers))}'
        except DataError as error:
            value_member = _undecoded("value", value, error)
    return named, (
        f'{{"topic":"{topic}","partition":{partition},"offset":{offset},"timestamp":{timestamp},'
        f'{key_member},{value_member},"headers":{_headers(headers)}}}'
    )


def _undecoded(name: str, content: bytes, why: Exception) -> str:
    said = encode_basestring(str(why).encode("utf-8", "replace").decode())
    return f'"{name}_base64":{_base64(content)},"{name}_error":{said}'


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_parse: Final = json.JSONDecoder(parse_constant=_refuse).decode


def _text(name: str, content: bytes | None) -> str:
    if content is None:
        return f'"{name}":null'
    try:
        return f'"{name}":{encode_basestring(content.decode())}'
    except UnicodeDecodeError:
        return f'"{name}_base64":{_base64(content)}'


def _json(value: bytes | None) -> str:
    if value is None:
        return '"value":null'
    try:
        text = value.decode()
        _parse(text)
    except (ValueError, RecursionError):
        return f'"value_base64":{_base64(value)}'
    # Between two words of JSON a line end is white space, and within one it cannot be.
    return f'"value":{text.translate(_ONE_LINE) if not text.isprintable() else text}'


_ONE_LINE: Final = str.maketrans("\r\n", "  ")


def _base64(content: bytes | None) -> str:
    return "null" if content is None else f'"{b64encode(content).decode()}"'


def _headers(headers: Headers) -> str:
    if not headers:
        return "[]"
    return f"[{','.join(map(_header, headers))}]"


def _header(header: tuple[str, bytes | None]) -> str:
    name, content = header
    # A name that is no UTF-8 has its bytes as escapes; JSON has none for them.
    shown = encode_basestring(name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    return f'{{"name":{shown},{_text("value", content)}}}'

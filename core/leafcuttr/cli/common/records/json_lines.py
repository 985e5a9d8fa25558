"""Records as JSON lines, both ways: what `consume --json` prints and `produce --json` reads.

An object a line, with these members:

    key, value      what the format makes of the bytes: a string, or for a format of JSON documents the document; null
                    for none. Bytes that cannot be shown so without loss are in key_base64 or value_base64 instead.
    headers         a list of {"name": ..., "value": ...} in their order, value_base64 and null as above; input may also
                    be an object of names and texts
    partition       a number
    timestamp       milliseconds since the Unix epoch; input may also be ISO 8601
    topic, offset, timestamp_type    only printed; input ignores them

Documents are cut out of the line and put into it as they are written, never parsed and printed anew: 1.10 stays 1.10.
"""

import base64
import binascii
import json
import time
from collections.abc import Callable, Iterable
from json.encoder import encode_basestring
from typing import Any, Final, Literal, NamedTuple

from leafcuttr.cli.common.options.positions import parse_time
from leafcuttr_sdk.formats import FormatCodec, FormatError, Place

MEMBERS: Final = frozenset(
    {"key", "key_base64", "value", "value_base64", "headers", "partition", "timestamp"}
    | {"topic", "offset", "timestamp_type"}
)
HeaderList = list[tuple[str, bytes | None]]
_DECODER: Final = json.JSONDecoder()
_TIMESTAMP_TYPES: Final = {1: "CreateTime", 2: "LogAppendTime"}


class OutRecord(NamedTuple):
    """A record on its way to the broker. A partition or timestamp of None is chosen by the client."""

    value: bytes | None
    key: bytes | None = None
    headers: HeaderList | None = None
    partition: int | None = None
    timestamp: int | None = None


class Codecs:
    """The formats of keys and values, and of which topic they are."""

    def __init__(self, topic: str, key: FormatCodec, value: FormatCodec) -> None:
        self._key = key, Place(topic, "key")
        self._value = value, Place(topic, "value")
        self._needing: frozenset[str] = frozenset(
            part
            for part, codec in (("key", key), ("value", value))
            if getattr(codec, "needs_headers", False) is True
        )
        self.need_headers: Final = bool(self._needing)
        """Whether one of them decodes by the headers of the record (`leafcuttr_sdk.formats.HeadersCodec`): then
        `of_record` is asked in the place of `of`."""

    def of(self, part: Literal["key", "value"]) -> tuple[FormatCodec, Place]:
        """The codec, and its argument that says where the bytes or the text belong."""
        return self._key if part == "key" else self._value

    def of_record(
        self, part: Literal["key", "value"], headers: Callable[[], Iterable[tuple[str, bytes | None]] | None]
    ) -> tuple[FormatCodec, Place]:
        """To decode a key or value of a record, whose headers `headers` makes if they are needed."""
        codec, place = self.of(part)
        if part in self._needing:
            place = Place(place.topic, part, tuple(headers() or ()))
        return codec, place


def read_line(line: bytes, codecs: Codecs) -> OutRecord:
    """Raises ValueError that says what in the line is wrong."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    try:
        slices = _members(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON object: {error.msg} at column {error.pos + 1}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    unknown = slices.keys() - MEMBERS
    if unknown:
        name = min(unknown)
        raise ValueError(f"a record has no member {name!r}, but {', '.join(sorted(MEMBERS))}")
    return OutRecord(
        _bytes("value", slices, codecs),
        _bytes("key", slices, codecs),
        _headers(json.loads(slices["headers"])) if "headers" in slices else None,
        _number("partition", slices, 2**31 - 1),
        _timestamp(slices),
    )


def _members(text: str) -> dict[str, str]:
    """The members of the object, each as it is written. Raises json.JSONDecodeError."""
    found: dict[str, str] = {}
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        raise json.JSONDecodeError("expected {", text, at)
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        name, end = _DECODER.raw_decode(text, at)
        if not isinstance(name, str):
            raise json.JSONDecodeError("expected the name of a member", text, at)
        colon = _skip(text, end)
        if text[colon : colon + 1] != ":":
            raise json.JSONDecodeError("expected :", text, colon)
        begin = _skip(text, colon + 1)
        _, end = _DECODER.raw_decode(text, begin)
        found[name] = text[begin:end]
        at = _skip(text, end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
            if text[at : at + 1] != '"':
                raise json.JSONDecodeError("expected the name of a member", text, at)
        elif text[at : at + 1] != "}":
            raise json.JSONDecodeError("expected , or }", text, at)
    rest = _skip(text, at + 1)
    if rest != len(text):
        raise json.JSONDecodeError("more after the object", text, rest)
    return found


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t", "\n", "\r"):
        at += 1
    return at


def _bytes(part: Literal["key", "value"], slices: dict[str, str], codecs: Codecs) -> bytes | None:
    written = slices.get(part, "null")
    in_base64 = json.loads(slices.get(f"{part}_base64", "null"))
    if in_base64 is not None:
        if written != "null":
            raise ValueError(f"both {part} and {part}_base64")
        return _from_base64(f"{part}_base64", in_base64)
    if written == "null":
        return None
    codec, place = codecs.of(part)
    text = written if codec.json_text or not written.startswith('"') else json.loads(written)
    try:
        return codec.encode(text, place)
    except FormatError as error:
        raise ValueError(f"{part}: {error}") from None


def _from_base64(name: str, written: Any) -> bytes:
    try:
        return base64.b64decode(written, validate=True)
    except (TypeError, binascii.Error, ValueError):
        raise ValueError(f"{name} is not a string of base64") from None


def _headers(written: Any) -> HeaderList:
    wanted = ValueError('headers: expected a list of {"name": ..., "value": ...} or an object of texts')
    if written is None:
        return []
    if isinstance(written, dict):
        written = [{"name": name, "value": value} for name, value in written.items()]
    if not isinstance(written, list):
        raise wanted
    found: HeaderList = []
    for one in written:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            raise wanted
        name, value, in_base64 = one["name"], one.get("value"), one.get("value_base64")
        try:
            name.encode()
            if in_base64 is not None:
                found.append((name, _from_base64("value_base64 of a header", in_base64)))
            elif value is None or isinstance(value, str):
                found.append((name, None if value is None else value.encode()))
            else:
                raise wanted
        except UnicodeEncodeError:
            raise ValueError("headers: a text has half a surrogate pair") from None
    return found


def _number(name: str, slices: dict[str, str], most: int) -> int | None:
    number = json.loads(slices.get(name, "null"))
    if number is None:
        return None
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= most:
        raise ValueError(f"{name}: expected a number from 0 to {most}")
    return number


def _timestamp(slices: dict[str, str]) -> int | None:
    if not slices.get("timestamp", "").startswith('"'):
        return _number("timestamp", slices, 2**63 - 1)
    try:
        return parse_time(json.loads(slices["timestamp"]), time.time_ns() // 1_000_000)
    except ValueError as error:
        raise ValueError(f"timestamp: {error}") from None


def write_line(message: Any, codecs: Codecs) -> str:
    """One line, without its end, of a message of confluent-kafka. Raises FormatError for bytes of another format."""
    kind, timestamp = message.timestamp()
    return (
        f'{{"topic": {encode_basestring(message.topic())}, "partition": {message.partition()}, '
        f'"offset": {message.offset()}, "timestamp": {timestamp if kind else "null"}, '
        f'"timestamp_type": {encode_basestring(_TIMESTAMP_TYPES[kind]) if kind else "null"}, '
        f"{_member('key', message.key(), codecs, message)}, {_member('value', message.value(), codecs, message)}, "
        f'"headers": [{", ".join(_header(*one) for one in message.headers() or ())}]}}'
    )


def _member(part: Literal["key", "value"], data: bytes | None, codecs: Codecs, message: Any) -> str:
    if data is None:
        return f'"{part}": null'
    codec, place = codecs.of_record(part, message.headers) if codecs.need_headers else codecs.of(part)
    try:
        text = codec.decode(data, place)
    except FormatError as error:
        raise FormatError(f"{part}: {error}") from None
    if codec.json_text and text != "null":
        return f'"{part}": {text}'
    if not codec.json_text and _is_text(text):
        return f'"{part}": {encode_basestring(text)}'
    # Not UTF-8; or the document null, which would look like no value at all.
    return f'"{part}_base64": "{base64.b64encode(data).decode("ascii")}"'


def _header(name: str, value: bytes | None) -> str:
    head = f'{{"name": {encode_basestring(name)}, '
    if value is None:
        return head + '"value": null}'
    try:
        return head + f'"value": {encode_basestring(value.decode())}}}'
    except UnicodeDecodeError:
        return head + f'"value_base64": "{base64.b64encode(value).decode("ascii")}"}}'


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

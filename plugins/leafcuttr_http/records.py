"""Records in the formats of the API: from what JSON said to bytes.

`application/json` is LeafCuttr's: a key that is a string is stored as its text, any other as compact JSON. In the
REST proxy API's JSON format a key is JSON whatever it is, so that a string has its quotes. Values are compact JSON in
both; in the binary format keys and values are base64. null, or no member, is none: as a value a tombstone.
"""

import binascii
import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from leafcuttr_http.envelope import whole
from leafcuttr_http.errors import ApiError
from leafcuttr_sdk.records import Headers, Record

_MEMBERS: Final = frozenset({"key", "value", "headers", "partition", "timestamp"})
_HEADER_MEMBERS: Final = frozenset({"name", "value", "value_base64"})
_ENCODE: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
).encode


class Format(NamedTuple):
    """How keys and values are written in a request. Both raise ApiError for what they cannot take."""

    name: str
    key: Callable[[Any], bytes]
    value: Callable[[Any], bytes]


def to_json(value: Any) -> bytes:
    """Compact JSON in UTF-8."""
    try:
        return _ENCODE(value).encode()
    except UnicodeEncodeError:
        raise ApiError(42207, "has half of a surrogate pair, which is no character") from None
    except RecursionError:
        raise ApiError(42207, "is nested too deeply") from None
    except ValueError:
        raise ApiError(42207, "has a number too large for a double, or with too many digits") from None


def to_text(value: Any) -> bytes:
    """A string as it is, anything else as JSON."""
    if type(value) is not str:
        return to_json(value)
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise ApiError(42207, "has half of a surrogate pair, which is no character") from None


def from_base64(value: Any) -> bytes:
    if type(value) is not str:
        raise ApiError(42206, "has to be a string in base64")
    try:
        return binascii.a2b_base64(value.encode("ascii"), strict_mode=True)
    except (UnicodeEncodeError, binascii.Error):
        raise ApiError(42206, "is not base64") from None


TEXT_KEYS: Final = Format("json", to_text, to_json)
ALL_JSON: Final = Format("json", to_json, to_json)
BINARY: Final = Format("binary", from_base64, from_base64)


def convert(raw: object, format: Format) -> tuple[Record, int | None]:
    """A record and the partition that it names. Raises ApiError; its message goes on from the record's name."""
    if type(raw) is not dict:
        raise ApiError(42206, "has to be an object")
    key = raw.get("key")
    value = raw.get("value")
    member = "key"
    try:
        key_bytes = None if key is None else format.key(key)
        member = "value"
        value_bytes = None if value is None else format.value(value)
    except ApiError as error:
        raise ApiError(error.code, f"{member} {error}") from None
    if len(raw) == ("key" in raw) + ("value" in raw):
        return Record(value_bytes, key_bytes), None
    if not raw.keys() <= _MEMBERS:
        unknown = min(raw.keys() - _MEMBERS)
        raise ApiError(42206, f"has no member {unknown!r}, but {', '.join(sorted(_MEMBERS))}")
    record = Record(
        value_bytes, key_bytes, _headers(raw.get("headers")), _number(raw, "timestamp", 2**63 - 1)
    )
    return record, _number(raw, "partition", 2**31 - 1)


def _number(raw: dict[str, Any], member: str, largest: int) -> int | None:
    if raw.get(member) is None:
        return None
    value = whole(raw[member])
    if value is None or not 0 <= value <= largest:
        raise ApiError(42206, f"{member} has to be a whole number from 0 to {largest}")
    return value


def _headers(raw: object) -> Headers:
    """A list of {"name": ..., "value": ...}, or an object of names and texts."""
    if raw is None:
        return ()
    if type(raw) is dict:
        return tuple((_utf8(name, "a name"), _value(name, text)) for name, text in raw.items())
    if type(raw) is not list:
        raise ApiError(42206, "headers has to be a list of objects with name and value, or an object")
    return tuple(map(_header, raw))


def _header(raw: object) -> tuple[str, bytes | None]:
    if type(raw) is not dict or not raw.keys() <= _HEADER_MEMBERS or type(raw.get("name")) is not str:
        raise ApiError(42206, "headers has to have objects with name, and value or value_base64")
    name = _utf8(raw["name"], "a name")
    if raw.get("value_base64") is None:
        return name, _value(name, raw.get("value"))
    if raw.get("value") is not None:
        raise ApiError(42206, f"header {name!r} has to have value or value_base64, not both")
    try:
        return name, from_base64(raw["value_base64"])
    except ApiError as error:
        raise ApiError(error.code, f"header {name!r} value_base64 {error}") from None


def _value(name: str, value: object) -> bytes | None:
    if value is None:
        return None
    if type(value) is not str:
        raise ApiError(42206, f"header {name!r} has to be a string or null")
    return _utf8(value, f"header {name!r}").encode()


def _utf8(text: str, what: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ApiError(42207, f"{what} has half of a surrogate pair, which is no character") from None
    return text

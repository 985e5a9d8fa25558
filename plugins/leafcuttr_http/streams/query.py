"""What a request says of a stream: the query, and the id of the last event, checked. What that means in offsets of the
topic is found in `beginning`. Pure."""

from datetime import UTC, datetime
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from leafcuttr_http.errors import ApiError
from leafcuttr_http.schemas.types import TYPES
from leafcuttr_http.streams.events import FORMATS
from leafcuttr_http.streams.positions import EventId, parse
from leafcuttr_sdk.broker import EARLIEST, LATEST

_STARTS: Final = ("from", "offset", "time")
KNOWN: Final = (*_STARTS, "key", "format", "last_event_id")
_MOST_KEYS: Final = 1000
MOST_CREDITS: Final = 1_000_000
_LARGEST: Final = 2**63 - 1


class Query(NamedTuple):
    """`time` is one of a record, or EARLIEST or LATEST; `offset` holds for every partition and `offsets` for some; at
    most one of the three is used, and `last` goes before all of them. `keys`: None is every record. `credits`: None is
    no flow control."""

    format: str = "json"
    keys: frozenset[bytes] | None = None
    time: int = LATEST
    offset: int | None = None
    offsets: dict[int, int] | None = None
    last: EventId | None = None
    credits: int | None = None


def read(query: bytes, last_event_id: str | None, *, websocket: bool = False) -> Query:
    """Raises ApiError 422 for what makes no sense."""
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=2 * _MOST_KEYS
        )
    except ValueError:
        raise _wrong("The query cannot be read") from None
    known = (*KNOWN, "credits") if websocket else KNOWN
    given: dict[str, str] = {}
    keys: set[str] = set()
    for name, value in pairs:
        if name not in known:
            raise _wrong(f"{name!r} is no parameter of a stream, but {', '.join(known)}")
        if name == "key":
            keys.add(value)
        elif name in given:
            raise _wrong(f"{name!r} is given twice")
        else:
            given[name] = value
    if len(keys) > _MOST_KEYS:
        raise _wrong(f"{len(keys)} keys are too many: at most {_MOST_KEYS}")
    starts = [name for name in _STARTS if name in given]
    if len(starts) > 1:
        raise _wrong(f"Only one of {' and '.join(starts)} can say where to begin")
    format = given.get("format", "json")
    if format not in FORMATS and format not in TYPES:
        raise _wrong(f"'format' has to be {' or '.join([*FORMATS, *TYPES])}, not {format!r}")
    requested = Query(format, _keys(format, keys) if keys else None)
    last = last_event_id or given.get("last_event_id")
    if last:
        requested = requested._replace(last=_last(last))
    elif "from" in given:
        requested = requested._replace(time=_from(given["from"]))
    elif "time" in given:
        requested = requested._replace(time=_time(given["time"]))
    elif "offset" in given:
        requested = _offset(requested, given["offset"])
    if "credits" in given:
        requested = requested._replace(credits=_number("credits", given["credits"], MOST_CREDITS))
    return requested


def _wrong(what: str) -> ApiError:
    return ApiError(422, f"{what}.")


def _keys(format: str, keys: set[str]) -> frozenset[bytes]:
    if format != "binary":
        return frozenset(key.encode() for key in keys)
    from leafcuttr_http.records import from_base64

    try:
        return frozenset(key for each in keys if (key := from_base64(each)) is not None)
    except ApiError as error:
        raise _wrong(f"'key' {error}") from None


def _last(text: str) -> EventId:
    try:
        return parse(text)
    except ValueError as error:
        raise _wrong(f"The id of the last event was not made here: {error}") from None


def _from(text: str) -> int:
    times = {"earliest": EARLIEST, "latest": LATEST}
    if text not in times:
        raise _wrong(f"'from' has to be earliest or latest, not {text!r}")
    return times[text]


def _time(text: str) -> int:
    """Milliseconds since 1970, or a date of ISO 8601, which without a zone is UTC."""
    if text.isascii() and text.isdigit():
        return _number("time", text, _LARGEST)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _wrong(
            f"'time' has to be milliseconds since 1970 or a date as 2026-01-31T12:00:00Z, not {text!r}"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(int(moment.timestamp() * 1000), 0)


def _offset(requested: Query, text: str) -> Query:
    """One for all partitions, or `partition:offset,...`."""
    if ":" not in text:
        return requested._replace(offset=_number("offset", text, _LARGEST))
    offsets: dict[int, int] = {}
    for part in text.split(","):
        partition, _, offset = part.partition(":")
        offsets[_number("partition", partition, 2**31 - 1)] = _number("offset", offset, _LARGEST)
    return requested._replace(offsets=offsets)


def _number(what: str, text: str, largest: int) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 19 or int(text) > largest:
        raise _wrong(f"{what!r} has to be a whole number from 0 to {largest}, not {text[:40]!r}")
    return int(text)

"""The settings that a consumer is created with: JSON in, checked values out. Pure; everything here raises ApiError.

Clients hand on what they have: Kafka's own names beside those of the API, numbers and flags as texts.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from leafcuttr_http.consumers.kafka_settings import HONOURED, KAFKA, OF_THE_API
from leafcuttr_http.consumers.request_bodies import object_of, says_nothing
from leafcuttr_http.envelope import whole
from leafcuttr_http.errors import ApiError
from leafcuttr_http.negotiation import SCHEMA_FORMATS, V2_BINARY, V2_JSON
from leafcuttr_http.schemas.types import MEDIA_TYPES, no_registry

FORMATS: Final[Mapping[str, str]] = {"json": V2_JSON, "binary": V2_BINARY, **MEDIA_TYPES}
"""What an instance can be made for, and the media type of its records."""
RESETS: Final = ("earliest", "latest", "none")
REQUEST_TIMEOUT_MS: Final = 1000
_LONGEST_NAME: Final = 255
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f/]+")
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_ISOLATION: Final = ("read_uncommitted", "read_committed")
_INT_MAX: Final = 2**31 - 1


class InstanceConfig(NamedTuple):
    """What an instance is from its beginning to its end. Times in seconds, or in milliseconds where the name says so;
    None is what the proxy does by itself. `ignored` are names of Kafka's settings without effect."""

    name: str | None
    format: str = "binary"
    reset: str = "latest"
    auto_commit: bool = True
    min_bytes: int = 1
    request_s: float = REQUEST_TIMEOUT_MS / 1000
    max_bytes: int | None = None
    max_records: int | None = None
    fetch_wait_s: float | None = None
    committed: bool = False
    client_id: str | None = None
    instance_id: str | None = None
    session_ms: int | None = None
    poll_interval_ms: int | None = None
    ignored: tuple[str, ...] = ()


def config(body: bytes, longest_ms: int, *, registry: bool = False) -> InstanceConfig:
    """Of `POST /consumers/{group}`; no body means the defaults. A read may wait for `longest_ms`; `registry`: there is
    one of schemas."""
    raw = {} if says_nothing(body) else object_of(body)
    _check_settings(raw)
    format = _word(raw, "format", "binary")
    if format in SCHEMA_FORMATS and not registry:
        raise no_registry(40601, f"The format {format}")
    if format not in FORMATS:
        raise ApiError(42204, f"format is {_choice(FORMATS)}, not {format!r}.")
    reset = _word(raw, "auto.offset.reset", "latest")
    if reset not in RESETS:
        raise ApiError(42204, f"auto.offset.reset is {_choice(RESETS)}, not {reset!r}.")
    isolation = _word(raw, "isolation.level", _ISOLATION[0])
    if isolation not in _ISOLATION:
        raise ApiError(42204, f"isolation.level is {_choice(_ISOLATION)}, not {isolation!r}.")
    timeout = _either(raw, "consumer.request.timeout.ms", "requestWaitMs")
    timeout_ms = _whole(raw, timeout, 1, longest_ms)
    fetch_wait_ms = _whole(raw, "fetch.max.wait.ms", 0, _INT_MAX)
    # -1 is the API's word for: as soon as there is something.
    min_bytes = _whole(raw, _either(raw, "fetch.min.bytes", "responseMinBytes"), -1, _INT_MAX)
    max_bytes = _whole(raw, "fetch.max.bytes", 0, _INT_MAX)
    auto_commit = _flag(raw, _either(raw, "auto.commit.enable", "enable.auto.commit"))
    return InstanceConfig(
        name=_name(raw),
        format=format,
        reset=reset,
        auto_commit=True if auto_commit is None else auto_commit,
        min_bytes=max(min_bytes or 1, 1),
        request_s=(REQUEST_TIMEOUT_MS if timeout_ms is None else timeout_ms) / 1000,
        max_bytes=None if max_bytes is None else max(max_bytes, 1),
        max_records=_whole(raw, "max.poll.records", 1, _INT_MAX),
        fetch_wait_s=None if fetch_wait_ms is None else fetch_wait_ms / 1000,
        committed=isolation == "read_committed",
        client_id=_client_id(raw),
        instance_id=_instance_id(raw),
        session_ms=_whole(raw, "session.timeout.ms", 1, _INT_MAX),
        poll_interval_ms=_whole(raw, "max.poll.interval.ms", 1, _INT_MAX),
        ignored=tuple(sorted(name for name in raw if name in KAFKA - HONOURED)),
    )


def _check_settings(raw: Mapping[str, Any]) -> None:
    """Raises ApiError for one that neither this API nor Kafka has, with the nearest that is there."""
    known = {*OF_THE_API, *KAFKA}
    for unknown in sorted(raw.keys() - known):
        near = get_close_matches(unknown[:_LONGEST_NAME], sorted(known), n=1, cutoff=0.75)
        meant = f"; did you mean {near[0]!r}?" if near else "."
        raise ApiError(422, f"There is no setting {unknown[:_LONGEST_NAME]!r} of a consumer{meant}")


def _either(raw: Mapping[str, Any], name: str, other: str) -> str:
    """The one that is given of two names for the same. Raises ApiError where they say different things."""
    if raw.get(other) is None:
        return name
    if raw.get(name) is not None and _plain(raw[name]) != _plain(raw[other]):
        raise ApiError(42204, f"{name} and {other} mean the same, but have different values.")
    return other


def _plain(value: object) -> str:
    return str(value).strip().lower()


def _client_id(raw: Mapping[str, Any]) -> str | None:
    client_id = _text(raw, "client.id")
    if client_id and (len(client_id) > _LONGEST_NAME or not _is_unicode(client_id)):
        raise ApiError(42204, f"client.id is a text of at most {_LONGEST_NAME} characters.")
    return client_id or None


def _instance_id(raw: Mapping[str, Any]) -> str | None:
    instance_id = _text(raw, "group.instance.id")
    if instance_id is not None and (not _LEGAL.fullmatch(instance_id) or instance_id in (".", "..")):
        raise ApiError(
            42204, "group.instance.id is a text of 1 to 249 letters, digits, dots, hyphens and underscores."
        )
    return instance_id


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(raw: Mapping[str, Any], member: str) -> str | None:
    """Clients write texts as numbers too."""
    value = raw.get(member)
    if type(value) is int:
        return str(value)
    if value is not None and type(value) is not str:
        raise ApiError(42204, f"{member} is a text, not {value!r}.")
    return value


def _name(raw: Mapping[str, Any]) -> str | None:
    name = _text(raw, "name" if raw.get("id") is None else "id")
    if name is None:
        return None
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME or name in (".", ".."):
        raise ApiError(
            42204,
            f"name is a text of 1 to {_LONGEST_NAME} characters, without slashes and control characters.",
        )
    if not _is_unicode(name):
        raise ApiError(42204, "name has half of a surrogate pair, which is no character.")
    return name


def _whole(raw: Mapping[str, Any], member: str, least: int, most: int) -> int | None:
    if raw.get(member) is None:
        return None
    value = whole(raw[member])
    if value is None or not least <= value <= most:
        raise ApiError(42204, f"{member} is a whole number from {least} to {most}, not {raw[member]!r}.")
    return value


def _word(raw: Mapping[str, Any], member: str, default: str) -> str:
    """In lower case; none is the default."""
    word = _text(raw, member)
    return default if word is None else word.lower()


def _flag(raw: Mapping[str, Any], member: str) -> bool | None:
    value = raw.get(member)
    if value is None:
        return None
    if type(value) is str and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if type(value) is not bool:
        raise ApiError(42204, f"{member} is true or false, not {value!r}.")
    return value


def _choice(names: Iterable[str]) -> str:
    return " or ".join(names)

"""The bodies of requests to consumers: JSON in, checked values out. Pure; everything here raises ApiError."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from leafcuttr_http.envelope import decode, parse
from leafcuttr_http.errors import ApiError
from leafcuttr_http.negotiation import SCHEMA_FORMATS, V2_BINARY, V2_JSON
from leafcuttr_sdk import TopicPartition
from leafcuttr_sdk.groups import CommittedOffset

FORMATS: Final[Mapping[str, str]] = {"json": V2_JSON, "binary": V2_BINARY}
"""What an instance can be made for, and the media type of its records."""
RESETS: Final = ("earliest", "latest", "none")
REQUEST_TIMEOUT_MS: Final = 1000
_LONGEST_NAME: Final = 255
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f/]+")
_CONFIG: Final = (
    "name", "id", "format", "auto.offset.reset", "auto.commit.enable", "fetch.min.bytes", "consumer.request.timeout.ms",
)  # fmt: skip


class InstanceConfig(NamedTuple):
    """What an instance is from its beginning to its end. Times in seconds."""

    name: str | None
    format: str = "binary"
    reset: str = "latest"
    auto_commit: bool = True
    min_bytes: int = 1
    request_s: float = REQUEST_TIMEOUT_MS / 1000


class Subscribed(NamedTuple):
    topics: tuple[str, ...] = ()
    pattern: str | None = None


def config(body: bytes, longest_ms: int) -> InstanceConfig:
    """Of `POST /consumers/{group}`; no body means the defaults. A read may wait for `longest_ms`."""
    raw = _object(body) if body.strip() else {}
    _only(raw, _CONFIG)
    format = _word(raw, "format", "binary")
    if format in SCHEMA_FORMATS:
        raise ApiError(
            40601, f"The format {format} needs a schema registry, which this broker does not have yet."
        )
    if format not in FORMATS:
        raise ApiError(42204, f"format is {_choice(FORMATS)}, not {format!r}.")
    reset = _word(raw, "auto.offset.reset", "latest")
    if reset not in RESETS:
        raise ApiError(42204, f"auto.offset.reset is {_choice(RESETS)}, not {reset!r}.")
    timeout_ms = _whole(raw, "consumer.request.timeout.ms", REQUEST_TIMEOUT_MS, 1, longest_ms)
    return InstanceConfig(
        name=_name(raw),
        format=format,
        reset=reset,
        auto_commit=_flag(raw, "auto.commit.enable", True),
        # -1 is the API's word for: as soon as there is something.
        min_bytes=max(_whole(raw, "fetch.min.bytes", -1, -1, 2**31 - 1), 1),
        request_s=timeout_ms / 1000,
    )


def subscription(body: bytes) -> Subscribed:
    """`{"topics": [...]}` or `{"topic_pattern": "..."}`."""
    raw = _object(body)
    _only(raw, ("topics", "topic_pattern"))
    topics, pattern = raw.get("topics"), raw.get("topic_pattern")
    if topics is not None and pattern is not None:
        raise ApiError(40903, "A consumer is subscribed to topics or to a pattern, not to both.")
    if pattern is not None:
        if type(pattern) is not str or not pattern:
            raise ApiError(422, "topic_pattern is a text that is not empty.")
        return Subscribed(pattern=pattern)
    if type(topics) is not list or not all(type(each) is str and each for each in topics):
        raise ApiError(422, 'Expected {"topics": [...]} with names, or {"topic_pattern": "..."}.')
    return Subscribed(topics=tuple(topics))


def partitions(body: bytes) -> list[TopicPartition]:
    """`{"partitions": [{"topic": ..., "partition": ...}]}`."""
    return list(dict.fromkeys(_partition(each, "partitions", ()) for each in _list(body, "partitions")))


def offsets(body: bytes) -> dict[TopicPartition, CommittedOffset]:
    """`{"offsets": [{"topic": ..., "partition": ..., "offset": ..., "metadata": ...}]}`, as they stand there."""
    found: dict[TopicPartition, CommittedOffset] = {}
    for index, each in enumerate(_list(body, "offsets")):
        partition = _partition(each, "offsets", ("offset", "metadata"))
        offset, metadata = each.get("offset"), each.get("metadata")
        if type(offset) is not int or not 0 <= offset < 2**63 - 1:
            raise ApiError(422, f"offsets, number {index}: offset is a whole number from 0 to {2**63 - 2}.")
        if metadata is not None and type(metadata) is not str:
            raise ApiError(422, f"offsets, number {index}: metadata is a text.")
        found[partition] = CommittedOffset(offset, metadata or "")
    return found


def number(text: str | None, name: str) -> int | None:
    """A number of the query; none, or one below 1, is no limit of its own."""
    if text is None:
        return None
    try:
        value = int(text) if len(text) < 20 and text.isascii() else None
    except ValueError:
        value = None
    if value is None:
        raise ApiError(422, f"{name} is a whole number, not {text!r}.")
    return value if value > 0 else None


def _object(body: bytes) -> dict[str, Any]:
    raw = parse(decode(body))
    if type(raw) is not dict:
        raise ApiError(422, "The body has to be an object.")
    return raw


def _only(raw: Mapping[str, Any], members: Iterable[str]) -> None:
    unknown = sorted(raw.keys() - set(members))
    if unknown:
        raise ApiError(422, f"The body has no member {unknown[0]!r}, but {', '.join(members)}.")


def _name(raw: Mapping[str, Any]) -> str | None:
    name = raw.get("id") if raw.get("id") is not None else raw.get("name")
    if name is None:
        return None
    if type(name) is not str or not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME or name in (".", ".."):
        raise ApiError(
            42204,
            f"name is a text of 1 to {_LONGEST_NAME} characters, without slashes and control characters.",
        )
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ApiError(42204, "name has half of a surrogate pair, which is no character.") from None
    return name


def _whole(raw: Mapping[str, Any], member: str, default: int, least: int, most: int) -> int:
    """Clients write numbers as texts too."""
    value = raw.get(member)
    if value is None:
        return default
    if type(value) is str and len(value) < 20 and re.fullmatch(r"-?[0-9]+", value):
        value = int(value)
    if type(value) is not int or not least <= value <= most:
        raise ApiError(42204, f"{member} is a whole number from {least} to {most}, not {raw[member]!r}.")
    return value


def _word(raw: Mapping[str, Any], member: str, default: str) -> str:
    """In lower case; none, or an empty one, is the default."""
    value = raw.get(member)
    if value is None:
        return default
    if type(value) is not str:
        raise ApiError(42204, f"{member} is a text, not {value!r}.")
    return value.lower() or default


def _flag(raw: Mapping[str, Any], member: str, default: bool) -> bool:
    value = raw.get(member)
    if value is None:
        return default
    if type(value) is str and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if type(value) is not bool:
        raise ApiError(42204, f"{member} is true or false, not {value!r}.")
    return value


def _choice(names: Iterable[str]) -> str:
    return " or ".join(names)


def _list(body: bytes, member: str) -> list[Any]:
    raw = _object(body)
    _only(raw, (member,))
    found = raw.get(member)
    if type(found) is not list:
        raise ApiError(422, f'Expected {{"{member}": [...]}}.')
    return found


def _partition(raw: object, where: str, more: tuple[str, ...]) -> TopicPartition:
    if type(raw) is not dict:
        raise ApiError(422, f"{where} has to have objects.")
    _only(raw, ("topic", "partition", *more))
    topic, partition = raw.get("topic"), raw.get("partition")
    if type(topic) is not str or not topic or type(partition) is not int or not 0 <= partition < 2**31:
        raise ApiError(422, f"{where} has to have objects with a topic and the number of a partition.")
    return TopicPartition(topic, partition)

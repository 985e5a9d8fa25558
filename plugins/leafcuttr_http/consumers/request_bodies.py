"""The bodies of requests to consumers: JSON in, checked values out. Pure; everything here raises ApiError."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from leafcuttr_http.envelope import decode, parse, whole
from leafcuttr_http.errors import ApiError
from leafcuttr_sdk import TopicPartition
from leafcuttr_sdk.groups import CommittedOffset


class Subscribed(NamedTuple):
    topics: tuple[str, ...] = ()
    pattern: str | None = None


def subscription(body: bytes) -> Subscribed | None:
    """`{"topics": [...]}` or `{"topic_pattern": "..."}`; None for `{}`, which other proxies take for no change."""
    raw = object_of(body)
    _only(raw, ("topics", "topic_pattern"))
    topics, pattern = raw.get("topics"), raw.get("topic_pattern")
    if topics is not None and pattern is not None:
        raise ApiError(40903, "A consumer is subscribed to topics or to a pattern, not to both.")
    if pattern is not None:
        if type(pattern) is not str or not pattern:
            raise ApiError(422, "topic_pattern is a text that is not empty.")
        return Subscribed(pattern=pattern)
    if topics is None:
        return None
    if type(topics) is not list or not all(type(each) is str and each for each in topics):
        raise ApiError(422, 'Expected {"topics": [...]} with names, or {"topic_pattern": "..."}.')
    return Subscribed(topics=tuple(topics))


def partitions(body: bytes) -> list[TopicPartition]:
    """`{"partitions": [{"topic": ..., "partition": ...}]}`."""
    return _partitions(_needed(_list(body, "partitions"), "partitions"))


def any_partitions(body: bytes) -> list[TopicPartition] | None:
    """The same; None where none are named: no body, null, {}, or null in it."""
    raw = _list(body, "partitions")
    return None if raw is None else _partitions(raw)


def offsets(body: bytes) -> dict[TopicPartition, CommittedOffset]:
    """`{"offsets": [{"topic": ..., "partition": ..., "offset": ..., "metadata": ...}]}`, as they stand there."""
    return _offsets(_needed(_list(body, "offsets"), "offsets"))


def any_offsets(body: bytes) -> dict[TopicPartition, CommittedOffset] | None:
    """The same; None where none are named: no body, null, {}, or null in it."""
    raw = _list(body, "offsets")
    return None if raw is None else _offsets(raw)


def _partitions(raw: list[Any]) -> list[TopicPartition]:
    return list(dict.fromkeys(_partition(each, "partitions", ()) for each in raw))


def _offsets(raw: list[Any]) -> dict[TopicPartition, CommittedOffset]:
    found: dict[TopicPartition, CommittedOffset] = {}
    for index, each in enumerate(raw):
        partition = _partition(each, "offsets", ("offset", "metadata"))
        offset, metadata = whole(each.get("offset")), each.get("metadata")
        if offset is None or not 0 <= offset < 2**63 - 1:
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


def says_nothing(body: bytes) -> bool:
    return body.strip() in (b"", b"null")


def object_of(body: bytes) -> dict[str, Any]:
    raw = parse(decode(body))
    if type(raw) is not dict:
        raise ApiError(422, "The body has to be an object.")
    return raw


def _only(raw: Mapping[str, Any], members: Iterable[str]) -> None:
    unknown = sorted(raw.keys() - set(members))
    if unknown:
        raise ApiError(422, f"The body has no member {unknown[0]!r}, but {', '.join(members)}.")


def _list(body: bytes, member: str) -> list[Any] | None:
    """The one member of a body; None where it is not there."""
    if says_nothing(body):
        return None
    raw = object_of(body)
    _only(raw, (member,))
    found = raw.get(member)
    if found is not None and type(found) is not list:
        raise _expected(member)
    return found


def _needed(found: list[Any] | None, member: str) -> list[Any]:
    if found is None:
        raise _expected(member)
    return found


def _expected(member: str) -> ApiError:
    return ApiError(422, f'Expected {{"{member}": [...]}}.')


def _partition(raw: object, where: str, more: tuple[str, ...]) -> TopicPartition:
    if type(raw) is not dict:
        raise ApiError(422, f"{where} has to have objects.")
    _only(raw, ("topic", "partition", *more))
    topic, partition = raw.get("topic"), whole(raw.get("partition"))
    if type(topic) is not str or not topic or partition is None or not 0 <= partition < 2**31:
        raise ApiError(422, f"{where} has to have objects with a topic and the number of a partition.")
    return TopicPartition(topic, partition)

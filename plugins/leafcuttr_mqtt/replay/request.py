"""What a client that asks for a history has asked for, and which Kafka topics have it. No I/O."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from leafcuttr_mqtt.mapping.rules import Rules
from leafcuttr_mqtt.topics.names import SHARED, have_common_topics, why_no_filter

_PREFIX: Final = "$replay/"
_MOST_DIGITS: Final = 18


class ReplayRequest(NamedTuple):
    """A history."""

    filter: str
    """Of the messages, the live ones too: it is what the client is subscribed to."""
    since_ms: int | None
    """Of messages stored at that time or later; None: by offset."""
    offset: int
    """In each partition."""


def is_request(text: str) -> bool:
    """Whether a topic filter asks for a history."""
    return text.startswith(_PREFIX)


def parse_request(text: str) -> ReplayRequest:
    """What a topic filter asks for. Raises ValueError, whose text says why it asks for nothing, in one clause."""
    kind, _, rest = text.removeprefix(_PREFIX).partition("/")
    number, slash, topic_filter = rest.partition("/")
    if kind not in ("ts", "offset") or not slash or not number.isascii() or not number.isdigit():
        raise ValueError(
            "allowed are $replay/ts/<milliseconds>/<filter> and $replay/offset/<offset>/<filter>"
        )
    if len(number) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(number)} digits is too large")
    wrong = why_no_filter(topic_filter)
    if wrong is not None:
        raise ValueError(wrong)
    if topic_filter.startswith((SHARED, _PREFIX)):
        raise ValueError("a history is of a filter that is not shared, and of no other history")
    if kind == "ts":
        return ReplayRequest(topic_filter, int(number), 0)
    return ReplayRequest(topic_filter, None, int(number))


def subscribed(text: str) -> str:
    """What UNSUBSCRIBE means by a topic filter: of a history, what the client is subscribed to."""
    if not is_request(text):
        return text
    try:
        return parse_request(text).filter
    except ValueError:
        return text


def kafka_topics(rules: Rules, topic_filter: str, existing: Iterable[str]) -> list[str]:
    """The Kafka topics that may have messages whose topics match a filter, of those that exist."""
    patterns = [
        rule.kafka_topic.pattern() for rule in rules.rules if have_common_topics(rule.filter, topic_filter)
    ]
    return [name for name in existing if any(pattern.fullmatch(name) for pattern in patterns)]

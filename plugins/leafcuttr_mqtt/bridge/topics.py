"""Which messages go over a bridge, and under which names. No packets and no I/O.

A rule is what mosquitto has after `topic`: PATTERN [DIRECTION [QOS [LOCAL-PREFIX [REMOTE-PREFIX]]]]. Here a topic is
the local prefix and what matches the pattern, there the remote prefix and the same.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from leafcuttr_mqtt.topics.names import matches, why_no_filter, why_no_name

if TYPE_CHECKING:
    from leafcuttr_mqtt.packets.types import SubscriptionRequest

OUT, IN, BOTH = "out", "in", "both"
_DIRECTIONS: Final = (OUT, IN, BOTH)
_DEFAULTS: Final = ("", OUT, "0", "", "")
_MOST_NAMES: Final = 4096


ALL_STATES: Final = "$SYS/broker/connection/+/state"
_BEFORE, _AFTER = ALL_STATES.split("+")


def bridge_of(topic: str) -> str | None:
    """The client identifier of the bridge whose state a topic has; None: it is no such topic."""
    if not topic.startswith(_BEFORE) or not topic.endswith(_AFTER):
        return None
    return topic[len(_BEFORE) : -len(_AFTER)]


def state_topic(client_id: str) -> str:
    """Where bridges publish whether they are connected, at both brokers, as mosquitto's do."""
    return f"$SYS/broker/connection/{client_id}/state"


class Rule(NamedTuple):
    pattern: str
    """Empty: one topic only, with the prefixes as its names."""
    direction: str
    qos: int
    """The highest that messages have on the way."""
    local_prefix: str
    remote_prefix: str

    @property
    def local(self) -> str:
        """The filter of this broker's topics."""
        return self.local_prefix + self.pattern

    @property
    def remote(self) -> str:
        """The filter of the other broker's topics."""
        return self.remote_prefix + self.pattern


def parse_rule(text: str) -> Rule:
    """Raises ValueError with what is wrong, in one clause."""
    import shlex

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from None
    if not 1 <= len(words) <= 5:
        raise ValueError(f"{text!r} is not PATTERN [out|in|both [QOS [LOCAL-PREFIX [REMOTE-PREFIX]]]]")
    pattern, direction, qos, local, remote = (*words, *_DEFAULTS[len(words) :])
    if direction not in _DIRECTIONS:
        raise ValueError(f"{text!r}: the direction is out, in or both")
    if qos not in ("0", "1", "2"):
        raise ValueError(f"{text!r}: the QoS is 0, 1 or 2")
    rule = Rule(pattern, direction, int(qos), local, remote)
    wrong = _why_no_rule(rule)
    if wrong is not None:
        raise ValueError(f"{text!r}: {wrong}")
    return rule


def _why_no_rule(rule: Rule) -> str | None:
    for name, prefix, whole in (
        ("local", rule.local_prefix, rule.local),
        ("remote", rule.remote_prefix, rule.remote),
    ):
        if "+" in prefix or "#" in prefix:
            return f"the {name} prefix has a wildcard"
        if whole.startswith("$share/"):
            return "a bridge cannot share a subscription"
        wrong = why_no_filter(whole)
        if wrong is not None:
            return f"the {name} topic: {wrong}"
    return None


class Routes:
    """The rules of one bridge. Of several that match a topic the first one counts."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        rules = tuple(rules)
        self._out: Final = [rule for rule in rules if rule.direction != IN]
        self._in: Final = [rule for rule in rules if rule.direction != OUT]
        self._names_out: dict[str, str | None] = {}
        self._names_in: dict[str, str | None] = {}

    def out(self, topic: str) -> str | None:
        """What a topic of this broker is called there; None: it does not go out."""
        known = self._names_out.get(topic, "")
        if known != "":
            return known
        found = _first([(rule.local, rule.local_prefix, rule.remote_prefix) for rule in self._out], topic)
        return _remember(self._names_out, topic, found)

    def into(self, topic: str) -> str | None:
        """What a topic of the other broker is called here; None: it does not come in."""
        known = self._names_in.get(topic, "")
        if known != "":
            return known
        found = _first([(rule.remote, rule.remote_prefix, rule.local_prefix) for rule in self._in], topic)
        return _remember(self._names_in, topic, found)

    def local_requests(self, most_qos: int = 2) -> "dict[str, SubscriptionRequest]":
        """What the bridge subscribes to here, by filter: not its own messages, and with their RETAIN flag. Retained
        messages only where the subscription is new: what was sent once is not sent again with each connection."""
        return _requests([(rule.local, min(rule.qos, most_qos)) for rule in self._out])

    def remote_requests(self) -> "dict[str, SubscriptionRequest]":
        """What the bridge subscribes to there. In 3.1.1 only filter and QoS are sent."""
        return _requests([(rule.remote, rule.qos) for rule in self._in])

    @property
    def goes_out(self) -> bool:
        """Whether anything goes to the other broker."""
        return bool(self._out)

    @property
    def growth(self) -> int:
        """So many bytes longer a topic can be there than here."""
        return max(
            (len(rule.remote_prefix.encode()) - len(rule.local_prefix.encode()) for rule in self._out),
            default=0,
        )


def _first(rules: Iterable[tuple[str, str, str]], topic: str) -> str | None:
    """By the first rule that matches, with the one prefix in the other's place."""
    for topic_filter, prefix, instead in rules:
        # `a/#` matches `a` too, which does not begin with the prefix `a/`: it has no name on the other side.
        if matches(topic_filter, topic) and topic.startswith(prefix):
            name = instead + topic[len(prefix) :]
            return name if why_no_name(name) is None else None
    return None


def _remember(names: dict[str, str | None], topic: str, name: str | None) -> str | None:
    if len(names) >= _MOST_NAMES:
        names.clear()
    names[topic] = name
    return name


def _requests(wanted: Iterable[tuple[str, int]]) -> "dict[str, SubscriptionRequest]":
    from leafcuttr_mqtt.packets.types import SubscriptionRequest

    found: dict[str, SubscriptionRequest] = {}
    for topic_filter, qos in wanted:
        known = found.get(topic_filter)
        if known is None or known.qos < qos:
            found[topic_filter] = SubscriptionRequest(
                topic_filter, qos, no_local=True, retain_as_published=True, retain_handling=1
            )
    return found

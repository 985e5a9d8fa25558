"""What clients may do with MQTT topics, where the broker has an authorizer: what the ACLs of the Kafka topics say that
a topic is mapped to, or those of Topic `mqtt/<topic>` if it is mapped to none. `/` is in the name of no Kafka topic.

To publish takes WRITE on all Kafka topics, to receive READ on one of them: each has the whole message. Topics of `$SYS`
take DESCRIBE on the cluster, as metrics do. What is mapped to another cluster is not mapped, as far as rights go: the
ACLs here are those of the topics of this broker.

A filter with wildcards is granted, and each message is checked when it is delivered: when it is given to a session
(`guarded_router`), and again when that sends it, which may be long after, by another client. What may be remembered, by
topic, is so until `Security.version` grows.
"""

from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from leafcuttr_mqtt.topics.cache import TopicCache
from leafcuttr_mqtt.topics.names import has_wildcard
from leafcuttr_sdk.principals import Principal
from leafcuttr_sdk.security import Operation, ResourceType, denied

if TYPE_CHECKING:
    from collections.abc import Callable

    from leafcuttr_mqtt.mapping.rules import Rules
    from leafcuttr_sdk.security import Security

V = TypeVar("V")

UNMAPPED: Final = "mqtt/"
_SYSTEM: Final = "$SYS/"
_MOST_REMEMBERED: Final = 1000
"""Topics of one client."""


class Who(NamedTuple):
    """Whom rights are given to."""

    principal: Principal
    host: str

    @classmethod
    def of_stored(cls, kind: str, name: str, host: str) -> "Who":
        return cls(Principal(kind, name), host)

    @property
    def stored(self) -> tuple[str, str, str]:
        """As it is kept with a session."""
        return self.principal.type, self.principal.name, self.host


class Rights:
    """See the module. `rules` are those of mappings to Kafka topics of this broker."""

    def __init__(self, security: "Security[object]", rules: "Rules | None") -> None:
        self._security: Final = security
        self._rules = rules
        self._kafka_topics: TopicCache[tuple[str, ...]] = TopicCache()

    @property
    def version(self) -> int:
        """Grows with each change of what these say."""
        return self._security.version

    def kafka_topics(self, topic: str) -> tuple[str, ...]:
        """The names of the resources of type TOPIC that stand for an MQTT topic."""
        known = self._kafka_topics.get(topic)
        if known is None:
            mapped = () if self._rules is None else self._rules.destinations(topic)
            known = tuple([each.kafka_topic for each in mapped]) or (f"{UNMAPPED}{topic}",)
            self._kafka_topics.put(topic, known, sum(map(len, known)))
        return known

    def why_not_published(self, who: Who, topic: str, *, quietly: bool = False) -> str | None:
        """Why a client may not publish to this topic; None: it may. A denial is for the audit log, but `quietly`."""
        for name in self.kafka_topics(topic):
            if not self._allowed(who, Operation.WRITE, name, quietly=quietly):
                return str(denied(who.principal, Operation.WRITE, ResourceType.TOPIC, name))
        return None

    def why_not_subscribed(self, who: Who, topic_filter: str) -> str | None:
        """Why a client may not subscribe: with a wildcard it may."""
        if has_wildcard(topic_filter) or self.may_receive(who, topic_filter):
            return None
        name = self.kafka_topics(topic_filter)[0]
        if topic_filter.startswith(_SYSTEM):
            return str(denied(who.principal, Operation.DESCRIBE, ResourceType.CLUSTER))
        self._allowed(who, Operation.READ, name)  # for the audit log
        return str(denied(who.principal, Operation.READ, ResourceType.TOPIC, name))

    def may_receive(self, who: Who, topic: str) -> bool:
        """Whether a client gets the messages of this topic. Nobody has requested that it does not, so it is no matter
        of the audit log."""
        if topic.startswith(_SYSTEM):
            security = self._security
            return security.allowed(
                who.principal, Operation.DESCRIBE, ResourceType.CLUSTER, host=who.host, quietly=True
            )
        names = self.kafka_topics(topic)
        return any(self._allowed(who, Operation.READ, name, quietly=True) for name in names)

    def receives(self, who: Who) -> "Callable[[str], bool]":
        """`may_receive` of one client, remembered by topic."""
        known = _Remembered[bool](self)

        def may_receive(topic: str) -> bool:
            found = known.get(topic)
            return known.put(topic, self.may_receive(who, topic)) if found is None else found

        return may_receive

    def _allowed(self, who: Who, operation: Operation, name: str, *, quietly: bool = False) -> bool:
        principal, host = who
        return self._security.allowed(
            principal, operation, ResourceType.TOPIC, name, host=host, quietly=quietly
        )


class _Remembered(Generic[V]):
    """Answers by topic, until one of the rights changes."""

    __slots__ = ("_known", "_rights", "_version")

    def __init__(self, rights: Rights) -> None:
        self._rights = rights
        self._version = rights.version
        self._known: dict[str, V] = {}

    def get(self, topic: str) -> V | None:
        version = self._rights.version
        if version != self._version:
            self._version = version
            self._known.clear()
        return self._known.get(topic)

    def put(self, topic: str, value: V) -> V:
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[topic] = value
        return value


class Publishing:
    """What one client may publish. That it may is remembered by topic."""

    __slots__ = ("_known", "_rights", "_who")

    def __init__(self, rights: Rights, who: Who) -> None:
        self._rights = rights
        self._who = who
        self._known = _Remembered[bool](rights)

    def why_not(self, topic: str, *, quietly: bool = False) -> str | None:
        """See `Rights.why_not_published`."""
        if self._known.get(topic):
            return None
        why = self._rights.why_not_published(self._who, topic, quietly=quietly)
        if why is None:
            self._known.put(topic, True)
        return why

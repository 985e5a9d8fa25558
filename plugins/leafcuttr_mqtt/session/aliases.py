"""Topic aliases of one connection (3.3.2.3.4), in both directions. They end with it ([MQTT-3.3.2-7])."""

from typing import Final

from leafcuttr_mqtt.packets.errors import PacketError
from leafcuttr_mqtt.packets.types import ReasonCode

SHORTEST: Final = 6
"""Characters of a topic for which an alias is used: the property takes three bytes, and the first packet has both."""


class InboundAliases:
    """What a client has set."""

    __slots__ = ("_topics", "maximum")

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        """As the server granted it."""
        self._topics: dict[int, str] = {}

    def resolve(self, alias: int, topic: str) -> str:
        """The topic of a PUBLISH with this alias, which is set anew where there is a topic. Raises PacketError."""
        if not 0 < alias <= self.maximum:  # [MQTT-3.3.2-8], [MQTT-3.3.2-9]
            raise PacketError(
                ReasonCode.TOPIC_ALIAS_INVALID,
                f"topic alias {alias}, where 1 to {self.maximum} are allowed"
                if self.maximum
                else f"topic alias {alias}, where none is allowed",
            )
        if topic:
            self._topics[alias] = topic
            return topic
        known = self._topics.get(alias)
        if known is None:
            raise PacketError(ReasonCode.PROTOCOL_ERROR, f"topic alias {alias} stands for no topic")
        return known


class OutboundAliases:
    """What the server has set. Topics get aliases in the order in which they are first sent, until all are in use:
    those of a subscriber are few, or so many that exchanging aliases would cost more bytes than it saves."""

    __slots__ = ("_numbers", "maximum")

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        """The lower one of what the client allows ([MQTT-3.3.2-11]) and what the server uses."""
        self._numbers: dict[str, int] = {}

    def get(self, topic: str) -> tuple[int, bool]:
        """The alias of a topic, 0 for none, and whether the client knows it. `put` it once it is sure to be sent."""
        number = self._numbers.get(topic)
        if number is not None:
            return number, True
        if len(self._numbers) >= self.maximum or len(topic) < SHORTEST:
            return 0, False
        return len(self._numbers) + 1, False

    def put(self, topic: str, alias: int) -> None:
        self._numbers[topic] = alias

"""What a conversation tells the broker, in the order in which it came. What the broker has to answer says so.

PUBLISH, SUBSCRIBE and UNSUBSCRIBE are their own events: the packets of `packets.types`, checked, a PUBLISH with the
topic that its alias stood for.
"""

from dataclasses import dataclass
from typing import TypeAlias

from leafcuttr_mqtt.packets.types import (
    Auth,
    Connect,
    Packet,
    Properties,
    Publish,
    ReasonCode,
    Subscribe,
    Unsubscribe,
)
from leafcuttr_mqtt.session.types import Delivery


@dataclass(slots=True)
class Connected:
    """CONNECT, which is allowed. Answered by `Conversation.accept`, `refuse` or `challenge`; packets behind it wait."""

    connect: Connect
    """Without a client identifier the server assigns one and gives it to `accept`."""


@dataclass(slots=True)
class Authenticating:
    """AUTH of a client whose connection is not accepted yet. Answered as `Connected` is."""

    auth: Auth


@dataclass(slots=True)
class ReAuthenticated:
    """AUTH on a connection that was accepted (4.12.1). Answered by `Conversation.challenge` or `re_authenticated`, or
    the connection is ended with `Conversation.end`."""

    auth: Auth
    begins: bool
    """It begins anew (0x19); otherwise it goes on (0x18)."""


@dataclass(slots=True)
class Repeated:
    """A PUBLISH with QoS 2 that was received before and is not published again ([MQTT-4.3.3-10]). Answered with PUBREC
    once `Inbound.can_answer` says so: at once, unless the message came on an earlier connection and is still being
    stored."""

    packet_id: int


@dataclass(slots=True)
class PublishRefused:
    """A PUBLISH whose payload is not what it says to be: nothing is published. Answered with PUBACK or PUBREC with the
    reason, in the order of the others (4.6); the conversation has settled it."""

    publish: Publish
    reason: ReasonCode
    text: str


@dataclass(slots=True)
class Released:
    """PUBREL of a message that was received. Once this is noted: `Inbound.completed`, then PUBCOMP."""

    packet_id: int


@dataclass(slots=True)
class Acknowledged:
    """Deliveries that the client has, or refuses, for good: PUBACK, PUBCOMP, or PUBREC with an error. There may be
    more to `take` now."""

    deliveries: list[Delivery]
    """Those of PUBCOMP without their messages, which were given up with PUBREC."""


@dataclass(slots=True)
class Received:
    """PUBREC of deliveries with QoS 2: the client has them. Once this is noted, PUBREL is sent for each, in this order
    ([MQTT-4.6.0-4])."""

    deliveries: list[Delivery]
    """Without their messages; `packet_id_of(sequence)` is what PUBREL carries."""


@dataclass(slots=True)
class Answer:
    """A packet to send that needs nothing from the broker: PINGRESP, or PUBREL and PUBCOMP of what is unknown."""

    packet: Packet


@dataclass(slots=True)
class Disconnected:
    """DISCONNECT. The connection is closed; nothing that came behind it is read ([MQTT-3.14.4-1])."""

    reason: int
    properties: Properties


Event: TypeAlias = (
    Publish
    | Acknowledged
    | Received
    | Released
    | Repeated
    | PublishRefused
    | Answer
    | Subscribe
    | Unsubscribe
    | Connected
    | Authenticating
    | ReAuthenticated
    | Disconnected
)

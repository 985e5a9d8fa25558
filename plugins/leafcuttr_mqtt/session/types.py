"""What a session holds: subscriptions, and messages on their way to a client. Plain data."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from leafcuttr_mqtt.messages import Message


class Subscription(NamedTuple):
    """One subscription of a session, as it was granted."""

    filter: str
    """The topic filter, without `$share/<name>/`."""
    qos: int
    """The highest QoS that its messages are delivered with."""
    share: str | None = None
    """The name of the shared subscription that it is a part of."""
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0
    identifier: int | None = None


@dataclass(slots=True)
class Delivery:
    """One message on its way to one client."""

    message: Message | None
    """None: it is in the log only, at `offset`, and is read when its turn comes."""
    qos: int
    """That of the delivery: the lower one of the message's and the subscription's."""
    retain: bool
    """The RETAIN flag of the PUBLISH packet."""
    identifiers: tuple[int, ...] = ()
    """Subscription identifiers of all subscriptions that it is delivered for."""
    size: int = 0
    """Bytes of topic, payload and properties: what a queue's bound counts."""
    offset: int = -1
    """Where the message is in the log of queued messages; -1: nowhere."""
    sequence: int = -1
    """Of a delivery with QoS 1 or 2: its number in the session, from 0 on; -1: it gets one when it is offered. The
    packet identifier follows from it, so that after a restart a message goes out with the one it had."""


class DropReason(Enum):
    """Why a message does not reach a client. The values are for metrics and the log."""

    QUEUE_FULL = "queue-full"
    """More waited than the session may hold."""
    EXPIRED = "expired"
    """Its message expiry interval was over before it was sent ([MQTT-3.3.2-5])."""
    TOO_LARGE = "too-large"
    """Its packet is larger than the client accepts ([MQTT-3.1.2-25])."""
    LOST = "lost"
    """It was in the log only, and the log has it no more."""
    NOT_ALLOWED = "not-allowed"
    """Its client may not READ the topic, or not any more."""
    SESSION_ENDED = "session-ended"


class Drop(NamedTuple):
    """A delivery that the session has given up. Of one in the log the end is to be noted there."""

    delivery: Delivery
    reason: DropReason


class Sending(NamedTuple):
    """One PUBLISH that is to be sent now, as the fields that are not the message's own."""

    delivery: Delivery
    """Its message is there."""
    packet_id: int
    """0 with QoS 0."""
    duplicate: bool
    """The DUP flag: it was sent before, on another connection."""
    alias: int
    """The topic alias; 0: none."""
    topic_left_out: bool
    """The client knows the alias: the topic is sent empty."""
    expiry_s: int | None
    """What is left of the message expiry interval, for a client of 5.0; None: the property is not sent."""

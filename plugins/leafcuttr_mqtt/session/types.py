"""What a session holds: subscriptions, and messages on their way to a client. Plain data."""

from dataclasses import dataclass
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
    sequence: int = 0
    """Of a delivery with QoS 1 or 2: its number in the session, from 0 on and without gaps. The packet identifier
    follows from it, so that after a restart a message goes out with the one it had."""

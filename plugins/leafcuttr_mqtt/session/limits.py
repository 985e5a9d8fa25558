"""What server and client may send one another, and what a session may hold. Plain values; no settings are read here."""

from dataclasses import dataclass, field
from typing import Final

from leafcuttr_mqtt.packets.types import Version

NEVER_S: Final = 0xFFFFFFFF
"""A session expiry interval that does not end (3.1.2.11.2)."""
MOST_IN_FLIGHT: Final = 65_535
"""Of packet identifiers, and the receive maximum of a side that names none (3.1.2.11.3, 3.2.2.3.3)."""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """What one session may hold for its client."""

    max_inflight: int = 100
    """How many messages with QoS 1 and 2 may be under way to the client; its receive maximum may be lower."""
    max_messages: int = 100_000
    """How many messages may wait, without those under way."""
    max_bytes: int = 100 * 1024 * 1024
    """How many bytes of messages may wait, as `Delivery.size` counts them, without those under way."""
    memory_bytes: int = 1024 * 1024
    """How many bytes of messages are held in memory. Of those above it, what is in the log is held there only."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the server grants its clients. One for all connections."""

    receive_maximum: int = 100
    """How many messages with QoS 1 and 2 a client of 5.0 may have under way (3.2.2.3.3)."""
    maximum_packet_size: int = 1024 * 1024
    """The largest packet that a client may send (3.2.2.3.6). The reader refuses those above it."""
    topic_alias_maximum: int = 100
    """How many topic aliases a client may use (3.2.2.3.8); 0: none."""
    aliases_to_client: int = 16
    """How many the server uses, where the client allows as many; 0: none."""
    session_expiry_max_s: int = NEVER_S
    """How long a session is kept at most after its connection has ended."""
    keep_alive_max_s: int = 0
    """The longest keep alive; 0: without limit."""
    retain_available: bool = True
    max_subscriptions: int = 10_000
    """How many subscriptions a session may have. All of them are one record in the log."""
    queue: QueueLimits = field(default_factory=QueueLimits)


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """What a client accepts on one connection, from its CONNECT."""

    version: Version = Version.V3_1_1
    receive_maximum: int = MOST_IN_FLIGHT
    maximum_packet_size: int | None = None
    """None: whatever the protocol allows."""
    topic_aliases: int = 0
    """How many topic aliases are used towards it."""

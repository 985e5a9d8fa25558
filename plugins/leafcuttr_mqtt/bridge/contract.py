"""What is seen of a bridge that runs, by those that it imports."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from leafcuttr_mqtt.bridge.counts import Counts
    from leafcuttr_mqtt.bridge.options import Address, Bridge


class LiveBridge(Protocol):
    """One bridge of a running service."""

    connected_to: "Address | None"
    connections: int
    """How often it has connected."""
    why_not: str
    """Why it is not connected, as far as that is known."""

    @property
    def bridge(self) -> "Bridge": ...

    @property
    def notification_topic(self) -> str: ...

    @property
    def counts(self) -> "Counts": ...

    @property
    def waiting(self) -> int:
        """Messages that wait for the other broker."""
        ...

    @property
    def waiting_bytes(self) -> int: ...

    @property
    def in_flight(self) -> int:
        """Messages that the other broker has not acknowledged."""
        ...

"""What is counted while the broker runs: plain numbers, which those who count change. What all sessions have together
is added up at times only."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

if TYPE_CHECKING:
    from leafcuttr_mqtt.routing.clients import Client

_PIECE: Final = 2000
"""Sessions that are seen in one step of the loop: about a millisecond."""


class Counts:
    """Since the start of the service. Lists are by QoS."""

    __slots__ = (
        "accepted",
        "bytes_received",
        "bytes_sent",
        "most_connected",
        "packets_received",
        "packets_sent",
        "received",
        "refused",
        "sent",
    )

    def __init__(self) -> None:
        self.accepted = 0
        """Clients that were let in."""
        self.refused = 0
        """Those that were not: CONNACK says why."""
        self.most_connected = 0
        self.packets_received = 0
        self.packets_sent = 0
        self.bytes_received = 0
        self.bytes_sent = 0
        self.received = [0, 0, 0]
        """PUBLISH packets from clients."""
        self.sent = [0, 0, 0]
        """PUBLISH packets to clients."""

    def let_in(self, connected: int) -> None:
        """A client; so many are connected now."""
        self.accepted += 1
        if connected > self.most_connected:
            self.most_connected = connected


class Survey(NamedTuple):
    """What all sessions have together."""

    connected: int = 0
    away: int = 0
    """Sessions whose clients are not connected."""
    waiting: int = 0
    """Messages that wait for their clients."""
    waiting_bytes: int = 0
    in_flight: int = 0
    """Messages without an acknowledgement of their clients."""
    oldest_ms: int | None = None
    """When the oldest message came that waits and is in memory; None: there is none."""
    oldest_offset: int | None = None
    """Where in the log the oldest message is that waits there; None: there is none."""


async def survey(clients: Iterable["Client"]) -> Survey:
    """Look at all sessions, in pieces that do not hold the loop."""
    connected = away = waiting = waiting_bytes = in_flight = 0
    oldest_ms: int | None = None
    oldest_offset: int | None = None
    everybody = list(clients)
    for start in range(0, len(everybody), _PIECE):
        for client in everybody[start : start + _PIECE]:
            if client.connection is None:
                away += 1
            else:
                connected += 1
            outbound = client.session.outbound
            in_flight += outbound.under_way
            if count := outbound.messages:
                waiting += count
                waiting_bytes += outbound.bytes
                oldest = outbound.oldest
                if oldest is not None and oldest.message is not None:
                    oldest_ms = _less(oldest.message.arrived_ms, oldest_ms)
                elif oldest is not None and oldest.offset >= 0:
                    oldest_offset = _less(oldest.offset, oldest_offset)
        await trio.lowlevel.checkpoint()
    return Survey(connected, away, waiting, waiting_bytes, in_flight, oldest_ms, oldest_offset)


def _less(one: int, other: int | None) -> int:
    return one if other is None else min(one, other)

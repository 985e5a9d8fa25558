"""All bridges for as long as the service runs: attempts to connect and their pauses, the addresses in turn, and the
notifications at this broker."""

import logging
import random
import ssl
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_mqtt.bridge.counts import Counts
from leafcuttr_mqtt.bridge.link import Link
from leafcuttr_mqtt.bridge.options import Address, Bridge
from leafcuttr_mqtt.bridge.relay import DOWN, UP, Here, Relay
from leafcuttr_mqtt.bridge.tls import client_context
from leafcuttr_mqtt.bridge.topics import state_topic
from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import ReasonCode, Version
from leafcuttr_mqtt.server.connection import Connection

if TYPE_CHECKING:
    from leafcuttr_mqtt.bridge.local import LocalStream
    from leafcuttr_mqtt.server.running import Running
    from leafcuttr_mqtt.session.outbound import Outbound

_ITSELF: Final = "the other broker is this one"
_WHOLE_S: Final = 60.0
"""A connection that has lasted so long makes the pauses begin anew."""


class RunningBridge:
    """One bridge. What it says of itself is for metrics and people."""

    def __init__(self, running: "Running", bridge: Bridge, tls: ssl.SSLContext | None) -> None:
        self._running: Final = running
        self._tls: Final = tls
        self.bridge: Final = bridge
        self.client_id: Final = (
            f"leafcuttr-{running.broker.cluster.cluster_id}-{bridge.name}"
            if bridge.client_id is None
            else bridge.client_id
        )
        self.notification_topic: Final = bridge.notification_topic or state_topic(
            self.client_id or bridge.name
        )
        self._mark = bridge.bridge_mark and bridge.version != Version.V5
        self.connected_to: Address | None = None
        self._relay: Relay | None = None
        self._began_ms = 0
        self._refused_here = 0
        self._before = Counts(0, 0, {})
        self._given_up: Final = running.hub.count_drops_of(bridge.local_client_id)
        self.circle: frozenset[str] = frozenset()
        """Client identifiers here of bridges that the other broker has to this one."""
        self.connections = 0
        self.why_not = ""
        """Why it is not connected; empty while it is, and before the first attempt."""

    @property
    def counts(self) -> Counts:
        before = self._over
        given_up = {reason.value: count for reason, count in self._given_up.items()}
        return before._replace(drops=_added(before.drops, given_up))

    @property
    def _over(self) -> Counts:
        """Without what its session here has given up."""
        before, relay = self._before, self._relay
        if relay is None:
            return before
        return Counts(
            before.sent + relay.sent,
            before.received + relay.received,
            _added(before.drops, {reason.value: count for reason, count in relay.drops.items()}),
        )

    @property
    def waiting(self) -> int:
        """Messages that wait in its session here."""
        outbound = self._outbound
        return 0 if outbound is None else outbound.messages

    @property
    def waiting_bytes(self) -> int:
        outbound = self._outbound
        return 0 if outbound is None else outbound.bytes

    @property
    def in_flight(self) -> int:
        """Messages that the other broker has not acknowledged."""
        outbound = self._outbound
        return 0 if outbound is None else outbound.under_way

    @property
    def _outbound(self) -> "Outbound | None":
        client = self._running.hub.clients.get(self.bridge.local_client_id)
        return None if client is None else client.session.outbound

    @property
    def ids(self) -> tuple[str, ...]:
        """Client identifiers that only this bridge has, at whichever broker: no client of this one may take them."""
        own = self.bridge.local_client_id
        return (own, self.client_id) if self.bridge.client_id is None else (own,)

    async def run(self) -> None:
        """For ever."""
        bridge = self.bridge
        self._notify(DOWN)
        backoff = bridge.backoff_s
        while True:
            lasted = 0.0
            for address in bridge.addresses:
                lasted = await self._connect(address)
                if lasted:
                    break
            if lasted > _WHOLE_S:
                backoff = bridge.backoff_s
            # Up to a quarter less, so that many bridges do not come back at once.
            await trio.sleep(backoff * random.uniform(0.75, 1))
            backoff = bridge.backoff_s if lasted else min(backoff * 2, bridge.backoff_max_s)

    async def _connect(self, address: Address) -> float:
        """One connection; how long it lasted, 0 if there was none."""
        began = trio.current_time()
        self._began_ms = self._running.now_ms()
        self._refused_here = self._running.reserved.get(self.client_id, 0)
        link = await self._attempt(address)
        if link.stale:
            await self._attempt(address, clear=True)
            link = await self._attempt(address, cleared=True)
        was_connected, self.connected_to = self.connected_to is not None, None
        if self._running.reserved.get(self.client_id, 0) != self._refused_here:
            link.why = _ITSELF  # it was this broker that has just refused the identifier
        self.why_not = link.why
        name = self.bridge.name
        if was_connected:
            self._notify(DOWN)
            self._running.logger.warning("bridge %s has lost %s: %s", name, address, link.why)
            return trio.current_time() - began
        if self._mark and link.refused is not None and _is_of_the_mark(link.refused.reason):
            self._mark = False
            return await self._connect(address)
        self._running.complain(
            f"bridge {name} {address} {link.why}",
            "bridge %s cannot connect to %s: %s",
            name,
            address,
            link.why,
            level=logging.WARNING,
        )
        return 0.0

    async def _attempt(self, address: Address, *, clear: bool = False, cleared: bool = False) -> Link:
        limits = self._running.limits
        relay = Relay(
            self.bridge,
            self._here(),
            self.client_id,
            self.notification_topic,
            receive_maximum=limits.receive_maximum,
            largest_here=limits.maximum_packet_size,
            watch=self._keep_apart,
        )
        link = Link(
            self.bridge,
            address,
            self._tls,
            relay,
            self._serve,
            partial(self._came_up, address),
            self._why_not,
            self._complain,
        )
        self._relay = relay
        try:
            await link.run(mark=self._mark, clear=clear, cleared=cleared)
        finally:
            self._before = self._over
            self._relay = None
        return link

    def _why_not(self) -> str | None:
        """A bridge of this broker to itself would send each message round for ever. An identifier that an administrator
        has given may be that of a bridge at the other broker too, which is connected to this one: but not just now."""
        client = self._running.hub.clients.get(self.client_id)
        if client is None or client.connection is None or client.connected_ms < self._began_ms:
            return None
        return _ITSELF

    def _came_up(self, address: Address) -> None:
        self.connected_to = address
        self.connections += 1
        self.why_not = ""
        self._running.logger.info("bridge %s is connected to %s", self.bridge.name, address)
        self._notify(UP)
        if self._relay is not None:
            self._keep_apart(self._relay.bridges_there)

    def _keep_apart(self, bridges_there: frozenset[str]) -> None:
        """The other broker may have a bridge to this one: then it is a client here, by the identifier that its state
        has there. What the two bring goes to neither of them, or it would go round for ever."""
        clients = self._running.hub.clients
        here = {each for each in bridges_there if each in clients and clients[each].connection is not None}
        own = self.bridge.local_client_id
        for each in self.circle | here:
            if (client := clients.get(each)) is not None:
                client.apart = client.apart | {own} if each in here else client.apart - {own}
        if (client := clients.get(own)) is not None:
            client.apart = frozenset(here)
        if here and not self.circle:
            self._complain(
                f"the other broker has a bridge to this one too ({', '.join(sorted(here))[:255]}): what comes over one "
                "of them does not go back over the other, and what both take goes over twice; one of them is enough"
            )
        self.circle = frozenset(here)

    def _complain(self, text: str) -> None:
        self._running.complain(
            f"bridge {self.bridge.name} {text}",
            "bridge %s: %s",
            self.bridge.name,
            text,
            level=logging.WARNING,
        )

    def _here(self) -> Here:
        client = self._running.hub.clients.get(self.bridge.local_client_id)
        if client is None:
            return Here()
        session = client.session
        return Here(
            True,
            {requested: each.qos for requested, each in session.subscriptions.items()},
            tuple(session.inbound.received),
        )

    async def _serve(self, stream: "LocalStream") -> None:
        await Connection(self._running, stream).run()

    def _notify(self, state: bytes) -> None:
        if self.bridge.notifications:
            running = self._running
            running.turns.publish_soon(
                Message(
                    self.notification_topic,
                    state,
                    1,
                    True,
                    self.bridge.local_client_id,
                    running.now_ms(),
                )
            )


def _added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return dict(Counter(one) + Counter(other))


def _is_of_the_mark(reason: ReasonCode) -> bool:
    return reason == ReasonCode.UNSUPPORTED_PROTOCOL_VERSION


class Bridges:
    """All of them. Raises PluginError where a file of TLS cannot be used."""

    def __init__(self, running: "Running", bridges: Sequence[Bridge]) -> None:
        self.bridges: Final = [RunningBridge(running, each, client_context(each)) for each in bridges]
        running.bridges = self.bridges
        running.reserved.update((each, 0) for bridge in self.bridges for each in bridge.ids)

    async def run(self) -> None:
        """For ever."""
        async with trio.open_nursery() as nursery:
            for each in self.bridges:
                nursery.start_soon(each.run)
            await trio.sleep_forever()

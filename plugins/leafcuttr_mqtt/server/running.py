"""What all connections of one start of the service share, and what runs beside them."""

import logging
from typing import TYPE_CHECKING, Final, Protocol

import trio

from leafcuttr_mqtt.egress.making import make_egress
from leafcuttr_mqtt.mapping.writer import KafkaWriter
from leafcuttr_mqtt.packets.types import ReasonCode
from leafcuttr_mqtt.people.counts import Counts, Survey
from leafcuttr_mqtt.people.sys_topics import SysTopics
from leafcuttr_mqtt.replay.replays import Replays
from leafcuttr_mqtt.routing.hub import Hub
from leafcuttr_mqtt.routing.turns import Turns
from leafcuttr_mqtt.server.keep_alive import KeepAlive, Watched
from leafcuttr_mqtt.server.sending import Sendings
from leafcuttr_mqtt.session.limits import Limits, QueueLimits
from leafcuttr_mqtt.session.types import DropReason
from leafcuttr_mqtt.settings import PREFIX
from leafcuttr_mqtt.storage.none import NoStore
from leafcuttr_mqtt.storage.store import Store
from leafcuttr_sdk.errors import BrokerError
from leafcuttr_sdk.trouble import Complaints

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from leafcuttr_mqtt.bridge.contract import LiveBridge
    from leafcuttr_mqtt.mapping.cluster import ClusterWriter
    from leafcuttr_mqtt.mapping.contracts import Writer
    from leafcuttr_mqtt.mapping.settings import MappingOptions
    from leafcuttr_mqtt.messages import Message
    from leafcuttr_mqtt.routing.clients import Client
    from leafcuttr_mqtt.routing.rights import Rights
    from leafcuttr_mqtt.server.authentication import Doorkeeper
    from leafcuttr_mqtt.session.types import Delivery, Subscription
    from leafcuttr_mqtt.settings import Options
    from leafcuttr_sdk.broker import Broker

_SWEEP_S: Final = 1.0
_RETAINED_SWEEPS: Final = 60
_SHARED_AT_ONCE: Final = 200
"""Messages of a session that is over, given to other members of a shared subscription in a step of the loop."""


class Endable(Watched, Protocol):
    """A connection, as far as it is known here."""

    client: "Client | None"

    @property
    def peer(self) -> str:
        """Its client's address, with the port."""
        ...

    @property
    def peer_host(self) -> str: ...

    @property
    def held_by(self) -> str:
        """Why it is held back, if it is."""
        ...

    def end(self, reason: ReasonCode, text: str = "") -> None:
        """End it: with DISCONNECT in 5.0."""
        ...

    def quotas_changed(self) -> None:
        """Others may hold for its client."""
        ...


class Running:
    """One start of the service. `background` lives longer than the connections."""

    def __init__(
        self,
        broker: "Broker",
        options: "Options",
        mapping: "MappingOptions",
        doorkeeper: "Doorkeeper",
        background: trio.Nursery,
    ) -> None:
        self.broker: Final = broker
        self.options: Final = options
        self.mapping: Final = mapping
        self.doorkeeper: Final = doorkeeper
        self.background: Final = background
        self.logger: Final[logging.Logger] = broker.logger
        self.complain: Final = Complaints(broker.logger)
        self.now_ms: Final = broker.clock.now_ms
        self.stopping = False
        self.limits: Final = limits_of(options)
        self.handshake_s: Final = broker.settings.int(f"{PREFIX}.handshake.timeout.ms") / 1000
        self.cluster: ClusterWriter | None = None
        """The way to another cluster."""
        self.store: Final[Store] = (
            Store(broker, mapped=self._kafka_topics) if options.persistence else NoStore()  # type: ignore[assignment]
        )
        self.writer: Final[Writer] = self._kafka_writer()
        self.hub: Final = Hub(
            self.limits, broker.clock, self.store, broker.logger, self._publish_soon, self._rights()
        )
        self.turns: Final = Turns(broker, self.writer, self.hub, background, broker.logger)
        self.egress: Final = make_egress(
            broker, mapping, self.turns, self.writer, self.hub, self.count_refused, self.complain
        )
        self.replays: Final = (
            Replays(broker, mapping.rules, self.writer, self.hub, self.turns, background)
            if mapping.replay
            else None
        )
        self.keep_alive: Final = KeepAlive()
        self.counts: Final = Counts()
        self.seen = Survey()
        """What all sessions had together a few seconds ago."""
        self.started_ms: Final = broker.clock.now_ms()
        self.listeners: Final[dict[str, str]] = {}
        """Their addresses, by the prefixes of their settings."""
        self.sys_topics: Final = SysTopics(self)
        self.hub.system = self.sys_topics.match
        self.hub.read_again = self._read_again
        self.sendings: Final = Sendings()
        self.long_answers: Final = trio.StrictFIFOLock()
        """Held by the connection that goes on with an answer that takes long."""
        self.connections: Final[set[Endable]] = set()
        self.bridges: Sequence[LiveBridge] = ()
        self.reserved: Final[dict[str, int]] = {}
        """Client identifiers of the broker's own, and how often a client was refused because it had that one."""
        self.quotas_changed = trio.Event()
        """Set, and replaced, when quotas of clients may be others."""
        self._holding: dict[Endable, Callable[[], bool]] = {}
        """Connections whose credentials may be withdrawn, and whether they are still good."""
        self._authenticated: dict[Endable, int] = {}
        """Connections whose credentials expire, and when."""
        self.refused = 0
        """Messages that some Kafka topic can never take, or that are not allowed."""

    def _kafka_writer(self) -> "Writer":
        mapping, topics = self.mapping, self.broker.topics
        if mapping.bootstrap is None:
            return KafkaWriter(topics, mapping.rules, mapping.dead_letters, self.options.max_packet_bytes)
        from leafcuttr_mqtt.mapping.cluster import ClusterWriter

        self.cluster = ClusterWriter(
            lambda properties: self.broker.peer(properties, strict=True),
            mapping.bootstrap,
            mapping.client_id,
            mapping.properties,
            mapping.rules,
            mapping.dead_letters,
        )
        return self.cluster

    def _rights(self) -> "Rights | None":
        security = self.broker.security
        if not security.authorizes:
            return None
        from leafcuttr_mqtt.routing.rights import Rights

        return Rights(security, self.mapping.rules if self.mapping.bootstrap is None else None)

    async def open(self) -> None:
        """Read what was kept. Raises BrokerError and PluginError."""
        if self.cluster is not None:
            await self.background.start(self.cluster.run)
        recovered = await self.store.open()
        self.hub.restore(recovered)
        if self.replays is not None:
            self.hub.histories = self.replays.histories
            self.replays.resume(recovered.sessions)
        self.turns.conclude()
        self.background.start_soon(self.store.run)

    async def run(self) -> None:
        """What happens at times. For ever."""
        end = self.broker.security.on_change(self._security_changed)
        try:
            await self._run()
        finally:
            end()

    async def _run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.keep_alive.run)
            if self.egress is not None:
                nursery.start_soon(self.egress.run)
            nursery.start_soon(self.sys_topics.run)
            sweeps = 0
            try:
                while True:
                    await trio.sleep(_SWEEP_S)
                    sweeps += 1
                    self.hub.sweep()
                    self._end_expired()
                    self.sendings.forget()
                    if sweeps % _RETAINED_SWEEPS == 0:
                        self.hub.expire_retained()
                    self.turns.conclude()
            finally:
                # Before the connections are cancelled for the same reason, which takes steps of the loop.
                self.stopping = True

    async def close(self) -> None:
        """The connections have ended: wait for what is being stored."""
        self.stopping = True
        try:
            await self.turns.quiet()
        finally:
            self.writer.end()

    # What connections need

    def load(self, client: "Client", deliveries: "list[Delivery]") -> None:
        """Read the messages of these from the log, and go on with the session."""
        self.background.start_soon(self._load, client, deliveries)

    async def _read(self, deliveries: "Sequence[Delivery]") -> "dict[int, Message]":
        while True:
            try:
                return await self.store.load([each.offset for each in deliveries])
            except BrokerError as error:
                reason = str(error) or error.code.name
                self.complain("load", "queued messages cannot be read for now: %s", reason)
                await trio.sleep(1)

    async def _load(self, client: "Client", deliveries: "list[Delivery]") -> None:
        found = await self._read(deliveries)
        outbound = client.session.outbound
        for each in deliveries:
            # What is lost is dropped when its turn comes, and noted then.
            outbound.loaded(each, found.get(each.offset))
        if client.connection is not None:
            client.connection.touched()
        self.turns.conclude()

    def _read_again(
        self,
        shared: "Sequence[Subscription]",
        plain: "Sequence[Subscription]",
        deliveries: "list[Delivery]",
    ) -> None:
        self.background.start_soon(self._share_again, shared, plain, deliveries)

    async def _share_again(
        self,
        shared: "Sequence[Subscription]",
        plain: "Sequence[Subscription]",
        deliveries: "list[Delivery]",
    ) -> None:
        """Messages of a session that is over, which are in the log, go to other members of shared subscriptions."""
        hub, generation = self.hub, self.store.generation
        for begin in range(0, len(deliveries), _SHARED_AT_ONCE):
            some = deliveries[begin : begin + _SHARED_AT_ONCE]
            found = await self._read(some)
            for each in some:
                message = found.get(each.offset)
                if message is None or not hub.share_again(message, shared, plain):
                    hub.drops[DropReason.LOST if message is None else DropReason.SESSION_ENDED] += 1
            if generation == self.store.generation:
                hub.over(some)
            self.turns.conclude()

    def expire_at(self, connection: Endable, expires_ms: int) -> None:
        """End the connection at that time, unless its client authenticates anew."""
        self._authenticated[connection] = expires_ms

    def hold(self, connection: Endable, still_holds: "Callable[[], bool]") -> None:
        """End the connection once the credentials of its client are good no more."""
        self._holding[connection] = still_holds

    def _security_changed(self) -> None:
        """Users, rights or quotas are others."""
        for connection, still_holds in list(self._holding.items()):
            if not still_holds():
                del self._holding[connection]
                connection.end(ReasonCode.NOT_AUTHORIZED, "its credentials are good no more")
        for connection in self.connections:
            connection.quotas_changed()
        self.quotas_changed.set()
        self.quotas_changed = trio.Event()
        self.turns.conclude()

    def count_refused(self, reason: str) -> None:
        """A message is not published, for good."""
        self.refused += 1
        self.complain("refused", "a message was refused: %s", reason, level=logging.WARNING)

    def tell_end(self, connection: Endable, reason: "ReasonCode", text: str, *, at_fault: bool) -> None:
        """Say in the log why a connection is ended: one line a minute for each reason and host."""
        client = connection.client
        who = "a client" if client is None else f"client {client.client_id[:255]!r}"
        host = connection.peer_host
        self.complain(
            f"{host} {int(reason)}",
            "%s at %s: %s (%s)",
            who,
            connection.peer,
            text,
            reason.name,
            level=logging.WARNING if at_fault else logging.INFO,
        )

    def _end_expired(self) -> None:
        now_ms = self.now_ms()
        for connection, expires_ms in list(self._authenticated.items()):
            if expires_ms <= now_ms:
                del self._authenticated[connection]
                connection.end(ReasonCode.NOT_AUTHORIZED, "its credentials have expired")

    def gone(self, connection: Endable) -> None:
        """The connection has ended."""
        self.connections.discard(connection)
        self.keep_alive.remove(connection)
        self._authenticated.pop(connection, None)
        self._holding.pop(connection, None)

    @property
    def trouble(self) -> str:
        """Why clients wait for their acknowledgements at present; empty if none does."""
        return self.turns.trouble or next((each.held_by for each in self.connections if each.held_by), "")

    def _kafka_topics(self) -> list[str]:
        """Those of this broker that messages may be stored in, of those that exist."""
        if self.mapping.bootstrap is not None:
            return []
        return list(filter(self.mapping.rules.leads_to, self.broker.topics.names()))

    def _publish_soon(self, message: "Message", stored: "Callable[[], None]") -> None:
        self.turns.publish_soon(message, stored)


def limits_of(options: "Options") -> Limits:
    return Limits(
        receive_maximum=options.max_inflight,
        maximum_packet_size=options.max_packet_bytes,
        session_expiry_max_s=options.session_expiry_s,
        keep_alive_max_s=options.keep_alive_s,
        retain_available=options.retain,
        max_subscriptions=options.session_subscriptions,
        queue=QueueLimits(
            max_inflight=options.max_inflight,
            max_messages=options.session_messages,
            max_bytes=options.session_bytes,
        ),
    )

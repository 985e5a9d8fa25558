"""What goes out on a connection. It is gathered, and sent once a turn, without waiting; where the client does not take
it at once, a `SlowWriter` waits for it."""

from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_mqtt.packets.frames import PublishFrames
from leafcuttr_mqtt.packets.types import Packet, Version
from leafcuttr_mqtt.packets.writer import encode
from leafcuttr_mqtt.server.slow_writer import SlowWriter
from leafcuttr_mqtt.server.states import (
    ACCEPTED,
    ANSWERED,
    ENDED,
    LIVES,
    SEALED,
    STAGES,
    Event,
    Life,
    Step,
)

if TYPE_CHECKING:
    from leafcuttr_mqtt.routing.clients import Client
    from leafcuttr_mqtt.server.contract import UnderWay
    from leafcuttr_mqtt.server.running import Running
    from leafcuttr_sdk.security import ClientQuota
    from leafcuttr_sdk.serving import ByteStream

MOST_OUT: Final = 256 * 1024
"""Bytes that are made for a client beyond what it takes at once. The rest stays in the queue of its session."""
_NOTHING: Final[list[bytes]] = []
# What the tables say is looked up once: these moves are made for each read.
_GREETED: Final = LIVES[ACCEPTED][Event.GREET]
_SEALED: Final = STAGES[ANSWERED][Step.SEAL]
_SENT: Final = STAGES[SEALED][Step.SEND]


class Outgoing:
    """The sending part of a `Connection`, which is one class with it: a delivery costs no call from one object to
    another, and an idle connection one object less. It is a `Sender`, and the sending part of an `Attached`.

    Deliveries wait in the session until the turn ends (`touched`), so that a client has no more made for it than it
    takes. `_sealed` is what the turn under way has decided; what is gathered meanwhile is of the next one.
    """

    __slots__ = (
        "_due",
        "_needs_store",
        "_out",
        "_out_bytes",
        "_sealed",
        "_sealed_needs_store",
        "_touched",
        "client",
        "quota",
        "read",
        "running",
        "slow",
        "state",
        "stream",
        "version",
    )

    def __init__(self, running: "Running", stream: "ByteStream") -> None:
        self.running: Final = running
        self.stream: Final = stream
        self.state = Life.OPENING
        self.version: Version = Version.V3_1_1
        self.client: Client | None = None
        self.quota: ClientQuota | None = None
        """What its client has left, if there is a quota for it."""
        self.read: UnderWay | None = None
        """The one that is under way."""
        self._out = _NOTHING
        self._out_bytes = 0
        self._sealed = _NOTHING
        self._needs_store = False
        """Whether what is to be sent says that something is stored: an acknowledgement, or CONNACK for a session that
        is kept."""
        self._sealed_needs_store = False
        self.slow: SlowWriter | None = None
        """Where its client has not taken all that was sent."""
        self._due = False
        """Whether it is among those that send at the end of the turn."""
        self._touched = False
        """Whether the session has something to send."""

    # What the life of the connection has to do with it

    def lost(self) -> None:
        """The client has gone."""
        raise NotImplementedError

    def read_is_over(self) -> None:
        """The read under way is answered, or let go of."""
        raise NotImplementedError

    def give_up(self) -> None:
        """See `Sender`."""
        raise NotImplementedError

    def begin(self, read: "UnderWay") -> None:
        """It is the read under way."""
        self.read = read

    # Gathered

    def put(self, data: bytes) -> None:
        """To be sent at the end of the turn."""
        if self._out is _NOTHING:
            self._out = [data]
        else:
            self._out.append(data)
        self._out_bytes += len(data)

    def put_packet(self, packet: Packet) -> None:
        self.put(encode(packet, self.version))

    def send_soon(self) -> None:
        """At the end of this turn."""
        if not self._due:
            self._due = True
            self.running.turns.to_send(self)

    def wait_for_store(self) -> None:
        """See `Attached`."""
        self._needs_store = True

    @property
    def needs_store(self) -> bool:
        """See `Sender`."""
        return self._needs_store or self._sealed_needs_store

    @property
    def fluent(self) -> bool:
        """See `Attached`."""
        client = self.client
        return (
            client is not None
            and self.slow is None
            and self._out_bytes < MOST_OUT
            and client.session.outbound.is_clear
        )

    def send_frame(self, frames: PublishFrames, retain: bool, identifiers: tuple[int, ...]) -> None:
        """See `Attached`."""
        self.running.counts.sent[0] += 1
        self.put(frames.frame(self.version, 0, retain, identifiers).head)
        self.send_soon()

    def touched(self) -> None:
        """See `Attached`."""
        self._touched = True
        self.send_soon()

    # Sent

    def seal(self) -> None:
        """See `Sender`."""
        self._due = False
        if self._touched and self.slow is None and self.state is not ENDED:
            self._take_deliveries()
        counts = self.running.counts
        counts.packets_sent += len(self._out)
        counts.bytes_sent += self._out_bytes
        if self.quota is not None:
            self.quota.consumed(self._out_bytes)
        self._sealed, self._out, self._out_bytes = self._out, _NOTHING, 0
        self._sealed_needs_store, self._needs_store = self._needs_store, False
        read = self.read
        if read is not None and read.stage is ANSWERED:
            read.stage = _SEALED

    def _take_deliveries(self) -> None:
        """Deliveries of the session whose turn it is."""
        self._touched = False
        client, running = self.client, self.running
        attached: object = None if client is None else client.connection
        if client is None or attached is not self:
            return
        outbound = client.session.outbound
        is_fed = bool(client.feeds) and running.hub.feeds.go_on(client)
        now_ms = running.now_ms()
        encode_sending, version = running.sendings.encode, self.version
        size = 0  # as `take` counts it: where it has reached the limit there may be more
        sent = running.counts.sent
        for sending in outbound.take(now_ms, MOST_OUT):
            sent[sending.delivery.qos] += 1
            size += sending.delivery.size
            self.put(encode_sending(sending, version, now_ms))
        if outbound.drops:
            drops, outbound.drops = outbound.drops, []
            for drop in drops:
                running.hub.dropped(client, drop)
        loads = outbound.loads()
        if loads:
            running.load(client, loads)
        if size >= MOST_OUT or is_fed:
            self._touched = True

    def send(self) -> None:
        """See `Sender`."""
        sealed, self._sealed = self._sealed, _NOTHING
        self._sealed_needs_store = False
        if sealed and self.state is not ENDED:
            if self.state is ACCEPTED:
                self.state = _GREETED
            data = sealed[0] if len(sealed) == 1 else b"".join(sealed)
            if self.slow is None:
                self._send_now(data)
            else:
                self.slow.add(data)
        read = self.read
        if read is not None and read.stage is SEALED:
            read.stage = _SENT
            self.read_is_over()
        if self._touched and self.slow is None and self.state is not ENDED:
            self.send_soon()

    def _send_now(self, data: bytes) -> None:
        try:
            sent = self.stream.send_now(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.lost()
            return
        if sent < len(data):
            self.slow = SlowWriter(data[sent:])
            self.running.background.start_soon(self._write, self.slow)

    # A client that does not take everything at once

    @property
    def is_behind(self) -> bool:
        """Whether so much waits for its client that nothing more is read from it."""
        return self.slow is not None and self.slow.size > MOST_OUT

    async def _write(self, slow: SlowWriter) -> None:
        try:
            await slow.run(self.stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.lost()
        finally:
            self.slow = None
            if self.read is None:
                self.read_is_over()
        if self.state is not ENDED:
            self.touched()
            self.running.turns.conclude()

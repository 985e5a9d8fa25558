"""The life of one connection: how it begins and ends. `states` has its table.

It has one task, which reads (`reading`). What a read brings is answered in a turn (`read`); what is to be sent is
gathered and sent once a turn, without waiting (`outgoing`).
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_mqtt.bridge.local import LISTENER as BRIDGES
from leafcuttr_mqtt.bridge.local import LocalStream
from leafcuttr_mqtt.packets.errors import PacketError
from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.refusals import refusal
from leafcuttr_mqtt.packets.types import ConnAck, ReasonCode
from leafcuttr_mqtt.packets.writer import encode
from leafcuttr_mqtt.server.outgoing import Outgoing
from leafcuttr_mqtt.server.reading import read_packets
from leafcuttr_mqtt.server.states import ENDED, LIVES, Event, Life
from leafcuttr_mqtt.session.conversation import Conversation
from leafcuttr_sdk.principals import ANONYMOUS

if TYPE_CHECKING:
    from collections.abc import Callable

    from leafcuttr_mqtt.server.admission import Admission
    from leafcuttr_mqtt.server.running import Running
    from leafcuttr_sdk.principals import Principal
    from leafcuttr_sdk.serving import ByteStream

_FAREWELL_S: Final = 1.0
_LINGER_S: Final = 1.0
_MOST_DISCARDED: Final = 1 << 20
"""Bytes of a client that has been told that its connection ends."""
_GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError)


class Connection(Outgoing):
    """It is a `Watched`, an `Attached` and a `Sender`."""

    __slots__ = (
        "_farewell",
        "_lingers",
        "_scope",
        "_settled",
        "admission",
        "conversation",
        "heard",
        "reader",
        "silent_s",
    )

    def __init__(self, running: "Running", stream: "ByteStream") -> None:
        super().__init__(running, stream)
        self.reader: Final = PacketReader(
            running.limits.maximum_packet_size, trusted=isinstance(stream, LocalStream)
        )
        self.conversation: Final = Conversation(running.limits)
        self.admission: Admission | None = None
        self._scope: Final = trio.CancelScope()
        # As `Watched`: until it is accepted the time for a handshake counts.
        self.silent_s = running.handshake_s
        self.heard = trio.current_time()
        self._farewell = b""
        """What the client has not taken of the last packet."""
        self._lingers = False
        """Whether the client has a last packet to read."""
        self._settled: trio.Event | None = None
        """The reading task waits for it: the read is over, or what waits for the client is sent."""

    @property
    def peer(self) -> str:
        return str(self.stream.peer)

    @property
    def peer_host(self) -> str:
        return self.stream.peer.host

    @property
    def held_by(self) -> str:
        """Why it is held back: a message of its client cannot be stored for now. Empty if it is not."""
        return "" if self.read is None else self.read.held_by

    @property
    def listener(self) -> str:
        return self.stream.listener

    # The task

    async def run(self) -> None:
        """Serve the client until the connection ends."""
        running = self.running
        running.connections.add(self)
        running.keep_alive.add(self)
        try:
            with self._scope:
                await read_packets(self)
                if self.state is not ENDED:
                    self.move(Event.END)  # the client has ended it
        except trio.Cancelled:
            # Those of bridges are cancelled at the stop only, maybe before what says so.
            if running.stopping or self.listener == BRIDGES:
                running.stopping = True
                self.end(ReasonCode.SERVER_SHUTTING_DOWN)
            else:
                self.end(ReasonCode.KEEP_ALIVE_TIMEOUT, f"it was idle for {self.listener}.idle.timeout.ms")
            raise
        finally:
            running.gone(self)
            with trio.CancelScope(shield=True):
                await self._close()
            # It has the connection: without a cycle nothing waits for the collector.
            self.admission = None

    async def wait_answered(self) -> None:
        """Wait until the last read is answered, and what waits for the client is not too much."""
        while (self.read is not None or self.is_behind) and self.state is not ENDED:
            if self._settled is None:
                self._settled = trio.Event()
            await self._settled.wait()

    def accepted(self, keep_alive_s: int) -> None:
        """See `Served`: from now on its keep alive counts."""
        self.move(Event.ACCEPT)
        self.running.counts.let_in(self.running.hub.connected)
        self.running.keep_alive.remove(self)
        self.heard = trio.current_time()
        self.silent_s = keep_alive_s * 1.5  # [MQTT-3.1.2-22]
        self.running.keep_alive.add(self)

    def expires_at(self, expires_ms: int) -> None:
        """See `Served`."""
        self.running.expire_at(self, expires_ms)

    def holds_while(self, still_holds: "Callable[[], bool]") -> None:
        """See `Served`."""
        self.running.hold(self, still_holds)

    def take_quota(self, principal: "Principal | None") -> None:
        """See `Served`."""
        assert self.client is not None
        self.quota = self.running.broker.security.quota(principal or ANONYMOUS, self.client.client_id)

    def quotas_changed(self) -> None:
        """See `Endable`."""
        if self.admission is not None and self.client is not None:
            self.take_quota(self.admission.principal)

    # As `Outgoing` has it

    def read_is_over(self) -> None:
        """See `Outgoing`: the next one is taken."""
        self.read = None
        if self.state is Life.LEAVING:
            self.lost()
        if self._settled is not None:
            self._settled.set()
            self._settled = None

    def lost(self) -> None:
        """See `Outgoing`."""
        if self.slow is not None:
            self.slow.give_up()
        if self.state is not ENDED:
            self.move(Event.END)
            self._scope.cancel()

    def give_up(self) -> None:
        """See `Sender`."""
        self._sealed = []
        self._needs_store = self._sealed_needs_store = False
        reason, text = ReasonCode.SERVER_BUSY, "what the message concerns cannot be stored"
        said = None
        if self.state in (Life.OPENING, Life.ACCEPTED):
            said = refusal(PacketError(reason, text), self.version, connected=False)
        self.end(reason, text, said=said)
        self.read_is_over()

    # The end

    def leaves(self) -> None:
        """DISCONNECT has come: what came before it is still answered. Where the will is not to be published the
        conversation has taken it away."""
        self.move(Event.LEAVE)

    def keep_alive_is_over(self) -> None:
        """See `Watched`."""
        if self.client is None:
            self.end(ReasonCode.KEEP_ALIVE_TIMEOUT, log=f"no CONNECT within {self.silent_s:g} s")
        else:
            self.end(ReasonCode.KEEP_ALIVE_TIMEOUT, f"nothing came for {self.silent_s:g} s")

    def end(
        self,
        reason: ReasonCode,
        text: str = "",
        *,
        at_fault: bool = False,
        log: str = "",
        said: bytes | None = None,
    ) -> None:
        """See `Attached`. `log` is what the log says in the place of the text; with `at_fault` it is a warning. `said`
        are the last bytes, in the place of what the conversation has to say."""
        if self.state is ENDED:
            return
        is_greeted = self.state not in (Life.OPENING, Life.ACCEPTED)
        self.move(Event.END)
        if log or text:
            self.running.tell_end(self, reason, log or text, at_fault=at_fault)
        packet = self.conversation.end(reason, text)
        data = said
        # Nothing comes before CONNACK, which may wait for what is being stored: then nothing comes at all.
        if data is None and packet is not None and (is_greeted or type(packet) is ConnAck):
            data = encode(packet, self.version)
        self._lingers = bool(data)
        if data and self.slow is not None:
            self.slow.add(data)
        elif data and not self._sealed:
            try:
                sent = self.stream.send_now(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                sent = len(data)
            self._farewell = data[sent:]
        self._scope.cancel()

    def move(self, event: Event) -> None:
        """As the table has it."""
        self.state = LIVES[self.state][event]

    async def _close(self) -> None:
        running, client = self.running, self.client
        with trio.move_on_after(_FAREWELL_S):
            # What was answered before the end is sent too, to a client that does not take everything at once.
            while self.read is not None or (self.slow is not None and not self.slow.is_given_up):
                if self._settled is None:
                    self._settled = trio.Event()
                await self._settled.wait()
            if self._farewell:
                with suppress(*_GONE):
                    await self.stream.send_all(self._farewell)
        self.lost()
        if running.stopping:  # then the next start publishes its will, and its session goes on
            return
        if client is not None:
            running.hub.disconnected(client, self)
            running.turns.conclude()
        if self._lingers:
            await self._linger()

    async def _linger(self) -> None:
        """Let a client that is still sending come to read why its connection ends. What it sends to a socket that is
        closed fails, and most clients then look no further."""
        left = _MOST_DISCARDED
        # A stream over TLS or WebSocket cannot end one direction alone.
        with trio.move_on_after(_LINGER_S), suppress(*_GONE, NotImplementedError):
            await self.stream.send_eof()
            while left > 0 and (data := await self.stream.receive_some()):
                left -= len(data)

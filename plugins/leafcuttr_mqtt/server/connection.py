"""One connection: one task, which reads. What a read brings is answered in a turn; what is to be sent is gathered and
sent once a turn, without waiting. Only where the client does not take it at once a second task waits for it.

One read is under way at a time: the next one is taken once the packets of the last are answered, so a client that is
quicker than what stores its messages is held back by TCP. What comes after a message that cannot be stored for now
waits with it.

Longer than most modules because the steps of a read stand beside one another: taken, stored, answered, sent.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_mqtt.bridge.local import LISTENER as BRIDGES
from leafcuttr_mqtt.bridge.topics import state_topic
from leafcuttr_mqtt.mapping.outcomes import Failure
from leafcuttr_mqtt.mapping.settings import CLOSE, DEAD_LETTER
from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.errors import PacketError
from leafcuttr_mqtt.packets.frames import PublishFrames, acknowledgements
from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.refusals import refusal
from leafcuttr_mqtt.packets.types import (
    NO_PROPERTIES,
    ConnAck,
    Packet,
    PacketType,
    PubAck,
    Publish,
    PubRec,
    ReasonCode,
    Subscribe,
    Unsubscribe,
    Version,
)
from leafcuttr_mqtt.packets.writer import encode
from leafcuttr_mqtt.routing.clients import Attached, Client
from leafcuttr_mqtt.routing.turns import Gathered
from leafcuttr_mqtt.server.admission import DECIDED, Admission
from leafcuttr_mqtt.server.answers import answer, refuse
from leafcuttr_mqtt.session.conversation import Conversation
from leafcuttr_mqtt.session.events import Disconnected, Event
from leafcuttr_mqtt.session.states import Phase
from leafcuttr_mqtt.topics.names import MAX_LEVELS, why_too_deep

if TYPE_CHECKING:
    from leafcuttr_mqtt.server.running import Running
    from leafcuttr_sdk.serving import ByteStream

READ_BYTES: Final = 64 * 1024
MOST_PACKETS: Final = 4096
"""Of a read. A client that sends more at once, which are smaller than any message, is read in smaller pieces from then
on: what a read brings is answered in one step of the loop."""
SMALL_READ_BYTES: Final = 2 * 1024
MOST_OUT: Final = 256 * 1024
"""Bytes that are made for a client beyond what it takes at once. The rest stays in the queue of its session."""
MOST_STEPS: Final = 5000
"""Deliveries to subscribers that a read brings about in one step of the loop: some milliseconds. The others have their
turns before it goes on."""
_STEP_COSTS: Final = 20
"""What a filter or a retained message counts among these."""
_SLOW_S: Final = 0.02
"""Between two checks whether a client has taken what was sent, before an answer that takes long goes on."""
PAUSE_S: Final = 0.25
"""Between two attempts to store a message."""
HELD_S: Final = 10.0
"""How long a connection is held back because a message cannot be stored for now."""
_FAREWELL_S: Final = 1.0

Entry = tuple[Message, Gathered | None, int] | None
"""A message, where it is being stored, and its number there; None: no message, or one that is not published."""
NO_EVENTS: Final[list[Event]] = []
NO_ENTRIES: Final[list[Entry]] = []
NO_LANES: Final[list[Gathered]] = []
NO_BYTES: Final[list[bytes]] = []


class Connection:
    """See the module. It is a `Watched`, an `Attached`, a `Work` and a `Sender`."""

    __slots__ = (
        "_admission",
        "_answered",
        "_at",
        "_backlog",
        "_backlog_bytes",
        "_busy",
        "_disconnected",
        "_ended",
        "_entries",
        "_events",
        "_failures",
        "_farewell",
        "_gone",
        "_greeted",
        "_held_since",
        "_lanes",
        "_needs_store",
        "_numbers",
        "_out",
        "_out_bytes",
        "_reader",
        "_scope",
        "_sealed",
        "_sealed_answered",
        "_sealed_needs_store",
        "_settled",
        "_steps",
        "_stream",
        "_to_send",
        "_touched",
        "_writing",
        "client",
        "conversation",
        "heard",
        "running",
        "silent_s",
        "version",
        "waits_for",
    )

    def __init__(self, running: "Running", stream: "ByteStream") -> None:
        self.running: Final = running
        self._stream = stream
        self._reader: Final = PacketReader(running.limits.maximum_packet_size)
        self.conversation: Final = Conversation(running.limits)
        self._admission: Admission | None = None
        self._scope: Final = trio.CancelScope()
        self.version: Version = Version.V3_1_1
        self.client: Client | None = None
        # As `Watched`: until it is accepted the time for a handshake counts.
        self.silent_s = running.handshake_s
        self.heard = trio.current_time()
        self._ended = False
        self._gone = False
        """Nothing can be sent any more."""
        self._disconnected: Disconnected | None = None
        self._farewell = b""
        # The read that is under way.
        self.waits_for = 0
        self._busy = False
        self._events = NO_EVENTS
        self._entries = NO_ENTRIES
        self._lanes = NO_LANES
        self._at = 0
        self._failures: dict[int, Failure] | None = None
        self._numbers: dict[int, tuple[int, int]] | None = None
        """Of messages with QoS 2 in a session that outlives the connection: in the session, and of the records."""
        self._held_since = 0.0
        self._settled: trio.Event | None = None
        self._steps: Iterator[None] | None = None
        """What is left of the answer to the event at `_at`."""
        # What goes out.
        self._out = NO_BYTES
        self._out_bytes = 0
        self._answered = False
        self._needs_store = False
        """Whether what is to be sent says that something is stored: an acknowledgement, or CONNACK for a session that
        is kept."""
        self._sealed = NO_BYTES
        self._sealed_answered = False
        self._sealed_needs_store = False
        self._to_send = False
        self._greeted = False
        """Whether CONNACK has been sent: nothing comes before it ([MQTT-3.2.0-1])."""
        self._touched = False
        self._backlog = NO_BYTES
        self._backlog_bytes = 0
        self._writing = False

    @property
    def peer(self) -> str:
        return str(self._stream.peer)

    @property
    def peer_host(self) -> str:
        return self._stream.peer.host

    @property
    def held_by(self) -> str:
        """Why it is held back: a message of its client cannot be stored for now. Empty if it is not."""
        failure = (self._failures or {}).get(self._at) if self._held_since else None
        return "" if failure is None else failure.reason

    @property
    def listener(self) -> str:
        return self._stream.listener

    # The task

    async def run(self) -> None:
        """Serve the client until the connection ends."""
        running = self.running
        running.connections.add(self)
        running.keep_alive.add(self)
        try:
            with self._scope:
                await self._read()
                self._ended = True  # the client has ended it
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
            self._admission = (
                None  # which has the connection: without a cycle nothing waits for the collector
            )

    async def _read(self) -> None:
        stream, reader, conversation = self._stream, self._reader, self.conversation
        most = READ_BYTES
        while True:
            data = await stream.receive_some(most)
            if (
                self.client is not None
            ):  # until then the time is for all of the handshake, however slowly it comes
                self.heard = trio.current_time()
            if self._busy or self._backlog_bytes > MOST_OUT:
                await self._wait_answered()
            if not data:
                return
            packets = reader.feed(bytes(data))
            counts = self.running.counts
            counts.bytes_received += len(data)
            counts.packets_received += len(packets)
            if len(packets) > MOST_PACKETS:
                most = SMALL_READ_BYTES
            if packets:
                await self._receive(packets)
            error = reader.error or conversation.error
            if error is not None:
                await self._wait_answered()
                said: bytes | None = None
                if conversation.phase is Phase.EXPECTS_CONNECT:
                    said = refusal(error, reader.version, connected=False)
                elif conversation.version is not None:
                    self.version = conversation.version  # of a CONNECT that was read and is refused
                self.end(error.reason, error.text, at_fault=True, said=said)
            if self._ended:
                return

    async def _receive(self, packets: Sequence[Packet]) -> None:
        conversation = self.conversation
        events = conversation.receive(packets)
        while events:
            if self.client is not None and conversation.phase is not Phase.RE_AUTHENTICATING:
                self._take(events)
                return
            at = next((at for at, event in enumerate(events) if isinstance(event, DECIDED)), -1)
            if at:
                self._take(events if at < 0 else events[:at])
                await self._wait_answered()
            if self.client is None and conversation.phase is Phase.ENDED:
                self._lost()  # DISCONNECT in the place of AUTH
            if at < 0:
                return
            if self._admission is None:
                self._admission = Admission(self, self._stream)
            await self._admission.decide(events[at])
            self.running.turns.conclude()
            if self._ended:
                return
            # What came behind CONNECT was held, what came behind AUTH on a connection that is in was not.
            events = events[at + 1 :] or conversation.receive(())

    async def _wait_answered(self) -> None:
        """Wait until the last read is answered, and what waits for the client is not too much."""
        while (self._busy or self._backlog_bytes > MOST_OUT) and not self._ended:
            if self._settled is None:
                self._settled = trio.Event()
            await self._settled.wait()

    def accepted(self, keep_alive_s: int) -> None:
        """It is in: from now on its keep alive counts."""
        self.running.counts.let_in(self.running.hub.connected)
        self.running.keep_alive.remove(self)
        self.heard = trio.current_time()
        self.silent_s = keep_alive_s * 1.5  # [MQTT-3.1.2-22]
        self.running.keep_alive.add(self)

    def expires_at(self, expires_ms: int) -> None:
        """The client has to authenticate again by then."""
        self.running.expire_at(self, expires_ms)

    # Taken

    def _take(self, events: list[Event]) -> None:
        """Begin with what a read has brought: what is mapped goes to the turn."""
        running, client = self.running, self.client
        if client is None:
            return
        turns, targets_of = running.turns, running.writer.targets
        entries: list[Entry] = []
        lanes: list[Gathered] = []
        client_id = client.session.client_id
        now_ms = running.now_ms()
        for event in events:
            if (
                type(event) is not Publish
                or (
                    event.topic[0] == "$"
                    and event.topic != state_topic(client_id)  # of a bridge's notifications
                )
                or (len(event.topic) > MAX_LEVELS and why_too_deep(event.topic))
            ):
                entries.append(None)
                continue
            topic = event.topic
            message = Message(topic, event.payload, event.qos, event.retain, client_id, now_ms)
            if event.properties is not NO_PROPERTIES:
                message.take_properties(event.properties)
            targets = targets_of(topic)
            number: int | None = None
            if event.qos == 2 and client.outlives:
                own, number, targets = running.hub.begin_number(client, event, targets)
                if self._numbers is None:
                    self._numbers = {}
                self._numbers[len(entries)] = (own, number)
            if not targets:
                entries.append((message, None, -1))
                continue
            gathered = turns.lane(targets)
            if gathered not in lanes:
                lanes.append(gathered)
                turns.submit(self, gathered)
            entries.append((message, gathered, gathered.turn.add(message, targets, number)))
        self._busy = True
        self._events, self._entries, self._lanes, self._at = events, entries, lanes, 0
        if not lanes:
            self._go_on()
            turns.conclude()

    def letters(self, gathered: Gathered) -> Sequence[int]:
        """See `Work`. Clients before 5.0 cannot be told."""
        if self.version == Version.V5 or self.running.mapping.refused_v3 != DEAD_LETTER:
            return ()
        return [entry[2] for entry in self._entries if entry is not None and entry[1] is gathered]

    # Stored

    def stored(self) -> None:
        """See `Work`: what is mapped is stored, or it is known why not."""
        failures: dict[int, Failure] | None = None
        for lane in self._lanes:
            if lane.turn.failures:
                failures = {}
                break
        if failures is not None:
            for at, entry in enumerate(self._entries):
                if entry is not None and entry[1] is not None:
                    failure = entry[1].turn.failures.get(entry[2])
                    if failure is not None:
                        failures[at] = failure
        self._failures = failures
        self._go_on()

    def failed(self) -> None:
        """See `Work`."""
        self._release()
        self.end(ReasonCode.UNSPECIFIED_ERROR, "the broker has failed to answer", at_fault=True)

    def _go_on(self) -> None:
        """Answer the events of the read in their order, up to one that cannot be stored for now. Where the connection
        has ended meanwhile its messages are published all the same, as they are stored: its client may have a session
        that another connection goes on with."""
        client = self.client
        assert client is not None
        events, entries, failures = self._events, self._entries, self._failures
        publish = self.running.hub.publish
        five = self.version == Version.V5
        run: list[int] = []
        """Packet identifiers of QoS 1 that are acknowledged together."""
        unacknowledged = 0
        at, end = self._at, len(events)
        left = MOST_STEPS
        # What is stored is published and noted also where the connection has ended meanwhile. Subscriptions are the new
        # connection's if there is one.
        had_ended, taken_over = self._ended, client.connection is not self
        while at < end:
            event, entry = events[at], entries[at]
            if entry is None:
                self._end_run(client, run)
                steps = self._steps
                if steps is None and not (
                    (taken_over or had_ended) and isinstance(event, Subscribe | Unsubscribe)
                ):
                    steps = answer(self, client, event)
                if steps is not None:
                    self._steps = steps
                    for _ in steps:
                        left -= _STEP_COSTS
                        if left <= 0:
                            break
                    else:
                        self._steps = None
                    if self._steps is not None:
                        break
            else:
                message, lane, index = entry
                if failures and at in failures:
                    self._end_run(client, run)
                    if failures[at].missing:
                        break
                    self._refused(client, at, failures[at])
                elif message.qos == 1:
                    reached = 0
                    if (
                        (lane is not None and lane.letters and index in lane.letters)
                        or (reached := publish(message, client))
                        or lane is not None
                        or not five
                    ):
                        run.append(event.packet_id)  # type: ignore[union-attr]
                    else:
                        self._end_run(client, run)
                        client.session.inbound.acknowledged()
                        self._needs_store = True
                        self.put_packet(
                            PubAck(event.packet_id, ReasonCode.NO_MATCHING_SUBSCRIBERS)  # type: ignore[union-attr]
                        )
                    left -= reached
                elif not message.qos:
                    unacknowledged += 1
                    if lane is None or not lane.letters or index not in lane.letters:
                        left -= publish(message, client)
                else:
                    self._end_run(client, run)
                    left -= self._received(client, at, message, lane, index)
            at += 1
            if self._ended and not had_ended:
                break
            if left <= 0:
                break
        self._end_run(client, run)
        self.running.counts.received[0] += unacknowledged
        if at < end:
            self._at = at
            if left <= 0 and (had_ended or not self._ended):
                self.running.background.start_soon(self._go_on_later)
            elif self._ended:
                self._release()
            else:
                self._hold_back()
            self.send_soon()
            return
        self._events, self._entries, self._lanes = NO_EVENTS, NO_ENTRIES, NO_LANES
        self._failures = self._numbers = None
        self._held_since = 0.0
        self._answered = True
        self.send_soon()

    async def _go_on_later(self) -> None:
        """After others had their turns. One connection in a step of the loop."""
        while self._writing and not self._ended:  # noqa: ASYNC110  # what it does not take would fill its queue
            await trio.sleep(_SLOW_S)
        async with self.running.long_answers:
            try:
                self._go_on()
            except Exception:  # as in a turn
                self.running.logger.exception("an answer failed: its connection is ended")
                self.failed()
        self.running.turns.conclude()

    def _end_run(self, client: Client, run: list[int]) -> None:
        if run:
            self._needs_store = True
            client.session.inbound.acknowledged(len(run))
            self.put(acknowledgements(PacketType.PUBACK, run))
            counts = self.running.counts
            counts.received[1] += len(run)
            counts.packets_sent += len(run) - 1  # the run is one of what is put
            run.clear()

    def _received(self, client: Client, at: int, message: Message, lane: Gathered | None, index: int) -> int:
        """A message with QoS 2 is where it has to be. How many sessions get it."""
        self.running.counts.received[2] += 1
        packet_id = self._events[at].packet_id  # type: ignore[union-attr]
        hub = self.running.hub
        numbers = None if self._numbers is None else self._numbers.get(at)
        letter = lane is not None and index in lane.letters
        reached = 1 if letter or hub.is_queued(client, packet_id) else hub.publish(message, client)
        if numbers is not None:
            hub.note_received(client, packet_id, numbers[0])
        client.session.inbound.stored(packet_id)
        self._needs_store = True
        other = self._repeated_on(client, packet_id)
        if other is not None:
            other.wait_for_store()
            other.put_packet(PubRec(packet_id))
            other.send_soon()
        if not reached and lane is None and self.version == Version.V5:
            self.put_packet(PubRec(packet_id, ReasonCode.NO_MATCHING_SUBSCRIBERS))
        else:
            self.put_packet(PubRec(packet_id))
        return reached

    def _repeated_on(self, client: Client, packet_id: int) -> Attached | None:
        """The connection on which this message with QoS 2 came again, before it was known what becomes of it. It waits
        for an answer."""
        if packet_id not in client.repeated:
            return None
        client.repeated.discard(packet_id)
        return None if client.connection is self else client.connection

    def _refused(self, client: Client, at: int, failure: Failure) -> None:
        """A message that a Kafka topic can never take."""
        event, refused = self._events[at], failure.refused
        assert isinstance(event, Publish) and refused is not None
        if self._numbers is not None and at in self._numbers:
            self.running.hub.number_refused(client, event.packet_id, self._numbers[at][0])
        if self.version != Version.V5 and self.running.mapping.refused_v3 == CLOSE:
            self.running.count_refused(refused.text)
            self.end(refused.code, refused.text, at_fault=True)
            if event.qos == 2:
                client.session.inbound.abandoned(event.packet_id)
                if (other := self._repeated_on(client, event.packet_id)) is not None:
                    other.end(refused.code, refused.text)
            return
        refuse(self, client, event, refused.code, refused.text)
        if (other := self._repeated_on(client, event.packet_id)) is not None:
            other.put_packet(PubRec(event.packet_id, refused.code))
            other.send_soon()

    def _hold_back(self) -> None:
        """Some message cannot be stored for now: nothing more is read until it is, or the connection is ended."""
        now = trio.current_time()
        failure = (self._failures or {})[self._at]
        if not self._held_since:
            self._held_since = now
            self.running.complain(
                failure.missing[0],
                "messages cannot be stored for now, their clients wait: %s",
                failure.reason,
            )
        elif now - self._held_since > HELD_S or self._ended:
            self._release()
            reason = ReasonCode.QUOTA_EXCEEDED if "space" in failure.reason else ReasonCode.SERVER_BUSY
            self.end(reason, failure.reason)
            return
        self.running.background.start_soon(self._try_again)

    async def _try_again(self) -> None:
        await trio.sleep(PAUSE_S)
        if self._ended:
            self._release()
            return
        turns = self.running.turns
        lanes: list[Gathered] = []
        for at, failure in (self._failures or {}).items():
            entry = self._entries[at]
            if at < self._at or entry is None or not failure.missing:
                continue
            message = entry[0]
            gathered = turns.lane(self.running.writer.targets(message.topic))
            if gathered not in lanes:
                lanes.append(gathered)
                turns.submit(self, gathered)
            number = self._numbers[at][1] if self._numbers is not None and at in self._numbers else None
            self._entries[at] = (message, gathered, gathered.turn.again(message, failure, number))
        self._lanes = [*self._lanes, *lanes]

    def _release(self) -> None:
        """The read that was held back is given up: its client sends it again."""
        client, hub = self.client, self.running.hub
        assert client is not None
        for at in range(self._at, len(self._events)):
            event, entry = self._events[at], self._entries[at]
            if not isinstance(event, Publish) or event.qos != 2:
                continue
            client.session.inbound.abandoned(event.packet_id)
            if (other := self._repeated_on(client, event.packet_id)) is not None:
                other.end(ReasonCode.SERVER_BUSY, "a message that it has sent again cannot be stored for now")
            if self._numbers is not None and at in self._numbers and entry is not None:
                failure = (self._failures or {}).get(at)
                missing = () if failure is None else failure.missing
                targets = self.running.writer.targets(event.topic)
                stored_in = [each.kafka.name for each in targets if each.kafka.name not in missing]
                hub.give_up_number(client, event.packet_id, self._numbers[at][0], stored_in)
        self._events, self._entries, self._lanes = NO_EVENTS, NO_ENTRIES, NO_LANES
        self._failures = self._numbers = self._steps = None
        self._finish_read()

    def _finish_read(self) -> None:
        self._busy = False
        if self._disconnected is not None:
            self._lost()
        if self._settled is not None:
            self._settled.set()
            self._settled = None

    # Sent

    def put(self, data: bytes) -> None:
        """To be sent at the end of the turn."""
        if self._out is NO_BYTES:
            self._out = [data]
        else:
            self._out.append(data)
        self._out_bytes += len(data)

    def put_packet(self, packet: Packet) -> None:
        self.put(encode(packet, self.version))

    def send_soon(self) -> None:
        """At the end of this turn."""
        if not self._to_send:
            self._to_send = True
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
            and not self._writing
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

    def seal(self) -> None:
        """See `Sender`."""
        self._to_send = False
        if self._touched and not self._writing and not self._ended:
            self._take_deliveries()
        counts = self.running.counts
        counts.packets_sent += len(self._out)
        counts.bytes_sent += self._out_bytes
        self._sealed, self._out, self._out_bytes = self._out, NO_BYTES, 0
        self._sealed_answered, self._answered = self._answered, False
        self._sealed_needs_store, self._needs_store = self._needs_store, False

    def _take_deliveries(self) -> None:
        """Deliveries of the session whose turn it is."""
        self._touched = False
        client, running = self.client, self.running
        if client is None or client.connection is not self:
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
        sealed, self._sealed = self._sealed, NO_BYTES
        self._sealed_needs_store = False
        if sealed and not self._ended:
            self._greeted = True
            data = sealed[0] if len(sealed) == 1 else b"".join(sealed)
            if self._writing:
                self._backlog.append(data)
                self._backlog_bytes += len(data)
            else:
                self._send_now(data)
        if self._sealed_answered:
            self._finish_read()
        if self._touched and not self._writing and not self._ended:
            self.send_soon()

    def _send_now(self, data: bytes) -> None:
        try:
            sent = self._stream.send_now(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._lost()
            return
        if sent < len(data):
            self._backlog = [data[sent:]]
            self._backlog_bytes = len(data) - sent
            self._writing = True
            self.running.background.start_soon(self._write)

    async def _write(self) -> None:
        """Wait for a client that does not take everything at once. `send_all` has a limit for that."""
        try:
            while self._backlog and not self._gone:
                data = self._backlog[0] if len(self._backlog) == 1 else b"".join(self._backlog)
                self._backlog = []
                await self._stream.send_all(data)
                self._backlog_bytes -= len(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._lost()
        finally:
            self._backlog, self._backlog_bytes, self._writing = NO_BYTES, 0, False
            if not self._busy:
                self._finish_read()
        if not self._ended:
            self.touched()
            self.running.turns.conclude()

    def give_up(self) -> None:
        """See `Sender`."""
        self._sealed = NO_BYTES
        self._needs_store = self._sealed_needs_store = False
        reason, text = ReasonCode.SERVER_BUSY, "what the message concerns cannot be stored"
        said = None if self._greeted else refusal(PacketError(reason, text), self.version, connected=False)
        self.end(reason, text, said=said)
        self._finish_read()

    # The end

    def disconnected(self, event: Disconnected) -> None:
        """DISCONNECT has come: what came before it is still answered."""
        self._disconnected = event

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
        if self._ended:
            return
        self._ended = True
        if log or text:
            self.running.tell_end(self, reason, log or text, at_fault=at_fault)
        packet = self.conversation.end(reason, text)
        data = said
        # Nothing comes before CONNACK, which may wait for what is being stored: then nothing comes at all.
        if data is None and packet is not None and (self._greeted or type(packet) is ConnAck):
            data = encode(packet, self.version)
        if data and self._writing:
            self._backlog.append(data)
            self._backlog_bytes += len(data)
        elif data and not self._sealed:
            try:
                sent = self._stream.send_now(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                sent = len(data)
            self._farewell = data[sent:]
        self._scope.cancel()

    def _lost(self) -> None:
        """The client has gone."""
        self._gone = True
        if not self._ended:
            self._ended = True
            self._scope.cancel()

    async def _close(self) -> None:
        running, client = self.running, self.client
        with trio.move_on_after(_FAREWELL_S):
            # What was answered before the end is sent too, to a client that does not take everything at once.
            while self._busy or (self._writing and not self._gone):
                if self._settled is None:
                    self._settled = trio.Event()
                await self._settled.wait()
            if self._farewell:
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
                    await self._stream.send_all(self._farewell)
        self._ended = self._gone = True
        if client is None:
            return
        if running.stopping:
            return  # the next start publishes its will, and its session goes on
        left = self._disconnected
        running.hub.disconnected(client, self, with_will=left is None or left.with_will)
        running.turns.conclude()

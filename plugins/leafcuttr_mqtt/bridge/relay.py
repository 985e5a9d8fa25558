"""The packets of both sides of a bridge, one to the other. No I/O and no clock.

To each broker the bridge is a client, so both send what servers send. Packet identifiers are handed on as they are:
those of messages that go out are given by the session here, those of messages that come in by the session there, and
each broker sees its own identifiers come back. What the bridge has to say by itself, SUBSCRIBE and what it
acknowledges alone, does not mix with them: `_SUBSCRIBE_ID`, `_alone`.

    here             bridge              there
    PUBLISH 7  --->  another topic --->  PUBLISH 7
    PUBACK 7   <---                <---  PUBACK 7
    PUBLISH 3  <---  another topic <---  PUBLISH 3
    PUBACK 3   --->                --->  PUBACK 3

Longer than most modules because the two directions are one machine: an acknowledgement of one side answers a message of
the other, and both have to be connected before either is subscribed.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from leafcuttr_mqtt.bridge.counts import NotOver
from leafcuttr_mqtt.bridge.options import Bridge
from leafcuttr_mqtt.bridge.topics import ALL_STATES, bridge_of
from leafcuttr_mqtt.packets.errors import PacketError, protocol_error
from leafcuttr_mqtt.packets.types import (
    NO_PROPERTIES,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    Properties,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    ReasonCode,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    UnsubAck,
    Unsubscribe,
    Version,
    Will,
)
from leafcuttr_mqtt.packets.writer import encode

ERROR: Final = 0x80
NEVER_S: Final = 0xFFFFFFFF
_MOST_BRIDGES: Final = 1000
_SUBSCRIBE_ID: Final = 65_535
"""Of SUBSCRIBE and UNSUBSCRIBE, which are sent first on a connection, before any message."""
UP: Final = b"1"
DOWN: Final = b"0"


class NotAccepted(PacketError):
    """The other broker does not accept the connection, or this one does not."""


class Stale(PacketError):
    """The other broker has a session of the bridge, and this one has none. What it knows of packet identifiers is of
    messages that are gone, so a connection has to come first that ends it: `start(clear=True)` ([MQTT-3.2.2-4])."""


class Cleared(PacketError):
    """The session at the other broker is gone, which was all that this connection was for."""


@dataclass(slots=True)
class Here:
    """The bridge's session at this broker, before it is connected to."""

    present: bool = False
    subscriptions: Mapping[str, int] = field(default_factory=dict[str, int])
    """Filters, with their QoS."""
    received: Sequence[int] = ()
    """Packet identifiers of messages with QoS 2 from the other broker that await its PUBREL."""


class Relay:
    """One connection of a bridge: `start`, then `from_there` and `from_here` with what is read, in any order. What is
    to be sent is in `to_there` and `to_here` after each call, for its caller to take. All raise PacketError."""

    def __init__(
        self,
        bridge: Bridge,
        here: Here,
        client_id: str,
        notification_topic: str,
        *,
        receive_maximum: int,
        largest_here: int,
        watch: "Callable[[frozenset[str]], None] | None" = None,
    ) -> None:
        """`watch` is told of other bridges at the other broker, by their client identifiers, each time that changes.
        `receive_maximum` and `largest_here` are this broker's: how many messages may be under way to it, and how
        large a packet may be."""
        self._bridge: Final = bridge
        self._here: Final = Here() if bridge.clean_session else here
        self._largest_here: Final = largest_here
        self._client_id: Final = client_id
        self._notification_topic: Final = notification_topic
        self._receive_maximum: Final = receive_maximum
        self._routes: Final = bridge.routes()
        self.version: Final = bridge.version
        self.to_there: list[bytes] = []
        self.to_here: list[bytes] = []
        self.up = False
        """The other broker has accepted the connection, and so has this one."""
        self.keep_alive_s = bridge.keep_alive_s
        self.here_keep_alive_s = 0
        self.sent = 0
        self.received = 0
        self.drops: Final[Counter[NotOver]] = Counter()
        """Messages that could not go over the bridge."""
        self.complaints: list[str] = []
        """For the log; up to its reader."""
        self._watch: Final = watch
        self.bridges_there: frozenset[str] = frozenset()
        self._asked_there: list[str] = []
        self._accepted_there = False
        self._clears = self._cleared = False
        self._most_qos = 2
        self._retain = True
        self._largest: int | None = None
        self._alone: set[int] = set()
        """Packet identifiers of messages from here with QoS 2 that the bridge itself has acknowledged."""
        self._alone_there: set[int] = set()
        """The same, of messages from there."""
        self._in_flight: set[int] = set()
        """Packet identifiers of messages with QoS 1 and 2 that the other broker has not settled."""
        self._held: deque[Publish] = deque()
        """Messages that wait for those: 3.1.1 cannot say how many at a time are allowed, and mosquitto drops those with
        QoS 2 beyond twenty. This broker has no more than `mqtt.max.inflight` under way to the bridge."""
        self._lowered: set[int] = set()
        """Packet identifiers of messages with QoS 2 that go to a broker which knows QoS 1 only."""
        self._ended_here: set[int] = set(self._here.received)
        """Packet identifiers that were released here because the other broker knows nothing of them any more."""

    # Connections

    def start(self, *, mark: bool, clear: bool = False, cleared: bool = False) -> None:
        """CONNECT to the other broker. `mark`: say that it is a bridge. `clear`: only end the session there, which was
        done before this if it is `cleared`."""
        self._clears, self._cleared = clear, cleared
        bridge, five = self._bridge, self.version == Version.V5
        properties = NO_PROPERTIES
        if five:
            properties = Properties(
                session_expiry_interval=None if bridge.clean_session or clear else NEVER_S,
                receive_maximum=self._receive_maximum,
            )
        will = None
        if self._notifies_there and not clear:
            will = Will(self._notification_topic, DOWN, 1, True)
        self._send_there(
            Connect(
                self.version,
                self._client_id,
                bridge.clean_session or clear,
                bridge.keep_alive_s,
                bridge.user_name,
                bridge.password,
                will,
                properties,
                bridge=mark and not five,
            )
        )

    def ping(self) -> None:
        """Nothing was sent for as long as the keep alive."""
        self._send_there(PingReq())

    def ping_here(self) -> None:
        self._send_here(PingReq())

    def stop(self) -> None:
        """Say goodbye to the other broker, which then does not publish the will: so the bridge says itself that it is
        down."""
        if self._accepted_there and not self._clears:
            self._notify(DOWN)
        if self._accepted_there:
            self._send_there(Disconnect())

    @property
    def _notifies_there(self) -> bool:
        return self._bridge.notifications and not self._bridge.notifications_local_only

    def _notify(self, state: bytes) -> None:
        if self._notifies_there:
            self._send_there(Publish(self._notification_topic, state, 0, self._retain))

    # From the other broker

    def from_there(self, packets: Iterable[Packet]) -> None:
        for packet in packets:
            if not self._accepted_there:
                if not isinstance(packet, ConnAck):
                    raise protocol_error(f"{type(packet).__name__.upper()} before CONNACK")
                self._connected(packet)
                continue
            match packet:
                case Publish():
                    self._in(packet)
                case PubAck() | PubRec() | PubComp():
                    self._acknowledged(packet)
                case PubRel():
                    if packet.packet_id in self._alone_there:
                        self._alone_there.discard(packet.packet_id)
                        self._send_there(PubComp(packet.packet_id))
                    else:
                        self._send_here(PubRel(packet.packet_id, packet.reason))
                case SubAck():
                    self._check_suback(packet, "the other broker", self._asked_there)
                case Disconnect():
                    raise PacketError(
                        ReasonCode(packet.reason), f"the other broker ends the connection{_why(packet)}"
                    )
                case PingResp() | UnsubAck():
                    pass
                case _:
                    raise protocol_error(f"{type(packet).__name__.upper()} from the other broker")

    def _connected(self, packet: ConnAck) -> None:
        if packet.reason:
            reason = _RETURN_CODES.get(packet.reason) if self.version != Version.V5 else None
            raise NotAccepted(
                reason or ReasonCode(packet.reason), f"the other broker refuses the connection{_why(packet)}"
            )
        self._accepted_there = True
        if self._clears:
            raise Cleared(ReasonCode.SUCCESS, "the session at the other broker is ended")
        if not (self._bridge.clean_session or self._here.present or self._cleared) and (
            packet.session_present or self.version == Version.V3_1  # which does not say
        ):
            # Not by clean start on this connection: mosquitto 2.0 does not write such a session to its disk.
            self._clears = True
            raise Stale(ReasonCode.SUCCESS, "the other broker has a session of an earlier bridge")
        properties = packet.properties
        if properties.maximum_qos is not None:
            self._most_qos = properties.maximum_qos
        self._retain = properties.retain_available != 0
        self._largest = properties.maximum_packet_size
        if properties.server_keep_alive is not None:
            self.keep_alive_s = properties.server_keep_alive
        self._connect_here(properties)
        if packet.session_present:
            self._ended_here.clear()
        else:
            # The session there has ended: its packet identifiers begin anew, so those of before are released here.
            for packet_id in self._here.received:
                self._send_here(PubRel(packet_id))
        self._subscribe_here()
        requests = self._routes.remote_requests()
        # A broker that ends connections for such topics is not to see this one either.
        says_there = self._notifies_there and bridge_of(self._notification_topic) is not None
        if self._watch is not None and says_there and self._routes.goes_out:
            requests.setdefault(ALL_STATES, SubscriptionRequest(ALL_STATES, 0, no_local=True))
        self._asked_there = list(requests)
        if requests:
            # A bridge that says so gets no local from mosquitto and LeafCuttr; others do not know it in 3.1.1.
            self._send_there(Subscribe(_SUBSCRIBE_ID, tuple(requests.values())))
        self._notify(UP)

    def _connect_here(self, there: Properties) -> None:
        bridge, five = self._bridge, self.version == Version.V5
        properties = NO_PROPERTIES
        if five:
            properties = Properties(
                session_expiry_interval=None if bridge.clean_session else NEVER_S,
                receive_maximum=min(there.receive_maximum or bridge.max_inflight, bridge.max_inflight),
                maximum_packet_size=None
                if self._largest is None
                else max(1, self._largest - self._routes.growth),
            )
        self._send_here(
            Connect(
                self.version,
                bridge.local_client_id,
                bridge.clean_session,
                0,
                properties=properties,
                bridge=not five,
            )
        )

    def _subscribe_here(self) -> None:
        """What is not yet as it should be: a subscription that is made again sends its retained messages again."""
        wanted = self._routes.local_requests(self._most_qos)
        known = self._here.subscriptions
        gone = tuple(each for each in known if each not in wanted)
        new = tuple(request for request in wanted.values() if known.get(request.filter) != request.qos)
        if gone:
            self._send_here(Unsubscribe(_SUBSCRIBE_ID, gone))
        if new:
            self._send_here(Subscribe(_SUBSCRIBE_ID, new))

    def _in(self, packet: Publish) -> None:
        topic = self._routes.into(packet.topic) if packet.topic else None
        if topic is None and not packet.qos and (bridge := bridge_of(packet.topic)) is not None:
            self._state_there(bridge, up=packet.payload == UP)
            return
        data = b""
        if topic is not None:
            data = encode(
                replace(packet, topic=topic, properties=_handed_on(packet.properties)), self.version
            )
        if topic is None or len(data) > self._largest_here:
            why = "which no rule lets in" if topic is None else f"of {len(data)} bytes, too large here"
            reason = NotOver.NO_RULE if topic is None else NotOver.TOO_LARGE
            self._drop(reason, f"a message for {packet.topic[:255]!r} there, {why}")
            if packet.qos == 1:
                self._send_there(PubAck(packet.packet_id))
            elif packet.qos:
                self._alone_there.add(packet.packet_id)
                self._send_there(PubRec(packet.packet_id))
            return
        self.received += 1
        self.to_here.append(data)

    def _state_there(self, bridge: str, *, up: bool) -> None:
        found = self.bridges_there | {bridge} if up else self.bridges_there - {bridge}
        if self._watch is None or bridge == self._client_id or found == self.bridges_there:
            return
        if len(found) <= _MOST_BRIDGES:
            self.bridges_there = found
            self._watch(found)

    def _acknowledged(self, packet: PubAck | PubRec | PubComp) -> None:
        packet_id, reason = packet.packet_id, packet.reason
        if not isinstance(packet, PubRec) or reason >= ERROR:
            self._settled(packet_id)
        if reason >= ERROR and not isinstance(packet, PubComp):
            self._drop(NotOver.REFUSED, f"the other broker refuses a message (0x{reason:02x}){_why(packet)}")
        if isinstance(packet, PubAck) and packet_id in self._lowered:
            self._lowered.discard(packet_id)
            self._acknowledge_alone(packet_id, 2)
            return
        self._send_here(type(packet)(packet_id, reason))

    def _settled(self, packet_id: int) -> None:
        self._in_flight.discard(packet_id)
        while self._held and len(self._in_flight) < self._bridge.max_inflight:
            self._out(self._held.popleft())

    # From this broker

    def from_here(self, packets: Iterable[Packet]) -> None:
        for packet in packets:
            match packet:
                case Publish():
                    self._out(packet)
                case PubAck() | PubRec():
                    if packet.reason >= ERROR:
                        self._drop(
                            NotOver.REFUSED,
                            f"this broker refuses a message (0x{packet.reason:02x}){_why(packet)}",
                        )
                    self._send_there(type(packet)(packet.packet_id, packet.reason))
                case PubComp():
                    if packet.packet_id in self._ended_here:
                        self._ended_here.discard(packet.packet_id)
                    else:
                        self._send_there(PubComp(packet.packet_id, packet.reason))
                case PubRel():
                    if packet.packet_id in self._alone:
                        self._alone.discard(packet.packet_id)
                        self._send_here(PubComp(packet.packet_id))
                    else:
                        self._send_there(PubRel(packet.packet_id, packet.reason))
                case ConnAck():
                    if packet.reason:
                        raise NotAccepted(
                            ReasonCode.UNSPECIFIED_ERROR, f"this broker refuses the connection{_why(packet)}"
                        )
                    if self.version != Version.V3_1 and packet.session_present != self._here.present:
                        raise NotAccepted(
                            ReasonCode.UNSPECIFIED_ERROR, "its session at this broker has changed meanwhile"
                        )
                    self.here_keep_alive_s = packet.properties.server_keep_alive or 0
                    self.up = True
                case SubAck():
                    self._check_suback(packet, "this broker", [])
                case Disconnect():
                    raise PacketError(
                        ReasonCode(packet.reason), f"this broker ends the connection{_why(packet)}"
                    )
                case PingResp() | UnsubAck():
                    pass
                case _:
                    raise protocol_error(f"{type(packet).__name__.upper()} from this broker")

    def _out(self, packet: Publish) -> None:
        topic = self._routes.out(packet.topic)
        qos = min(packet.qos, self._most_qos)
        data = b""
        if topic is not None:
            data = encode(
                replace(
                    packet,
                    topic=topic,
                    qos=qos,
                    retain=packet.retain and self._retain,
                    duplicate=packet.duplicate and qos > 0,
                    properties=_handed_on(packet.properties),
                ),
                self.version,
            )
        if topic is None or (self._largest is not None and len(data) > self._largest):
            why = "which no rule lets out" if topic is None else f"of {len(data)} bytes, too large there"
            reason = NotOver.NO_RULE if topic is None else NotOver.TOO_LARGE
            self._drop(reason, f"a message for {packet.topic[:255]!r}, {why}")
            self._acknowledge_alone(packet.packet_id, packet.qos)
            return
        if qos:
            if len(self._in_flight) >= self._bridge.max_inflight:
                self._held.append(packet)
                return
            self._in_flight.add(packet.packet_id)
        self.sent += 1
        self.to_there.append(data)
        if qos < packet.qos:
            if qos:
                self._lowered.add(packet.packet_id)
            else:
                self._acknowledge_alone(packet.packet_id, packet.qos)

    def _acknowledge_alone(self, packet_id: int, qos: int) -> None:
        if qos == 1:
            self._send_here(PubAck(packet_id))
        elif qos:
            self._alone.add(packet_id)
            self._send_here(PubRec(packet_id))

    # Both

    def _check_suback(self, packet: SubAck, who: str, filters: Sequence[str]) -> None:
        for at, reason in enumerate(packet.reasons):
            if reason >= ERROR and filters[at : at + 1] != [ALL_STATES]:  # which it can do without
                which = f" to {filters[at]!r}" if at < len(filters) else ""
                self.complaints.append(
                    f"{who} refuses the subscription{which} (0x{reason:02x}){_why(packet)}"
                )

    @property
    def dropped(self) -> int:
        return self.drops.total()

    def _drop(self, reason: NotOver, why: str) -> None:
        self.drops[reason] += 1
        self.complaints.append(why)

    def _send_there(self, packet: Packet) -> None:
        self.to_there.append(encode(packet, self.version))

    def _send_here(self, packet: Packet) -> None:
        self.to_here.append(encode(packet, self.version))


_RETURN_CODES: Final = {
    1: ReasonCode.UNSUPPORTED_PROTOCOL_VERSION,
    2: ReasonCode.CLIENT_IDENTIFIER_NOT_VALID,
    3: ReasonCode.SERVER_UNAVAILABLE,
    4: ReasonCode.BAD_USER_NAME_OR_PASSWORD,
    5: ReasonCode.NOT_AUTHORIZED,
}
"""Of CONNACK in 3.1.1 (3.2.2.3 there)."""


def _handed_on(properties: Properties) -> Properties:
    """Without what is of one connection only: a topic alias, subscription identifiers."""
    if properties is NO_PROPERTIES:
        return properties
    return replace(properties, topic_alias=None, subscription_identifiers=())


def _why(packet: ConnAck | Disconnect | SubAck | PubAck | PubRec | PubComp) -> str:
    said = packet.properties.reason_string
    reason = getattr(packet, "reason", None)
    number = f" (0x{reason:02x})" if reason is not None and isinstance(packet, ConnAck | Disconnect) else ""
    return f"{number}: {said[:255]}" if said else number

"""One connection: packets of the client in, events out (`events`), and the packets that the server says by itself. It
refuses what may not come now. `states` has its table and the theory.

Bytes are not its concern, nor what a packet by itself has to be: the reader has refused what is malformed.

Longer than most modules because a connection has one state: what a packet does is beside what may come.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from leafcuttr_mqtt.packets.errors import PacketError, protocol_error
from leafcuttr_mqtt.packets.reasons import return_code
from leafcuttr_mqtt.packets.types import (
    NO_PROPERTIES,
    Auth,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PacketType,
    PingReq,
    PingResp,
    Properties,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    ReasonCode,
    Subscribe,
    Unsubscribe,
    UserProperties,
    Version,
)
from leafcuttr_mqtt.packets.writer import encode
from leafcuttr_mqtt.session import answers
from leafcuttr_mqtt.session.aliases import InboundAliases
from leafcuttr_mqtt.session.events import (
    Acknowledged,
    Answer,
    Authenticating,
    Connected,
    Disconnected,
    Event,
    PublishRefused,
    ReAuthenticated,
    Received,
    Released,
    Repeated,
)
from leafcuttr_mqtt.session.inbound import Inbound
from leafcuttr_mqtt.session.limits import MOST_IN_FLIGHT, ClientLimits, Limits
from leafcuttr_mqtt.session.outbound import ERROR, Outbound
from leafcuttr_mqtt.session.payloads import check_will, is_utf8
from leafcuttr_mqtt.session.session import Session
from leafcuttr_mqtt.session.states import CONNECTION, DECISIONS, Decision, Next, Phase
from leafcuttr_mqtt.session.types import Delivery

TYPES: Final[dict[type, PacketType]] = {
    each: PacketType[each.__name__.upper()]
    for each in (
        Connect,
        Publish,
        PubAck,
        PubRec,
        PubRel,
        PubComp,
        Subscribe,
        Unsubscribe,
        PingReq,
        Disconnect,
        Auth,
    )
}
"""What a client may send at all."""
NONE_HELD: Final[tuple[Packet, ...]] = ()
SMALLEST_CONNACK: Final = 5
"""Bytes of one of 5.0, without properties."""


class Conversation:
    """`receive` never raises: what is wrong is in `error`, the events before it are returned, and nothing is read after
    it. The answer to an error is what `end` returns for its reason and text."""

    __slots__ = (
        "_aliases",
        "_expires",
        "_held",
        "_inbound",
        "_largest",
        "_limits",
        "_method",
        "_problem_information",
        "connect",
        "error",
        "expiry_s",
        "keep_alive_s",
        "phase",
        "session",
        "version",
    )

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.phase = Phase.EXPECTS_CONNECT
        self.error: PacketError | None = None
        self.version: Version | None = None
        """Known with CONNECT."""
        self.session: Session | None = None
        """From `accept` on."""
        self.connect: Connect | None = None
        """Until the connection is accepted."""
        self.expiry_s = 0
        """Seconds that the session outlives the connection, as granted."""
        self.keep_alive_s = 0
        """As granted; 0: none. The connection is dead after 1.5 times this ([MQTT-3.1.2-22])."""
        self._expires = False
        """Whether CONNECT had a session expiry interval above 0."""
        self._held: Sequence[Packet] = NONE_HELD
        self._largest: int | None = None
        self._problem_information = True
        self._method: str | None = None
        self._inbound: Inbound | None = None
        self._aliases: InboundAliases | None = None

    # Packets of the client.

    def receive(self, packets: Sequence[Packet]) -> list[Event]:
        """Events of a read, in its order. After `Connected` and `Authenticating` the rest is held until the server has
        decided: call it again then, without packets. Before the next read all events of this one are answered."""
        events: list[Event] = []
        if self.error is not None or self._is_over():  # [MQTT-3.14.4-1]
            return events
        if self._held and self.phase is not Phase.CONNECTING:
            packets = (*self._held, *packets)
            self._held = NONE_HELD
        inbound = self._inbound
        try:
            for packet in packets:
                kind = type(packet)
                # What nearly all packets are, and may come on every connection that is accepted: past the table.
                if inbound is None:
                    handle = None
                elif kind is Publish:
                    self._publish(inbound, packet, events)  # type: ignore[arg-type]
                    continue
                else:
                    handle = ACKNOWLEDGEMENTS.get(kind)
                if handle is not None:
                    handle(self, packet, events)
                else:
                    self._other(packet, events)
                    if self._is_over():
                        break
        except PacketError as error:
            self.error = error
        return events

    def _is_over(self) -> bool:
        """Whether nothing is read any more."""
        return self.phase is Phase.ENDED

    def _other(self, packet: Packet, events: list[Event]) -> None:
        kind = type(packet)
        step = CONNECTION[self.phase].get(TYPES[kind]) if kind in TYPES else None
        if step is None:
            raise protocol_error(f"{kind.__name__.upper()} may not come now")
        if step is Next.HOLD:
            if self._method is not None and kind is not Disconnect:  # [MQTT-3.1.2-30]
                raise protocol_error(f"{kind.__name__.upper()} before CONNACK")
            self._held = (*self._held, packet)
            return
        handle = HANDLERS.get(kind)
        if handle is None:
            events.append(packet)  # type: ignore[arg-type]
        else:
            handle(self, packet, events)
        if isinstance(step, Phase):
            self.phase = step

    def _publish(self, inbound: Inbound, packet: Publish, events: list[Event]) -> None:
        """The hot path: a message without properties passes a few comparisons."""
        refused = packet.properties is not NO_PROPERTIES and self._check_properties(packet)
        if packet.retain and not self._limits.retain_available:
            if self.version == Version.V5:  # [MQTT-3.2.2-14]
                raise PacketError(ReasonCode.RETAIN_NOT_SUPPORTED, "there are no retained messages")
            packet.retain = False
        qos = packet.qos
        if qos:
            if qos == 2 and not inbound.arrive(packet.packet_id):
                events.append(Repeated(packet.packet_id))
                return
            inbound.quota -= 1
            if inbound.quota < 0:  # [MQTT-3.3.4-8]
                raise PacketError(
                    ReasonCode.RECEIVE_MAXIMUM_EXCEEDED,
                    f"more than {self._limits.receive_maximum} messages with QoS 1 and 2 at a time",
                )
        if refused:
            self._refuse_publish(inbound, packet, events)
        else:
            events.append(packet)

    def _check_properties(self, packet: Publish) -> bool:
        """Whether the message is to be refused for its payload format. The topic alias becomes the topic."""
        properties = packet.properties
        if properties.topic_alias is not None:
            if self._aliases is None:
                self._aliases = InboundAliases(self._limits.topic_alias_maximum)
            packet.topic = self._aliases.resolve(properties.topic_alias, packet.topic)
        return properties.payload_format_indicator == 1 and not is_utf8(packet.payload)

    def _refuse_publish(self, inbound: Inbound, packet: Publish, events: list[Event]) -> None:
        reason, text = ReasonCode.PAYLOAD_FORMAT_INVALID, "the payload is said to be UTF-8 and is not"
        if not packet.qos:  # 3.3.2.3.2: there is no other packet to say it with
            raise PacketError(reason, text)
        if packet.qos == 2:
            inbound.refused(packet.packet_id)
        else:
            inbound.acknowledged()
        events.append(PublishRefused(packet, reason, text))

    def _connect(self, packet: Connect, events: list[Event]) -> None:
        # Before anything is refused: CONNACK is written in this version, and is no larger than this.
        self.version = packet.version
        self.connect = packet
        self.phase = Phase.CONNECTING
        properties = packet.properties
        self._method = properties.authentication_method
        self._largest = properties.maximum_packet_size
        self._problem_information = properties.request_problem_information != 0
        self._expires = bool(properties.session_expiry_interval)
        self.expiry_s = answers.granted_expiry(packet, self._limits)
        self.keep_alive_s = answers.granted_keep_alive(packet, self._limits)
        check_will(packet, self._limits)
        events.append(Connected(packet))

    def _auth(self, packet: Auth, events: list[Event]) -> None:
        if self._method is None:  # [MQTT-4.12.0-6]
            raise protocol_error("AUTH without an authentication method in CONNECT")
        if packet.properties.authentication_method != self._method:  # [MQTT-4.12.0-5], [MQTT-4.12.1-1]
            raise protocol_error(f"AUTH with another authentication method than {self._method!r} of CONNECT")
        begins = packet.reason == ReasonCode.RE_AUTHENTICATE
        if begins != (self.phase is Phase.CONNECTED):  # 3.15.2.1
            raise protocol_error(f"AUTH with the reason {packet.reason:#04x} may not come now")
        if self.phase is Phase.AUTHENTICATING:
            events.append(Authenticating(packet))
        else:
            events.append(ReAuthenticated(packet, begins))

    def _disconnect(self, packet: Disconnect, events: list[Event]) -> None:
        session = self.session
        if session is not None:
            wanted = packet.properties.session_expiry_interval
            if wanted is not None:
                if (
                    wanted and not self._expires
                ):  # 3.14.2.2.2: it is no DISCONNECT then, and the will is published
                    raise protocol_error(
                        "DISCONNECT with a session expiry interval after CONNECT without one"
                    )
                self.expiry_s = session.expiry_s = min(wanted, self._limits.session_expiry_max_s)
            if packet.reason == ReasonCode.SUCCESS:  # [MQTT-3.14.4-3]
                session.will = None
            if self.phase is Phase.RE_AUTHENTICATING:  # there is nothing to be decided any more
                events[:] = [event for event in events if type(event) is not ReAuthenticated]
        events.append(Disconnected(packet.reason, packet.properties))

    def _puback(self, packet: PubAck, events: list[Event]) -> None:
        delivery = self._outbound().puback(packet.packet_id)
        if delivery is not None:
            _acknowledged(events, delivery)

    def _pubrec(self, packet: PubRec, events: list[Event]) -> None:
        delivery = self._outbound().pubrec(packet.packet_id, packet.reason)
        if packet.reason >= ERROR:
            if delivery is not None:
                _acknowledged(events, delivery)
        elif delivery is None:
            events.append(Answer(PubRel(packet.packet_id, self._not_found())))
        elif events and type(last := events[-1]) is Received:
            last.deliveries.append(delivery)
        else:
            events.append(Received([delivery]))

    def _pubcomp(self, packet: PubComp, events: list[Event]) -> None:
        delivery = self._outbound().pubcomp(packet.packet_id)
        if delivery is not None:
            _acknowledged(events, delivery)

    def _pubrel(self, packet: PubRel, events: list[Event]) -> None:
        assert self._inbound is not None
        if self._inbound.release(packet.packet_id):
            events.append(Released(packet.packet_id))
        else:
            events.append(Answer(PubComp(packet.packet_id, self._not_found())))

    def _pingreq(self, packet: PingReq, events: list[Event]) -> None:
        events.append(Answer(PingResp()))  # [MQTT-3.12.4-1]

    def _outbound(self) -> Outbound:
        assert self.session is not None
        return self.session.outbound

    def _not_found(self) -> int:
        return ReasonCode.PACKET_IDENTIFIER_NOT_FOUND if self.version == Version.V5 else 0

    # Decisions of the server. They raise KeyError where the state does not allow them.

    def accept(
        self,
        session: Session,
        *,
        present: bool,
        authentication_data: bytes | None = None,
        user_properties: UserProperties = (),
    ) -> list[Packet]:
        """The connection belongs to this session from now on. Returns CONNACK, and PUBREL for what its client has;
        packets that were held come with `receive(())`, deliveries with `session.outbound.take`.

        `present`: the session was there before ([MQTT-3.2.2-2], [MQTT-3.2.2-3])."""
        connect, limits = self.connect, self._limits
        self._decide(Decision.ACCEPT)
        assert connect is not None
        self.session, self.connect = session, None
        self._inbound = session.inbound
        wanted = connect.properties
        v5 = connect.version >= Version.V5
        client = ClientLimits(
            connect.version,
            wanted.receive_maximum or MOST_IN_FLIGHT,
            self._largest,
            min(wanted.topic_alias_maximum or 0, limits.aliases_to_client),
        )
        packet_ids = session.connect(
            client,
            expiry_s=self.expiry_s,
            will=connect.will,
            receive_maximum=limits.receive_maximum if v5 else None,
        )
        properties = NO_PROPERTIES
        if v5:
            properties = answers.connack_properties(
                connect,
                limits,
                assigned=None if connect.client_id else session.client_id,
                authentication_data=authentication_data,
                user_properties=user_properties,
            )
        # In 3.1 that byte is reserved.
        flag = present and connect.version > Version.V3_1
        return [ConnAck(flag, 0, properties), *map(PubRel, packet_ids)]

    def fits(self, client_id: str, authentication_data: bytes | None = None) -> bool:
        """Whether the CONNACK of `accept` is within what the client takes; if not, the connection cannot be accepted
        ([MQTT-3.1.2-24])."""
        connect = self.connect
        assert connect is not None
        if self._largest is None:
            return True
        properties = answers.connack_properties(
            connect,
            self._limits,
            assigned=None if connect.client_id else client_id,
            authentication_data=authentication_data,
            user_properties=(),
        )
        return len(encode(ConnAck(False, 0, properties), Version.V5)) <= self._largest

    def refuse(self, reason: ReasonCode, text: str = "") -> ConnAck | None:
        """In the place of `accept`; None: the version has no code for it, and the connection is closed."""
        self._decide(Decision.REFUSE)
        return self._refusal(reason, text)

    def challenge(self, data: bytes | None) -> Auth:
        """The client is to send AUTH: in the place of `accept`, or while it authenticates anew."""
        self._decide(Decision.CHALLENGE)
        return Auth(ReasonCode.CONTINUE_AUTHENTICATION, self._authentication(data))

    def re_authenticated(self, data: bytes | None) -> Auth:
        """The client that has authenticated anew goes on."""
        self._decide(Decision.RE_AUTHENTICATED)
        return Auth(ReasonCode.SUCCESS, self._authentication(data))

    def end(self, reason: ReasonCode, text: str = "") -> ConnAck | Disconnect | None:
        """The last packet before the connection is closed, whatever its state. Where CONNECT could not be read,
        `version` is to be set to that of the reader before; if there is none the connection is closed without an
        answer ([MQTT-3.1.0-1])."""
        phase = self.phase
        self._decide(Decision.END)
        if phase in (Phase.CONNECTED, Phase.RE_AUTHENTICATING):
            if self.version != Version.V5:
                return None
            return Disconnect(*answers.explained(PacketType.DISCONNECT, reason, text, self._largest))
        if phase is Phase.ENDED or self.version is None:
            return None
        return self._refusal(reason, text)

    def reason_properties(self, text: str | None, *, beside: int = 0) -> Properties:
        """What PUBACK, SUBACK and others carry to explain their reason: nothing to a client that does not want it
        ([MQTT-3.1.2-29]). `beside`: bytes of the packet's other properties, and of reason codes if it has several."""
        if self.version != Version.V5 or not self._problem_information:
            return NO_PROPERTIES
        return answers.with_reason(text, self._largest, beside=beside)

    def _refusal(self, reason: ReasonCode, text: str) -> ConnAck | None:
        if self.version == Version.V5:  # [MQTT-3.2.2-6]
            if self._largest is not None and self._largest < SMALLEST_CONNACK:  # [MQTT-3.1.2-24]
                return None
            return ConnAck(False, *answers.explained(PacketType.CONNACK, reason, text, self._largest))
        code = return_code(reason)
        return None if code is None else ConnAck(False, code)

    def _authentication(self, data: bytes | None) -> Properties:
        return Properties(authentication_method=self._method, authentication_data=data)

    def _decide(self, decision: Decision) -> None:
        self.phase = DECISIONS[self.phase][decision]


def _acknowledged(events: list[Event], delivery: Delivery) -> None:
    if events and type(last := events[-1]) is Acknowledged:
        last.deliveries.append(delivery)
    else:
        events.append(Acknowledged([delivery]))


Handle: TypeAlias = Callable[[Conversation, Any, list[Event]], None]

ACKNOWLEDGEMENTS: Final[dict[type, Handle]] = {
    PubAck: Conversation._puback,
    PubRec: Conversation._pubrec,
    PubComp: Conversation._pubcomp,
    PubRel: Conversation._pubrel,
}
HANDLERS: Final[dict[type, Handle]] = {
    Connect: Conversation._connect,
    Auth: Conversation._auth,
    Disconnect: Conversation._disconnect,
    PingReq: Conversation._pingreq,
}
"""What has none is its own event."""

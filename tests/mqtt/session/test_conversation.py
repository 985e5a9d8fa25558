"""One connection: what may come, with which reason it is refused, what the server says, 3.1.1 and 5.0 beside each
other. What comes in which state is in test_states."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import (
    NO_PROPERTIES,
    Auth,
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
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
    Version,
    Will,
)
from leafcuttr_mqtt.session.conversation import Conversation
from leafcuttr_mqtt.session.events import (
    Acknowledged,
    Answer,
    Authenticating,
    Connected,
    Disconnected,
    PublishRefused,
    ReAuthenticated,
    Received,
    Released,
    Repeated,
)
from leafcuttr_mqtt.session.limits import NEVER_S, Limits
from leafcuttr_mqtt.session.session import Session
from leafcuttr_mqtt.session.states import Phase
from leafcuttr_mqtt.session.types import Delivery

R = ReasonCode
V31, V311, V5 = Version
LIMITS = Limits(receive_maximum=3, topic_alias_maximum=2, maximum_packet_size=1000)


def connect_packet(version: Version = V5, *, limits: Any = None, **fields: Any) -> Connect:
    names = {"will", "client_id", "clean_start", "keep_alive"}
    own = {name: fields.pop(name) for name in list(fields) if name in names}
    properties = Properties(**fields) if fields else NO_PROPERTIES
    return Connect(
        version,
        own.get("client_id", "c"),
        own.get("clean_start", True),
        own.get("keep_alive", 0),
        will=own.get("will"),
        properties=properties,
    )


def awaits_decision(conversation: Conversation) -> bool:
    """Whether CONNECT or AUTH is to be decided on."""
    return conversation.phase in (Phase.CONNECTING, Phase.RE_AUTHENTICATING)


def connecting(version: Version = V5, limits: Limits = LIMITS, **fields: Any) -> Conversation:
    conversation = Conversation(limits)
    packet = connect_packet(version, **fields)
    assert conversation.receive([packet]) == [Connected(packet)]
    assert awaits_decision(conversation)
    return conversation


def connected(
    version: Version = V5, limits: Limits = LIMITS, session: Session | None = None, **fields: Any
) -> Conversation:
    conversation = connecting(version, limits, **fields)
    conversation.accept(session or Session("c", limits.queue), present=session is not None)
    assert not awaits_decision(conversation)
    return conversation


def refused(conversation: Conversation, *packets: Packet) -> ReasonCode:
    """The reason; nothing of these packets becomes an event, and nothing is read after them."""
    assert conversation.receive(packets) == []
    assert conversation.error is not None
    assert conversation.receive([PingReq()]) == []
    return conversation.error.reason


def own(conversation: Conversation) -> Session:
    assert conversation.session is not None
    return conversation.session


def deliver(conversation: Conversation, *qos: int) -> list[int]:
    """The packet identifiers of deliveries that are sent now."""
    outbound = own(conversation).outbound
    for each in qos:
        outbound.offer(Delivery(Message("a", b"m"), each, False, (), 10))
    return [sending.packet_id for sending in outbound.take(0)]


# Connecting.


@pytest.mark.parametrize(("version", "flag"), [(V31, False), (V311, True), (V5, True)])
def test_connack_says_whether_the_session_was_there(version: Version, flag: bool) -> None:
    """[MQTT-3.2.2-2], [MQTT-3.2.2-3]; 3.1 has no such flag."""
    for present in (True, False):
        conversation = connecting(version)
        (answer,) = conversation.accept(Session("c", LIMITS.queue), present=present)
        assert isinstance(answer, ConnAck)
        assert (answer.session_present, answer.reason) == (present and flag, 0)
        assert (answer.properties is NO_PROPERTIES) == (version != V5)


def test_connack_says_what_the_server_has() -> None:
    """3.2.2.3"""
    conversation = Conversation(
        Limits(
            receive_maximum=7,
            maximum_packet_size=2000,
            topic_alias_maximum=5,
            session_expiry_max_s=600,
            keep_alive_max_s=30,
            retain_available=False,
        )
    )
    conversation.receive(
        [connect_packet(client_id="", session_expiry_interval=900, authentication_method="m")]
    )
    (answer,) = conversation.accept(
        Session("given", LIMITS.queue),
        present=False,
        authentication_data=b"data",
        user_properties=(("a", "b"),),
    )
    assert answer == ConnAck(
        False,
        0,
        Properties(
            session_expiry_interval=600,
            receive_maximum=7,
            retain_available=0,
            maximum_packet_size=2000,
            assigned_client_identifier="given",
            topic_alias_maximum=5,
            server_keep_alive=30,
            authentication_method="m",
            authentication_data=b"data",
            user_properties=(("a", "b"),),
        ),
    )
    assert (conversation.expiry_s, conversation.keep_alive_s) == (600, 30)
    assert own(conversation).expiry_s == 600


def test_connack_leaves_out_what_is_as_it_would_be_without_it() -> None:
    limits = Limits(receive_maximum=65_535, topic_alias_maximum=0, keep_alive_max_s=60)
    conversation = Conversation(limits)
    conversation.receive([connect_packet(session_expiry_interval=5, keep_alive=60)])
    (answer,) = conversation.accept(Session("c", limits.queue), present=False)
    assert answer == ConnAck(False, 0, Properties(maximum_packet_size=limits.maximum_packet_size))


@pytest.mark.parametrize(
    ("version", "clean", "interval", "most", "granted"),
    [
        (V311, True, None, 600, 0),
        (V311, False, None, 600, 600),
        (V311, False, None, NEVER_S, NEVER_S),
        (V5, True, None, 600, 0),
        (V5, False, None, 600, 0),
        (V5, False, 0, 600, 0),
        (V5, True, 100, 600, 100),
        (V5, False, 700, 600, 600),
        (V5, False, NEVER_S, 600, 600),
        (V5, False, NEVER_S, NEVER_S, NEVER_S),
    ],
)
def test_how_long_a_session_outlives_its_connection(
    version: Version, clean: bool, interval: int | None, most: int, granted: int
) -> None:
    """3.1.2.11.2; 3.1.2.4 of 3.1.1."""
    conversation = Conversation(Limits(session_expiry_max_s=most))
    fields = {} if interval is None else {"session_expiry_interval": interval}
    conversation.receive([connect_packet(version, clean_start=clean, **fields)])
    assert conversation.expiry_s == granted


@pytest.mark.parametrize(
    ("most", "wanted", "granted"),
    [(0, 0, 0), (0, 500, 500), (60, 0, 60), (60, 61, 60), (60, 60, 60), (60, 5, 5)],
)
def test_the_keep_alive(most: int, wanted: int, granted: int) -> None:
    conversation = Conversation(Limits(keep_alive_max_s=most))
    conversation.receive([connect_packet(keep_alive=wanted)])
    (answer,) = conversation.accept(Session("c", LIMITS.queue), present=False)
    assert conversation.keep_alive_s == granted
    # [MQTT-3.2.2-21]: the client uses it if it is there.
    assert answer.properties.server_keep_alive == (None if granted == wanted else granted)  # type: ignore[union-attr]


@pytest.mark.parametrize("version", Version)
def test_a_will_is_the_sessions(version: Version) -> None:
    will = Will("w", b"", 1, True)
    assert own(connected(version, will=will)).will is will


def test_a_will_with_retain_where_nothing_is_retained() -> None:
    """[MQTT-3.2.2-13]; 3.1.1 cannot be told."""
    limits = Limits(retain_available=False)
    conversation = Conversation(limits)
    assert refused(conversation, connect_packet(will=Will("w", b"", 1, True))) == R.RETAIN_NOT_SUPPORTED
    answer = conversation.end(R.RETAIN_NOT_SUPPORTED)
    assert isinstance(answer, ConnAck)
    assert answer.reason == R.RETAIN_NOT_SUPPORTED
    kept = own(connected(V311, limits, will=Will("w", b"", 1, True))).will
    assert kept is not None
    assert not kept.retain


def test_a_will_whose_payload_is_not_what_it_says() -> None:
    """3.1.3.2.3"""
    text = Properties(payload_format_indicator=1)
    will = Will("w", b"\xff", 0, False, text)
    assert refused(Conversation(LIMITS), connect_packet(will=will)) == R.PAYLOAD_FORMAT_INVALID
    connected(will=Will("w", "ü".encode(), 0, False, text))
    connected(will=Will("w", b"\xff", 0, False, Properties(payload_format_indicator=0)))


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (R.UNSUPPORTED_PROTOCOL_VERSION, 1),
        (R.CLIENT_IDENTIFIER_NOT_VALID, 2),
        (R.SERVER_UNAVAILABLE, 3),
        (R.SERVER_BUSY, 3),
        (R.BAD_USER_NAME_OR_PASSWORD, 4),
        (R.NOT_AUTHORIZED, 5),
        (R.BANNED, 5),
        (R.PROTOCOL_ERROR, None),
    ],
)
def test_a_refusal(reason: ReasonCode, code: int | None) -> None:
    """3.2.2.3 of 3.1.1, [MQTT-3.2.2-6]; in 5.0 with the reason."""
    for version in (V31, V311):
        conversation = connecting(version)
        answer = conversation.refuse(reason, "why")
        assert answer == (None if code is None else ConnAck(False, code))
        assert conversation.phase is Phase.ENDED
        assert connecting(version).end(reason, "why") == answer
    five = connecting()
    assert five.refuse(reason, "why") == ConnAck(False, reason, Properties(reason_string="why"))


def test_a_reason_that_connack_does_not_have() -> None:
    assert connecting().refuse(R.TOPIC_ALIAS_INVALID) == ConnAck(False, R.UNSPECIFIED_ERROR)


def test_before_connect_only_a_version_gives_an_answer() -> None:
    """[MQTT-3.1.0-1], [MQTT-3.1.2-2] of 3.1.1."""
    conversation = Conversation(LIMITS)
    assert refused(conversation, PingReq()) == R.PROTOCOL_ERROR
    assert conversation.end(R.PROTOCOL_ERROR) is None
    conversation = Conversation(LIMITS)
    conversation.version = V311
    assert conversation.end(R.UNSUPPORTED_PROTOCOL_VERSION) == ConnAck(False, 1)
    conversation = Conversation(LIMITS)
    conversation.version = V5
    assert conversation.end(R.MALFORMED_PACKET) == ConnAck(False, R.MALFORMED_PACKET)


def test_a_second_connect() -> None:
    """[MQTT-3.1.0-2]"""
    assert refused(connected(), connect_packet()) == R.PROTOCOL_ERROR
    conversation = connecting()
    assert conversation.receive([connect_packet()]) == []
    conversation.accept(Session("c", LIMITS.queue), present=False)
    assert refused(conversation) == R.PROTOCOL_ERROR


def test_what_comes_before_connack_waits_for_it() -> None:
    """3.1.4, [MQTT-3.1.4-6]"""
    conversation = Conversation(LIMITS)
    packet = connect_packet()
    first, second = Publish("a", b"1"), Publish("a", b"2", 1, packet_id=1)
    assert conversation.receive([packet, first]) == [Connected(packet)]
    assert conversation.receive([second]) == []
    conversation.accept(Session("c", LIMITS.queue), present=False)
    assert conversation.receive([PingReq()]) == [first, second, Answer(PingResp())]
    assert conversation.receive(()) == []
    conversation = Conversation(LIMITS)
    conversation.receive([packet, first])
    conversation.refuse(R.NOT_AUTHORIZED)
    assert conversation.receive(()) == []


# Enhanced authentication.


def auth(
    reason: ReasonCode = R.CONTINUE_AUTHENTICATION, method: str = "m", data: bytes | None = None
) -> Auth:
    return Auth(reason, Properties(authentication_method=method, authentication_data=data))


def test_authentication_step_by_step() -> None:
    """4.12"""
    conversation = connecting(authentication_method="m")
    assert conversation.challenge(b"1") == auth(data=b"1")
    assert not awaits_decision(conversation)
    answer = auth(data=b"2")
    assert conversation.receive([answer]) == [Authenticating(answer)]
    assert conversation.challenge(b"3") == auth(data=b"3")
    assert conversation.receive([answer]) == [Authenticating(answer)]
    (connack,) = conversation.accept(Session("c", LIMITS.queue), present=False, authentication_data=b"4")
    assert connack.properties.authentication_method == "m"  # type: ignore[union-attr]
    assert connack.properties.authentication_data == b"4"  # type: ignore[union-attr]


def test_nothing_but_auth_before_connack() -> None:
    """[MQTT-3.1.2-30]"""
    for packet in (PingReq(), Publish("a", b"")):
        assert refused(connecting(authentication_method="m"), packet) == R.PROTOCOL_ERROR
        conversation = connecting(authentication_method="m")
        conversation.challenge(None)
        assert refused(conversation, packet) == R.PROTOCOL_ERROR
    conversation = connecting(authentication_method="m")
    conversation.challenge(None)
    assert [type(each) for each in conversation.receive([Disconnect()])] == [Disconnected]


@pytest.mark.parametrize(
    "packet", [auth(method="other"), auth(R.RE_AUTHENTICATE)], ids=["another method", "begins anew"]
)
def test_auth_that_is_wrong_before_connack(packet: Auth) -> None:
    """[MQTT-4.12.0-5], 3.15.2.1"""
    conversation = connecting(authentication_method="m")
    conversation.challenge(None)
    assert refused(conversation, packet) == R.PROTOCOL_ERROR


def test_authentication_anew() -> None:
    """4.12.1: everything else goes on."""
    conversation = connected(authentication_method="m")
    begin = auth(R.RE_AUTHENTICATE)
    publish = Publish("a", b"")
    assert conversation.receive([begin, publish]) == [ReAuthenticated(begin, True), publish]
    assert awaits_decision(conversation)
    assert conversation.challenge(b"1") == auth(data=b"1")
    answer = auth()
    assert conversation.receive([PingReq(), answer]) == [Answer(PingResp()), ReAuthenticated(answer, False)]
    assert conversation.re_authenticated(None) == auth(R.SUCCESS)
    assert not awaits_decision(conversation)
    assert conversation.receive([begin]) == [ReAuthenticated(begin, True)]
    assert conversation.end(R.NOT_AUTHORIZED) == Disconnect(R.NOT_AUTHORIZED)


def test_a_client_that_leaves_behind_its_auth() -> None:
    """There is nothing to be decided any more."""
    conversation = connected(authentication_method="m")
    leaves = Disconnect()
    events = conversation.receive([PingReq(), auth(R.RE_AUTHENTICATE), leaves])
    assert events == [Answer(PingResp()), Disconnected(leaves.reason, leaves.properties)]
    assert not awaits_decision(conversation)


def test_auth_that_may_not_come() -> None:
    """[MQTT-4.12.0-6], [MQTT-4.12.1-1]"""
    assert refused(connected(), auth(R.RE_AUTHENTICATE)) == R.PROTOCOL_ERROR
    for packet in (auth(R.RE_AUTHENTICATE, "other"), auth(R.CONTINUE_AUTHENTICATION)):
        assert refused(connected(authentication_method="m"), packet) == R.PROTOCOL_ERROR
    conversation = connected(authentication_method="m")
    conversation.receive([auth(R.RE_AUTHENTICATE)])
    assert refused(conversation, auth(R.RE_AUTHENTICATE)) == R.PROTOCOL_ERROR


# Messages of the client.


def test_messages_are_their_own_events_in_their_order() -> None:
    packets = [Publish("a", b"", qos, packet_id=qos) for qos in (0, 1, 2)]
    assert connected().receive(packets) == packets


@pytest.mark.parametrize("qos", [1, 2])
def test_more_than_the_receive_maximum(qos: int) -> None:
    """[MQTT-3.3.4-7], [MQTT-3.3.4-8]; QoS 0 does not count (4.9)."""
    conversation = connected()
    packets = [Publish("a", b"", qos, packet_id=number) for number in (1, 2, 3)]
    assert conversation.receive([*packets, *[Publish("a", b"")] * 10])[:3] == packets
    assert refused(conversation, Publish("a", b"", qos, packet_id=4)) == R.RECEIVE_MAXIMUM_EXCEEDED


def test_an_acknowledgement_makes_place_for_one_more() -> None:
    """4.9"""
    conversation = connected()
    inbound = own(conversation).inbound
    packets = [Publish("a", b"", qos, packet_id=number) for number, qos in ((1, 1), (2, 2), (3, 2))]
    conversation.receive(packets)
    inbound.acknowledged()
    inbound.refused(2)
    assert len(conversation.receive([Publish("a", b"", 1, packet_id=number) for number in (4, 5)])) == 2
    inbound.stored(3)
    assert conversation.receive([PubRel(3)]) == [Released(3)]
    inbound.completed(3)
    assert len(conversation.receive([Publish("a", b"", 1, packet_id=6)])) == 1
    assert refused(conversation, Publish("a", b"", 1, packet_id=7)) == R.RECEIVE_MAXIMUM_EXCEEDED


@pytest.mark.parametrize("version", [V31, V311])
def test_before_5_there_is_no_receive_maximum(version: Version) -> None:
    packets = [Publish("a", b"", 1, packet_id=number) for number in range(1, 200)]
    assert len(connected(version).receive(packets)) == 199


def test_qos_2_is_published_once() -> None:
    """[MQTT-4.3.3-8] to [MQTT-4.3.3-13]"""
    conversation = connected(V311)
    inbound = own(conversation).inbound
    publish, again = Publish("a", b"", 2, packet_id=5), Publish("a", b"", 2, packet_id=5, duplicate=True)
    assert conversation.receive([publish, again]) == [publish, Repeated(5)]
    assert not inbound.can_answer(5)
    inbound.stored(5)
    assert inbound.can_answer(5)
    assert conversation.receive([again]) == [Repeated(5)]
    assert conversation.receive([PubRel(5), PubRel(5), again]) == [Released(5), Released(5), Repeated(5)]
    inbound.completed(5)
    assert conversation.receive([again]) == [again]


def test_qos_2_that_is_refused_can_come_again() -> None:
    """4.3.3: with a reason of 0x80 or more the packet identifier is free."""
    conversation = connected()
    publish = Publish("a", b"", 2, packet_id=5)
    conversation.receive([publish])
    own(conversation).inbound.refused(5)
    assert conversation.receive([publish]) == [publish]


@pytest.mark.parametrize(("version", "reason"), [(V311, 0), (V5, 0x92)])
def test_a_release_of_what_is_unknown(version: Version, reason: int) -> None:
    """3.7.2.1"""
    assert connected(version).receive([PubRel(9)]) == [Answer(PubComp(9, reason))]


def test_topic_aliases() -> None:
    """3.3.2.3.4"""
    conversation = connected()
    alias = Properties(topic_alias=1)
    events = conversation.receive(
        [Publish("first", b"1", properties=alias), Publish("", b"2", properties=alias)]
    )
    assert [each.topic for each in events if isinstance(each, Publish)] == ["first", "first"]
    assert refused(conversation, Publish("", b"", properties=Properties(topic_alias=2))) == R.PROTOCOL_ERROR
    too_high = Publish("a", b"", properties=Properties(topic_alias=3))
    assert refused(connected(), too_high) == R.TOPIC_ALIAS_INVALID
    # [MQTT-3.3.2-7]: they end with the connection.
    session = own(conversation)
    assert refused(connected(session=session), Publish("", b"", properties=alias)) == R.PROTOCOL_ERROR


def test_retain_where_nothing_is_retained() -> None:
    """[MQTT-3.2.2-14]; in 3.1.1 it is a message as any other."""
    limits = Limits(retain_available=False)
    retained = Publish("a", b"", retain=True)
    assert refused(connected(limits=limits), retained) == R.RETAIN_NOT_SUPPORTED
    (event,) = connected(V311, limits).receive([retained])
    assert isinstance(event, Publish)
    assert not event.retain


@pytest.mark.parametrize("qos", [1, 2])
def test_a_payload_that_is_not_what_it_says(qos: int) -> None:
    """3.3.2.3.2: refused alone, in its place among the others, and settled."""
    conversation = connected()
    text = Properties(payload_format_indicator=1)
    packets = [
        Publish("a", payload, qos, packet_id=number, properties=text)
        for number, payload in enumerate((b"good", b"\xc3", b"good"), 1)
    ]
    first, second, third = conversation.receive(packets)
    assert (first, third) == (packets[0], packets[2])
    assert isinstance(second, PublishRefused)
    assert (second.publish, second.reason) == (packets[1], R.PAYLOAD_FORMAT_INVALID)
    assert len(conversation.receive([Publish("a", b"", 1, packet_id=9)])) == 1
    assert refused(conversation, Publish("a", b"", 1, packet_id=10)) == R.RECEIVE_MAXIMUM_EXCEEDED
    # The packet identifier is free.
    other = connected()
    other.receive([packets[1]])
    packets[1].payload = b"good"
    assert other.receive([packets[1]]) == [packets[1]]


def test_a_payload_of_qos_0_that_is_not_what_it_says() -> None:
    text = Properties(payload_format_indicator=1)
    assert refused(connected(), Publish("a", b"\xc3", properties=text)) == R.PAYLOAD_FORMAT_INVALID
    unspecified = Publish("a", b"\xc3", properties=Properties(payload_format_indicator=0))
    assert connected().receive([unspecified]) == [unspecified]


def test_what_came_before_an_error_counts() -> None:
    conversation = connected()
    good, bad = Publish("a", b"", 1, packet_id=1), Publish("", b"", properties=Properties(topic_alias=1))
    assert conversation.receive([good, PingReq(), bad, good]) == [good, Answer(PingResp())]
    assert conversation.error is not None
    end = conversation.end(conversation.error.reason, conversation.error.text)
    assert end == Disconnect(R.PROTOCOL_ERROR, Properties(reason_string=conversation.error.text))


# Deliveries.


def test_acknowledgements_side_by_side_are_one_event() -> None:
    conversation = connected()
    ids = deliver(conversation, 1, 1, 2, 2, 1)
    events = conversation.receive(
        [PubAck(ids[0]), PubAck(ids[1]), PubRec(ids[2]), PubRec(ids[3]), PubAck(ids[4])]
    )
    assert [type(each) for each in events] == [Acknowledged, Received, Acknowledged]
    assert [[each.sequence for each in event.deliveries] for event in events] == [[0, 1], [2, 3], [4]]  # type: ignore[union-attr]
    assert conversation.receive([PubComp(ids[3]), PubComp(ids[2])]) == [
        Acknowledged([Delivery(None, 2, False, (), 10, -1, 3), Delivery(None, 2, False, (), 10, -1, 2)])
    ]


def test_a_delivery_that_the_client_refuses() -> None:
    """[MQTT-4.4.0-2], 4.3.3: it is not sent again."""
    conversation = connected()
    one, two = deliver(conversation, 1, 2)
    (event,) = conversation.receive([PubAck(one, R.QUOTA_EXCEEDED), PubRec(two, R.NOT_AUTHORIZED)])
    assert isinstance(event, Acknowledged)
    assert [each.sequence for each in event.deliveries] == [0, 1]
    assert own(conversation).outbound.under_way == 0


@pytest.mark.parametrize(("version", "reason"), [(V311, 0), (V5, 0x92)])
def test_acknowledgements_of_what_is_unknown(version: Version, reason: int) -> None:
    """3.6.2.1"""
    conversation = connected(version)
    assert conversation.receive([PubAck(1), PubComp(2), PubRec(4, R.QUOTA_EXCEEDED)]) == []
    assert conversation.receive([PubRec(3)]) == [Answer(PubRel(3, reason))]


@pytest.mark.parametrize(("qos", "wrong"), [(1, PubRec), (1, PubComp), (2, PubAck), (2, PubComp)], ids=str)
def test_an_acknowledgement_of_another_qos(qos: int, wrong: type[PubRec]) -> None:
    conversation = connected()
    (packet_id,) = deliver(conversation, qos)
    assert refused(conversation, wrong(packet_id)) == R.PROTOCOL_ERROR
    assert own(conversation).outbound.under_way == 1


def test_a_session_is_resumed() -> None:
    """[MQTT-4.4.0-1]: PUBREL in the order of PUBREC, PUBLISH with DUP in the order in which they were sent."""
    session = Session("c", LIMITS.queue)
    first = connected(V311, session=session)
    ids = deliver(first, 1, 2, 2, 2, 1)
    first.receive([PubRec(ids[2]), PubRec(ids[1]), PubAck(ids[0])])
    session.disconnect(0)
    second = connecting(V311)
    assert second.accept(session, present=True) == [ConnAck(True, 0), PubRel(ids[2]), PubRel(ids[1])]
    again = session.outbound.take(0)
    assert [(each.packet_id, each.duplicate) for each in again] == [(ids[3], True), (ids[4], True)]


def test_the_limits_of_the_client_are_the_sessions() -> None:
    conversation = connected(receive_maximum=2, maximum_packet_size=20, topic_alias_maximum=40)
    outbound = own(conversation).outbound
    assert not outbound.is_clear
    assert deliver(conversation, 1, 1, 1) == [1, 2]
    large = Delivery(Message("a", bytes(20)), 0, False, (), 20)
    outbound.offer(large)
    assert outbound.take(0) == []
    assert [each.delivery for each in outbound.drops] == [large]
    # [MQTT-3.1.2-26], [MQTT-3.1.2-27]
    for used, maximum, aliases in ((1, 40, [1, 0]), (40, 1, [1, 0]), (40, 0, [0, 0]), (40, None, [0, 0])):
        fields: dict[str, Any] = {} if maximum is None else {"topic_alias_maximum": maximum}
        some = connected(limits=Limits(aliases_to_client=used), **fields)
        for topic in ("topic/1", "topic/2"):
            own(some).outbound.offer(Delivery(Message(topic, b""), 0, False, (), 7))
        assert [each.alias for each in own(some).outbound.take(0)] == aliases
    plain = connected(V311, receive_maximum=2)
    assert own(plain).outbound.is_clear


# Subscriptions and pings.


def test_subscriptions_are_their_own_events() -> None:
    packets: list[Any] = [Subscribe(1, (SubscriptionRequest("a", 0),)), Unsubscribe(2, ("a",))]
    assert connected().receive([*packets, PingReq()]) == [*packets, Answer(PingResp())]


# The end.


@pytest.mark.parametrize("version", Version)
def test_a_disconnect_deletes_the_will(version: Version) -> None:
    """[MQTT-3.14.4-3], [MQTT-3.1.2-10]"""
    conversation = connected(version, will=Will("w", b"", 0, False))
    (event,) = conversation.receive([Disconnect(), PingReq(), Publish("a", b"")])
    assert event == Disconnected(0, NO_PROPERTIES)
    assert own(conversation).will is None
    assert conversation.receive([PingReq()]) == []
    assert conversation.error is None
    assert conversation.end(R.SUCCESS) is None


@pytest.mark.parametrize("reason", [R.DISCONNECT_WITH_WILL, R.UNSPECIFIED_ERROR])
def test_a_disconnect_that_leaves_the_will(reason: ReasonCode) -> None:
    will = Will("w", b"", 0, False)
    conversation = connected(will=will)
    assert conversation.receive([Disconnect(reason)]) == [Disconnected(reason, NO_PROPERTIES)]
    assert own(conversation).will is will


def test_a_disconnect_changes_the_session_expiry() -> None:
    """3.14.2.2.2"""
    limits = Limits(session_expiry_max_s=600)
    for wanted, granted in ((0, 0), (50, 50), (NEVER_S, 600)):
        conversation = connected(limits=limits, session_expiry_interval=100)
        conversation.receive([Disconnect(properties=Properties(session_expiry_interval=wanted))])
        assert conversation.expiry_s == own(conversation).expiry_s == granted
    conversation = connected(limits=limits, session_expiry_interval=100)
    conversation.receive([Disconnect()])
    assert own(conversation).expiry_s == 100


@pytest.mark.parametrize("interval", [None, 0])
def test_a_disconnect_cannot_make_a_session_outlive_its_connection(interval: int | None) -> None:
    """3.14.2.2.2: it is no DISCONNECT then, so the will stays."""
    will = Will("w", b"", 0, False)
    fields: dict[str, Any] = {} if interval is None else {"session_expiry_interval": interval}
    conversation = connected(will=will, **fields)
    packet = Disconnect(properties=Properties(session_expiry_interval=1))
    assert refused(conversation, packet) == R.PROTOCOL_ERROR
    assert own(conversation).will is will
    assert own(conversation).expiry_s == 0
    conversation = connected(**fields)
    conversation.receive([Disconnect(properties=Properties(session_expiry_interval=0))])
    assert conversation.error is None


def test_the_server_ends_a_connection() -> None:
    """[MQTT-3.14.0-1]; 3.1.1 has no DISCONNECT of a server."""
    assert connected(V311).end(R.SERVER_SHUTTING_DOWN, "why") is None
    conversation = connected()
    end = conversation.end(R.SERVER_SHUTTING_DOWN, "why")
    assert end == Disconnect(R.SERVER_SHUTTING_DOWN, Properties(reason_string="why"))
    assert conversation.end(R.SERVER_SHUTTING_DOWN) is None, "once"
    assert conversation.receive([PingReq()]) == []
    # What DISCONNECT has no code for.
    assert connected().end(R.BAD_USER_NAME_OR_PASSWORD) == Disconnect(R.UNSPECIFIED_ERROR)


def test_reasons_only_where_they_are_wanted_and_fit() -> None:
    """[MQTT-3.1.2-29], [MQTT-3.4.2-2] and their like"""
    assert connected().reason_properties("why") == Properties(reason_string="why")
    assert connected().reason_properties(None) is NO_PROPERTIES
    assert connected(V311).reason_properties("why") is NO_PROPERTIES
    silent = connected(request_problem_information=0)
    assert silent.reason_properties("why") is NO_PROPERTIES
    # CONNACK and DISCONNECT may say it all the same.
    assert silent.end(R.QUOTA_EXCEEDED, "why") == Disconnect(
        R.QUOTA_EXCEEDED, Properties(reason_string="why")
    )
    assert connected(request_problem_information=1).reason_properties("why").reason_string == "why"
    narrow = connected(maximum_packet_size=30)
    assert narrow.reason_properties("x" * 30) is NO_PROPERTIES
    assert narrow.reason_properties("x" * 5).reason_string == "x" * 5
    assert narrow.reason_properties("x" * 5, beside=20) is NO_PROPERTIES
    assert narrow.end(R.QUOTA_EXCEEDED, "ü" * 10) == Disconnect(R.QUOTA_EXCEEDED)

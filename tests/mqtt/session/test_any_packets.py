"""Whatever a client sends that is well-formed: the conversation does not raise, and what it refuses has a reason that
DISCONNECT or CONNACK may carry. What is malformed the reader refuses."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.reasons import OF_SERVERS
from leafcuttr_mqtt.packets.types import (
    NO_PROPERTIES,
    Auth,
    Connect,
    Disconnect,
    Packet,
    PacketType,
    PingReq,
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
)
from leafcuttr_mqtt.session.conversation import Conversation
from leafcuttr_mqtt.session.events import Authenticating, Connected, Disconnected, PublishRefused
from leafcuttr_mqtt.session.limits import Limits, QueueLimits
from leafcuttr_mqtt.session.session import Session
from leafcuttr_mqtt.session.states import Phase
from leafcuttr_mqtt.session.types import Delivery

ids = st.integers(1, 4)
publish_properties = st.builds(
    Properties,
    topic_alias=st.none() | st.integers(1, 3),
    payload_format_indicator=st.none() | st.integers(0, 1),
)
method = st.builds(
    Properties,
    authentication_method=st.sampled_from([None, "m", "n"]),
    session_expiry_interval=st.none() | st.integers(0, 3),
)


@st.composite
def publishes(draw: st.DrawFn) -> Publish:
    properties = draw(st.just(NO_PROPERTIES) | publish_properties)
    # Without a topic there is an alias, says the reader.
    topic = draw(st.sampled_from(["a", "" if properties.topic_alias else "b"]))
    qos = draw(st.integers(0, 2))
    payload = draw(st.sampled_from([b"", b"text", b"\xff"]))
    return Publish(
        topic, payload, qos, draw(st.booleans()), draw(ids) if qos else 0, draw(st.booleans()), properties
    )


packets = st.one_of(
    publishes(),
    st.builds(PubAck, ids, st.sampled_from([0, 0x80])),
    st.builds(PubRec, ids, st.sampled_from([0, 0x80])),
    st.builds(PubRel, ids),
    st.builds(PubComp, ids),
    st.just(PingReq()),
    st.just(Subscribe(1, (SubscriptionRequest("a", 1),))),
    st.just(Unsubscribe(1, ("a",))),
    st.builds(Auth, st.sampled_from([0x18, 0x19]), method),
)
last = st.one_of(
    st.builds(Disconnect, st.sampled_from([0, 4, 0x80]), method),
    st.builds(Connect, st.sampled_from(Version), st.just("c"), st.booleans(), st.just(0)),
)


@given(
    version=st.sampled_from(Version),
    authenticates=st.booleans(),
    retain=st.booleans(),
    reads=st.lists(st.lists(packets, max_size=6), max_size=12),
    end=st.lists(last, max_size=2),
)
def test_nothing_is_raised(
    version: Version, authenticates: bool, retain: bool, reads: list[list[Packet]], end: list[Packet]
) -> None:
    limits = Limits(
        receive_maximum=3, topic_alias_maximum=2, retain_available=retain, queue=QueueLimits(max_inflight=2)
    )
    conversation, session = Conversation(limits), Session("c", limits.queue)
    properties = Properties(authentication_method="m" if authenticates and version == Version.V5 else None)
    connect = Connect(version, "c", True, 0, properties=properties)
    counts: Counter[type] = Counter()
    for number, read in enumerate([[connect, *reads[0]] if reads else [connect], *reads[1:], end]):
        events = conversation.receive(read)
        while events:
            for event in events:
                counts[type(event)] += 1
                if isinstance(event, Connected | Authenticating):
                    if conversation.phase is Phase.CONNECTING and number % 3:
                        conversation.challenge(b"")
                    elif conversation.phase is Phase.CONNECTING:
                        conversation.accept(session, present=False)
                elif isinstance(event, Publish) and event.qos == 1:
                    session.inbound.acknowledged()
                elif isinstance(event, Publish) and event.qos == 2 and number % 2:
                    session.inbound.stored(event.packet_id)
                elif isinstance(event, Publish):
                    assert event.topic
                elif isinstance(event, PublishRefused):
                    assert event.publish.qos
            events = conversation.receive(())
        assert session.inbound.quota >= 0 or conversation.error is not None
        for qos in (1, 2):
            session.outbound.offer(Delivery(Message("a", b""), qos, False, (), 1))
        session.outbound.take(0)
        assert session.outbound.under_way <= 2
    error, phase = conversation.error, conversation.phase
    if error is not None:
        kind = PacketType.DISCONNECT if session.connected else PacketType.CONNACK
        assert error.reason in OF_SERVERS[kind]
        assert error.text
    assert counts[Connected] == 1
    assert counts[Disconnected] <= 1
    answer = conversation.end(
        error.reason if error else ReasonCode.UNSPECIFIED_ERROR, error.text if error else ""
    )
    assert (answer is None) == (version != Version.V5 or phase is Phase.ENDED)

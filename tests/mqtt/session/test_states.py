"""The tables of states, and that the code does what they say: each packet and each event in each state."""

from __future__ import annotations

import pytest

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.errors import PacketError
from leafcuttr_mqtt.packets.types import (
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
    SubAck,
    Subscribe,
    SubscriptionRequest,
    UnsubAck,
    Unsubscribe,
    Version,
)
from leafcuttr_mqtt.session.conversation import Conversation
from leafcuttr_mqtt.session.events import Connected
from leafcuttr_mqtt.session.inbound import Inbound
from leafcuttr_mqtt.session.limits import ClientLimits, Limits, QueueLimits
from leafcuttr_mqtt.session.outbound import Outbound
from leafcuttr_mqtt.session.session import Session
from leafcuttr_mqtt.session.states import (
    CONNECTION,
    DECISIONS,
    FROM_CLIENT,
    TO_CLIENT,
    Came,
    Decision,
    FromClient,
    Next,
    Phase,
    ToClient,
)
from leafcuttr_mqtt.session.types import Delivery

LIMITS = Limits()
METHOD = Properties(authentication_method="m")


def packet_of(kind: PacketType, phase: Phase) -> Packet:
    """One that is right by itself."""
    begins = phase is Phase.CONNECTED
    reason = ReasonCode.RE_AUTHENTICATE if begins else ReasonCode.CONTINUE_AUTHENTICATION
    packets: dict[PacketType, Packet] = {
        PacketType.CONNECT: Connect(Version.V5, "c", True, 0),
        PacketType.CONNACK: ConnAck(False, 0),
        PacketType.PUBLISH: Publish("a", b""),
        PacketType.PUBACK: PubAck(1),
        PacketType.PUBREC: PubRec(1),
        PacketType.PUBREL: PubRel(1),
        PacketType.PUBCOMP: PubComp(1),
        PacketType.SUBSCRIBE: Subscribe(1, (SubscriptionRequest("a", 0),)),
        PacketType.SUBACK: SubAck(1, (0,)),
        PacketType.UNSUBSCRIBE: Unsubscribe(1, ("a",)),
        PacketType.UNSUBACK: UnsubAck(1),
        PacketType.PINGREQ: PingReq(),
        PacketType.PINGRESP: PingResp(),
        PacketType.DISCONNECT: Disconnect(),
        PacketType.AUTH: Auth(reason, METHOD),
    }
    return packets[kind]


def in_phase(phase: Phase, *, method: bool = True) -> Conversation:
    conversation = Conversation(LIMITS)
    if phase is Phase.EXPECTS_CONNECT:
        return conversation
    properties = METHOD if method else Properties()
    events = conversation.receive([Connect(Version.V5, "c", True, 0, properties=properties)])
    assert [type(each) for each in events] == [Connected]
    if phase is Phase.AUTHENTICATING:
        conversation.challenge(None)
    elif phase is not Phase.CONNECTING:
        conversation.accept(Session("c", LIMITS.queue), present=False)
        if phase is Phase.RE_AUTHENTICATING:
            conversation.receive([Auth(ReasonCode.RE_AUTHENTICATE, METHOD)])
        elif phase is Phase.ENDED:
            conversation.receive([Disconnect()])
    assert conversation.phase is phase
    return conversation


@pytest.mark.parametrize("kind", PacketType)
@pytest.mark.parametrize("phase", Phase)
def test_each_packet_in_each_phase(phase: Phase, kind: PacketType) -> None:
    # Without a method: with one, nothing but AUTH and DISCONNECT may be sent before CONNACK.
    conversation = in_phase(phase, method=phase is not Phase.CONNECTING)
    session = conversation.session
    events = conversation.receive([packet_of(kind, phase)])
    step = CONNECTION[phase].get(kind)
    if phase is Phase.ENDED:
        assert (events, conversation.error, conversation.phase) == ([], None, Phase.ENDED)
    elif step is None:
        assert conversation.error is not None
        assert conversation.error.reason == ReasonCode.PROTOCOL_ERROR
        assert (events, conversation.phase) == ([], phase)
        assert conversation.receive([PingReq()]) == []
    elif step is Next.HOLD:
        assert (events, conversation.error, conversation.phase) == ([], None, phase)
    else:
        assert conversation.error is None
        assert conversation.phase is (phase if step is Next.STAY else step)
        # What is ignored or nothing to the server: acknowledgements of what is unknown.
        assert len(events) == (0 if kind in (PacketType.PUBACK, PacketType.PUBCOMP) else 1)
    assert conversation.session is session


def decide(conversation: Conversation, decision: Decision) -> None:
    match decision:
        case Decision.ACCEPT:
            conversation.accept(Session("c", LIMITS.queue), present=False)
        case Decision.REFUSE:
            conversation.refuse(ReasonCode.NOT_AUTHORIZED)
        case Decision.CHALLENGE:
            conversation.challenge(None)
        case Decision.RE_AUTHENTICATED:
            conversation.re_authenticated(None)
        case Decision.END:
            conversation.end(ReasonCode.NOT_AUTHORIZED)


@pytest.mark.parametrize("decision", Decision)
@pytest.mark.parametrize("phase", Phase)
def test_each_decision_in_each_phase(phase: Phase, decision: Decision) -> None:
    conversation = in_phase(phase)
    to = DECISIONS[phase].get(decision)
    if to is None:
        with pytest.raises(KeyError):
            decide(conversation, decision)
        assert conversation.phase is phase
    else:
        decide(conversation, decision)
        assert conversation.phase is to


def test_the_tables_have_all_phases_and_end() -> None:
    assert CONNECTION.keys() == DECISIONS.keys() == set(Phase)
    reached = {Phase.EXPECTS_CONNECT}
    for _ in Phase:
        for phase in list(reached):
            reached |= {each for each in CONNECTION[phase].values() if isinstance(each, Phase)}
            reached |= set(DECISIONS[phase].values())
    assert reached == set(Phase)
    assert all(Decision.END in DECISIONS[phase] for phase in Phase)
    from_server = {PacketType.CONNACK, PacketType.SUBACK, PacketType.UNSUBACK, PacketType.PINGRESP}
    assert all(from_server.isdisjoint(CONNECTION[phase]) for phase in Phase)


# Exchanges to the client.


def outbound_in(state: ToClient, qos: int) -> Outbound:
    """One delivery, with the packet identifier 1 where it has one."""
    outbound = Outbound(QueueLimits())
    outbound.connect(ClientLimits())
    outbound.offer(Delivery(Message("a", b""), qos, False, (), 10))
    if state is not ToClient.WAITING:
        assert [each.packet_id for each in outbound.take(0)] == [1]
    if state is ToClient.AWAITS_PUBCOMP:
        outbound.pubrec(1)
    assert state_of(outbound, qos) is state
    return outbound


def state_of(outbound: Outbound, qos: int) -> ToClient:
    snapshot = (outbound.messages, len(outbound._unacknowledged), len(outbound._released or ()))
    return {
        (1, 0, 0): ToClient.WAITING,
        (0, 1, 0): ToClient.AWAITS_PUBACK if qos == 1 else ToClient.AWAITS_PUBREC,
        (0, 0, 1): ToClient.AWAITS_PUBCOMP,
        (0, 0, 0): ToClient.DONE,
    }[snapshot]


ACKNOWLEDGEMENTS = (Came.PUBACK, Came.PUBREC, Came.PUBREC_ERROR, Came.PUBCOMP)


@pytest.mark.parametrize("came", [Came.SEND, *ACKNOWLEDGEMENTS])
@pytest.mark.parametrize(("state", "qos"), TO_CLIENT)
def test_each_event_of_an_exchange_to_the_client(state: ToClient, qos: int, came: Came) -> None:
    outbound = outbound_in(state, qos)
    to = TO_CLIENT[state, qos].get(came)
    if came is Came.SEND:
        if state is not ToClient.WAITING:
            outbound.disconnect()
            released = outbound.connect(ClientLimits())
            assert released == ([1] if state is ToClient.AWAITS_PUBCOMP else [])
        sendings = outbound.take(0)
        assert [each.duplicate for each in sendings] == (
            [] if to is None else [state is not ToClient.WAITING]
        )
        assert state_of(outbound, qos) is (to or state)
        return
    if to is None and state is not ToClient.WAITING:
        with pytest.raises(PacketError) as caught:
            acknowledge(outbound, came)
        assert caught.value.reason == ReasonCode.PROTOCOL_ERROR
        assert "packet identifier 1" in caught.value.text
        assert state_of(outbound, qos) is state
        return
    found = acknowledge(outbound, came)
    # What waits has no packet identifier in use: it is as if it were not there.
    assert (found is None) == (state is ToClient.WAITING)
    assert state_of(outbound, qos) is (to or state)


def acknowledge(outbound: Outbound, came: Came) -> Delivery | None:
    if came is Came.PUBACK:
        return outbound.puback(1)
    if came is Came.PUBCOMP:
        return outbound.pubcomp(1)
    return outbound.pubrec(1, 0x80 if came is Came.PUBREC_ERROR else 0)


def test_the_table_of_exchanges_to_the_client_is_whole() -> None:
    states = {state for state, _ in TO_CLIENT}
    assert states == set(ToClient) - {ToClient.DONE}
    reached = {to for steps in TO_CLIENT.values() for to in steps.values()}
    assert reached == set(ToClient) - {ToClient.WAITING}


# Exchanges from the client.


def inbound_in(state: FromClient) -> Inbound:
    inbound = Inbound()
    if state is not FromClient.NEW:
        assert inbound.arrive(7)
    if state in (FromClient.RECEIVED, FromClient.RELEASED):
        inbound.stored(7)
    if state is FromClient.RELEASED:
        assert inbound.release(7)
    assert inbound_state(inbound) is state
    return inbound


def inbound_state(inbound: Inbound) -> FromClient:
    states = {
        FromClient.PENDING: inbound._pending,
        FromClient.RECEIVED: inbound._received,
        FromClient.RELEASED: inbound._released,
    }
    found = [state for state, known in states.items() if known]
    assert len(found) <= 1
    return found[0] if found else FromClient.NEW


OF_CLIENTS = (Came.PUBLISH, Came.STORED, Came.REFUSED, Came.ABANDONED, Came.PUBREL, Came.COMPLETED)


@pytest.mark.parametrize("came", OF_CLIENTS)
@pytest.mark.parametrize("state", FromClient)
def test_each_event_of_an_exchange_from_the_client(state: FromClient, came: Came) -> None:
    inbound = inbound_in(state)
    to = FROM_CLIENT[state].get(came)
    match came:
        case Came.PUBLISH:
            assert inbound.arrive(7) == (state is FromClient.NEW)
        case Came.STORED:
            inbound.stored(7)
        case Came.REFUSED:
            inbound.refused(7)
        case Came.ABANDONED:
            inbound.abandoned(7)
        case Came.PUBREL:
            assert inbound.release(7) == (state in (FromClient.RECEIVED, FromClient.RELEASED))
        case Came.COMPLETED:
            inbound.completed(7)
    assert inbound_state(inbound) is (to or state)
    if inbound_state(inbound) is not FromClient.NEW:
        assert inbound.number_of(7) & 0xFFFF == 7


def test_the_table_of_exchanges_from_the_client_is_whole() -> None:
    assert FROM_CLIENT.keys() == set(FromClient)
    assert {to for steps in FROM_CLIENT.values() for to in steps.values()} == set(FromClient)
    assert {came for steps in FROM_CLIENT.values() for came in steps} == set(OF_CLIENTS)

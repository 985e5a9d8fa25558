"""The packets of a bridge, one side's to the other, without any connection."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_mqtt.bridge.options import Address, Bridge
from leafcuttr_mqtt.bridge.relay import Cleared, Here, NotAccepted, Relay, Stale
from leafcuttr_mqtt.bridge.topics import parse_rule
from leafcuttr_mqtt.packets.errors import PacketError
from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.types import (
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
    SubAck,
    Subscribe,
    SubscriptionRequest,
    UnsubAck,
    Unsubscribe,
    Version,
    Will,
)

V31, V311, V5 = Version
STATE = "$SYS/broker/connection/c/state"
VERSIONS = pytest.mark.parametrize("version", [V311, V5], ids=["3.1.1", "5.0"])


def a_bridge(version: Version = V5, rules: str = 'a/# both 2 "" there/', **more: Any) -> Bridge:
    given: dict[str, Any] = {
        "name": "b",
        "addresses": (Address("x", 1),),
        "rules": tuple(parse_rule(each) for each in rules.split(",")),
        "version": version,
        "client_id": "c",
        "user_name": None,
        "password": None,
        "clean_session": False,
        "keep_alive_s": 60,
        "max_inflight": 20,
        "bridge_mark": True,
        "notifications": False,
        "notifications_local_only": False,
        "notification_topic": None,
        "backoff_s": 1,
        "backoff_max_s": 30,
        "tls": False,
        "truststore": None,
        "keystore": None,
        "key_password": None,
        "check_host_name": True,
    }
    return Bridge(**{**given, **more})


HERE = Here(True, {"a/#": 2}, ())


class Both:
    """A relay, and what it sends to either side."""

    def __init__(self, bridge: Bridge, here: Here = HERE, largest_here: int = 1000) -> None:
        self.relay = Relay(bridge, here, "c", STATE, receive_maximum=9, largest_here=largest_here)
        self._there = PacketReader(1 << 20)
        self._here = PacketReader(1 << 20)

    def there(self) -> list[Packet]:
        data, self.relay.to_there = b"".join(self.relay.to_there), []
        got = self._there.feed(data)
        assert self._there.error is None
        return got

    def here(self) -> list[Packet]:
        data, self.relay.to_here = b"".join(self.relay.to_here), []
        got = self._here.feed(data)
        assert self._here.error is None
        return got

    def from_there(self, *packets: Packet) -> None:
        self.relay.from_there(packets)

    def from_here(self, *packets: Packet) -> None:
        self.relay.from_here(packets)


def up(
    bridge: Bridge, here: Here = HERE, there: Properties | None = None, *, present: bool = True, **more: Any
) -> Both:
    """Connected on both sides, with nothing left to read."""
    both = Both(bridge, here, **more)
    both.relay.start(mark=False)
    both.from_there(ConnAck(present, 0, there or Properties()))
    both.from_here(ConnAck(here.present and not bridge.clean_session, 0))
    assert both.relay.up
    both.there()
    both.here()
    return both


# Connections


def test_connect_of_3_1_1() -> None:
    both = Both(a_bridge(V311, user_name="u", password=b"p"))
    both.relay.start(mark=True)
    assert both.there() == [Connect(V311, "c", False, 60, "u", b"p", bridge=True)]
    assert not both.relay.up
    both.from_there(ConnAck(True, 0))
    assert both.there() == [Subscribe(65_535, (SubscriptionRequest("there/a/#", 2, True, True),))]
    assert both.here() == [Connect(V311, "bridge.b", False, 0, bridge=True)]
    both.from_here(ConnAck(True, 0))
    assert both.relay.up


def test_connect_of_5() -> None:
    both = Both(a_bridge(V5), Here(True, {"old/#": 1, "a/#": 1}))
    both.relay.start(mark=True)
    never = 0xFFFFFFFF
    assert both.there() == [
        Connect(V5, "c", False, 60, properties=Properties(session_expiry_interval=never, receive_maximum=9))
    ]
    both.from_there(ConnAck(True, 0, Properties(receive_maximum=7, maximum_packet_size=100)))
    assert both.there() == [Subscribe(65_535, (SubscriptionRequest("there/a/#", 2, True, True, 1),))]
    # The other broker's limits are told here; a topic is six characters longer there. Subscriptions are put right.
    assert both.here() == [
        Connect(
            V5,
            "bridge.b",
            False,
            0,
            properties=Properties(session_expiry_interval=never, receive_maximum=7, maximum_packet_size=94),
        ),
        Unsubscribe(65_535, ("old/#",)),
        Subscribe(65_535, (SubscriptionRequest("a/#", 2, True, True, 1),)),
    ]
    both.from_here(
        ConnAck(True, 0, Properties(server_keep_alive=40)), UnsubAck(65_535, (0,)), SubAck(65_535, (2,))
    )
    assert both.relay.up
    assert both.relay.here_keep_alive_s == 40
    assert both.relay.keep_alive_s == 60


def test_the_limits_of_the_bridge_and_of_the_broker_there() -> None:
    for there, expected in ((None, 20), (5, 5), (100, 20)):
        both = Both(a_bridge(V5))
        both.relay.start(mark=False)
        both.from_there(ConnAck(True, 0, Properties(receive_maximum=there, server_keep_alive=33)))
        connect = both.here()[0]
        assert isinstance(connect, Connect)
        assert connect.properties.receive_maximum == expected
        assert both.relay.keep_alive_s == 33


@VERSIONS
def test_a_clean_session(version: Version) -> None:
    """Nothing is kept on either side, whatever is there from before."""
    both = Both(a_bridge(version, clean_session=True), Here(True, {"a/#": 2}, (4,)))
    both.relay.start(mark=False)
    (connect,) = both.there()
    assert isinstance(connect, Connect)
    assert (connect.clean_start, connect.properties.session_expiry_interval) == (True, None)
    both.from_there(ConnAck(False, 0))
    connect, subscribe = both.here()
    assert isinstance(connect, Connect)
    assert (connect.clean_start, connect.properties.session_expiry_interval) == (True, None)
    assert isinstance(subscribe, Subscribe)
    both.from_here(ConnAck(False, 0))
    assert both.relay.up


@pytest.mark.parametrize("version", Version)
def test_without_a_session_here_the_one_there_is_ended_first(version: Version) -> None:
    """[MQTT-3.2.2-4]; 3.1 does not say whether there is one."""
    both = Both(a_bridge(version, notifications=True), Here())
    both.relay.start(mark=False)
    (connect,) = both.there()
    assert isinstance(connect, Connect)
    assert not connect.clean_start
    with pytest.raises(Stale):
        both.from_there(ConnAck(version != V31, 0))
    both.relay.stop()
    assert (both.there(), both.here()) == ([Disconnect()], [])

    both = Both(a_bridge(version, notifications=True), Here())
    both.relay.start(mark=False, clear=True)
    (connect,) = both.there()
    assert isinstance(connect, Connect)
    assert (connect.clean_start, connect.will) == (True, None)
    assert connect.properties.session_expiry_interval is None
    with pytest.raises(Cleared):
        both.from_there(ConnAck(False, 0))
    both.relay.stop()
    assert (both.there(), both.here()) == ([Disconnect()], [])

    both = Both(a_bridge(version), Here())
    both.relay.start(mark=False, cleared=True)
    both.from_there(ConnAck(False, 0))
    both.from_here(ConnAck(False, 0))
    assert both.relay.up


@VERSIONS
def test_without_any_session_one_connection_does(version: Version) -> None:
    both = Both(a_bridge(version), Here())
    both.relay.start(mark=False)
    both.from_there(ConnAck(False, 0))
    both.from_here(ConnAck(False, 0))
    assert both.relay.up


@VERSIONS
def test_what_awaits_a_release_is_released_when_the_session_there_has_ended(version: Version) -> None:
    """Else a message that has such a packet identifier next would be taken for one that has come before."""
    both = Both(a_bridge(version), Here(True, {"a/#": 2}, (4, 7)))
    both.relay.start(mark=False)
    both.from_there(ConnAck(False, 0), Publish("there/a/x", b"new", 2, packet_id=4))
    assert both.here()[1:] == [PubRel(4), PubRel(7), Publish("a/x", b"new", 2, packet_id=4)]
    both.there()
    both.from_here(ConnAck(True, 0), PubComp(4), PubComp(7), PubRec(4))
    assert both.there() == [PubRec(4)]
    both.from_there(PubRel(4))
    assert both.here() == [PubRel(4)]
    both.from_here(PubComp(4))
    assert both.there() == [PubComp(4)]
    # Where the session there goes on, its PUBREL comes.
    goes_on = Both(a_bridge(version), Here(True, {"a/#": 2}, (4,)))
    goes_on.relay.start(mark=False)
    goes_on.from_there(ConnAck(True, 0))
    assert len(goes_on.here()) == 1
    goes_on.there()
    goes_on.from_there(PubRel(4))
    goes_on.from_here(ConnAck(True, 0), PubComp(4))
    assert goes_on.there() == [PubComp(4)]


@pytest.mark.parametrize(
    ("version", "reason", "expected", "text"),
    [
        (V311, 1, ReasonCode.UNSUPPORTED_PROTOCOL_VERSION, "refuses the connection (0x01)"),
        (V311, 4, ReasonCode.BAD_USER_NAME_OR_PASSWORD, "refuses the connection (0x04)"),
        (V311, 5, ReasonCode.NOT_AUTHORIZED, "refuses the connection (0x05)"),
        (V5, 0x87, ReasonCode.NOT_AUTHORIZED, "refuses the connection (0x87): because"),
    ],
)
def test_a_connection_that_is_refused(version: Version, reason: int, expected: ReasonCode, text: str) -> None:
    both = Both(a_bridge(version))
    both.relay.start(mark=False)
    said = Properties(reason_string="because") if version == V5 else Properties()
    with pytest.raises(NotAccepted) as caught:
        both.from_there(ConnAck(False, reason, said))
    assert caught.value.reason == expected
    assert caught.value.text == f"the other broker {text}"
    both.there()
    both.relay.stop()
    assert both.there() == []


def test_connack_comes_first_and_once() -> None:
    both = Both(a_bridge())
    both.relay.start(mark=False)
    with pytest.raises(PacketError, match="PUBLISH before CONNACK"):
        both.from_there(Publish("there/a/x", b""))
    with pytest.raises(PacketError, match="CONNACK from the other broker"):
        up(a_bridge()).from_there(ConnAck(False, 0))
    with pytest.raises(PacketError, match="AUTH from the other broker"):
        up(a_bridge()).from_there(Auth())
    with pytest.raises(PacketError, match="AUTH from this broker"):
        up(a_bridge()).from_here(Auth())


@VERSIONS
def test_its_session_here_is_as_it_was(version: Version) -> None:
    """The subscriptions that are there already are not made again, so there has to be one."""
    for present in (True, False):
        both = Both(a_bridge(version), Here(present))
        both.relay.start(mark=False)
        both.from_there(ConnAck(False, 0))
        with pytest.raises(NotAccepted, match="has changed meanwhile"):
            both.from_here(ConnAck(not present, 0))
    both = Both(a_bridge(V31))
    both.relay.start(mark=False)
    both.from_there(ConnAck(False, 0))
    both.from_here(ConnAck(False, 0))  # 3.1 does not say
    assert both.relay.up


def test_this_broker_may_refuse_it_too() -> None:
    both = Both(a_bridge())
    both.relay.start(mark=False)
    both.from_there(ConnAck(True, 0))
    with pytest.raises(NotAccepted, match="this broker refuses the connection \\(0x87\\)"):
        both.from_here(ConnAck(False, 0x87))


def test_either_side_may_end_it() -> None:
    with pytest.raises(PacketError, match=r"the other broker ends the connection \(0x8b\): bye"):
        up(a_bridge()).from_there(Disconnect(0x8B, Properties(reason_string="bye")))
    with pytest.raises(PacketError, match=r"this broker ends the connection \(0x8e\)"):
        up(a_bridge()).from_here(Disconnect(0x8E))


@VERSIONS
def test_subscriptions_that_are_refused_are_told(version: Version) -> None:
    both = up(a_bridge(version, "a in 1,b in 1"), Here(True))
    both.from_there(SubAck(65_535, (1, 0x80)))
    assert both.relay.complaints == ["the other broker refuses the subscription to 'b' (0x80)"]
    both.from_here(SubAck(65_535, (0x80,)))
    assert both.relay.complaints[1:] == ["this broker refuses the subscription (0x80)"]


def test_nothing_is_subscribed_to_where_nothing_comes_in() -> None:
    both = Both(a_bridge(rules="a/# out 2"))
    both.relay.start(mark=False)
    both.there()
    both.from_there(ConnAck(True, 0))
    assert both.there() == []


# Messages


@VERSIONS
def test_messages_go_out_and_acknowledgements_come_back(version: Version) -> None:
    both = up(a_bridge(version))
    both.from_here(
        Publish("a/x", b"0", 0, True),
        Publish("a/x", b"1", 1, packet_id=7, duplicate=True),
        Publish("a/y", b"2", 2, packet_id=8),
    )
    assert both.there() == [
        Publish("there/a/x", b"0", 0, True),
        Publish("there/a/x", b"1", 1, packet_id=7, duplicate=True),
        Publish("there/a/y", b"2", 2, packet_id=8),
    ]
    both.from_there(PubAck(7), PubRec(8))
    assert both.here() == [PubAck(7), PubRec(8)]
    both.from_here(PubRel(8))
    assert both.there() == [PubRel(8)]
    both.from_there(PubComp(8))
    assert both.here() == [PubComp(8)]
    assert (both.relay.sent, both.relay.received, both.relay.dropped) == (3, 0, 0)


@VERSIONS
def test_messages_come_in_and_acknowledgements_go_back(version: Version) -> None:
    both = up(a_bridge(version))
    both.from_there(
        Publish("there/a/x", b"0", 0, True),
        Publish("there/a/x", b"1", 1, packet_id=7),
        Publish("there/a/y", b"2", 2, packet_id=8, duplicate=True),
    )
    assert both.there() == []
    assert both.here() == [
        Publish("a/x", b"0", 0, True),
        Publish("a/x", b"1", 1, packet_id=7),
        Publish("a/y", b"2", 2, packet_id=8, duplicate=True),
    ]
    both.from_here(PubAck(7), PubRec(8))
    assert both.there() == [PubAck(7), PubRec(8)]
    both.from_there(PubRel(8))
    assert both.here() == [PubRel(8)]
    both.from_here(PubComp(8))
    assert both.there() == [PubComp(8)]
    assert (both.relay.sent, both.relay.received, both.relay.dropped) == (0, 3, 0)


def test_properties_go_along_but_for_those_of_a_connection() -> None:
    told = Properties(content_type="t", user_properties=(("k", "v"),), message_expiry_interval=9)
    one = Properties(
        content_type="t",
        user_properties=(("k", "v"),),
        message_expiry_interval=9,
        subscription_identifiers=(4,),
        topic_alias=3,
    )
    both = up(a_bridge())
    both.from_here(Publish("a/x", b"", properties=one))
    assert both.there() == [Publish("there/a/x", b"", properties=told)]
    both.from_there(Publish("there/a/x", b"", properties=one))
    assert both.here() == [Publish("a/x", b"", properties=told)]
    before_5 = up(a_bridge(V311))
    before_5.from_here(Publish("a/x", b"", properties=one))
    assert before_5.there() == [Publish("there/a/x", b"")]


@VERSIONS
def test_what_no_rule_lets_through_is_acknowledged_by_the_bridge(version: Version) -> None:
    """Messages that were queued under earlier settings, and what a broker there sends unasked."""
    both = up(a_bridge(version))
    both.from_here(Publish("b", b""), Publish("b", b"", 1, packet_id=7), Publish("b", b"", 2, packet_id=8))
    assert both.there() == []
    assert both.here() == [PubAck(7), PubRec(8)]
    both.from_here(PubRel(8))
    assert (both.there(), both.here()) == ([], [PubComp(8)])
    both.from_there(Publish("b", b""), Publish("b", b"", 1, packet_id=7), Publish("b", b"", 2, packet_id=8))
    assert both.here() == []
    assert both.there() == [PubAck(7), PubRec(8)]
    both.from_there(PubRel(8))
    assert (both.there(), both.here()) == ([PubComp(8)], [])
    # Only for that one: the next one with this packet identifier goes over again.
    both.from_here(PubRel(8))
    both.from_there(PubRel(8))
    assert (both.there(), both.here()) == ([PubRel(8)], [PubRel(8)])
    assert both.relay.dropped == 6
    assert len(both.relay.complaints) == 6


@VERSIONS
def test_messages_that_are_too_large_do_not_stop_the_others(version: Version) -> None:
    both = up(a_bridge(version), largest_here=40)
    both.from_there(
        Publish("there/a/x", bytes(60), 1, packet_id=7), Publish("there/a/x", b"", 1, packet_id=8)
    )
    assert both.here() == [Publish("a/x", b"", 1, packet_id=8)]
    assert both.there() == [PubAck(7)]
    assert both.relay.complaints == [
        f"a message for 'there/a/x' there, of {69 + (version == V5)} bytes, too large here"
    ]
    five = up(a_bridge(V5), there=Properties(maximum_packet_size=40))
    five.from_here(Publish("a/x", bytes(60), 2, packet_id=7), Publish("a/x", b"", 1, packet_id=8))
    assert five.there() == [Publish("there/a/x", b"", 1, packet_id=8)]
    assert five.here() == [PubRec(7)]
    assert five.relay.complaints == ["a message for 'a/x', of 76 bytes, too large there"]


@VERSIONS
def test_no_more_are_under_way_than_the_other_broker_takes(version: Version) -> None:
    both = up(a_bridge(version, max_inflight=2))
    both.from_here(
        *[Publish("a/x", b"%d" % n, 2 - n % 2, packet_id=n) for n in range(1, 6)], Publish("a/x", b"0")
    )
    sent = both.there()
    assert [each.packet_id for each in sent if isinstance(each, Publish)] == [1, 2, 0]
    both.from_there(PubRec(2))
    both.from_here(PubRel(2))
    assert both.there() == [PubRel(2)]  # not settled yet
    both.from_there(PubComp(2))
    assert [each.packet_id for each in both.there() if isinstance(each, Publish)] == [3]
    both.from_there(PubAck(1), PubAck(3))
    assert [each.packet_id for each in both.there() if isinstance(each, Publish)] == [4, 5]
    assert both.here() == [PubRec(2), PubComp(2), PubAck(1), PubAck(3)]
    if version == V5:
        both.from_here(Publish("a/x", b"", 1, packet_id=6))
        both.from_there(PubRec(4, 0x97))
        assert [each.packet_id for each in both.there() if isinstance(each, Publish)] == [6]


def test_messages_that_are_refused_are_told_and_done() -> None:
    both = up(a_bridge())
    both.from_here(Publish("a/x", b"", 1, packet_id=1), Publish("a/x", b"", 2, packet_id=2))
    why = Properties(reason_string="full")
    both.from_there(PubAck(1, 0x97, why), PubRec(2, 0x87))
    assert both.here() == [PubAck(1, 0x97), PubRec(2, 0x87)]
    both.from_there(Publish("there/a/x", b"", 1, packet_id=3), Publish("there/a/x", b"", 2, packet_id=4))
    both.there()
    both.from_here(PubAck(3, 0x99), PubRec(4, 0x99))
    assert both.there() == [PubAck(3, 0x99), PubRec(4, 0x99)]
    assert both.relay.dropped == 4
    assert both.relay.complaints == [
        "the other broker refuses a message (0x97): full",
        "the other broker refuses a message (0x87)",
        "this broker refuses a message (0x99)",
        "this broker refuses a message (0x99)",
    ]
    both.from_there(PubComp(9, 0x92))  # unknown there: an end as any other
    assert both.here()[-1:] == [PubComp(9, 0x92)]
    assert both.relay.dropped == 4


def test_a_broker_with_a_lower_qos() -> None:
    """3.2.2.3.4: what was queued with more goes with what the broker there has."""
    one = up(a_bridge(), there=Properties(maximum_qos=1))
    one.from_here(Publish("a/x", b"", 2, packet_id=7), Publish("a/x", b"", 1, packet_id=8))
    assert one.there() == [
        Publish("there/a/x", b"", 1, packet_id=7),
        Publish("there/a/x", b"", 1, packet_id=8),
    ]
    one.from_there(PubAck(7), PubAck(8))
    assert one.here() == [PubRec(7), PubAck(8)]
    one.from_here(PubRel(7))
    assert (one.there(), one.here()) == ([], [PubComp(7)])
    none = up(a_bridge(), there=Properties(maximum_qos=0))
    none.from_here(Publish("a/x", b"", 2, packet_id=7, duplicate=True), Publish("a/x", b"", 1, packet_id=8))
    assert none.there() == [Publish("there/a/x", b""), Publish("there/a/x", b"")]
    assert none.here() == [PubRec(7), PubAck(8)]
    both = Both(a_bridge(), Here(True))
    both.relay.start(mark=False)
    both.from_there(ConnAck(True, 0, Properties(maximum_qos=1)))
    assert both.here()[1] == Subscribe(65_535, (SubscriptionRequest("a/#", 1, True, True, 1),))


def test_a_broker_without_retained_messages() -> None:
    """[MQTT-3.2.2-14]"""
    both = up(a_bridge(notifications=True), there=Properties(retain_available=0))
    both.from_here(Publish("a/x", b"", 0, True))
    assert both.there() == [Publish("there/a/x", b"")]


# Notifications and pings


@VERSIONS
def test_notifications(version: Version) -> None:
    both = Both(a_bridge(version, "a/# out", notifications=True))
    both.relay.start(mark=False)
    (connect,) = both.there()
    assert isinstance(connect, Connect)
    assert connect.will == Will(STATE, b"0", 1, True)
    both.from_there(ConnAck(True, 0))
    assert both.there() == [Publish(STATE, b"1", 0, True)]
    both.relay.stop()
    assert both.there() == [Publish(STATE, b"0", 0, True), Disconnect()]


@pytest.mark.parametrize("more", [{"notifications": False}, {"notifications_local_only": True}])
def test_no_notifications_there(more: dict[str, bool]) -> None:
    given: dict[str, Any] = {"notifications": True, **more}
    both = Both(a_bridge(V5, "a/# out", **given))
    both.relay.start(mark=False)
    (connect,) = both.there()
    assert isinstance(connect, Connect)
    assert connect.will is None
    both.from_there(ConnAck(True, 0))
    both.relay.stop()
    assert both.there() == [Disconnect()]


def test_pings() -> None:
    both = up(a_bridge())
    both.relay.ping()
    both.relay.ping_here()
    assert (both.there(), both.here()) == ([PingReq()], [PingReq()])
    both.from_there(PingResp(), UnsubAck(1, (0,)))
    both.from_here(PingResp())
    assert (both.there(), both.here()) == ([], [])

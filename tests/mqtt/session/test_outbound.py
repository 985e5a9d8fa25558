"""Deliveries under way: order, window, expiry, size, aliases, what is in the log only, restarts. The exchanges are in
test_states, all of it together in test_lossy_connections."""

from __future__ import annotations

import pytest

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import Version
from leafcuttr_mqtt.session.limits import MOST_IN_FLIGHT, ClientLimits, QueueLimits
from leafcuttr_mqtt.session.outbound import Outbound, packet_id_of
from leafcuttr_mqtt.session.sizes import publish_size
from leafcuttr_mqtt.session.types import Delivery, Drop, DropReason

V5 = ClientLimits(Version.V5)


def outbound(client: ClientLimits | None = V5, **limits: int) -> Outbound:
    new = Outbound(QueueLimits(**limits))
    if client is not None:
        new.connect(client)
    return new


def delivery(
    qos: int = 1, topic: str = "a", *, size: int = 10, offset: int = -1, expires_ms: int | None = None
) -> Delivery:
    return Delivery(Message(topic, b"m", qos, expires_ms=expires_ms), qos, False, (), size, offset)


def offer(to: Outbound, *qos: int) -> list[Delivery]:
    found = [delivery(each) for each in qos]
    for each in found:
        assert list(to.offer(each)) == []
    return found


def taken(of: Outbound, now_ms: int = 0, **limit: int) -> list[Delivery]:
    return [each.delivery for each in of.take(now_ms, **limit)]


def test_all_is_sent_in_the_order_in_which_it_was_offered() -> None:
    """[MQTT-4.6.0-5], [MQTT-4.6.0-6]"""
    out = outbound()
    offered = offer(out, 0, 1, 0, 0, 2, 1, 0)
    assert out.messages == 7
    assert out.bytes == 70
    assert taken(out) == offered
    assert (out.messages, out.bytes, out.under_way) == (0, 0, 3)
    assert taken(out) == []


def test_packet_identifiers_follow_from_sequences() -> None:
    """[MQTT-2.2.1-4], [MQTT-2.2.1-2]: none with QoS 0."""
    out = outbound()
    offer(out, 1, 0, 2)
    assert [(each.packet_id, each.duplicate) for each in out.take(0)] == [(1, False), (0, False), (2, False)]
    assert [packet_id_of(each) for each in (0, 65_534, 65_535)] == [1, 65_535, 1]


def test_a_packet_identifier_is_not_used_twice_at_a_time() -> None:
    """[MQTT-2.2.1-4]"""
    for released in (False, True):
        out = outbound(max_inflight=3)
        (first,) = offer(out, 2)
        out.take(0)
        if released:
            out.pubrec(1)
        out.next_sequence = MOST_IN_FLIGHT - 1
        before, same, after = offer(out, 1, 1, 1)
        assert packet_id_of(same.sequence) == packet_id_of(first.sequence) == 1
        assert taken(out) == [before]
        zero = delivery(0)
        out.offer(zero)
        assert taken(out) == [zero]
        if not released:
            out.pubrec(1)
        assert taken(out) == []
        out.pubcomp(1)
        assert taken(out) == [same, after]


@pytest.mark.parametrize(
    ("maximum", "inflight", "window"), [(2, 100, 2), (65_535, 3, 3), (5, 5, 5), (1, 1, 1)]
)
def test_the_window(maximum: int, inflight: int, window: int) -> None:
    """[MQTT-3.3.4-9], 4.9: the receive maximum of the client, or what the server has under way at most."""
    out = outbound(ClientLimits(Version.V5, maximum), max_inflight=inflight)
    offered = offer(out, *[1, 2] * 5)
    assert taken(out) == offered[:window]
    assert taken(out) == []
    # PUBREC does not make place, PUBCOMP does; PUBACK does.
    if window > 1:
        out.pubrec(2)
        assert taken(out) == []
        out.pubcomp(2)
        assert taken(out) == [offered[window]]
    out.puback(1)
    assert len(taken(out)) == 1


def test_a_pubrec_with_an_error_makes_place() -> None:
    out = outbound(ClientLimits(Version.V5, 1))
    offered = offer(out, 2, 2)
    out.take(0)
    assert out.pubrec(1, 0x97) is offered[0]
    assert taken(out) == [offered[1]]
    # After PUBREC with success as well.
    out.pubrec(2)
    assert out.pubrec(2, 0x97) is offered[1]
    assert out.under_way == 0


def test_qos_0_overtakes_what_has_to_wait() -> None:
    """4.9: it is not subject to the window."""
    out = outbound(ClientLimits(Version.V5, 1))
    one, two, zero, three, last = offer(out, 1, 1, 0, 1, 0)
    assert taken(out) == [one, zero, last]
    out.puback(1)
    assert taken(out) == [two]
    out.puback(2)
    assert taken(out) == [three]


def test_no_more_than_a_connection_takes() -> None:
    out = outbound()
    offered = offer(out, 1, 0, 1, 0)
    assert taken(out, max_bytes=0) == []
    assert taken(out, max_bytes=1) == offered[:1]
    assert taken(out, max_bytes=20) == offered[1:3]
    assert taken(out) == offered[3:]


def test_without_a_connection_nothing_is_sent_and_qos_0_is_not_kept() -> None:
    out = outbound(None)
    assert list(out.offer(delivery(0))) == []
    assert out.messages == 0
    (one,) = offer(out, 1)
    assert taken(out) == []
    assert out.loads() == []
    out.connect(V5)
    offer(out, 0)
    out.disconnect()
    assert out.messages == 1
    out.connect(V5)
    assert taken(out) == [one]


# Sent again.


def test_what_is_unacknowledged_is_sent_again_in_its_order() -> None:
    """[MQTT-4.4.0-1], [MQTT-3.3.1-1]"""
    out = outbound()
    offered = offer(out, 1, 2, 1, 2, 1)
    out.take(0)
    out.puback(3)
    out.pubrec(4)
    out.disconnect()
    late = offer(out, 1)
    assert out.connect(V5) == [4]
    again = out.take(0)
    assert [each.delivery for each in again] == [offered[0], offered[1], offered[4], *late]
    assert [each.duplicate for each in again] == [True, True, True, False]
    assert [each.packet_id for each in again] == [1, 2, 5, 6]
    assert out.sent == 6


def test_what_is_sent_again_goes_through_the_window_of_the_new_connection() -> None:
    out = outbound()
    offered = offer(out, 1, 1, 2, 2, 1)
    out.take(0)
    out.pubrec(4)
    out.disconnect()
    assert out.connect(ClientLimits(Version.V5, 2)) == [4]
    new = offer(out, 1, 0)
    # One of two places is that of the released one, which awaits PUBCOMP.
    first = out.take(0)
    assert [(each.delivery, each.duplicate) for each in first] == [(offered[0], True), (new[1], False)]
    out.pubcomp(4)
    assert taken(out) == [offered[1]]
    out.puback(1)
    assert taken(out) == [offered[2]]
    # One that was not sent again yet is acknowledged all the same: the client had it.
    assert out.puback(5) is offered[4]
    out.puback(2)
    assert taken(out) == [new[0]]
    out.pubrec(3)
    out.pubcomp(3)
    assert taken(out) == []


def test_what_was_sent_before_does_not_expire() -> None:
    """[MQTT-3.3.2-5], [MQTT-3.3.2-6]"""
    out = outbound()
    one = delivery(1, expires_ms=1000)
    out.offer(one)
    assert [each.expiry_s for each in out.take(0)] == [1]
    out.disconnect()
    out.connect(V5)
    (again,) = out.take(5000)
    assert (again.delivery, again.duplicate, again.expiry_s) == (one, True, 0)


# Expiry, sizes, aliases.


@pytest.mark.parametrize(
    ("now_ms", "left"), [(0, 10), (1, 10), (999, 10), (1000, 9), (9_000, 1), (9_999, 1), (10_000, None)]
)
def test_the_message_expiry_interval_is_counted_down(now_ms: int, left: int | None) -> None:
    """[MQTT-3.3.2-5], [MQTT-3.3.2-6]"""
    for qos in (0, 1, 2):
        for version in (Version.V3_1_1, Version.V5):
            out = outbound(ClientLimits(version))
            one = delivery(qos, expires_ms=10_000)
            out.offer(one)
            sendings = out.take(now_ms)
            if left is None:
                assert sendings == []
                assert out.drops == [Drop(one, DropReason.EXPIRED)]
                assert out.under_way == 0
            else:
                assert [each.expiry_s for each in sendings] == [left if version == Version.V5 else None]


def test_what_waits_expires() -> None:
    out = outbound(None)
    offered = [delivery(1, expires_ms=each, size=each) for each in (5, 10, 15)]
    for each in [*offered, delivery(1)]:
        out.offer(each)
    assert out.expire(4) == []
    assert out.expire(10) == [Drop(each, DropReason.EXPIRED) for each in offered[:2]]
    assert (out.messages, out.bytes) == (2, 25)


@pytest.mark.parametrize("version", [Version.V3_1_1, Version.V5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_the_maximum_packet_size(version: Version, qos: int) -> None:
    """[MQTT-3.1.2-24], [MQTT-3.1.2-25]: what is too large is done with, and what is behind it goes on."""
    size = publish_size(Message("a", b"m"), v5=version == Version.V5, qos=qos)
    for largest, fits in ((size, True), (size - 1, False)):
        out = outbound(ClientLimits(version, maximum_packet_size=largest))
        (one,) = offer(out, qos)
        assert taken(out) == ([one] if fits else [])
        assert out.drops == ([] if fits else [Drop(one, DropReason.TOO_LARGE)])
        assert out.under_way == (1 if fits and qos else 0)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_what_the_client_may_not_have(qos: int) -> None:
    """It is done with, and what is behind it goes on."""
    out = outbound()
    one, two = delivery(qos, "secret"), delivery(qos, "free")
    out.may_receive = lambda topic: topic == "free"
    out.offer(one)
    out.offer(two)
    assert taken(out) == [two]
    assert out.drops == [Drop(one, DropReason.NOT_ALLOWED)]
    assert out.under_way == (1 if qos else 0)


def test_what_is_sent_again_may_be_for_another_client() -> None:
    out = outbound()
    one, two = delivery(1, "secret"), delivery(1, "free")
    out.offer(one)
    out.offer(two)
    assert taken(out) == [one, two]
    out.disconnect()
    out.may_receive = lambda topic: topic == "free"
    out.connect(ClientLimits(Version.V5))
    assert taken(out) == [two]
    assert out.drops == [Drop(one, DropReason.NOT_ALLOWED)]
    assert out.under_way == 1


def test_what_is_sent_again_may_be_too_large_for_the_new_connection() -> None:
    out = outbound()
    one, two = delivery(1, "a" * 100), delivery(1)
    out.offer(one)
    out.offer(two)
    out.take(0)
    out.disconnect()
    out.connect(ClientLimits(Version.V5, maximum_packet_size=50))
    assert taken(out) == [two]
    assert out.drops == [Drop(one, DropReason.TOO_LARGE)]
    assert out.under_way == 1


def test_topic_aliases() -> None:
    """3.3.2.3.4, [MQTT-3.1.2-26], [MQTT-3.1.2-27]; of 5.0 only"""
    out = outbound(ClientLimits(Version.V5, topic_aliases=1))
    for topic in ("topic/1", "topic/2", "topic/1"):
        out.offer(delivery(0, topic))
    sendings = out.take(0)
    assert [(each.alias, each.topic_left_out) for each in sendings] == [(1, False), (0, False), (1, True)]
    out.disconnect()
    out.connect(ClientLimits(Version.V5, topic_aliases=1))
    out.offer(delivery(0, "topic/2"))
    assert [(each.alias, each.topic_left_out) for each in out.take(0)] == [(1, False)]
    out.connect(ClientLimits(Version.V3_1_1, topic_aliases=1))
    out.offer(delivery(0, "topic/2"))
    assert [each.alias for each in out.take(0)] == [0]


def test_an_alias_is_set_only_by_a_packet_that_is_sent() -> None:
    message = Message("topic/1", b"m")
    size = publish_size(message, v5=True, qos=0)
    for largest, alias in ((size - 1, None), (size, 0), (size + 2, 0), (size + 3, 1)):
        out = outbound(ClientLimits(Version.V5, maximum_packet_size=largest, topic_aliases=1))
        out.offer(Delivery(message, 0, False, (), 8))
        assert [each.alias for each in out.take(0)] == ([] if alias is None else [alias])
        short = Delivery(Message("topic/1", b""), 0, False, (), 7)
        out.offer(short)
        assert [each.topic_left_out for each in out.take(0)] == [alias == 1]


# In the log only.


def test_what_is_in_the_log_is_loaded_when_its_turn_comes() -> None:
    out = outbound(None, max_inflight=2, memory_bytes=25)
    messages = [Message("a", b"%d" % number) for number in range(6)]
    for number, message in enumerate(messages):
        out.offer(Delivery(message, 1, False, (), 10, number))
    out.connect(V5)
    out.take(0)
    out.disconnect()
    out.connect(V5)
    (zero,) = offer(out, 0)
    assert taken(out) == [zero], "it overtakes what is loading"
    for count in (0, 2, 4):
        loads = out.loads()
        assert [each.offset for each in loads] == [count, count + 1]
        assert out.loads() == [], "each once"
        out.loaded(loads[1], messages[loads[1].offset])
        assert taken(out) == [], "in their order"
        out.loaded(loads[0], messages[loads[0].offset])
        sendings = out.take(0)
        assert [each.delivery.message for each in sendings] == messages[count : count + 2]
        assert [each.duplicate for each in sendings] == [count == 0, False]
        for each in sendings:
            out.puback(each.packet_id)
    assert out.loads() == []
    assert out.messages == 0


def test_no_more_is_loaded_than_is_held_in_memory() -> None:
    out = outbound(None, memory_bytes=25)
    for number in range(6):
        out.offer(Delivery(None, 1, False, (), 10, number))
    out.connect(V5)
    loads = out.loads()
    assert [each.offset for each in loads] == [0, 1, 2]
    for each in loads:
        out.loaded(each, Message("a", b""))
    assert out.memory_is_full
    assert out.loads() == []
    assert len(taken(out)) == 3
    assert [each.offset for each in out.loads()] == [3, 4, 5]
    assert not out.memory_is_full
    huge = outbound(memory_bytes=5)
    huge.offer(Delivery(None, 1, False, (), 10, 0))
    assert len(huge.loads()) == 1, "one at least"


def test_what_the_log_has_no_more_is_given_up() -> None:
    out = outbound(max_inflight=2)
    for number in range(3):
        out.offer(Delivery(None, 1, False, (), 10, number))
    one, two = out.loads()
    out.loaded(one, None)
    assert out.loads() == [], "not again"
    out.loaded(two, Message("a", b""))
    assert taken(out) == [two]
    assert out.drops == [Drop(one, DropReason.LOST)]
    out.drops.clear()
    (three,) = out.loads()
    out.loaded(three, Message("a", b""))
    out.take(0)
    # The same for one that was sent.
    two.offset = 1
    out.disconnect()
    out.connect(V5)
    first, second = out.loads()
    assert (first, second) == (two, three)
    out.loaded(two, None)
    out.loaded(three, Message("a", b""))
    assert [(each.delivery, each.duplicate) for each in out.take(0)] == [(three, True)]
    assert out.drops == [Drop(two, DropReason.LOST)]
    assert out.under_way == 1


def test_what_is_loaded_too_late_is_ignored() -> None:
    out = outbound(max_inflight=2)
    for number in range(2):
        out.offer(Delivery(None, 1, False, (), 10, number))
    one, _ = out.loads()
    out.disconnect()
    out.loaded(one, Message("a", b""))
    assert one.message is None
    out.connect(V5)
    again = out.loads()
    assert [each.offset for each in again] == [0, 1], "as the answer may never come"
    # If it does come, it is of the log of before: what was sent for then is another object.
    out.loaded(one, Message("a", b"1"))
    for each in again:
        out.loaded(each, Message("a", b"2"))
    assert [each.payload for each in (sending.delivery.message for sending in out.take(0)) if each] == [
        b"2",
        b"2",
    ]
    assert out._waiting.memory == 0
    sent = outbound()
    (gone,) = offer(sent, 1)
    gone.offset = 0
    sent.take(0)
    sent.disconnect()
    assert gone.message is None
    sent.connect(V5)
    assert sent.loads() == [gone]
    assert sent.puback(1) is gone
    sent.loaded(gone, Message("a", b""))
    assert gone.message is None
    assert taken(sent) == []


def test_the_log_has_lost_its_beginning() -> None:
    out = outbound(memory_bytes=15)
    sent = Delivery(Message("a", b""), 1, False, (), 10, 0)
    out.offer(sent)
    out.take(0)
    out.disconnect()
    for number in (1, 2, 3):
        out.offer(Delivery(Message("a", b""), 1, False, (), 10, number))
    assert out.lose(3, {0: 4, 1: 5, 2: 6, 3: 3}.__getitem__) == [], "they were moved"
    drops = out.lose(3, int)
    # The first one that waits is still in memory.
    assert [(each.delivery.offset, each.reason) for each in drops] == [
        (2, DropReason.LOST),
        (0, DropReason.LOST),
    ]
    assert (out.messages, out.under_way) == (2, 0)


# Bounds.


def test_the_oldest_with_qos_0_go_first_and_then_the_oldest() -> None:
    out = outbound(ClientLimits(Version.V5, 1), max_messages=4)
    offered = offer(out, 1, 0, 2, 0)
    assert list(out.offer(third := delivery(1))) == [Drop(offered[1], DropReason.QUEUE_FULL)]
    assert list(out.offer(delivery(1))) == [Drop(offered[3], DropReason.QUEUE_FULL)]
    assert list(out.offer(delivery(1))) == [Drop(offered[0], DropReason.QUEUE_FULL)]
    zero = delivery(0)
    assert list(out.offer(zero)) == [Drop(zero, DropReason.QUEUE_FULL)], "it is the oldest of its kind"
    assert taken(out) == [offered[2]]
    # What is under way is not dropped, and does not count.
    assert list(out.offer(delivery(1))) == []
    assert list(out.offer(delivery(1))) == [Drop(third, DropReason.QUEUE_FULL)]


def test_the_bound_of_bytes() -> None:
    out = outbound(None, max_bytes=30)
    offered = offer(out, 1, 1, 1)
    assert list(out.offer(delivery(size=11))) == [Drop(each, DropReason.QUEUE_FULL) for each in offered[:2]]
    assert (out.messages, out.bytes) == (2, 21)
    huge = delivery(size=31)
    assert list(out.offer(huge)) == [Drop(huge, DropReason.QUEUE_FULL)], "alone too large: nothing else goes"
    assert huge.sequence == 4
    assert (out.messages, out.bytes) == (2, 21)


# Sessions and restarts.


def test_sequences_are_reserved_for_the_log() -> None:
    out = outbound()
    first = Delivery(Message("a", b""), 1, False, (), 10, 5, out.number())
    second = Delivery(Message("a", b""), 1, False, (), 10, 6, out.number())
    out.offer(first)
    out.offer(second)
    offer(out, 1)
    assert [each.sequence for each in taken(out)] == [0, 1, 2]


def test_what_a_session_had_at_its_end() -> None:
    out = outbound(ClientLimits(Version.V5, 2))
    offered = offer(out, 1, 2, 1, 1)
    out.take(0)
    out.pubrec(2)
    ends = out.clear()
    assert sorted(each.delivery.sequence for each in ends) == [0, 1, 2, 3]
    assert {each.reason for each in ends} == {DropReason.SESSION_ENDED}
    assert {id(each.delivery) for each in ends} == {id(each) for each in offered}
    assert (out.messages, out.under_way, out.connected) == (0, 0, False)


def test_a_message_with_qos_0_may_pass() -> None:
    out = outbound()
    assert out.is_clear
    offer(out, 1)
    assert not out.is_clear
    out.take(0)
    assert out.is_clear
    out.disconnect()
    assert not out.is_clear
    for client in (
        ClientLimits(Version.V5, maximum_packet_size=9),
        ClientLimits(Version.V5, topic_aliases=1),
    ):
        assert not outbound(client).is_clear
    assert outbound(ClientLimits()).is_clear


@pytest.mark.parametrize("was_connected", [False, True])
def test_a_restart(was_connected: bool) -> None:
    limits = QueueLimits(max_inflight=3, memory_bytes=10**6)
    out = Outbound(limits)
    out.connect(ClientLimits(Version.V5, 3))
    messages = [Message("a", b"%d" % number) for number in range(7)]
    for number, message in enumerate(messages):
        qos = number % 2 + 1
        out.offer(Delivery(message, qos, qos == 2, (number,), 10, number + 100))
    out.offer(Delivery(Message("a", b"in memory only"), 1, False, (), 10))
    out.take(0)
    out.pubrec(2)
    snapshot = out.snapshot()
    assert snapshot["released"] == [1]
    assert [each[0] for each in snapshot["deliveries"]] == [0, 2, 3, 4, 5, 6]
    assert (snapshot["sent"], snapshot["next_sequence"]) == (3, 8)
    new = Outbound.restored(limits, snapshot, was_connected=was_connected)
    assert new.snapshot()["deliveries"] == snapshot["deliveries"]
    assert (new.messages, new.bytes, new.next_sequence) == (4, 40, 8)
    assert new.connect(V5) == [2]
    for each in new.loads():
        new.loaded(each, messages[each.sequence])
    again = new.take(0)
    assert [(each.packet_id, each.duplicate) for each in again] == [(1, True), (3, True)]
    assert again[0].delivery == Delivery(messages[0], 1, False, (0,), 10, 100, 0)
    (late,) = offer(new, 1)
    assert late.sequence == 8


def test_after_a_kill_packet_identifiers_are_not_used_twice() -> None:
    """One delivery is 65,535 behind another one that was never acknowledged."""
    limits = QueueLimits(max_inflight=5)
    sequences = [0, 1, MOST_IN_FLIGHT, MOST_IN_FLIGHT + 2]
    new = Outbound.restored(
        limits,
        {
            "next_sequence": MOST_IN_FLIGHT + 3,
            "sent": 0,
            "deliveries": [(each, 1, False, (), 10, each) for each in sequences],
            "released": [],
        },
        was_connected=True,
    )
    assert (new.under_way, new.messages, new.sent) == (2, 2, 2)
    new.connect(V5)
    found: list[int] = []
    for _ in range(3):
        for each in new.loads():
            new.loaded(each, Message("a", b""))
        for sending in new.take(0):
            found.append(sending.delivery.sequence)
            new.puback(sending.packet_id)
    assert found == sequences
    assert new._waiting.memory == 0


def test_after_a_kill_the_first_ones_are_taken_for_sent() -> None:
    limits = QueueLimits(max_inflight=3)
    deliveries = [(number, 1, False, (), 10, number) for number in range(5)]
    for was_connected, duplicates in ((True, [True, True, False]), (False, [False, False, False])):
        new = Outbound.restored(
            limits,
            {"next_sequence": 5, "sent": 0, "deliveries": list(deliveries), "released": [7]},
            was_connected=was_connected,
        )
        new.connect(V5)
        found: list[bool] = []
        for _ in range(3):
            for each in new.loads():
                new.loaded(each, Message("a", b""))
            for sending in new.take(0):
                found.append(sending.duplicate)
                new.puback(sending.packet_id)
        assert found[:3] == duplicates
        assert len(found) == 5

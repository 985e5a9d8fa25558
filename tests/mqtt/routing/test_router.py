"""From a message to deliveries."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import NO_PROPERTIES
from leafcuttr_mqtt.routing.clients import Client
from leafcuttr_mqtt.routing.router import Receiver, Router, message_size, properties_of
from leafcuttr_mqtt.session.types import DropReason, Subscription
from support.mqtt_routing import Noted, Rig


def taken(client: Client) -> list[tuple[str, bytes, int, bool, tuple[int, ...]]]:
    return [
        (
            each.delivery.message.topic,
            each.delivery.message.payload,
            each.delivery.qos,
            each.delivery.retain,
            each.delivery.identifiers,
        )  # type: ignore[union-attr]
        for each in client.session.outbound.take(0)
    ]


def subscribe(rig: Rig, client: Client, *subscriptions: Subscription) -> None:
    for each in subscriptions:
        name = each.filter if each.share is None else f"$share/{each.share}/{each.filter}"
        rig.hub.subscribe(client, name, each)


def test_overlapping_subscriptions_are_one_delivery(rig: Rig) -> None:
    client, _, _ = rig.connect("c")
    subscribe(
        rig,
        client,
        Subscription("a/#", 1, identifier=1),
        Subscription("a/+", 2, retain_as_published=True, identifier=2),
        Subscription("+/b", 0),
    )
    assert rig.hub.publish(Message("a/b", b"x", 2, True), None) == 1
    assert taken(client) == [("a/b", b"x", 2, True, (1, 2))]


def test_no_local_leaves_out_the_subscriptions_that_say_so(rig: Rig) -> None:
    client, _, _ = rig.connect("c")
    subscribe(rig, client, Subscription("a", 2, no_local=True, identifier=1))
    assert rig.hub.publish(Message("a", b"own", 1), client) == 0
    subscribe(rig, client, Subscription("#", 1, identifier=2))
    assert rig.hub.publish(Message("a", b"own", 2), client) == 1
    assert rig.hub.publish(Message("a", b"other", 2), None) == 1
    assert taken(client) == [("a", b"own", 1, False, (2,)), ("a", b"other", 2, False, (1, 2))]


def test_a_message_with_qos_0_goes_out_past_the_queue_where_nothing_waits(rig: Rig) -> None:
    client, noted, _ = rig.connect("c")
    subscribe(rig, client, Subscription("a", 1))
    rig.hub.publish(Message("a", b"1", 0), None)
    noted.fluent = False
    rig.hub.publish(Message("a", b"2", 0), None)
    assert noted.frames == [b"\x30\x05\0\1a\x001"]
    assert [each[1] for each in taken(client)] == [b"2"]


def test_who_is_away_gets_qos_1_only_and_only_with_a_session(rig: Rig) -> None:
    client, noted, _ = rig.connect("c", expiry_s=100)
    subscribe(rig, client, Subscription("a", 1))
    rig.hub.disconnected(client, noted)
    rig.hub.publish(Message("a", b"0", 0), None)
    rig.hub.publish(Message("a", b"1", 1), None)
    again, _, present = rig.connect("c", clean=False, expiry_s=100)
    assert present and again is client
    assert [each[1] for each in taken(client)] == [b"1"]


def test_a_change_of_a_subscription_counts_for_the_next_message(rig: Rig) -> None:
    client, _, _ = rig.connect("c")
    subscribe(rig, client, Subscription("a", 1))
    rig.hub.publish(Message("a", b"1", 2), None)
    subscribe(rig, client, Subscription("a", 2))
    rig.hub.publish(Message("a", b"2", 2), None)
    assert rig.hub.unsubscribe(client, "a")
    assert rig.hub.publish(Message("a", b"3", 2), None) == 0
    assert [(each[1], each[2]) for each in taken(client)] == [(b"1", 1), (b"2", 2)]


def test_a_shared_subscription_beside_one_that_is_not(rig: Rig) -> None:
    one, _, _ = rig.connect("1")
    other, _, _ = rig.connect("2")
    subscribe(rig, one, Subscription("a", 1, "g", identifier=5), Subscription("a", 0))
    subscribe(rig, other, Subscription("a", 2, "g", retain_as_published=True))
    assert rig.hub.publish(Message("a", b"1", 1), None) == 2
    assert rig.hub.publish(Message("a", b"2", 2, True), None) == 2
    assert taken(one) == [("a", b"1", 1, False, (5,))]
    assert taken(other) == [("a", b"2", 2, True, ())]


def test_what_is_above_the_bounds_is_dropped_and_counted(rig: Rig) -> None:
    client, noted, _ = rig.connect("c", expiry_s=100)
    subscribe(rig, client, Subscription("a", 1))
    rig.hub.disconnected(client, noted)
    for number in range(15):
        rig.hub.publish(Message("a", b"%d" % number, 1), None)
    assert rig.hub.drops[DropReason.QUEUE_FULL] == 5
    rig.connect("c", clean=False, expiry_s=100)
    assert [int(each[1]) for each in taken(client)] == list(range(5, 15))


def test_properties_as_a_subscriber_gets_them() -> None:
    assert properties_of(Message("a", b""), 5) is NO_PROPERTIES
    assert properties_of(Message("a", b"", expires_ms=1900), 1000).message_expiry_interval == 1
    assert properties_of(Message("a", b"", expires_ms=900), 1000).message_expiry_interval == 0
    plain, long = (
        Message("a", b"12"),
        Message("a", b"12", user_properties=(("k", "vv"),), correlation_data=b"123"),
    )
    assert message_size(long) - message_size(plain) == 6


def test_a_connection_is_told_of_what_waits(rig: Rig) -> None:
    client, noted, _ = rig.connect("c")
    subscribe(rig, client, Subscription("a", 1))
    before = noted.touches
    rig.hub.publish(Message("a", b"1", 1), None)
    assert noted.touches > before
    assert isinstance(noted, Noted)


@pytest.mark.long
def test_plans_of_many_topics_with_many_subscribers_are_bounded(rig: Rig) -> None:
    """Each may have as many receivers as there are subscribers, and clients choose the topics."""
    for number in range(100):
        client, _, _ = rig.connect(f"c{number}")
        subscribe(rig, client, Subscription("#", 0))
    router = rig.hub.router
    for number in range(2000):
        assert rig.hub.publish(Message(f"t/{number}", b"", 0), None) == 100
    assert 0 < sum(len(plan) for _, plan in plans(router)) < 100_000


@pytest.mark.parametrize("topic_filter", ["a", "a/#", "+"])
def test_no_plan_holds_a_session_that_has_ended(rig: Rig, topic_filter: str) -> None:
    client, _, _ = rig.connect("c")
    stays, _, _ = rig.connect("stays")
    for each in (client, stays):
        subscribe(rig, each, Subscription(topic_filter, 1))
    assert rig.hub.publish(Message("a", b"x", 1), None) == 2
    assert any(receiver.client is client for _, plan in plans(rig.hub.router) for receiver in plan)
    rig.hub.unsubscribe(client, topic_filter)
    assert not plans(rig.hub.router)
    assert rig.hub.publish(Message("a", b"x", 1), None) == 1


def plans(router: Router) -> list[tuple[Any, tuple[Receiver, ...]]]:
    cache = router._plans
    return [*cache.recent.values(), *cache._older.values()]

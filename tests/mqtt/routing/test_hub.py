"""Sessions by client identifier."""

from __future__ import annotations

import pytest

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import Properties, ReasonCode, Will
from leafcuttr_mqtt.session.limits import NEVER_S
from leafcuttr_mqtt.session.types import Subscription
from support.mqtt_routing import Rig


def will(delay_s: int | None = None) -> Will:
    return Will("wills", b"gone", 1, False, Properties(will_delay_interval=delay_s))


def test_a_session_ends_with_its_connection_or_later(rig: Rig) -> None:
    client, noted, present = rig.connect("c")
    assert not present and rig.hub.connected == 1
    rig.hub.disconnected(client, noted)
    assert rig.hub.clients == {} and rig.hub.connected == 0
    client, noted, _ = rig.connect("c", expiry_s=10)
    rig.hub.disconnected(client, noted)
    _, _, present = rig.connect("c", clean=False, expiry_s=10)
    assert present


def test_a_session_expires(rig: Rig) -> None:
    client, noted, _ = rig.connect("c", expiry_s=10)
    rig.hub.subscribe(client, "a", Subscription("a", 1))
    rig.hub.disconnected(client, noted)
    rig.pass_time(9.9)
    rig.hub.sweep()
    assert "c" in rig.hub.clients
    rig.pass_time(0.2)
    rig.hub.sweep()
    assert rig.hub.clients == {}
    assert rig.hub.publish(Message("a", b"", 1), None) == 0


def test_one_without_end_stays(rig: Rig) -> None:
    client, noted, _ = rig.connect("c", expiry_s=NEVER_S)
    rig.hub.disconnected(client, noted)
    rig.pass_time(1_000_000_000)
    rig.hub.sweep()
    assert "c" in rig.hub.clients


def test_who_comes_back_has_a_session_that_does_not_expire(rig: Rig) -> None:
    client, noted, _ = rig.connect("c", expiry_s=10)
    rig.hub.disconnected(client, noted)
    rig.connect("c", clean=False, expiry_s=10)
    rig.pass_time(100)
    rig.hub.sweep()
    assert "c" in rig.hub.clients


def test_a_clean_start_ends_the_session_before(rig: Rig) -> None:
    client, noted, _ = rig.connect("c", expiry_s=10)
    rig.hub.subscribe(client, "a", Subscription("a", 1))
    rig.hub.disconnected(client, noted)
    other, _, present = rig.connect("c", clean=True, expiry_s=10)
    assert not present and other is not client
    assert rig.hub.publish(Message("a", b"", 1), None) == 0


@pytest.mark.parametrize("clean", [True, False])
def test_a_connection_takes_over(rig: Rig, clean: bool) -> None:
    client, first, _ = rig.connect("c", expiry_s=10)
    other, second, present = rig.connect("c", clean=clean, expiry_s=10)
    assert first.ended is ReasonCode.SESSION_TAKEN_OVER and second.ended is None
    assert present is not clean and (other is client) is not clean
    rig.hub.disconnected(client, first)
    assert rig.hub.clients["c"].connection is second and rig.hub.connected == 1


@pytest.mark.parametrize(
    ("delay_s", "clean", "published"),
    [(0, False, True), (5, False, False), (5, True, True), (None, True, True)],
)
def test_the_will_of_a_connection_that_is_taken_over(
    rig: Rig, delay_s: int | None, clean: bool, published: bool
) -> None:
    rig.connect("c", expiry_s=100, will=will(delay_s))
    rig.connect("c", clean=clean, expiry_s=100)
    assert bool(rig.published) is published
    rig.pass_time(50)
    rig.hub.sweep()
    assert bool(rig.published) is published


def test_a_will_is_published_after_its_delay_unless_its_client_comes_back(rig: Rig) -> None:
    for name in ("stays", "back"):
        client, noted, _ = rig.connect(name, expiry_s=100, will=will(5))
        rig.hub.disconnected(client, noted)
    rig.pass_time(4)
    rig.connect("back", clean=False, expiry_s=100)
    rig.hub.sweep()
    assert rig.published == []
    rig.pass_time(2)
    rig.hub.sweep()
    assert [each.client_id for each in rig.published] == ["stays"]
    rig.pass_time(200)
    rig.hub.sweep()
    assert len(rig.published) == 1


@pytest.mark.parametrize(("away_s", "count"), [(4.999, 0), (5.0, 1), (5.5, 1)])
def test_who_comes_back_after_the_delay_of_its_will_and_before_the_sweep_does_not_stop_it(
    rig: Rig, away_s: float, count: int
) -> None:
    client, noted, _ = rig.connect("c", expiry_s=100, will=will(5))
    rig.hub.disconnected(client, noted)
    rig.clock.ms += round(away_s * 1000)
    _, _, present = rig.connect("c", clean=False, expiry_s=100)
    assert present
    assert len(rig.published) == count
    rig.hub.sweep()
    assert len(rig.published) == count


@pytest.mark.parametrize(("away_s", "ended"), [(9.999, False), (10.0, True), (10.5, True)])
def test_who_comes_back_after_its_session_has_expired_and_before_the_sweep_has_a_new_one(
    rig: Rig, away_s: float, ended: bool
) -> None:
    client, noted, _ = rig.connect("c", expiry_s=10, will=will(1000))
    rig.hub.subscribe(client, "a", Subscription("a", 1))
    rig.hub.disconnected(client, noted)
    rig.clock.ms += round(away_s * 1000)
    other, _, present = rig.connect("c", clean=False, expiry_s=10)
    assert present is not ended and (other is client) is not ended
    assert rig.hub.expired == ended and len(rig.published) == ended
    assert rig.hub.publish(Message("a", b"", 1), None) == (not ended)
    rig.pass_time(100)
    rig.hub.sweep()
    assert rig.hub.clients["c"] is other and rig.hub.expired == ended


def test_who_comes_back_with_another_will_leaves_that_one_only(rig: Rig) -> None:
    client, noted, _ = rig.connect("c", expiry_s=100, will=will(5))
    rig.hub.disconnected(client, noted)
    rig.connect("c", clean=False, expiry_s=100, will=will(50))
    rig.pass_time(20)
    assert rig.published == []


def test_a_will_is_published_at_the_end_of_its_session_if_that_comes_first(rig: Rig) -> None:
    client, noted, _ = rig.connect("c", expiry_s=3, will=will(1000))
    rig.hub.disconnected(client, noted)
    rig.pass_time(3)
    rig.hub.sweep()
    assert len(rig.published) == 1


def test_a_will_is_not_published_by_who_leaves(rig: Rig) -> None:
    client, noted, _ = rig.connect("c", expiry_s=3, will=will())
    client.session.will = None  # as DISCONNECT has it
    rig.hub.disconnected(client, noted)
    rig.pass_time(10)
    rig.hub.sweep()
    assert rig.published == []


def test_administrators_end_connections_and_sessions(rig: Rig) -> None:
    client, noted, _ = rig.connect("c", expiry_s=100, will=will())
    assert rig.hub.disconnect("c") and noted.ended is ReasonCode.ADMINISTRATIVE_ACTION
    assert not rig.hub.disconnect("nobody")
    assert rig.hub.delete_session("c") and rig.hub.clients == {}
    assert not rig.hub.delete_session("c")
    rig.hub.publish(Message("r", b"x", 0, True), None)
    assert rig.hub.clear_retained(["r", "s"]) == 1
    assert client.client_id == "c"


def test_retained_messages_expire(rig: Rig) -> None:
    rig.hub.publish(Message("r", b"x", 0, True, expires_ms=rig.clock.now_ms() + 1000), None)
    rig.pass_time(2)
    rig.hub.expire_retained()
    assert len(rig.hub.retained) == 0

"""What the log says of messages that sessions give up."""

from __future__ import annotations

import logging

import pytest

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.routing.clients import Client
from leafcuttr_mqtt.session.limits import Limits, QueueLimits
from leafcuttr_mqtt.session.types import Delivery, Drop, DropReason, Subscription
from support.mqtt_routing import Rig


def away(rig: Rig, client_id: str = "c") -> Client:
    """A session without a connection that gets the messages of `a`."""
    client, noted, _ = rig.connect(client_id, expiry_s=100)
    rig.hub.subscribe(client, "a", Subscription("a", 1))
    rig.hub.disconnected(client, noted)
    return client


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]


def test_a_full_queue_is_one_line_with_the_client_and_the_number_that_it_may_hold(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    away(rig)
    for number in range(15):
        rig.hub.publish(Message("a", b"%d" % number, 1), None)
    assert rig.hub.drops[DropReason.QUEUE_FULL] == 5
    assert lines(caplog) == [
        "messages for client 'c' are dropped, the oldest first: its queue is full (mqtt.session.max.messages=10)"
    ]


@pytest.mark.parametrize("size", [60, 2000])
def test_one_that_is_full_by_bytes_says_so(caplog: pytest.LogCaptureFixture, size: int) -> None:
    rig = Rig(Limits(queue=QueueLimits(max_messages=1000, max_bytes=500)))
    away(rig)
    for _ in range(15):
        rig.hub.publish(Message("a", b"x" * size, 1), None)
    assert rig.hub.drops[DropReason.QUEUE_FULL]
    (line,) = lines(caplog)
    assert "client 'c'" in line and line.endswith("(mqtt.session.max.bytes=500)")


def test_what_retention_has_deleted_is_one_line(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = away(rig)
    for offset in range(4):
        client.session.outbound.offer(Delivery(None, 1, False, size=10, offset=offset))
    monkeypatch.setattr(rig.hub.store, "overtaken", lambda: 3)
    monkeypatch.setattr(rig.hub.store, "place_of", lambda offset: offset, raising=False)
    rig.hub.sweep()
    assert rig.hub.drops[DropReason.LOST] == 3
    assert lines(caplog) == [
        "messages for client 'c' are dropped: __mqtt_queue has them no more, retention has deleted them"
    ]


@pytest.mark.parametrize("reason", [DropReason.EXPIRED, DropReason.TOO_LARGE, DropReason.SESSION_ENDED])
def test_what_clients_have_asked_for_is_no_trouble(
    rig: Rig, caplog: pytest.LogCaptureFixture, reason: DropReason
) -> None:
    rig.hub.dropped(away(rig), Drop(Delivery(None, 0, False), reason))
    assert lines(caplog) == []


def test_the_log_stays_small_where_many_clients_are_slow(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    clients = [away(rig, f"c{number}") for number in range(500)]
    for _ in range(3):
        for client in clients:
            rig.hub.dropped(client, Drop(Delivery(None, 0, False), DropReason.QUEUE_FULL))
            rig.hub.dropped(client, Drop(Delivery(None, 0, False), DropReason.LOST))
    assert 2 <= len(lines(caplog)) <= 128

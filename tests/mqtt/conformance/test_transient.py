"""What happens to a message that the broker cannot take for now: 4.8 of 3.1.1 (transient errors), 4.13 of 5.0. With
LeafCuttr that is one whose Kafka topic cannot be written."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import trio

from mqtt.conformance import wire
from mqtt.conformance.raw import PATIENCE, fresh
from mqtt.conformance.under_test import Started

normative = pytest.mark.normative
both = pytest.mark.parametrize("version", [4, 5])

SETTINGS = {"mqtt.topic.mapping.held/#": "missing", "auto.create.topics.enable": "false"}


@normative("3.1.1", "MQTT-4.8.0-2", "MQTT-4.3.2-2", "MQTT-4.3.3-2")
@normative("5.0", "MQTT-4.13.1-1", "MQTT-4.3.2-4", "MQTT-4.3.3-8", "MQTT-4.13.2-1")
@both
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_message_that_cannot_be_taken_ends_its_connection(
    leafcuttr: Started, monkeypatch: pytest.MonkeyPatch, version: int, qos: int
) -> None:
    """Without an acknowledgement, which would mean that the broker has it; and no other connection."""
    monkeypatch.setattr("leafcuttr_mqtt.server.held.HELD_S", 0.0)
    with leafcuttr(SETTINGS) as broker:
        watcher, raw = broker.client(version), broker.client(version)
        watcher.subscribe("#")
        raw.send(wire.publish(version, "held/t", b"p", qos=qos, packet_id=1 if qos else None))
        raw.ended(0x89, 0x97)
        assert watcher.so_far(watcher) == []


@normative("3.1.1", "MQTT-4.3.2-2")
@normative("5.0", "MQTT-4.3.2-4")
def test_a_client_that_is_held_back_holds_back_nobody_else(leafcuttr: Started) -> None:
    with leafcuttr(SETTINGS) as broker:
        watcher, raw, other = (broker.client(version, fresh()) for version in (5, 4, 5))
        watcher.subscribe("#")
        raw.send(wire.publish(4, "held/t", b"held", qos=1, packet_id=1), wire.PING)
        for qos in (0, 1, 2):
            other.publish("free/t", b"%d" % qos, qos)
        assert sorted(message.payload for message in watcher.so_far(other)) == [b"0", b"1", b"2"]


def slowly(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Messages of mapped topics are stored, which the first event tells, and wait then until the other one is set."""
    from leafcuttr_mqtt.routing.turns import Turns

    settle, stored, go_on = Turns._settle, threading.Event(), threading.Event()

    async def settle_slowly(self: Turns, turn: Any) -> set[str]:
        names = await settle(self, turn)
        stored.set()
        await trio.to_thread.run_sync(go_on.wait)
        return names

    monkeypatch.setattr(Turns, "_settle", settle_slowly)
    return stored, go_on


@normative("3.1.1", "MQTT-4.3.3-2", "MQTT-4.4.0-1")
@normative("5.0", "MQTT-4.3.3-8", "MQTT-4.3.3-10", "MQTT-4.3.3-11", "MQTT-4.4.0-1")
@both
def test_messages_of_qos_2_that_are_being_stored_when_their_client_comes_back(
    leafcuttr: Started, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """They are taken once, and the new connection can end their exchanges."""
    stored, go_on = slowly(monkeypatch)
    keep = [("session_expiry", 120)] if version == 5 else []
    messages = [(number, b"%d" % number) for number in (1, 2, 3)]
    with leafcuttr({"mqtt.topic.mapping.slow/#": "slow"}) as broker:
        watcher, name = broker.client(version), fresh()
        watcher.subscribe("#")
        raw = broker.client(version, name, clean=False, properties=keep)
        raw.send(*(wire.publish(version, "slow/t", text, qos=2, packet_id=n) for n, text in messages))
        assert stored.wait(PATIENCE)
        again = broker.client(version, name, clean=False, properties=keep)
        raw.ended(0x8E)
        go_on.set()
        again.send(
            *(wire.publish(version, "slow/t", text, qos=2, packet_id=n, dup=True) for n, text in messages)
        )
        assert [again.expect(wire.PUBREC).packet_id for _ in messages] == [1, 2, 3]
        for number, _ in messages:
            again.release(number)
        assert [message.payload for message in watcher.so_far(again)] == [text for _, text in messages]


@normative("5.0", "MQTT-4.3.3-9", "MQTT-4.3.3-10", "MQTT-3.5.2-1")
def test_a_message_that_is_refused_when_its_client_has_come_back(
    leafcuttr: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new connection, which has sent it again, is told; then its packet identifier is of a new message."""
    stored, go_on = slowly(monkeypatch)
    keep, name = [("session_expiry", 120)], fresh()
    with leafcuttr({"mqtt.topic.mapping.slow/#": "slow", "message.max.bytes": 1000}) as broker:
        raw = broker.client(5, name, properties=keep)
        raw.send(wire.publish(5, "slow/t", b"x" * 5000, qos=2, packet_id=1))
        assert stored.wait(PATIENCE)
        again = broker.client(5, name, clean=False, properties=keep)
        again.send(wire.publish(5, "slow/t", b"x" * 5000, qos=2, packet_id=1, dup=True))
        assert again.ping() == []
        go_on.set()
        got = again.expect(wire.PUBREC)
        assert (got.packet_id, got.reason) == (1, 0x97)
        again.publish("slow/t", b"small", 2, packet_id=1)


@normative("3.1.1", "MQTT-4.8.0-2", "MQTT-4.3.3-2")
@normative("5.0", "MQTT-4.13.1-1", "MQTT-4.3.3-8")
@both
def test_a_message_that_cannot_be_taken_when_its_client_has_come_back(
    leafcuttr: Started, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """The new connection, which has sent it again, ends too: its client sends the message once more."""
    monkeypatch.setattr("leafcuttr_mqtt.server.held.HELD_S", 0.0)
    keep, name = [("session_expiry", 120)] if version == 5 else [], fresh()
    with leafcuttr(SETTINGS) as broker:
        raw = broker.client(version, name, clean=False, properties=keep)
        raw.send(wire.publish(version, "held/t", b"p", qos=2, packet_id=1))
        again = broker.client(version, name, clean=False, properties=keep)
        again.send(wire.publish(version, "held/t", b"p", qos=2, packet_id=1, dup=True))
        again.ended(0x89, 0x97)


@normative("3.1.1", "MQTT-4.8.0-2", "MQTT-4.3.3-2")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_refused_message_ends_the_connection_each_time(leafcuttr: Started, qos: int) -> None:
    """With `mqtt.refused.v3=close`, for clients that cannot be told."""
    name = fresh()
    settings = {"mqtt.topic.mapping.small/#": "small", "message.max.bytes": 1000, "mqtt.refused.v3": "close"}
    with leafcuttr(settings) as broker:
        for dup in (False, True, True):
            raw = broker.client(4, name, clean=False)
            raw.send(wire.publish(4, "small/t", b"x" * 5000, qos=qos, packet_id=1, dup=dup))
            raw.ended()

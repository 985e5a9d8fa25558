"""Listeners are opened and closed while the broker runs, by a change of its settings as Kafka's tools make it."""

from __future__ import annotations

import logging
import socket
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import KafkaException

from leafcuttr.wire.messages.api_versions import ApiVersionsRequest
from leafcuttr.wire.messages.metadata import MetadataRequest
from support import librdkafka
from support.accepting import taken
from support.changing import alter_broker
from support.live_broker import LiveBroker
from support.waiting import free_port, until
from support.wire_client import WireClient

OWN = "1"
FIRST = "PLAINTEXT://127.0.0.1:0"
MAP = "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT"
TWO = {"listeners": f"{FIRST},INSIDE://127.0.0.1:0", "listener.security.protocol.map": MAP}


def listeners(broker: LiveBroker) -> dict[str, int]:
    """Names and ports of those that are open."""
    return {each.name: each.port for each in broker.call(lambda: list(broker.broker.listeners))}


def served(client: WireClient) -> bool:
    return bool(client.ask(ApiVersionsRequest(), 2).error_code == 0)


def ended(client: WireClient) -> bool:
    """Whether the broker ends the connection, within a minute."""
    try:
        return client.socket.recv(1) == b""
    except ConnectionError:
        return True


def refused(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 60):
            return False
    except ConnectionRefusedError:
        return True


@pytest.mark.setting("listeners", "listener.security.protocol.map", while_running=True)
def test_one_is_opened_and_closed_again(serve: Any) -> None:
    with serve() as broker, WireClient(broker.address) as before:
        first = listeners(broker)["PLAINTEXT"]
        with taken(KafkaException):
            alter_broker(broker.address, OWN, TWO)
        until(lambda: len(listeners(broker)) == 2, "the new listener")
        inside = listeners(broker)["INSIDE"]
        assert listeners(broker)["PLAINTEXT"] == first, "the one that stays the same is left alone"
        assert served(before)
        with WireClient(f"127.0.0.1:{inside}") as client:
            (told,) = client.ask(MetadataRequest(topics=[]), 12).brokers
            assert told.port == inside
    with serve() as broker:
        found = listeners(broker)
        assert set(found) == {"PLAINTEXT", "INSIDE"}, "it is still there after a restart"
        with WireClient(f"127.0.0.1:{found['INSIDE']}") as inside_client, WireClient(broker.address) as other:
            assert served(inside_client)
            alter_broker(broker.address, OWN, dict.fromkeys(TWO))
            assert ended(inside_client)
            assert served(other)
        until(lambda: refused(found["INSIDE"]), "the end of the listener")
        assert set(listeners(broker)) == {"PLAINTEXT"}


def test_one_that_other_machines_reach_is_one_warning(serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    """However often it is opened."""
    open_to_all = {
        "listeners": f"{FIRST},INSIDE://0.0.0.0:{free_port()}",
        "listener.security.protocol.map": MAP,
    }
    with serve() as broker:
        for change, count in ((open_to_all, 2), (dict.fromkeys(TWO), 1), (open_to_all, 2)):
            alter_broker(broker.address, OWN, change)
            until(lambda count=count: len(listeners(broker)) == count, "the change")  # type: ignore[misc]
    warned = [line for line in caplog.messages if "without authentication" in line]
    assert len(warned) == 1 and "may use the listener INSIDE" in warned[0]


def test_one_moves_to_another_port(serve: Any) -> None:
    with serve() as broker, WireClient(broker.address) as before:
        assert served(before)
        first, second = listeners(broker)["PLAINTEXT"], free_port()
        alter_broker(broker.address, OWN, {"listeners": f"PLAINTEXT://127.0.0.1:{second}"})
        until(lambda: listeners(broker) == {"PLAINTEXT": second}, "the new port")
        assert ended(before)
        assert refused(first)
        with WireClient(f"127.0.0.1:{second}") as client:
            assert served(client)
        assert librdkafka.send(f"127.0.0.1:{second}", "t", [b"x"], timestamp=broker.clock.ms) == [0]


def test_a_port_that_is_taken(serve: Any, caplog: pytest.LogCaptureFixture, monkeypatch: Any) -> None:
    monkeypatch.setattr(logging.getLogger("leafcuttr"), "propagate", True)
    with serve() as broker, socket.socket() as taken, ExitStack() as stack:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        first = listeners(broker)["PLAINTEXT"]
        alter_broker(broker.address, OWN, {"listeners": f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"})
        until(lambda: "another program listens there" in caplog.text, "the line in the log")
        until(lambda: listeners(broker) == {"PLAINTEXT": first} and not refused(first), "the old one")
        assert served(stack.enter_context(WireClient(broker.address)))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"listeners": "INSIDE://127.0.0.1:0"}, "no protocol for INSIDE"),
        ({"listeners": ""}, "at least one listener"),
        ({"listeners": "nonsense"}, "is not NAME://host:port"),
        ({"listener.security.protocol.map": "INSIDE:PLAINTEXT"}, "no protocol for PLAINTEXT"),
    ],
)
def test_what_cannot_be_is_refused(serve: Any, settings: dict[str, str], words: str) -> None:
    from confluent_kafka import KafkaException

    with serve() as broker:
        with pytest.raises(KafkaException, match=words):
            alter_broker(broker.address, OWN, dict(settings))
        with pytest.raises(AssertionError, match="broker id must be specified"):
            alter_broker(broker.address, "", dict(settings))
        with WireClient(broker.address) as client:
            assert served(client)

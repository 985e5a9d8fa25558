"""Security in full: a thousand connections of a client that is held back, a flood of handshakes, and half ones that do
not end."""

from __future__ import annotations

import selectors
import socket
import ssl
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest
from support import librdkafka
from support.broker_process import running_broker
from support.crowds import sockets
from support.logs import batch
from support.peer import framed, request_bytes
from support.peer import produce_request as produce
from support.tls_peer import Certificates, Seen, shake_hands
from support.waiting import until
from support.wire_client import WireClient

pytestmark = pytest.mark.long
CONNECTIONS = 1000
SECONDS = 20.0
RATE = 500_000.0
SIZE = 2000
HALF_KIB = 200
"""What a handshake that is not over may take of the broker's memory, with what is left of those before it."""


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_client_that_is_held_back_has_a_thousand_connections(tmp_path: Path, protocol: str) -> None:
    """All of them together get its rate: each sends as soon as it is answered, whatever it is told to wait. Another
    client is served meanwhile."""
    entry = RequestEntryData(
        entity=[EntityData(entity_type="client-id", entity_name="greedy")],
        ops=[OpData(key="producer_byte_rate", value=RATE, remove=False)],
    )
    request = framed(request_bytes(produce("t", bytes(batch(1, size=SIZE))), 9, client_id=b"greedy"))
    answered, ours = 0, Certificates(tmp_path)
    context = ours.client()
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,ATTACKED://127.0.0.1:0",
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,ATTACKED:{protocol}",
        "ssl.keystore.location": ours.issue("127.0.0.1").file,
    }
    with (
        running_broker(tmp_path / "broker", settings) as broker,
        ExitStack() as stack,
        selectors.DefaultSelector() as selector,
    ):
        librdkafka.create(broker.address, "t", 1)
        other = stack.enter_context(WireClient(broker.address))
        port = int(broker.listeners["ATTACKED"].rpartition(":")[2])
        altered = other.ask(AlterClientQuotasRequest(entries=[entry], validate_only=False), 1)
        assert altered.entries[0].error_code == 0
        first = time.monotonic()
        for _ in range(CONNECTIONS):
            sock = stack.enter_context(socket.create_connection((broker.host, port)))
            if protocol == "SSL":
                sock = stack.enter_context(context.wrap_socket(sock, server_hostname="127.0.0.1"))
            sock.setblocking(False)
            selector.register(sock, selectors.EVENT_READ)
            sock.sendall(request)
        began = asked = time.monotonic()
        while time.monotonic() < began + SECONDS:
            for key, _ in selector.select(0.1):
                ready: Any = key.fileobj
                # An answer is far shorter than what is received at once, and one is under way at most.
                try:
                    assert ready.recv(65536)
                except ssl.SSLWantReadError:  # tickets of TLS, which are no answer
                    continue
                answered += 1
                ready.sendall(request)
            if time.monotonic() > asked + 1:
                assert other.ask(ApiVersionsRequest(), 0).api_keys
                asked = time.monotonic()
        took = time.monotonic() - first
    # What the first window gives, and what is under way on each connection.
    assert answered * SIZE <= RATE * (took + 1) + CONNECTIONS * SIZE * 1.1
    assert answered * SIZE >= RATE * SECONDS * 0.9


def test_a_flood_of_handshakes(tmp_path: Path) -> None:
    """Whole ones, ones that stop anywhere, and what is none: all who know how come in, and then nothing is left."""
    ours = Certificates(tmp_path)
    settings = {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": ours.issue("127.0.0.1").file}
    failed: list[str] = []
    with running_broker(tmp_path / "broker", settings) as broker, ExitStack() as stack:
        context = ours.client()
        data = hello_of(context)
        for number in range(CONNECTIONS):
            sock = stack.enter_context(socket.create_connection((broker.host, broker.port)))
            sock.sendall(
                data[: number * len(data) // CONNECTIONS] if number % 3 else b"GET / HTTP/1.1\r\n\r\n"
            )

        def shake() -> None:
            for _ in range(50):
                seen = shake_hands(broker.port, context)
                if isinstance(seen, str):
                    failed.append(seen)

        threads = [threading.Thread(target=shake) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
        assert broker.resident_mb() < 400


def test_half_handshakes_end_in_their_time(tmp_path: Path) -> None:
    """Ones that stop anywhere, also behind the broker's own part of it, which is what it remembers most of. Others are
    served meanwhile; none is left, nor is what they took of the memory taken again and again."""
    ours = Certificates(tmp_path)
    settings = {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": ours.issue("127.0.0.1").file}
    context = ours.client()
    hello = hello_of(context)
    # A record of the greatest length, of which the last byte does not come.
    begun = [b"", hello[: len(hello) // 2], hello[:-1], hello, b"\x16\3\1\x40\0" + bytes(16383)]
    used = []
    with running_broker(tmp_path / "broker", settings) as broker, ExitStack() as clients:
        sock = clients.enter_context(socket.create_connection((broker.host, broker.port), 60))
        tls = context.wrap_socket(sock, server_hostname="127.0.0.1")
        established = clients.enter_context(WireClient(broker.address, tls))
        assert established.ask(ApiVersionsRequest(), 0).api_keys
        open_before, memory_before = sockets(broker), broker.resident_mb()
        for _ in range(3):
            with ExitStack() as stack:
                halves = []
                for number in range(CONNECTIONS):
                    half = stack.enter_context(socket.create_connection((broker.host, broker.port), 60))
                    half.sendall(begun[number % len(begun)])
                    halves.append(half)
                until(lambda: sockets(broker) >= open_before + CONNECTIONS, "all of them")
                assert isinstance(shake_hands(broker.port, context), Seen)
                used.append(broker.resident_mb() - memory_before)
                for number, half in enumerate(halves):
                    read_to_end(half)
                    if number % 50 == 0:
                        assert established.ask(ApiVersionsRequest(), 0).api_keys
                until(lambda: sockets(broker) == open_before, "the broker's end of all of them")
    assert max(used) < CONNECTIONS * HALF_KIB / 1024, used


def hello_of(context: ssl.SSLContext) -> bytes:
    """What a client sends first."""
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def read_to_end(sock: socket.socket) -> None:
    """What the broker says, until it ends the connection."""
    with suppress(ConnectionError):
        while sock.recv(65536):
            pass

"""Security in full: a thousand connections of a client that is held back, and a flood of handshakes."""

from __future__ import annotations

import selectors
import socket
import ssl
import threading
import time
from contextlib import ExitStack
from pathlib import Path

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
from support.logs import batch
from support.peer import framed, request_bytes
from support.peer import produce_request as produce
from support.tls_peer import Certificates, shake_hands
from support.wire_client import WireClient

pytestmark = pytest.mark.long
CONNECTIONS = 1000
SECONDS = 20.0
RATE = 500_000.0
SIZE = 2000


def test_a_client_that_is_held_back_has_a_thousand_connections(tmp_path: Path) -> None:
    """All of them together get its rate: each sends as soon as it is answered, whatever it is told to wait. Another
    client is served meanwhile."""
    entry = RequestEntryData(
        entity=[EntityData(entity_type="client-id", entity_name="greedy")],
        ops=[OpData(key="producer_byte_rate", value=RATE, remove=False)],
    )
    request = framed(request_bytes(produce("t", bytes(batch(1, size=SIZE))), 9, client_id=b"greedy"))
    answered = 0
    with running_broker(tmp_path) as broker, ExitStack() as stack, selectors.DefaultSelector() as selector:
        librdkafka.create(broker.address, "t", 1)
        other = stack.enter_context(WireClient(broker.address))
        altered = other.ask(AlterClientQuotasRequest(entries=[entry], validate_only=False), 1)
        assert altered.entries[0].error_code == 0
        waiting: dict[socket.socket, int] = {}
        for _ in range(CONNECTIONS):
            sock = stack.enter_context(socket.create_connection((broker.host, broker.port)))
            selector.register(sock, selectors.EVENT_READ)
            sock.sendall(request)
            waiting[sock] = 0
        began = asked = time.monotonic()
        while time.monotonic() < began + SECONDS:
            for key, _ in selector.select(0.1):
                sock = key.fileobj  # type: ignore[assignment]
                # An answer is far shorter than what is received at once, and one is under way at most.
                assert sock.recv(65536)
                answered += 1
                sock.sendall(request)
            if time.monotonic() > asked + 1:
                assert other.ask(ApiVersionsRequest(), 0).api_keys
                asked = time.monotonic()
    # What the first window gives, and what is under way on each connection.
    assert answered * SIZE <= RATE * (SECONDS + 1) + CONNECTIONS * SIZE * 1.1
    assert answered * SIZE >= RATE * SECONDS * 0.9


def test_a_flood_of_handshakes(tmp_path: Path) -> None:
    """Whole ones, ones that stop anywhere, and what is none: all who know how come in, and then nothing is left."""
    ours = Certificates(tmp_path)
    settings = {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": ours.issue("127.0.0.1").file}
    failed: list[str] = []
    with running_broker(tmp_path / "broker", settings) as broker, ExitStack() as stack:
        context = ours.client()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        hello = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        with pytest.raises(ssl.SSLWantReadError):
            hello.do_handshake()
        data = outgoing.read()
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

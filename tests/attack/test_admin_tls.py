"""Clients that abuse the TLS of the metrics port: each costs its own connection, and others get metrics meanwhile."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from support.live_broker import LiveBroker, live_broker
from support.tls_peer import Certificates
from support.tls_records import RecordClient

PATIENCE_S = 60
REQUEST = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"


class Attacked(NamedTuple):
    broker: LiveBroker
    certificates: Certificates

    @property
    def port(self) -> int:
        admin = self.broker.broker.admin
        assert admin is not None
        return admin.port

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)

    def status(self) -> int:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=PATIENCE_S, context=self.certificates.client()
        )
        try:
            connection.request("GET", "/health/live")
            return connection.getresponse().status
        finally:
            connection.close()


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    folder = tmp_path_factory.mktemp("attacked")
    ours = Certificates(folder)
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "lc.metrics.enable": "true",
        "lc.metrics.port": "0",
        "lc.metrics.auth": "mtls",
        "lc.metrics.ssl.keystore.location": ours.issue("127.0.0.1").file,
        "lc.metrics.ssl.truststore.location": ours.trusted,
        "lc.metrics.ssl.client.auth": "requested",
    }
    with live_broker(folder / "data", settings) as broker:
        yield Attacked(broker, ours)


def ended(sock: socket.socket) -> bool:
    with suppress(ConnectionError):
        while sock.recv(65536):
            pass
    return True


def test_a_flood_of_half_handshakes(attacked: Attacked) -> None:
    hello = bytes.fromhex("16030100")
    assert attacked.status() == 200, "the endpoint is made with its first connection"
    with ExitStack() as stack:
        for number in range(100):
            stack.enter_context(attacked.connect()).sendall(hello[: number % 5])
        assert attacked.status() == 200
    assert attacked.status() == 200


@pytest.mark.parametrize(
    "data",
    [
        REQUEST,
        b"\0" * 100,
        b"\xff" * 70_000,
        b"\x16\x03\x01\xff\xff" + b"\1" * 65_535,
        b"\x15\x03\x01\0\2\2\x28",
        b"\0\0\0\x0a\0\x12\0\0\0\0\0\1\xff\xff",
    ],
)
def test_what_is_no_handshake(attacked: Attacked, data: bytes) -> None:
    with attacked.connect() as sock:
        with suppress(ConnectionError):
            sock.sendall(data)
        assert ended(sock)
    assert attacked.status() == 200


def test_new_keys_without_end(attacked: Attacked) -> None:
    with attacked.connect() as sock:
        client = RecordClient(sock, attacked.certificates.client())
        for _ in range(1000):
            try:
                sock.sendall(client.key_updates(30))
            except ConnectionError:
                break
        else:
            raise AssertionError("they are taken without end")
    assert attacked.status() == 200


@pytest.mark.parametrize("kind", [0, 21, 22, 255])
def test_records_of_another_kind_behind_the_handshake(attacked: Attacked, kind: int) -> None:
    with attacked.connect() as sock:
        client = RecordClient(sock, attacked.certificates.client())
        sock.sendall(client.record(b"\1\0\0\0\0", kind) + client.record(REQUEST))
        assert ended(sock)
    assert attacked.status() == 200


def test_a_request_that_is_cut_off(attacked: Attacked) -> None:
    """Without close_notify, and in the middle of a record."""
    for data in (REQUEST[:20], b""):
        with attacked.connect() as sock:
            client = RecordClient(sock, attacked.certificates.client())
            sock.sendall(client.record(data or REQUEST)[: None if data else -7])
            sock.shutdown(socket.SHUT_WR)
            assert ended(sock)
    assert attacked.status() == 200


def test_a_certificate_that_nobody_has_signed(attacked: Attacked, tmp_path: Path) -> None:
    context = attacked.certificates.client()
    context.load_cert_chain(Certificates(tmp_path, "others").issue(common_name="admin").file)
    with (
        attacked.connect() as sock,
        suppress(ConnectionError, ssl.SSLError),
        context.wrap_socket(sock, server_hostname="127.0.0.1") as tls,
    ):
        tls.sendall(REQUEST)
        assert tls.recv(1) == b"", "it is answered"
    assert attacked.status() == 200

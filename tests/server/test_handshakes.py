"""Handshakes that end otherwise than they should: each costs its own connection, and a line."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from leafcuttr.net.principal_rules import principal_rules
from leafcuttr.net.tls import server_context
from leafcuttr.net.tls_files import TlsFiles
from leafcuttr.server.handshakes import HANDSHAKE_S, Handshakes
from leafcuttr.server.tls_transport import TlsTransport
from leafcuttr.state.identity import Principal
from support.tls_peer import Certificates

PEER = "10.0.0.7:1234"


@pytest.fixture
def context(tmp_path: Path) -> ssl.SSLContext:
    ours = Certificates(tmp_path)
    files = TlsFiles("", ours.issue("127.0.0.1").file, None, ours.trusted, "required")
    found = server_context(files)
    assert found is not None
    return found


@pytest.fixture
def pair(context: ssl.SSLContext) -> Iterator[tuple[TlsTransport, socket.socket]]:
    listening = socket.create_server(("127.0.0.1", 0))
    theirs = socket.create_connection(listening.getsockname())
    ours, _ = listening.accept()
    listening.close()
    ours.setblocking(False)
    yield TlsTransport(ours, context), theirs
    ours.close()
    theirs.close()


Pair = tuple[TlsTransport, socket.socket]


async def line_of(handshakes: Handshakes, transport: TlsTransport, caplog: pytest.LogCaptureFixture) -> str:
    with caplog.at_level(logging.WARNING):
        assert not await handshakes.succeeds(transport, "SSL", PEER)
    assert handshakes.failed == {"SSL": 1}
    (record,) = caplog.records
    return record.getMessage()


@pytest.mark.parametrize(
    "said", [b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x0a\0\x12\0\0\0\0\0\1\xff\xff", bytes(600)]
)
async def test_peers_that_do_not_speak_tls(pair: Pair, caplog: pytest.LogCaptureFixture, said: bytes) -> None:
    transport, theirs = pair
    theirs.sendall(said)
    line = await line_of(Handshakes(), transport, caplog)
    assert line.startswith(f"closing the connection from {PEER} on SSL: it does not speak TLS (")


async def test_a_client_without_a_certificate(
    pair: Pair, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    transport, theirs = pair
    context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    theirs.setblocking(True)

    def shake() -> str:
        try:
            with context.wrap_socket(theirs, server_hostname="127.0.0.1") as tls:
                tls.recv(1)
        except ssl.SSLError as error:
            return error.reason or ""
        return ""

    reasons: list[str] = []

    async def client() -> None:
        reasons.append(await trio.to_thread.run_sync(shake))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(client)
        line = await line_of(Handshakes(), transport, caplog)
        transport.close()
    assert line.endswith("it has shown no certificate (ssl.client.auth=required)")
    assert reasons == ["TLSV13_ALERT_CERTIFICATE_REQUIRED"], "the client learns why"


async def test_one_that_comes_byte_by_byte_has_no_longer(
    pair: Pair, caplog: pytest.LogCaptureFixture, mock_clock: trio.testing.MockClock
) -> None:
    transport, theirs = pair

    async def drip() -> None:
        theirs.sendall(bytes.fromhex("1603010200"))  # the beginning of a record of 512 bytes
        for _ in range(30):
            theirs.sendall(b"\1")
            await trio.testing.wait_all_tasks_blocked(0.001)
            mock_clock.jump(0.5)
        raise AssertionError("it has 15 seconds")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(drip)
        line = await line_of(Handshakes(), transport, caplog)
        nursery.cancel_scope.cancel()
    assert line.endswith(f"within {HANDSHAKE_S:g} seconds")


@pytest.mark.parametrize("kind", ["certificates of a megabyte", "an old version"])
async def test_clients_that_go_too_far(
    pair: Pair, caplog: pytest.LogCaptureFixture, tmp_path: Path, kind: str
) -> None:
    """OpenSSL takes 100 KiB of certificates, and allocates no more."""
    transport, theirs = pair
    theirs.setblocking(True)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    if kind == "an old version":
        client.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            client.minimum_version = client.maximum_version = ssl.TLSVersion.TLSv1
        why = "UNSUPPORTED_PROTOCOL"
    else:
        ours = Certificates(tmp_path, "clients")
        own = ours.issue("device.test")
        many = tmp_path / "many.pem"
        many.write_text(own.key + own.chain + ours.trusted_text * (2 * (1 << 20) // len(ours.trusted_text)))
        client.load_cert_chain(many)
        why = "EXCESSIVE_MESSAGE_SIZE"

    def shake() -> None:
        with contextlib.suppress(OSError), client.wrap_socket(theirs) as tls:
            tls.recv(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, shake)
        line = await line_of(Handshakes(), transport, caplog)
        transport.close()
    assert line.endswith(f"on SSL: the handshake failed ({why})")


@pytest.mark.parametrize("common_name", ["device", "Other"])
async def test_the_principal_of_a_client(
    pair: Pair, caplog: pytest.LogCaptureFixture, tmp_path: Path, common_name: str
) -> None:
    """Of a client whose subject no rule matches, the connection ends, as in Kafka."""
    transport, theirs = pair
    ours = Certificates(tmp_path, "clients")
    known = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    known.load_cert_chain(ours.issue(common_name=common_name).file)
    transport._tls.context.load_verify_locations(ours.trusted)
    theirs.setblocking(True)
    found: list[Principal | None] = []
    handshakes = Handshakes()
    rules = principal_rules("RULE:^CN=([a-z]+),.*$/$1/")

    def shake() -> None:
        with contextlib.suppress(OSError), known.wrap_socket(theirs, server_hostname="127.0.0.1") as tls:
            tls.recv(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, shake)
        found.append(await handshakes.principal(transport, "SSL", PEER, rules))
        transport.close()
    if common_name == "device":
        assert found == [Principal("User", "device")]
        assert handshakes.failed == {}
    else:
        assert found == [None]
        assert handshakes.failed == {"SSL": 1}
        line = caplog.records[-1].getMessage()
        assert line.startswith(
            f"closing the connection from {PEER} on SSL: no rule of ssl.principal.mapping.rules matches CN=Other,OU="
        )


async def test_a_peer_that_goes_is_no_line(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    transport, theirs = pair
    theirs.close()
    handshakes = Handshakes()
    with caplog.at_level(logging.INFO):
        assert not await handshakes.succeeds(transport, "SSL", PEER)
    assert handshakes.failed == {"SSL": 1}
    assert not caplog.records


async def test_a_peer_that_says_nothing(
    pair: Pair, caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    transport, _ = pair
    handshakes, began = Handshakes(), trio.current_time()
    line = await line_of(handshakes, transport, caplog)
    assert line.endswith("no handshake within 10 seconds")
    assert trio.current_time() - began == pytest.approx(HANDSHAKE_S)
    assert not handshakes._under_way


@pytest.mark.parametrize(("steps_s", "is_in_time"), [(11.0, True), (70.0, False)])
async def test_the_time_that_the_broker_takes_is_not_the_peers(
    context: ssl.SSLContext,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    mock_clock: trio.testing.MockClock,
    steps_s: float,
    is_in_time: bool,
) -> None:
    """Others had their turn before each step: a peer that answers at once is served, within a minute."""
    context.verify_mode = ssl.CERT_NONE
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    transport = TlsTransport(ours, context)
    step = transport._step

    def slow_step() -> bool:
        mock_clock.jump(steps_s)
        return step()

    transport._step = slow_step  # type: ignore[method-assign]
    client = ssl.create_default_context(cafile=tmp_path / "ca.pem")

    def shake() -> None:
        with contextlib.suppress(OSError), client.wrap_socket(theirs, server_hostname="127.0.0.1") as tls:
            tls.recv(1)

    handshakes = Handshakes()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, shake)
        with caplog.at_level(logging.WARNING):
            assert await handshakes.succeeds(transport, "SSL", PEER) is is_in_time
        transport.close()
    said = [record.getMessage() for record in caplog.records]
    assert said == [] if is_in_time else said[0].endswith("no handshake within 60 seconds")


async def test_the_same_again_is_not_another_line(
    context: ssl.SSLContext, caplog: pytest.LogCaptureFixture
) -> None:
    handshakes = Handshakes()
    for _ in range(3):
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.sendall(b"GET / HTTP/1.1\r\n\r\n")
        transport = TlsTransport(ours, context)
        assert not await handshakes.succeeds(transport, "SSL", PEER)
        transport.close()
        theirs.close()
    assert handshakes.failed == {"SSL": 3}
    assert len(caplog.records) == 1


async def test_the_stop_ends_those_that_are_under_way(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    transport, _ = pair
    handshakes = Handshakes()
    async with trio.open_nursery() as nursery:

        async def stop() -> None:
            await trio.testing.wait_all_tasks_blocked()
            handshakes.stop()

        nursery.start_soon(stop)
        assert not await handshakes.succeeds(transport, "SSL", PEER)
    assert not caplog.records

"""TLS of the metrics port: what its clients see, who they are by their certificates, and what one of them cannot do to
the others."""

from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
import trio

from leafcuttr.config.settings import Settings
from leafcuttr.errors import InvalidRequest, StartError
from leafcuttr.handlers.config_resources import ConfigResourceType, alter
from leafcuttr.server import handshakes
from leafcuttr.server.admin import http as admin_http
from leafcuttr.server.admin import listening
from leafcuttr.server.admin.endpoint import AdminEndpoint
from leafcuttr.server.admin.listening import AdminConnections
from leafcuttr.server.admin.router import Request, Response
from leafcuttr.server.listener import Connections
from leafcuttr.state.broker import Broker
from support.http_client import ON
from support.no_threads import no_threads
from support.tls_peer import Certificates, Identity
from support.waiting import eventually

Serve = Callable[..., Awaitable[Broker]]
KEYSTORE = "lc.metrics.ssl.keystore.location"
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
HOST = "127.0.0.1"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes
    certificate: str
    """The common name of the server's."""


@pytest.fixture
def ours(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


def with_tls(ours: Certificates, **more: str) -> dict[str, str]:
    """`more` with `_` for `.`, below `lc.metrics.`"""
    given = {f"lc.metrics.{name.replace('_', '.')}": value for name, value in more.items()}
    return {
        **ON,
        KEYSTORE: ours.issue(HOST, common_name="broker").file,
        "lc.metrics.ssl.truststore.location": ours.trusted,
        **given,
    }


def port_of(broker: Broker) -> int:
    assert broker.admin is not None
    return broker.admin.port


async def get(
    where: Broker | int, context: ssl.SSLContext, path: str = "/health/live", **headers: str
) -> Answer:
    """As curl does it, by the standard library."""
    port = where if isinstance(where, int) else port_of(where)

    def ask() -> Answer:
        connection = http.client.HTTPSConnection(HOST, port, timeout=60, context=context)
        try:
            connection.request("GET", path, headers=headers)
            assert isinstance(connection.sock, ssl.SSLSocket)
            shown = cast("dict[str, Any]", connection.sock.getpeercert() or {})
            subject = dict(pair for (pair,) in shown.get("subject", ()))
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read(), str(subject.get("commonName")))
        finally:
            connection.close()

    return await trio.to_thread.run_sync(ask)


def said(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(record.getMessage() for record in caplog.records)


@pytest.mark.setting("lc.metrics.ssl.keystore.location")
async def test_metrics_and_health(serve: Serve, ours: Certificates, caplog: pytest.LogCaptureFixture) -> None:
    broker = await serve(with_tls(ours))
    assert broker.admin is not None and broker.admin.protocol == "SSL"
    answer = await get(broker, ours.client(), "/metrics")
    assert answer.status == 200
    assert b'leafcuttr_certificate_remaining_seconds{listener="lc.metrics"' in answer.body
    assert (await get(broker, ours.client(), "/health")).status == 200

    def several() -> list[int]:
        """On one connection, the last two at once."""
        context = ours.client(only=ssl.TLSVersion.TLSv1_2)
        with (
            socket.create_connection((HOST, port_of(broker)), 60) as sock,
            # Where the answers end without close_notify, this raises.
            context.wrap_socket(sock, server_hostname=HOST, suppress_ragged_eofs=False) as tls,
        ):
            found = []
            for count in (1, 2):
                tls.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n" * count)
                received = b""
                while received.count(b'{"status": "ok"}\n') < count:
                    received += tls.recv(65536)
                found.append(received.count(b"HTTP/1.1 200"))
            tls.sendall(b"GET /health/live HTTP/1.0\r\n\r\n")
            while tls.recv(65536):
                pass
            return found

    assert await trio.to_thread.run_sync(several) == [1, 2]
    # What does not speak TLS gets no answer of HTTP.
    async with await trio.open_tcp_stream(HOST, port_of(broker)) as plain:
        await plain.send_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        received = b""
        try:
            async for piece in plain:
                received += piece
        except trio.BrokenResourceError:
            pass
    assert b"HTTP" not in received
    assert "on the metrics port: it does not speak TLS" in said(caplog)


@pytest.mark.setting("lc.metrics.ssl.client.auth", "lc.metrics.ssl.truststore.location")
async def test_certificates_that_are_required(
    serve: Serve, ours: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also for health; and then the port is none that everybody can read."""
    broker = await serve(
        with_tls(ours, ssl_client_auth="required", host="")
        | {"lc.listeners.open": "refuse", "listeners": "PLAINTEXT://127.0.0.1:0"}
    )
    assert "without authentication" not in said(caplog)
    alice = ours.issue(common_name="alice")
    assert (await get(broker, ours.client(alice), "/metrics")).status == 200
    others = Certificates(tmp_path, "others")
    stranger = ours.client()
    stranger.load_cert_chain(others.issue(common_name="alice").file)
    for context in (ours.client(), stranger):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await get(broker, context)
    assert "it has shown no certificate" in said(caplog)
    assert "its certificate is refused" in said(caplog)


async def test_requested_certificates_do_not_close_it(
    serve: Serve, ours: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    broker = await serve(with_tls(ours, ssl_client_auth="requested", host=""))
    assert (await get(broker, ours.client(), "/metrics")).status == 200
    assert "may read metrics and health without authentication" in said(caplog)


BASIC = {"Authorization": "Basic YWxpY2U6dGVh"}


@pytest.mark.setting("lc.metrics.auth")
async def test_who_a_client_is_by_its_certificate(serve: Serve, ours: Certificates) -> None:
    broker = await serve(
        with_tls(ours, ssl_client_auth="requested", auth="mtls")
        | {
            "authorizer.class.name": STANDARD,
            "super.users": "User:alice",
            "ssl.principal.mapping.rules": "RULE:^.*CN=([A-Za-z]+).*$/$1/L",
        }
    )
    alice, bob = ours.issue(common_name="ALICE"), ours.issue(common_name="bob")
    no_name = ours.issue(common_name="7")
    assert (await get(broker, ours.client(alice), "/metrics")).status == 200
    assert (await get(broker, ours.client(alice), "/metrics", **BASIC)).status == 200, "basic is not offered"
    answer = await get(broker, ours.client(bob), "/metrics")
    assert (answer.status, b"User:bob may not DESCRIBE the cluster" in answer.body) == (403, True)
    for context in (ours.client(), ours.client(no_name)):
        answer = await get(broker, context, "/metrics")
        assert (answer.status, b"no_certificate" in answer.body) == (403, True)
        assert "www-authenticate" not in answer.headers
        assert (await get(broker, context, "/health")).status == 200


async def test_a_certificate_beside_another_way(serve: Serve, ours: Certificates) -> None:
    broker = await serve(with_tls(ours, ssl_client_auth="requested", auth="basic,mtls"))
    alice = ours.client(ours.issue(common_name="alice"))
    assert (await get(broker, alice, "/metrics")).status == 200
    assert (await get(broker, alice, "/metrics", **BASIC)).status == 401, "what is said counts, and is wrong"
    answer = await get(broker, ours.client(), "/metrics")
    assert (answer.status, answer.headers["www-authenticate"][:5]) == (401, "Basic")


async def test_a_certificate_where_that_is_no_way(serve: Serve, ours: Certificates) -> None:
    broker = await serve(
        with_tls(ours, ssl_client_auth="requested", auth="none")
        | {"authorizer.class.name": STANDARD, "super.users": "User:CN=alice"}
    )
    answer = await get(broker, ours.client(ours.issue(common_name="alice")), "/metrics")
    assert (answer.status, b"User:ANONYMOUS" in answer.body) == (403, True)


# New certificates


def replaced(old: Identity, new: Identity) -> None:
    Path(old.file).write_bytes(Path(new.file).read_bytes())


async def test_new_certificates_without_a_restart(serve: Serve, ours: Certificates) -> None:
    first = ours.issue(HOST, common_name="broker")
    settings = {**ON, KEYSTORE: first.file, "lc.tls.reload.interval.ms": "10"}
    broker = await serve(settings)
    second = ours.issue("other.test", HOST, common_name="renewed")
    assert (await get(broker, ours.client())).certificate == "broker"
    async with await trio.open_tcp_stream(HOST, port_of(broker)) as sock:
        tls = trio.SSLStream(sock, ours.client(), server_hostname=HOST)
        await tls.do_handshake()
        replaced(first, second)
        while (await get(broker, ours.client())).certificate != "renewed":
            await trio.sleep(0.01)
        await tls.send_all(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await tls.receive_some()).startswith(b"HTTP/1.1 200"), "what is open goes on"


async def reload(broker: Broker) -> None:
    """As `leafcuttr certs reload` has it done."""
    kind, name = ConfigResourceType.BROKER, str(broker.node_id)
    await alter(broker, None, kind, name, [], dict, removed=[KEYSTORE], validate_only=False)


async def test_read_again_at_once(serve: Serve, ours: Certificates) -> None:
    first = ours.issue(HOST, common_name="broker")
    broker = await serve({**ON, KEYSTORE: first.file, "lc.tls.reload.interval.ms": "0"})
    replaced(first, ours.issue("other.test", HOST, common_name="renewed"))
    assert (await get(broker, ours.client())).certificate == "broker", "nobody has looked"
    await reload(broker)
    assert (await get(broker, ours.client())).certificate == "renewed"
    Path(first.file).write_text("nothing")
    with pytest.raises(InvalidRequest, match=r"lc\.metrics\.ssl\.keystore\.location=.*: it has no PEM"):
        await reload(broker)
    assert (await get(broker, ours.client())).certificate == "renewed"


# The start


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({KEYSTORE: "/nowhere.pem"}, "lc.metrics.ssl.keystore.location=/nowhere.pem: No such file"),
        (
            {"lc.metrics.auth": "mtls", "ssl.principal.mapping.rules": "RULE:^(/$1/"},
            "ssl.principal.mapping.rules: the pattern '^('",
        ),
        ({"lc.metrics.ssl.truststore.location": "/nowhere"}, "lc.metrics.ssl.truststore.location=/nowhere"),
    ],
)
async def test_a_start_that_is_refused(
    ours: Certificates, more: dict[str, str], line: str, tmp_path: Path
) -> None:
    given = with_tls(ours, ssl_client_auth="requested") | more
    with pytest.raises(StartError) as caught:
        listening.bind(Settings(given))
    assert str(caught.value).startswith(line) and "\n" not in str(caught.value)


@pytest.mark.setting("lc.metrics.ssl.key.password")
async def test_the_password_of_the_key(ours: Certificates, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    found = ours.issue(HOST)
    key = serialization.load_pem_private_key(found.key.encode(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"sesame"),
    )
    file = tmp_path / "encrypted.pem"
    file.write_bytes(encrypted + found.chain.encode())
    given = {**ON, KEYSTORE: str(file), "lc.metrics.ssl.key.password": "sesame"}
    bound = listening.bind(Settings(given))
    assert bound is not None and bound.certificates is not None
    for sock in bound.sockets:
        sock.close()
    with pytest.raises(StartError, match=r"lc\.metrics\.ssl\.key\.password"):
        listening.bind(Settings(given | {"lc.metrics.ssl.key.password": "x"}))


def test_without_tls_nothing_of_it_is_imported() -> None:
    program = """
import sys
from leafcuttr.config.settings import Settings
from leafcuttr.server.admin import listening
bound = listening.bind(Settings({"lc.metrics.port": "0"}))
assert bound.certificates is None
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    parts = (
        "tls",
        "certificates",
        "handshakes",
        "principal_rules",
        "keystores",
        "tls_files",
        "tls_transport",
    )
    assert [
        name for name in done.stdout.split() if name.startswith("leafcuttr.") and name.endswith(parts)
    ] == []


# What one client cannot do to the others


async def test_handshakes_that_do_not_end(
    serve: Serve, ours: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that has begun first gives its place to a new connection."""
    monkeypatch.setattr(listening, "MOST_CONNECTIONS", 3)
    broker = await serve(with_tls(ours))
    assert (await get(broker, ours.client())).status == 200
    async with trio.open_nursery() as nursery:
        halves = []
        for _ in range(3):
            stream = await trio.open_tcp_stream(HOST, port_of(broker))
            nursery.start_soon(_keep, stream)
            await stream.send_all(bytes.fromhex("16030100"))
            halves.append(stream)
        assert (await get(broker, ours.client())).status == 200
        ended: list[int] = []
        for number in (2, 0):
            nursery.start_soon(_note_end, halves[number], number, ended)
        await eventually(lambda: bool(ended), "the end of one")
        assert ended == [0]
        for _ in range(5):
            assert (await get(broker, ours.client())).status == 200
        nursery.cancel_scope.cancel()


async def _keep(stream: trio.SocketStream) -> None:
    async with stream:
        await trio.sleep_forever()


async def _note_end(stream: trio.SocketStream, number: int, ended: list[int]) -> None:
    assert await _rest(stream) == b""
    ended.append(number)


async def _rest(stream: trio.SocketStream) -> bytes:
    try:
        return b"".join([piece async for piece in stream])
    except trio.BrokenResourceError:
        return b""


async def test_a_handshake_has_its_time(
    serve: Serve, ours: Certificates, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(handshakes, "HANDSHAKE_S", 0.01)
    broker = await serve(with_tls(ours))
    async with await trio.open_tcp_stream(HOST, port_of(broker)) as silent:
        with trio.fail_after(60):
            assert await _rest(silent) == b""
    assert "no handshake within 0.01 seconds" in said(caplog)


async def test_handshakes_are_done_beside_the_loop(
    serve: Serve, ours: Certificates, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where there is no thread for one, that connection alone is closed."""
    broker = await serve()
    made = AdminEndpoint(broker, Connections(broker))
    bound = listening.bind(Settings(with_tls(ours)))
    assert bound is not None
    connections = AdminConnections(lambda: made, bound.certificates)
    nursery.start_soon(connections.accept, bound.sockets[0], nursery)
    assert (await get(bound.listener.port, ours.client())).status == 200
    stream = trio.SSLStream(
        await trio.open_tcp_stream(HOST, bound.listener.port), ours.client(), server_hostname=HOST
    )
    with no_threads(monkeypatch), trio.fail_after(60), pytest.raises(trio.BrokenResourceError):
        await stream.do_handshake()
    await trio.aclose_forcefully(stream)
    assert (await get(bound.listener.port, ours.client())).status == 200
    await eventually(lambda: not connections._count, "the end of all connections")


async def test_a_client_that_does_not_read(
    serve: Serve, ours: Certificates, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ended; others get the same answer meanwhile, whole."""
    broker = await serve()
    made = AdminEndpoint(broker, Connections(broker))
    large = bytes(range(256)) * (1 << 16)

    async def answer(_: Request) -> Response:
        return Response(large, "application/octet-stream")

    made.router.add("/large", answer, "much")
    bound = listening.bind(Settings(with_tls(ours)))
    assert bound is not None
    connections = AdminConnections(lambda: made, bound.certificates)
    nursery.start_soon(connections.accept, bound.sockets[0], nursery)
    port = bound.listener.port
    async with await trio.open_tcp_stream(HOST, port) as sock:
        await _asked_for(sock, ours, "/large")
        assert (await get(port, ours.client(), "/large")).body == large
        await eventually(lambda: len(connections) == 1, "the end of the other")
    await eventually(lambda: not len(connections), "its end")
    monkeypatch.setattr(admin_http, "SEND_S", 0.01)
    async with await trio.open_tcp_stream(HOST, port) as sock:
        await _asked_for(sock, ours, "/large")
        await eventually(lambda: len(connections) == 1, "its begin")
        await eventually(lambda: not len(connections), "its end")


async def _asked_for(sock: trio.SocketStream, ours: Certificates, path: str) -> None:
    """A request over TLS, of which no answer is read."""
    tls = trio.SSLStream(sock, ours.client(), server_hostname=HOST)
    await tls.send_all(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())

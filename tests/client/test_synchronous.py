"""The connection of commands; what peers do wrong is in tests/cli/common/wire_client/test_connection.py too."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
import trustme

from leafcuttr.client.errors import (
    AuthenticationRefused,
    ClientError,
    ConnectionLost,
    TimedOut,
    TlsRefused,
    Unreachable,
)
from leafcuttr.client.settings import ClientSasl, ClientSettings, ClientTls, HostPort, Pem
from leafcuttr.client.synchronous import BlockingConnection
from leafcuttr.wire.api import ApiKey
from leafcuttr.wire.messages.metadata import MetadataRequest
from support.sasl_server import SaslServer
from support.scripted_broker import HANG_UP, ScriptedBroker, metadata
from support.waiting import free_port

ASK = MetadataRequest(topics=[])


@contextmanager
def running(broker: ScriptedBroker) -> Iterator[None]:
    """The broker on a loop of its own, in a thread."""
    begun = threading.Event()
    scopes = list[tuple[trio.CancelScope, trio.lowlevel.TrioToken]]()

    async def serve() -> None:
        async with trio.open_nursery() as nursery:
            await broker.start(nursery)
            scopes.append((nursery.cancel_scope, trio.lowlevel.current_trio_token()))
            begun.set()
            await trio.sleep_forever()

    thread = threading.Thread(target=partial(trio.run, serve))
    thread.start()
    assert begun.wait(60)
    try:
        yield
    finally:
        scope, token = scopes[0]
        token.run_sync_soon(scope.cancel)
        thread.join(60)


def connect(port: int, host: str = "127.0.0.1", timeout_s: float = 60, **more: object) -> BlockingConnection:
    address = HostPort(host, port)
    settings = ClientSettings(bootstrap=(address,), **more)  # type: ignore[arg-type]
    return BlockingConnection(address, settings, timeout_s=timeout_s)


def fine(**more: object) -> ScriptedBroker:
    return ScriptedBroker({ApiKey.METADATA: lambda call: metadata(call.broker)}, **more)  # type: ignore[arg-type]


def test_requests_one_after_the_other() -> None:
    broker = fine()
    with running(broker), connect(broker.port, client_id="probe") as connection:
        assert connection.about.api_keys
        assert connection.versions[ApiKey.METADATA] == (0, 13)
        for _ in range(3):
            assert connection.request(ASK).cluster_id == "scripted"
        assert broker.clients == ["probe"]


def test_nobody_listens() -> None:
    port = free_port()
    with pytest.raises(Unreachable) as caught:
        connect(port)
    assert str(caught.value) == f"no broker answers at 127.0.0.1:{port}"
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_authentication(mechanism: str) -> None:
    server = SaslServer(mechanism, "alice", "pencil")
    broker = ScriptedBroker({**server.answers, ApiKey.METADATA: lambda call: metadata(call.broker)})
    with running(broker):
        with connect(
            broker.port, sasl=ClientSasl(mechanism=mechanism, username="alice", password="pencil")
        ) as connection:
            assert connection.request(ASK).cluster_id == "scripted"
        with pytest.raises(AuthenticationRefused, match="the user alice is refused"):
            connect(broker.port, sasl=ClientSasl(mechanism=mechanism, username="alice", password="pen"))
    assert server.authenticated == 1


def test_tls(tmp_path: Path) -> None:
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(context)
    file = tmp_path / "ca.pem"
    ca.cert_pem.write_to_path(file)
    trusted = ClientTls(trusted=Pem("ssl.ca.location", str(file), True))
    broker = fine(tls=context)
    with running(broker):
        with connect(broker.port, "localhost", tls=trusted) as connection:
            assert connection.request(ASK).cluster_id == "scripted"
        with pytest.raises(TlsRefused, match="its certificate is refused") as caught:
            connect(broker.port, "localhost", tls=ClientTls())
        assert isinstance(caught.value.__cause__, ssl.SSLCertVerificationError)
        with pytest.raises(ClientError, match=r"security\.protocol=SSL"):
            connect(broker.port)
        missing = ClientTls(trusted=Pem("ssl.ca.location", "/nowhere", True))
        with pytest.raises(TlsRefused, match=r"^ssl.ca.location=/nowhere: No such file or directory$"):
            connect(broker.port, "localhost", tls=missing)
    plain = fine()
    with running(plain), pytest.raises(ClientError, match="it may speak no TLS"):
        connect(plain.port, "localhost", tls=trusted)


def test_a_server_that_begins_no_tls() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(TimedOut, match=rf"127\.0\.0\.1:{port} begins no TLS within 0\.2 seconds"):
            connect(port, timeout_s=0.2, tls=ClientTls())


def test_the_time_of_a_request_can_be_changed() -> None:
    broker = ScriptedBroker({ApiKey.METADATA: lambda call: None})
    with running(broker), connect(broker.port) as connection:
        connection.timeout_s = 0.1
        with pytest.raises(TimedOut, match=r"does not answer Metadata within 0\.1 seconds"):
            connection.request(ASK)


def test_a_broker_that_hangs_up_after_authentication() -> None:
    """It is no matter of a listener that wants authentication."""
    server = SaslServer("PLAIN", "alice", "pencil")
    broker = ScriptedBroker({**server.answers, ApiKey.METADATA: lambda call: HANG_UP})
    sasl = ClientSasl(mechanism="PLAIN", username="alice", password="pencil")
    with running(broker), connect(broker.port, sasl=sasl) as connection:
        with pytest.raises(ConnectionLost) as caught:
            connection.request(ASK)
        assert str(caught.value) == f"{broker.address} closed the connection"

"""A plugin's listener in a real `leafcuttr serve`: address, TLS, what is told of it, and what can be wrong with it."""

from __future__ import annotations

import json
import re
import socket
import ssl
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trustme

from support.broker_process import BrokerProcess, running_broker, start_broker

# Greets each connection, and closes it.
GREETER = """
import trio
from leafcuttr_sdk import Plugin, ServiceSpec, listener_settings

PLUGIN = Plugin("greeter", 1, "Greets.")
PREFIX = "lc.plugin.greeter"

class Greeter:
    def __init__(self, broker):
        self.broker = broker

    async def run(self, *, task_status):
        async with self.broker.listen(PREFIX) as listening:
            listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(sock)) for sock in listening.sockets]
            if listening.ssl_context:
                listeners = [trio.SSLListener(each, listening.ssl_context) for each in listeners]
            task_status.started()
            await trio.serve_listeners(self.greet, listeners)

    async def greet(self, stream):
        try:
            async with stream:
                await stream.send_all(b"hello")
        except trio.BrokenResourceError:
            pass

def leafcuttr_register_services():
    return [ServiceSpec("greeter", Greeter)]

def leafcuttr_register_settings():
    return listener_settings(PREFIX, 0)
"""


@pytest.fixture
def greeter(tmp_path: Path) -> dict[str, str]:
    """The setting by which a broker finds the plugin."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "greeter.py").write_text(GREETER)
    return {"lc.plugins.path": str(folder)}


def told(broker: BrokerProcess) -> tuple[str, int]:
    """What the ready file says, which is what `/health` and the ready line say too."""
    ready = json.loads((broker.folder / "ready.json").read_text())
    address = ready["plugin_listeners"]["lc.plugin.greeter"]
    with urllib.request.urlopen(f"http://{ready['metrics']}/health", timeout=60) as answer:
        assert json.load(answer)["plugin_listeners"]["lc.plugin.greeter"].endswith(f"://{address}")
    assert f"lc.plugin.greeter://{address}" in broker.log
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def greeting(host: str, port: int, tls: ssl.SSLContext | None = None) -> bytes:
    with socket.create_connection((host, port), 60) as sock:
        if tls is None:
            return sock.recv(100)
        with tls.wrap_socket(sock, server_hostname="localhost") as wrapped:
            return wrapped.recv(100)


def refusal(folder: Path, settings: dict[str, str]) -> str:
    """The one line with which a start ends that fails."""
    (folder / "broker.log").unlink(missing_ok=True)
    with pytest.raises(RuntimeError, match="ended with status 1") as ended:
        start_broker(folder, settings)
    lines = str(ended.value).partition(": ")[2].strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def test_the_host_is_that_of_the_first_client_listener(tmp_path: Path, greeter: dict[str, str]) -> None:
    with running_broker(tmp_path, {**greeter, "listeners": "PLAINTEXT://127.0.0.1:0"}) as broker:
        host, port = told(broker)
        assert host == "127.0.0.1"
        assert greeting(host, port) == b"hello"
        assert "without authentication" not in broker.log
    assert refused(host, port)


def refused(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), 5).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.parametrize(
    ("host", "given"), [("127.0.0.2", {}), ("127.0.0.3", {"lc.plugin.greeter.host": "127.0.0.3"})]
)
def test_a_plugin_may_name_another_host(
    tmp_path: Path, greeter: dict[str, str], host: str, given: dict[str, str]
) -> None:
    named = GREETER.replace("listener_settings(PREFIX, 0)", 'listener_settings(PREFIX, 0, "127.0.0.2")')
    (tmp_path / "plugins" / "greeter.py").write_text(named)
    with running_broker(tmp_path, {**greeter, **given}) as broker:
        found, port = told(broker)
        assert found == host
        assert greeting(host, port) == b"hello"
        assert refused("127.0.0.1", port)


def test_a_port_of_minus_1_is_not_opened(tmp_path: Path, greeter: dict[str, str]) -> None:
    """As the default of a listener, until it is set; `Broker.listen` has no sockets then."""
    unopened = GREETER.replace("listener_settings(PREFIX, 0)", "listener_settings(PREFIX, -1)").replace(
        "            task_status.started()\n",
        "            assert (listening.port, listening.sockets or None) == (-1, None) or listening.port > 0\n"
        "            task_status.started()\n"
        "            await trio.sleep_forever() if listening.port == -1 else None\n",
    )
    (tmp_path / "plugins" / "greeter.py").write_text(unopened)
    with running_broker(tmp_path, greeter) as broker:
        assert json.loads((broker.folder / "ready.json").read_text())["plugin_listeners"] == {}
        assert "failed" not in broker.log
    with running_broker(tmp_path, {**greeter, "lc.plugin.greeter.port": "0"}) as broker:
        assert greeting(*told(broker)) == b"hello"


def test_an_empty_host_is_every_address_and_one_warning(tmp_path: Path, greeter: dict[str, str]) -> None:
    with running_broker(tmp_path, {**greeter, "lc.plugin.greeter.host": ""}) as broker:
        _, port = told(broker)
        assert greeting("127.0.0.1", port) == b"hello"
        warnings = re.findall(r"WARNING .*without authentication.*", broker.log)
        assert len(warnings) == 1 and "lc.plugin.greeter.host" in warnings[0]


def test_an_open_listener_is_refused(tmp_path: Path, greeter: dict[str, str]) -> None:
    line = refusal(tmp_path, {**greeter, "lc.plugin.greeter.host": "0.0.0.0", "lc.listeners.open": "refuse"})
    assert re.fullmatch(
        r"leafcuttr: service greeter of plugin greeter: every host that reaches 0\.0\.0\.0 port \d+ may use "
        r"lc\.plugin\.greeter of plugin greeter without authentication \(lc\.plugin\.greeter\.host\), which "
        r"lc\.listeners\.open=refuse forbids",
        line,
    )


def test_tls_with_certificates_of_clients(tmp_path: Path, greeter: dict[str, str]) -> None:
    ca = trustme.CA()
    ca.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(tmp_path / "key.pem")
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    settings = {
        **greeter,
        "lc.plugin.greeter.host": "0.0.0.0",
        "lc.plugin.greeter.ssl.keystore.location": str(tmp_path / "key.pem"),
        "lc.plugin.greeter.ssl.truststore.location": str(tmp_path / "ca.pem"),
        "lc.plugin.greeter.ssl.client.auth": "required",
        "lc.listeners.open": "refuse",
    }
    client = ssl.create_default_context()
    ca.configure_trust(client)
    with running_broker(tmp_path, settings) as broker:
        _, port = told(broker)
        with suppress(OSError):  # TLS 1.3: the refusal comes after the handshake, or the connection just ends
            assert greeting("127.0.0.1", port, client) == b""
        ca.issue_cert("me@example.org").configure_cert(client)
        assert greeting("127.0.0.1", port, client) == b"hello"
        assert "without authentication" not in broker.log


def test_what_is_wrong_stops_the_start_with_one_line(tmp_path: Path, greeter: dict[str, str]) -> None:
    begin = "leafcuttr: service greeter of plugin greeter: "
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refusal(tmp_path, {**greeter, "lc.plugin.greeter.port": str(port)}) == (
            f"{begin}listener lc.plugin.greeter cannot open 127.0.0.1 port {port}: another program listens there "
            "(choose another port with -o lc.plugin.greeter.port=...)"
        )
    file = tmp_path / "none.pem"
    assert refusal(tmp_path, {**greeter, "lc.plugin.greeter.ssl.keystore.location": str(file)}) == (
        f"{begin}lc.plugin.greeter.ssl.keystore.location={file}: No such file or directory"
    )
    assert "the listener would be plaintext" in refusal(
        tmp_path, {**greeter, "lc.plugin.greeter.ssl.client.auth": "required"}
    )


def test_the_type_of_the_keystore_is_pem(tmp_path: Path, greeter: dict[str, str]) -> None:
    with pytest.raises(
        RuntimeError, match=r"status 2: leafcuttr: lc\.plugin\.greeter\.ssl\.keystore\.type=JKS"
    ):
        start_broker(tmp_path, {**greeter, "lc.plugin.greeter.ssl.keystore.type": "JKS"})


def test_secrets_are_not_told(tmp_path: Path, greeter: dict[str, str]) -> None:
    given: dict[str, Any] = {**greeter, "lc.plugin.greeter.ssl.key.password": "open sesame"}
    assert "open sesame" not in refusal(tmp_path, given)

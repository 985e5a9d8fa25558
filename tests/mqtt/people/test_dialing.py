"""`publish` and `subscribe` over TLS and WebSockets: to this broker and to Debian's mosquitto."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import trio
import trustme
from cryptography.hazmat.primitives import serialization

import leafcuttr_mqtt
from leafcuttr_mqtt.people.dialing import Address, DialSecurity, parse_address
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.testing import CommandResult, run_command
from support.mqtt import V5, running_mqtt
from support.mqtt_bridges import client_of, mosquitto, needs_mosquitto
from support.waiting import free_port


@pytest.mark.parametrize(
    ("text", "security", "address"),
    [
        ("a:1", DialSecurity(), Address("mqtt", "a", 1)),
        ("[::1]:1", DialSecurity(), Address("mqtt", "::1", 1)),
        ("a:1", DialSecurity(tls=True), Address("mqtts", "a", 1)),
        ("a:1", DialSecurity(ca_file="x"), Address("mqtts", "a", 1)),
        ("a:1", DialSecurity(insecure=True), Address("mqtts", "a", 1)),
        ("mqtt://a", DialSecurity(), Address("mqtt", "a", 1883)),
        ("mqtts://a", DialSecurity(), Address("mqtts", "a", 8883)),
        ("mqtts://[::1]:7", DialSecurity(tls=True), Address("mqtts", "::1", 7)),
        ("ws://a", DialSecurity(), Address("ws", "a", 80, "/mqtt")),
        ("wss://a/", DialSecurity(), Address("wss", "a", 443, "/")),
        ("wss://a:1/some/where", DialSecurity(tls=True), Address("wss", "a", 1, "/some/where")),
    ],
)
def test_addresses(text: str, security: DialSecurity, address: Address) -> None:
    assert parse_address(text, security) == address


@pytest.mark.parametrize(
    ("text", "security", "why"),
    [
        ("a", DialSecurity(), "'a' is no address: write HOST:PORT"),
        ("a:", DialSecurity(), "'a:' is no address: write HOST:PORT"),
        ("a:x", DialSecurity(tls=True), "'a:x' is no address: write HOST:PORT"),
        (":1", DialSecurity(), "'mqtt://:1' is no address: allowed are HOST:PORT and URLs"),
        ("a:70000", DialSecurity(), "'mqtt://a:70000' is no address: Port out of range"),
        ("http://a:1", DialSecurity(), "'http://a:1' is no address: allowed are HOST:PORT and URLs"),
        ("mqtt://", DialSecurity(), "'mqtt://' is no address: allowed are HOST:PORT and URLs"),
        ("mqtt://a:1/topic", DialSecurity(), "only those of ws and wss have a path"),
        (
            "mqtt://me:secret@a:1",
            DialSecurity(),
            "mqtt://a: an address has a host, a port and, of ws, a path only",
        ),
        ("mqtt://a:1", DialSecurity(tls=True), "mqtt://a:1 is without TLS: write mqtts://"),
        ("ws://a:1", DialSecurity(ca_file="x"), "ws://a:1 is without TLS: write wss://"),
    ],
)
def test_what_is_no_address(text: str, security: DialSecurity, why: str) -> None:
    with pytest.raises(PluginError) as raised:
        parse_address(text, security)
    assert why in str(raised.value)
    assert "secret" not in str(raised.value)


class Files(NamedTuple):
    """PEM files, of an authority, a server and a client."""

    ca: str
    server: str
    wrong_host: str
    client: str
    client_certificate: str
    client_key: str
    other_ca: str
    encrypted: str


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder, authority = tmp_path_factory.mktemp("tls"), trustme.CA()
    named = Files(*(str(folder / f"{name}.pem") for name in Files._fields))
    authority.cert_pem.write_to_path(named.ca)
    trustme.CA().cert_pem.write_to_path(named.other_ca)
    for host, file in (("127.0.0.1", named.server), ("elsewhere.example", named.wrong_host)):
        authority.issue_cert(host).private_key_and_cert_chain_pem.write_to_path(file)
    client = authority.issue_cert("device@example.org")
    client.private_key_and_cert_chain_pem.write_to_path(named.client)
    client.cert_chain_pems[0].write_to_path(named.client_certificate)
    client.private_key_pem.write_to_path(named.client_key)
    key = serialization.load_pem_private_key(client.private_key_pem.bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"correct horse"),
    )
    Path(named.encrypted).write_bytes(encrypted + client.cert_chain_pems[0].bytes())
    return named


async def run(*words: str, stdin: str = "") -> CommandResult:
    (declared,) = leafcuttr_mqtt.leafcuttr_register_cli_commands()
    return await trio.to_thread.run_sync(
        lambda: run_command(declared, *words, "--timeout", "10", plugin=leafcuttr_mqtt, stdin=stdin)
    )


def listening(files: Files, **more: str) -> dict[str, object]:
    settings: dict[str, object] = {}
    for prefix in ("mqtt.tls", "mqtt.ws", "mqtt.wss"):
        settings |= {f"{prefix}.host": "127.0.0.1", f"{prefix}.port": 0}
    for prefix in ("mqtt.tls", "mqtt.wss"):
        settings[f"{prefix}.ssl.keystore.location"] = files.server
        settings |= {f"{prefix}.{name.replace('_', '.')}": value for name, value in more.items()}
    return settings


@pytest.mark.long
async def test_every_listener_of_this_broker(tmp_path: Path, files: Files) -> None:
    async with running_mqtt(tmp_path, listening(files)) as mqtt:
        urls = {
            scheme: f"{scheme}://127.0.0.1:{mqtt.port_of(listener)}"
            for scheme, listener in (
                ("mqtt", "mqtt"),
                ("mqtts", "mqtt.tls"),
                ("ws", "mqtt.ws"),
                ("wss", "mqtt.wss"),
            )
        }
        watcher = await mqtt.connect("watcher")
        await watcher.subscribe("#")
        large = "x" * 300_000  # many records of TLS, and more than one read
        for scheme, url in urls.items():
            words = ("--mqtt-server", url, *(("--cafile", files.ca) if scheme in ("mqtts", "wss") else ()))
            for qos in "012":
                done = await run("publish", f"{scheme}/{qos}", large, "--qos", qos, "--retain", *words)
                assert (done.status, done.err) == (0, "")
                got = await watcher.message()
                assert (got.topic, len(got.payload)) == (f"{scheme}/{qos}", 300_000)
            lines = "".join(f"{number}\n" for number in range(200))
            assert (await run("publish", "lines", "--lines", *words, stdin=lines)).status == 0
            assert [(await watcher.message()).payload for _ in range(200)] == [b"%d" % n for n in range(200)]
            shown = await run("subscribe", f"{scheme}/#", "--max", "3", *words)
            assert (shown.status, shown.err) == (0, "")
            assert shown.out.count("x") == 900_000
            assert (await run("subscribe", "nothing", "--idle", "0.2", *words)).status == 0
        # HOST:PORT is enough where an option says that TLS is meant, and the admin port knows the listener.
        port = mqtt.port_of("mqtt.tls")
        done = await run(
            "publish", "a", "b", "--mqtt-server", f"127.0.0.1:{port}", "--tls", "--cafile", files.ca
        )
        assert (done.status, done.err) == (0, "")
        admin = ("--admin-server", mqtt.broker.metrics_address or "")
        done = await run("publish", "a", "b", "--cafile", files.ca, *admin)
        assert (done.status, done.err) == (0, "")


async def test_what_is_wrong_is_one_line(tmp_path: Path, files: Files) -> None:
    async with running_mqtt(tmp_path, listening(files)) as mqtt:
        tls, wss = mqtt.port_of("mqtt.tls"), mqtt.port_of("mqtt.wss")

        async def refused(*words: str) -> str:
            done = await run("publish", "a", "b", *words)
            assert (done.status, done.out) == (1, "")
            (line,) = done.err.splitlines()
            return line

        for url in (f"mqtts://127.0.0.1:{tls}", f"wss://127.0.0.1:{wss}"):
            for more in ((), ("--cafile", files.other_ca)):
                line = await refused("--mqtt-server", url, *more)
                assert line.startswith(f"leafcuttr: the certificate of {url} is refused: ")
                assert line.endswith("(--cafile says whom to trust)")
        plain = f"127.0.0.1:{mqtt.port}"
        line = await refused("--mqtt-server", plain, "--tls")
        assert line.startswith(f"leafcuttr: no MQTT broker answers at mqtts://{plain}: ")
        line = await refused("--mqtt-server", f"ws://{plain}")
        assert line == f"leafcuttr: ws://{plain} serves no WebSocket"
        line = await refused("--mqtt-server", f"127.0.0.1:{tls}")
        assert line.startswith(f"leafcuttr: 127.0.0.1:{tls}")
        line = await refused("--mqtt-server", "ws://127.0.0.1:1")
        assert line == "leafcuttr: no MQTT broker answers at ws://127.0.0.1:1: Connection refused"
        line = await refused("--mqtt-server", f"mqtts://127.0.0.1:{tls}", "--cafile", f"{tmp_path}/none.pem")
        assert line == f"leafcuttr: --cafile {tmp_path}/none.pem: No such file or directory"
        line = await refused("--mqtt-server", f"mqtts://127.0.0.1:{tls}", "--cafile", files.client_key)
        assert line.startswith(f"leafcuttr: --cafile {files.client_key} cannot be used: ")
        line = await refused("--mqtt-server", f"mqtts://127.0.0.1:{tls}", "--cert", f"{tmp_path}/none.pem")
        assert line == f"leafcuttr: --cert {tmp_path}/none.pem: No such file or directory"
        line = await refused("--mqtt-server", f"mqtts://127.0.0.1:{tls}", "--cert", files.encrypted)
        assert "its private key is encrypted" in line
        done = await run("publish", "a", "b", "--mqtt-server", f"127.0.0.1:{tls}", "--key", files.client_key)
        assert (done.status, "--key needs --cert" in done.err) == (2, True)


async def test_a_certificate_for_another_host(tmp_path: Path, files: Files) -> None:
    settings = listening(files) | {"mqtt.tls.ssl.keystore.location": files.wrong_host}
    async with running_mqtt(tmp_path, settings) as mqtt:
        words = ("publish", "a", "b", "--mqtt-server", f"mqtts://127.0.0.1:{mqtt.port_of('mqtt.tls')}")
        done = await run(*words, "--cafile", files.ca)
        assert done.status == 1
        assert done.err.endswith("(--insecure does without this check)\n")
        assert (await run(*words, "--cafile", files.ca, "--insecure")).status == 0
        # As with mosquitto's clients, somebody has to have signed it all the same.
        assert (await run(*words, "--cafile", files.other_ca, "--insecure")).status == 1


async def test_a_certificate_of_the_client(tmp_path: Path, files: Files) -> None:
    settings = listening(files, ssl_client_auth="required", ssl_truststore_location=files.ca)
    async with running_mqtt(tmp_path, settings) as mqtt:
        for url in (
            f"mqtts://127.0.0.1:{mqtt.port_of('mqtt.tls')}",
            f"wss://127.0.0.1:{mqtt.port_of('mqtt.wss')}",
        ):
            words = ("publish", "a", "b", "--mqtt-server", url, "--cafile", files.ca)
            assert (await run(*words, "--cert", files.client)).status == 0
            assert (
                await run(*words, "--cert", files.client_certificate, "--key", files.client_key)
            ).status == 0
            done = await run(*words)
            assert done.status == 1
            assert len(done.err.splitlines()) == 1


@needs_mosquitto
async def test_mosquitto(tmp_path: Path, files: Files) -> None:
    ports = {scheme: free_port() for scheme in ("mqtts", "ws", "wss")}
    tls = f"cafile {files.ca}\ncertfile {files.server}\nkeyfile {files.server}"
    more = (
        f"listener {ports['mqtts']} 127.0.0.1\n{tls}\nrequire_certificate true",
        f"listener {ports['ws']} 127.0.0.1\nprotocol websockets",
        f"listener {ports['wss']} 127.0.0.1\nprotocol websockets\n{tls}",
    )
    async with mosquitto(tmp_path / "there", *more) as there:
        watcher = await client_of(there.port, "watcher", V5)
        await watcher.subscribe("#")
        for scheme, port in ports.items():
            words = ["--mqtt-server", f"{scheme}://127.0.0.1:{port}"]
            words += ["--cafile", files.ca, "--cert", files.client] if scheme != "ws" else []
            for qos in "012":
                done = await run("publish", f"{scheme}/{qos}", "x" * 50_000, "-q", qos, "-r", *words)
                assert (done.status, done.err) == (0, "")
                got = await watcher.message()
                assert (got.topic, len(got.payload)) == (f"{scheme}/{qos}", 50_000)
            shown = await run("subscribe", f"{scheme}/#", "--max", "3", *words)
            assert (shown.status, shown.out.count("x")) == (0, 150_000)
        done = await run(
            "publish", "a", "b", "--mqtt-server", f"mqtts://127.0.0.1:{ports['mqtts']}", "--cafile", files.ca
        )
        assert (done.status, len(done.err.splitlines())) == (1, 1)


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """A server that answers its only client with these bytes."""
    import threading

    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                client.recv(10_000)
                client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join(10)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "refuses the WebSocket: it answers 404"),
        (b"", "serves no WebSocket"),
        (b"\x00\xff" * 100, "serves no WebSocket"),
    ],
)
async def test_what_serves_no_websocket(answer: bytes, why: str) -> None:
    with answering(answer) as port:
        done = await run("publish", "a", "b", "--mqtt-server", f"ws://127.0.0.1:{port}")
    assert (done.status, done.err) == (1, f"leafcuttr: ws://127.0.0.1:{port} {why}\n")

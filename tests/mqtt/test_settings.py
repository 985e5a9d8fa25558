"""Each setting of the broker, seen to act."""

from __future__ import annotations

import ssl
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from cryptography.hazmat.primitives import serialization
from trio_websocket import ConnectionRejected, open_websocket_url

from leafcuttr.embedded import open_broker
from leafcuttr.errors import ConfigError
from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.types import (
    ConnAck,
    Connect,
    Disconnect,
    PingReq,
    PingResp,
    Properties,
    PubAck,
    Publish,
    ReasonCode,
    Version,
    Will,
)
from leafcuttr_mqtt.packets.writer import encode
from support.mqtt import V3, V5, MqttClient, RunningMqtt, running_mqtt
from support.waiting import free_port

LISTENERS = ("mqtt", "mqtt.tls", "mqtt.ws", "mqtt.wss")
PASSWORD = "correct horse"


def of_all(**values: Any) -> dict[str, Any]:
    """These settings for each of the listeners."""
    return {
        f"{prefix}.{name.replace('_', '.')}": value for prefix in LISTENERS for name, value in values.items()
    }


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def certificate(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with a key and its certificate."""
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(file)
    return str(file)


@pytest.fixture
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def over(
    mqtt: RunningMqtt, prefix: str, context: ssl.SSLContext, client_id: str, version: Version = V5
) -> ConnAck:
    """Connect over a listener; what it answers."""
    host, _, port = mqtt.broker.listeners[prefix].rpartition("://")[2].rpartition(":")
    connect = encode(Connect(version, client_id, True, 0), version)
    if prefix in ("mqtt.ws", "mqtt.wss"):
        scheme = "ws" if prefix == "mqtt.ws" else "wss"
        url = f"{scheme}://{host}:{port}/mqtt"
        async with open_websocket_url(
            url, context if scheme == "wss" else None, subprotocols=["mqtt"]
        ) as socket:
            await socket.send_message(connect)
            (answer,) = PacketReader.of_server(1 << 20, version).feed(await socket.get_message())
    else:
        stream: trio.abc.Stream
        if prefix == "mqtt.tls":
            stream = await trio.open_ssl_over_tcp_stream(host, int(port), ssl_context=context)
        else:
            stream = await trio.open_tcp_stream(host, int(port))
        client = MqttClient(stream, version)
        await client.send(Connect(version, client_id, True, 0))
        answer = await client.expect(ConnAck)
    assert isinstance(answer, ConnAck)
    return answer


@pytest.mark.setting(
    "lc.mqtt.broker.enable",
    "mqtt.host",
    "mqtt.tls.host",
    "mqtt.ws.host",
    "mqtt.wss.host",
    "mqtt.port",
    "mqtt.tls.port",
    "mqtt.ws.port",
    "mqtt.wss.port",
    "mqtt.unix.path",
    "mqtt.tls.unix.path",
    "mqtt.ws.unix.path",
    "mqtt.wss.unix.path",
    "mqtt.unix.mode",
    "mqtt.tls.unix.mode",
    "mqtt.ws.unix.mode",
    "mqtt.wss.unix.mode",
    "mqtt.tls.ssl.keystore.location",
    "mqtt.wss.ssl.keystore.location",
)
async def test_where_it_listens(tmp_path: Path, certificate: str, trusting: ssl.SSLContext) -> None:
    settings = {
        **of_all(host="127.0.0.1", unix_mode="0600"),
        **{f"{prefix}.port": free_port() for prefix in LISTENERS},
        **{f"{prefix}.unix.path": str(tmp_path / f"{prefix}.sock") for prefix in LISTENERS},
        "mqtt.tls.ssl.keystore.location": certificate,
        "mqtt.wss.ssl.keystore.location": certificate,
    }
    async with running_mqtt(tmp_path / "data", settings) as mqtt:
        for prefix in LISTENERS:
            assert mqtt.port_of(prefix) == settings[f"{prefix}.port"]
            assert (await over(mqtt, prefix, trusting, prefix)).reason == 0
            assert (tmp_path / f"{prefix}.sock").stat().st_mode & 0o777 == 0o600
        stream = await trio.open_unix_socket(str(tmp_path / "mqtt.sock"))
        client = MqttClient(stream, V5)
        await client.send(Connect(V5, "unix", True, 0))
        await client.expect(ConnAck)
    off = {"log.dirs": str(tmp_path / "off"), "listeners": "PLAINTEXT://127.0.0.1:0", "lc.metrics.port": 0}
    async with open_broker(off) as broker:
        assert list(broker.listeners) == ["PLAINTEXT"]


@pytest.mark.setting("mqtt.ws.allowed.origins", "mqtt.wss.allowed.origins")
async def test_whose_pages_may_connect(tmp_path: Path, certificate: str, trusting: ssl.SSLContext) -> None:
    listeners = {"mqtt.ws": None, "mqtt.wss": trusting}
    settings: dict[str, Any] = {"mqtt.wss.ssl.keystore.location": certificate}
    for prefix in listeners:
        settings |= {f"{prefix}.host": "127.0.0.1", f"{prefix}.port": 0}
        settings[f"{prefix}.allowed.origins"] = f"https://{prefix}.test,null"
    async with running_mqtt(tmp_path / "data", settings) as mqtt:
        for prefix, context in listeners.items():
            url = f"{'wss' if context else 'ws'}://127.0.0.1:{mqtt.port_of(prefix)}/mqtt"
            dial = partial(open_websocket_url, url, context, subprotocols=["mqtt"])
            for origin in (f"https://{prefix}.test", "null", "http://127.0.0.1:3000"):
                async with dial(extra_headers=[(b"Origin", origin.encode())]):
                    pass
            with pytest.raises(ConnectionRejected) as refused:
                async with dial(extra_headers=[(b"Origin", b"https://evil.test")]):
                    pass
            assert refused.value.status_code == 403
            assert f"https://{prefix}.test, null; {prefix}.allowed.origins" in str(refused.value.body)
    with pytest.raises(BaseExceptionGroup) as raised:
        async with running_mqtt(tmp_path / "other", {"mqtt.ws.allowed.origins": "plant"}):
            pass
    assert raised.group_contains(ConfigError, match=r"mqtt\.ws\.allowed\.origins.*'plant' is no origin")


async def test_a_listener_for_tls_needs_a_certificate(tmp_path: Path) -> None:
    with pytest.raises(BaseExceptionGroup) as raised:
        async with running_mqtt(tmp_path, {"mqtt.tls.port": 0}):
            pass
    assert "mqtt.tls.ssl.keystore.location" in str(raised.value.exceptions)


@pytest.mark.setting(
    "mqtt.ssl.keystore.location",
    "mqtt.tls.ssl.keystore.location",
    "mqtt.ws.ssl.keystore.location",
    "mqtt.wss.ssl.keystore.location",
    "mqtt.ssl.key.password",
    "mqtt.tls.ssl.key.password",
    "mqtt.ws.ssl.key.password",
    "mqtt.wss.ssl.key.password",
    "mqtt.ssl.truststore.location",
    "mqtt.tls.ssl.truststore.location",
    "mqtt.ws.ssl.truststore.location",
    "mqtt.wss.ssl.truststore.location",
    "mqtt.ssl.client.auth",
    "mqtt.tls.ssl.client.auth",
    "mqtt.ws.ssl.client.auth",
    "mqtt.wss.ssl.client.auth",
)
async def test_clients_that_show_a_certificate(tmp_path: Path, authority: trustme.CA) -> None:
    of_clients = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    key = serialization.load_pem_private_key(certificate.private_key_pem.bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(PASSWORD.encode()),
    )
    chain = b"".join(pem.bytes() for pem in certificate.cert_chain_pems)
    (tmp_path / "server.pem").write_bytes(encrypted + chain)
    of_clients.cert_pem.write_to_path(tmp_path / "clients.pem")
    settings = {
        **of_all(
            host="127.0.0.1",
            port=0,
            ssl_keystore_location=str(tmp_path / "server.pem"),
            ssl_key_password=PASSWORD,
            ssl_truststore_location=str(tmp_path / "clients.pem"),
            ssl_client_auth="required",
        ),
    }
    known, unknown = ssl.create_default_context(), ssl.create_default_context()
    for context in (known, unknown):
        authority.configure_trust(context)
    of_clients.issue_cert("device@example.org").configure_cert(known)
    async with running_mqtt(tmp_path / "data", settings) as mqtt:
        for prefix in LISTENERS:
            for context, is_in in ((known, True), (unknown, False)):
                stream = await trio.open_ssl_over_tcp_stream(
                    "127.0.0.1", mqtt.port_of(prefix), ssl_context=context
                )
                request = (
                    b"GET / HTTP/1.1\r\n\r\n" if "ws" in prefix else encode(Connect(V5, "c", True, 0), V5)
                )
                answer = b""
                with trio.fail_after(10), suppress(trio.BrokenResourceError):
                    await stream.send_all(request)
                    answer = bytes(await stream.receive_some())
                assert bool(answer) is is_in


@pytest.mark.setting(
    "mqtt.max.connections",
    "mqtt.tls.max.connections",
    "mqtt.ws.max.connections",
    "mqtt.wss.max.connections",
    "mqtt.tls.ssl.keystore.location",
)
async def test_how_many_may_connect(tmp_path: Path, certificate: str, trusting: ssl.SSLContext) -> None:
    settings = {
        **of_all(host="127.0.0.1", port=0, max_connections=1),
        "mqtt.tls.ssl.keystore.location": certificate,
        "mqtt.wss.ssl.keystore.location": certificate,
    }
    async with running_mqtt(tmp_path / "data", settings) as mqtt:
        for prefix in LISTENERS:
            first = await trio.open_tcp_stream("127.0.0.1", mqtt.port_of(prefix))
            await trio.testing.wait_all_tasks_blocked(0.05)
            second = await trio.open_tcp_stream("127.0.0.1", mqtt.port_of(prefix))
            with trio.fail_after(10):
                with suppress(trio.BrokenResourceError):
                    assert await second.receive_some() == b""
            await first.aclose()


@pytest.mark.setting(
    "mqtt.handshake.timeout.ms",
    "mqtt.tls.handshake.timeout.ms",
    "mqtt.ws.handshake.timeout.ms",
    "mqtt.wss.handshake.timeout.ms",
)
async def test_who_says_nothing_is_disconnected(tmp_path: Path, certificate: str) -> None:
    settings = {
        **of_all(host="127.0.0.1", port=0, handshake_timeout_ms=300),
        "mqtt.tls.ssl.keystore.location": certificate,
        "mqtt.wss.ssl.keystore.location": certificate,
    }
    async with running_mqtt(tmp_path / "data", settings) as mqtt:
        for prefix in LISTENERS:
            stream = await trio.open_tcp_stream("127.0.0.1", mqtt.port_of(prefix))
            with trio.fail_after(10):
                with suppress(trio.BrokenResourceError):
                    assert await stream.receive_some() == b""


@pytest.mark.setting(
    "mqtt.idle.timeout.ms",
    "mqtt.tls.idle.timeout.ms",
    "mqtt.ws.idle.timeout.ms",
    "mqtt.wss.idle.timeout.ms",
)
async def test_who_is_idle_is_disconnected_where_that_is_set(
    tmp_path: Path, certificate: str, trusting: ssl.SSLContext
) -> None:
    settings = {
        **of_all(host="127.0.0.1", port=0, idle_timeout_ms=500),
        "mqtt.tls.ssl.keystore.location": certificate,
        "mqtt.wss.ssl.keystore.location": certificate,
    }
    async with running_mqtt(tmp_path / "data", settings) as mqtt:
        client = await mqtt.connect("idle")
        last = await client.next()
        assert last is None or isinstance(last, Disconnect)


@pytest.mark.setting(
    "mqtt.send.timeout.ms",
    "mqtt.tls.send.timeout.ms",
    "mqtt.ws.send.timeout.ms",
    "mqtt.wss.send.timeout.ms",
)
async def test_who_takes_nothing_is_disconnected(tmp_path: Path, certificate: str) -> None:
    settings = {
        **of_all(host="127.0.0.1", port=0, send_timeout_ms=300),
        "mqtt.tls.ssl.keystore.location": certificate,
        "mqtt.wss.ssl.keystore.location": certificate,
    }
    async with running_mqtt(tmp_path / "data", settings) as mqtt:
        slow = await mqtt.connect("slow")
        await slow.subscribe("big", qos=0)
        watcher = await mqtt.connect("watcher")
        await watcher.subscribe("gone")
        publisher = await mqtt.connect("publisher", will=Will("unused", b"", 0, False))
        will = await mqtt.connect("slow", will=Will("gone", b"", 0, False), present=None)
        await will.subscribe("big", qos=0)
        for _ in range(200):
            await publisher.publish("big", bytes(200_000), 0)
        assert (await watcher.message()).topic == "gone"


@pytest.mark.setting("mqtt.auth.username", "mqtt.auth.password")
async def test_the_pair_of_user_name_and_password(tmp_path: Path) -> None:
    settings = {"mqtt.auth.username": "device", "mqtt.auth.password": "secret"}
    async with running_mqtt(tmp_path / "data", settings) as mqtt:
        await mqtt.connect("in", user_name="device", password=b"secret")
        for version, refused in ((V3, 4), (V5, ReasonCode.BAD_USER_NAME_OR_PASSWORD)):
            for name, password in (("device", b"wrong"), ("other", b"secret"), ("device", None)):
                if version == V3 and password is None:
                    continue
                client = await mqtt.dial(version)
                await client.send(Connect(version, "c", True, 0, name, password))
                assert (await client.expect(ConnAck)).reason == refused
                await client.closed()
        for version, reason in ((V3, 5), (V5, ReasonCode.NOT_AUTHORIZED)):
            client = await mqtt.dial(version)
            await client.send(Connect(version, "c", True, 0))
            assert (await client.expect(ConnAck)).reason == reason


async def test_without_the_pair_everyone_is_let_in(mqtt: RunningMqtt) -> None:
    await mqtt.connect("a")
    await mqtt.connect("b", user_name="whoever", password=b"whatever")


@pytest.mark.setting("mqtt.max.packet.bytes")
async def test_the_largest_packet(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path / "data", {"mqtt.max.packet.bytes": 2000}) as mqtt:
        client = await mqtt.dial(V5)
        await client.send(Connect(V5, "c", True, 0))
        assert (await client.expect(ConnAck)).properties.maximum_packet_size == 2000
        await client.publish("a", bytes(1900), 1)
        await client.send(Publish("a", bytes(2000)))
        assert (await client.expect(Disconnect)).reason == ReasonCode.PACKET_TOO_LARGE


@pytest.mark.setting("mqtt.max.inflight")
async def test_how_many_messages_may_be_under_way(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path / "data", {"mqtt.max.inflight": 2}) as mqtt:
        client = await mqtt.dial(V5)
        await client.send(Connect(V5, "c", True, 0))
        assert (await client.expect(ConnAck)).properties.receive_maximum == 2
        await client.subscribe("a", qos=1)
        publisher = await mqtt.connect("p")
        for number in range(4):
            await publisher.publish("a", b"%d" % number, 1)
        first = await client.expect(Publish)
        await client.expect(Publish)
        await client.nothing()
        await client.send(PubAck(first.packet_id))
        assert (await client.expect(Publish)).payload == b"2"


@pytest.mark.setting("mqtt.session.max.messages")
async def test_how_many_messages_may_wait(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path / "data", {"mqtt.session.max.messages": 3}) as mqtt:
        await _only_the_last_are_there(mqtt, bytes(10), 3)


@pytest.mark.setting("mqtt.session.max.bytes")
async def test_how_many_bytes_may_wait(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path / "data", {"mqtt.session.max.bytes": 3500}) as mqtt:
        await _only_the_last_are_there(mqtt, bytes(1000), 3)


async def _only_the_last_are_there(mqtt: RunningMqtt, payload: bytes, count: int) -> None:
    client = await mqtt.connect("s", V3, clean=False)
    await client.subscribe("a", qos=1)
    await client.leave()
    publisher = await mqtt.connect("p")
    for number in range(10):
        await publisher.publish("a", b"%d" % number + payload, 1)
    client = await mqtt.connect("s", V3, clean=False, present=True)
    got = [(await client.message()).payload[:1] for _ in range(count)]
    assert got == [b"%d" % number for number in range(10 - count, 10)]
    await client.nothing()


@pytest.mark.setting("mqtt.session.expiry.max.ms")
async def test_how_long_a_session_is_kept(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path / "data", {"mqtt.session.expiry.max.ms": 1000}) as mqtt:
        client = await mqtt.dial(V5)
        await client.send(Connect(V5, "s", False, 0, properties=Properties(session_expiry_interval=3600)))
        assert (await client.expect(ConnAck)).properties.session_expiry_interval == 1
        await client.leave()
        watcher = await mqtt.connect("w")
        with trio.fail_after(10):
            while "s" in mqtt.sessions():
                await trio.sleep(0.05)
        await watcher.nothing()


@pytest.mark.setting("mqtt.keep.alive.max.ms")
async def test_the_longest_keep_alive(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path / "data", {"mqtt.keep.alive.max.ms": 1000}) as mqtt:
        client = await mqtt.dial(V5)
        await client.send(Connect(V5, "c", True, 600))
        assert (await client.expect(ConnAck)).properties.server_keep_alive == 1
        assert (await client.expect(Disconnect)).reason == ReasonCode.KEEP_ALIVE_TIMEOUT


@pytest.mark.setting("mqtt.retain.enable")
async def test_without_retained_messages(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path / "data", {"mqtt.retain.enable": False}) as mqtt:
        old = await mqtt.connect("old", V3)
        await old.publish("a", b"x", 1, retain=True)
        await old.subscribe("a")
        await old.nothing()
        client = await mqtt.dial(V5)
        await client.send(Connect(V5, "c", True, 0))
        assert (await client.expect(ConnAck)).properties.retain_available == 0
        await client.send(Publish("a", b"x", retain=True))
        assert (await client.expect(Disconnect)).reason == ReasonCode.RETAIN_NOT_SUPPORTED


@pytest.mark.setting("mqtt.persistence.enable")
async def test_without_persistence_there_are_no_internal_topics(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path / "data", {"mqtt.persistence.enable": False}) as mqtt:
        client = await mqtt.connect("s", V3, clean=False)
        await client.send(PingReq())
        await client.expect(PingResp)
        assert not [name for name in mqtt.broker.topics.names(internal=True) if name.startswith("__mqtt")]


def test_settings_are_declared_without_packets() -> None:
    """Each start declares them, also where MQTT is off: what packets are made of takes longer than all the rest."""
    program = (
        "import sys, leafcuttr_mqtt\n"
        "assert len(list(leafcuttr_mqtt.leafcuttr_register_settings())) > 50\n"
        "assert [name for name in sys.modules if name.startswith('leafcuttr_mqtt.packets')] == []\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

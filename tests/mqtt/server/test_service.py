"""The service: its listeners, what it needs at a start, and what is there after a restart."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from trio_websocket import open_websocket_url

from leafcuttr.errors import StartError
from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.types import (
    ConnAck,
    Connect,
    Disconnect,
    PingReq,
    Properties,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    ReasonCode,
    Subscribe,
    SubscriptionRequest,
    Version,
    Will,
)
from leafcuttr_mqtt.packets.writer import encode
from leafcuttr_mqtt.storage.store import Store
from leafcuttr_mqtt.storage.topics import CONFIGS
from support.mqtt import V3, V5, MqttClient, running_mqtt

VERSIONS = pytest.mark.parametrize("version", [V3, V5], ids=["3.1.1", "5.0"])
OUTLIVES = Properties(session_expiry_interval=1000)


def kept(version: Version) -> dict[str, Any]:
    return {"clean": False, "properties": OUTLIVES if version == V5 else Properties()}


@VERSIONS
async def test_a_session_goes_on_after_a_restart(tmp_path: Path, version: Version) -> None:
    async with running_mqtt(tmp_path) as mqtt:
        client = await mqtt.connect("s", version, **kept(version))
        await client.subscribe("a/#", qos=2)
        publisher = await mqtt.connect("p")
        await publisher.publish("a/1", b"one", 1)
        first = await client.expect(Publish)
        await client.vanish()
        for number in range(3):
            await publisher.publish("a/2", b"%d" % number, 2)
    async with running_mqtt(tmp_path) as mqtt:
        client = await mqtt.connect("s", version, present=True, **kept(version))
        again = await client.message()
        assert (again.payload, again.packet_id, again.duplicate) == (b"one", first.packet_id, True)
        assert [(await client.message()).payload for _ in range(3)] == [b"0", b"1", b"2"]
        await client.publish("b/3", b"new", 1)
        await client.nothing()
        await client.leave()
    async with running_mqtt(tmp_path) as mqtt:
        client = await mqtt.connect("s", version, present=True, **kept(version))
        await client.nothing()


async def test_qos_2_is_exactly_once_across_a_restart(tmp_path: Path) -> None:
    settings = {"mqtt.topic.mapping.a": "a"}
    async with running_mqtt(tmp_path, settings) as mqtt:
        client = await mqtt.connect("p", V3, clean=False)
        await client.send(Publish("a", b"x", 2, packet_id=7))
        await client.expect(PubRec)
    async with running_mqtt(tmp_path, settings) as mqtt:
        client = await mqtt.connect("p", V3, clean=False, present=True)
        await client.send(Publish("a", b"x", 2, packet_id=7, duplicate=True))
        await client.expect(PubRec)
        await client.send(PubRel(7))
        assert (await client.expect(PubComp)).reason == 0
        assert len(await mqtt.records("a")) == 1


@pytest.mark.parametrize("target", ["plant-press", "plant-{1}"])
async def test_qos_2_is_exactly_once_where_a_crash_comes_between_the_kafka_topic_and_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """Also in a Kafka topic whose name is made of a capture."""
    settings = {"mqtt.topic.mapping.plant/#": target}
    async with running_mqtt(tmp_path, settings) as mqtt:
        with monkeypatch.context() as crash:
            crash.setattr(Store, "note_received", lambda *arguments: None)
            client = await mqtt.connect("p", V3, clean=False)
            await client.send(Publish("plant/press", b"x", 2, packet_id=7))
            await client.expect(PubRec)  # which it has not got, as it says below
        assert len(await mqtt.records("plant-press")) == 1
    async with running_mqtt(tmp_path, settings) as mqtt:
        client = await mqtt.connect("p", V3, clean=False, present=True)
        await client.send(Publish("plant/press", b"x", 2, packet_id=7, duplicate=True))
        await client.expect(PubRec)
        assert len(await mqtt.records("plant-press")) == 1


@pytest.mark.parametrize(("topic", "synced"), [("plant-press", True), ("other", False)])
async def test_the_internal_topics_are_synced_where_a_topic_that_captures_lead_to_is(
    tmp_path: Path, topic: str, synced: bool
) -> None:
    settings = {"mqtt.topic.mapping.plant/#": "plant-{1}"}
    async with running_mqtt(tmp_path, settings) as mqtt:
        await mqtt.broker.topics.create(topic, configs={"lc.log.sync.always": "true"})
    async with running_mqtt(tmp_path, settings) as mqtt:
        for name in CONFIGS:
            assert mqtt.broker.topics.configs(name)["lc.log.sync.always"] == str(synced).lower()


async def test_retained_messages_are_there_after_a_restart(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path) as mqtt:
        client = await mqtt.connect("p")
        await client.publish("r/1", b"1", 1, retain=True)
        await client.publish("r/2", b"2", 1, retain=True)
        await client.publish("r/2", b"", 1, retain=True)
    async with running_mqtt(tmp_path) as mqtt:
        client = await mqtt.connect("s")
        await client.subscribe("r/#")
        message = await client.message()
        assert (message.topic, message.payload, message.retain) == ("r/1", b"1", True)
        await client.nothing()


async def test_without_persistence_nothing_is_there_after_a_restart(tmp_path: Path) -> None:
    settings = {"mqtt.persistence.enable": False}
    async with running_mqtt(tmp_path, settings) as mqtt:
        client = await mqtt.connect("s", V3, clean=False)
        await client.subscribe("a")
        await client.publish("r", b"1", 1, retain=True)
        await client.leave()
        await (await mqtt.connect("p")).publish("a", b"1", 1)
        client = await mqtt.connect("s", V3, clean=False, present=True)
        assert (await client.message()).payload == b"1"
        assert not [name for name in mqtt.broker.topics.names(internal=True) if "mqtt" in name]
    async with running_mqtt(tmp_path, settings) as mqtt:
        client = await mqtt.connect("s", V3, clean=False)
        await client.subscribe("#")
        await client.nothing()


@VERSIONS
async def test_clients_are_told_of_a_stop_and_their_wills_are_published_at_the_next_start(
    tmp_path: Path, version: Version
) -> None:
    async with running_mqtt(tmp_path) as mqtt:
        watcher = await mqtt.connect("w", V3, clean=False)
        await watcher.subscribe("wills", qos=1)
        await watcher.leave()
        client = await mqtt.connect("c", version, will=Will("wills", b"gone", 1, False))
        mqtt.stop()
        if version == V5:
            assert (await client.expect(Disconnect)).reason == ReasonCode.SERVER_SHUTTING_DOWN
        await client.closed()
    async with running_mqtt(tmp_path) as mqtt:
        watcher = await mqtt.connect("w", V3, clean=False, present=True)
        assert (await watcher.message()).payload == b"gone"


async def test_clients_with_certificates(tmp_path: Path) -> None:
    """`mqtt.auth=mtls`, where the listener for TLS has settings of its own and 1883 has no TLS."""
    authority = trustme.CA()
    server, trusted, own = (tmp_path / name for name in ("server.pem", "ca.pem", "client.pem"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(server)
    authority.cert_pem.write_to_path(trusted)
    authority.issue_cert(common_name="sensor-7").private_key_and_cert_chain_pem.write_to_path(own)
    settings = {
        "mqtt.auth": "mtls",
        "mqtt.tls.host": "127.0.0.1",
        "mqtt.tls.port": 0,
        "mqtt.tls.ssl.keystore.location": server,
        "mqtt.tls.ssl.truststore.location": trusted,
        "mqtt.tls.ssl.client.auth": "requested",
    }
    async with running_mqtt(tmp_path / "d", {name: str(each) for name, each in settings.items()}) as mqtt:

        async def answer(context: ssl.SSLContext) -> ConnAck:
            stream = await trio.open_ssl_over_tcp_stream(
                "127.0.0.1", mqtt.port_of("mqtt.tls"), ssl_context=context
            )
            async with stream:
                client = MqttClient(stream, V5)
                await client.send(Connect(V5, "c", True, 0))
                return await client.expect(ConnAck)

        trusts = ssl.create_default_context()
        authority.configure_trust(trusts)
        assert (await answer(trusts)).reason == ReasonCode.NOT_AUTHORIZED
        trusts.load_cert_chain(own)
        assert (await answer(trusts)).reason == ReasonCode.SUCCESS

        plain = await mqtt.dial(V5)
        await plain.send(Connect(V5, "c", True, 0))
        assert (await plain.expect(ConnAck)).reason == ReasonCode.NOT_AUTHORIZED


async def test_certificates_that_no_listener_requests(tmp_path: Path) -> None:
    """The line names all listeners."""
    names = " and ".join(f"mqtt{of}.ssl.client.auth" for of in ("", ".tls", ".ws", ".wss"))
    with pytest.RaisesGroup(
        pytest.RaisesExc(StartError, match=f"mqtt: mqtt.auth offers mtls, but {names} are none$"),
        flatten_subgroups=True,
    ):
        async with running_mqtt(tmp_path, {"mqtt.auth": "mtls"}):
            pass


@pytest.fixture
def certificates(tmp_path: Path) -> tuple[ssl.SSLContext, str]:
    """What clients trust, and the server's file."""
    authority = trustme.CA()
    file = tmp_path / "server.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(file)
    trusts = ssl.create_default_context()
    authority.configure_trust(trusts)
    return trusts, str(file)


async def test_tls_has_listeners_of_its_own(tmp_path: Path, certificates: tuple[ssl.SSLContext, str]) -> None:
    trusts, file = certificates
    settings = {"mqtt.tls.host": "127.0.0.1", "mqtt.tls.port": 0, "mqtt.tls.ssl.keystore.location": file}
    async with running_mqtt(tmp_path / "d", settings) as mqtt:
        stream = await trio.open_ssl_over_tcp_stream(
            "127.0.0.1", mqtt.port_of("mqtt.tls"), ssl_context=trusts
        )
        client = MqttClient(stream, V5)
        await client.send(Connect(V5, "tls", True, 0))
        await client.expect(ConnAck)
        await client.subscribe("a")
        await client.publish("a", b"x" * 300_000)
        assert (await client.message()).payload == b"x" * 300_000
        other = await mqtt.connect("tls")
        assert (await client.expect(Disconnect)).reason == ReasonCode.SESSION_TAKEN_OVER
        await other.nothing()


async def test_websockets_have_listeners_of_their_own(tmp_path: Path) -> None:
    settings = {"mqtt.ws.host": "127.0.0.1", "mqtt.ws.port": 0}
    async with running_mqtt(tmp_path, settings) as mqtt:
        url = f"ws://127.0.0.1:{mqtt.port_of('mqtt.ws')}/mqtt"
        async with open_websocket_url(url, subprotocols=["mqtt"]) as socket:
            assert socket.subprotocol == "mqtt"
            await socket.send_message(encode(Connect(V5, "ws", True, 0), V5))
            (answer,) = PacketReader.of_server(1000, V5).feed(await socket.get_message())
            assert isinstance(answer, ConnAck) and not answer.reason


async def test_websockets_can_be_all_that_is_open(tmp_path: Path) -> None:
    settings = {"mqtt.port": -1, "mqtt.ws.host": "127.0.0.1", "mqtt.ws.port": 0}
    async with running_mqtt(tmp_path, settings) as mqtt:
        assert [each for each in mqtt.broker.listeners if each.startswith("mqtt")] == ["mqtt.ws"]
        url = f"ws://127.0.0.1:{mqtt.port_of('mqtt.ws')}/mqtt"
        async with open_websocket_url(url, subprotocols=["mqtt"]) as socket:
            await socket.send_message(encode(Connect(V5, "ws", True, 0), V5))
            (answer,) = PacketReader.of_server(1000, V5).feed(await socket.get_message())
            assert isinstance(answer, ConnAck) and not answer.reason


@pytest.mark.parametrize("given", ["username", "password"])
async def test_user_name_and_password_are_set_together(tmp_path: Path, given: str) -> None:
    from leafcuttr.errors import ConfigError

    with pytest.raises(BaseExceptionGroup) as raised:
        async with running_mqtt(tmp_path, {f"mqtt.auth.{given}": "x"}):
            pass
    assert raised.group_contains(ConfigError, match=r"set both or neither")


def test_what_is_sent_at_once_keeps_the_contract() -> None:
    """Also where the system takes a part of it, or nothing."""
    import leafcuttr_mqtt
    from leafcuttr_sdk.testing.service_checks import service_report

    def session(version: Version) -> bytes:
        packets = (
            Connect(version, "", True, 0),
            Subscribe(1, (SubscriptionRequest("a/#", 2),)),
            Publish("a/b", bytes(3000), 1, packet_id=2),
            Publish("a/b", b"x"),
            PingReq(),
        )
        return b"".join(encode(packet, version) for packet in packets)

    (spec,) = leafcuttr_mqtt.leafcuttr_register_services()
    requests = [session(V3), session(V5), session(V5) + b"\xff\xff"]
    report = service_report(spec, leafcuttr_mqtt, {"mqtt.host": "127.0.0.1"}, requests)
    assert report.fine, report.problems
    assert "sends now" in [check.name for check in report.checks]

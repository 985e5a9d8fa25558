"""MQTT over WebSockets with TLS, where certificates say who a client is and ACLs what it gets: no way around them is
open at this door either."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import trio
from trio_websocket import ConnectionRejected, WebSocketConnection, open_websocket

from leafcuttr.state.security.acl import (
    Acl,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)
from leafcuttr_mqtt.packets.types import ConnAck, Connect, PubAck, Publish, ReasonCode
from support.mqtt import V5, MqttClient, RunningMqtt, running_mqtt
from support.tls_peer import Certificates

NOT_AUTHORIZED = ReasonCode.NOT_AUTHORIZED


class OverWebSocket(trio.abc.HalfCloseableStream):
    """The bytes of binary messages."""

    def __init__(self, connection: WebSocketConnection) -> None:
        self._connection = connection

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._connection.send_message(bytes(data))

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        data = await self._connection.get_message()
        assert isinstance(data, bytes)
        return data

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def send_eof(self) -> None:
        raise NotImplementedError

    async def aclose(self) -> None:
        await self._connection.aclose()


class Attacked(NamedTuple):
    mqtt: RunningMqtt
    certificates: Certificates

    async def allow(self, name: str, operation: AclOperation, topic: str) -> None:
        authorizer = self.mqtt.broker._core.authorizer
        assert authorizer is not None and authorizer.acls is not None
        what = operation, AclPermission.ALLOW
        kind, literal = AclResourceType.TOPIC, PatternType.LITERAL
        await authorizer.acls.create([Acl(kind, topic, literal, f"User:{name}", "*", *what)])

    async def forbid(self, name: str) -> None:
        authorizer = self.mqtt.broker._core.authorizer
        assert authorizer is not None and authorizer.acls is not None
        await authorizer.acls.delete([AclFilter(principal=f"User:{name}")])

    @asynccontextmanager
    async def dial(self, name: str | None, **headers: str) -> AsyncIterator[MqttClient]:
        """A WebSocket over TLS, with the certificate of this name."""
        context = self.certificates.client()
        if name is not None:
            context.load_cert_chain(self.certificates.issue(common_name=name).file)
        port = self.mqtt.port_of("mqtt.wss")
        async with open_websocket(
            "127.0.0.1",
            port,
            "/",
            use_ssl=context,
            subprotocols=["mqtt"],
            extra_headers=[(name.encode(), value.encode()) for name, value in headers.items()],
        ) as connection:
            yield MqttClient(OverWebSocket(connection), V5)

    @asynccontextmanager
    async def client(self, name: str, user_name: str | None = None) -> AsyncIterator[MqttClient]:
        async with self.dial(name) as found:
            await found.send(Connect(V5, f"of-{name}", True, 0, user_name, b"x" if user_name else None))
            assert (await found.expect(ConnAck)).reason == 0
            yield found


@pytest.fixture
async def attacked(tmp_path: Path) -> AsyncIterator[Attacked]:
    ours = Certificates(tmp_path)
    settings: dict[str, str] = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
        "ssl.principal.mapping.rules": "RULE:^CN=([a-z0-9-]+).*$/$1/,DEFAULT",
        "mqtt.auth": "mtls",
        "mqtt.authenticators": "broker",
        "mqtt.wss.host": "127.0.0.1",
        "mqtt.wss.port": "0",
        "mqtt.wss.ssl.keystore.location": ours.issue("127.0.0.1").file,
        "mqtt.wss.ssl.truststore.location": ours.trusted,
        "mqtt.wss.ssl.client.auth": "requested",
        "mqtt.topic.mapping.mapped/#": "mapped",
        "mqtt.replay.enable": "true",
    }
    async with running_mqtt(tmp_path / "data", settings) as mqtt:
        yield Attacked(mqtt, ours)


async def test_the_certificate_says_who_it_is_and_nothing_else_does(attacked: Attacked) -> None:
    async with attacked.dial(None) as client:
        await client.send(Connect(V5, "c", True, 0, "admin", b"admin"))
        assert (await client.expect(ConnAck)).reason == NOT_AUTHORIZED
    # One whose certificate is sensor-7's, and that says that it is the super user.
    async with attacked.client("sensor-7", "admin") as client:
        await client.send(Publish("mqtt/x", b"", 1, packet_id=1))
        assert (await client.expect(PubAck)).reason == NOT_AUTHORIZED


@pytest.mark.long
@pytest.mark.parametrize("way", ["#", "+/+", "$share/group/#", "$share/group/+/+"])
async def test_each_way_to_a_topic_that_it_may_not_read(attacked: Attacked, way: str) -> None:
    """Retained ones, new ones, and those that wait while its right is taken away."""
    await attacked.allow("sensor-7", AclOperation.READ, "mqtt/open/a")
    await attacked.allow("sensor-7", AclOperation.READ, "mapped")
    async with attacked.client("admin") as admin, attacked.client("sensor-7") as client:
        for topic in ("secret/a", "open/a"):
            await admin.send(Publish(topic, b"retained", 1, retain=True, packet_id=1))
            await admin.expect(PubAck)
        await client.subscribe(way, qos=1)
        if "$share" not in way:  # of which there are no retained messages (MQTT 5.0, 4.8.2)
            assert (await client.message()).topic == "open/a"
        for topic in ("secret/a", "mapped/a", "open/a"):
            await admin.send(Publish(topic, b"new", 1, packet_id=2))
            await admin.expect(PubAck)
        assert [(await client.message()).topic for _ in range(2)] == ["mapped/a", "open/a"]
        await client.nothing()
        await attacked.forbid("sensor-7")
        for topic in ("mapped/a", "open/a"):
            await admin.send(Publish(topic, b"late", 1, packet_id=3))
            await admin.expect(PubAck)
        await client.nothing()


@pytest.mark.long
@pytest.mark.parametrize(
    "way",
    [
        "$SYS/broker/version",
        "secret/a",
        "mapped/a",
        "$share/group/secret/a",
        "$replay/earliest/mapped/a",
        "$replay/earliest/secret/a",
    ],
)
async def test_what_is_refused_by_its_name(attacked: Attacked, way: str) -> None:
    async with attacked.client("admin") as admin, attacked.client("sensor-7") as client:
        await admin.send(Publish("mapped/a", b"x", 1, retain=True, packet_id=1))
        await admin.expect(PubAck)
        assert (await client.subscribe(way, qos=1)).reasons[0] >= 0x80
        await client.nothing()


@pytest.mark.long
@pytest.mark.parametrize("way", ["$SYS/#", "$SYS/broker/+", "$share/g/$SYS/#"])
async def test_the_topics_of_the_broker_take_describe(attacked: Attacked, way: str) -> None:
    async with attacked.client("sensor-7") as client:
        await client.subscribe(way)
        await client.nothing()
        await client.send(Publish("$SYS/broker/version", b"mine", 1, packet_id=1))
        assert (await client.expect(PubAck)).reason >= 0x80


async def test_a_page_of_another_site_has_no_use_of_the_certificate_in_the_browser(
    attacked: Attacked,
) -> None:
    """The browser shows it to the broker for whichever page asks, and says only by Origin which one that is."""
    port = attacked.mqtt.port_of("mqtt.wss")
    for origin in (
        "https://evil.test",
        f"https://127.0.0.1.evil.test:{port}",
        f"https://evil.test/127.0.0.1:{port}",
        f"https://127.0.0.1:{port}@evil.test",
        "null",
    ):
        with pytest.raises(ConnectionRejected) as refused:
            async with attacked.dial("alice", Origin=origin):
                pass
        assert refused.value.status_code == 403
    async with attacked.dial("alice", Origin="https://127.0.0.1:3000") as client:
        await client.send(Connect(V5, "of-alice", True, 0))
        assert (await client.expect(ConnAck)).reason == 0

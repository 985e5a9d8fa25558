"""The MQTT broker in this process, in a whole broker on free ports, and a client that sends and sees single packets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import trio

from leafcuttr.embedded import EmbeddedBroker, open_broker
from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.types import (
    NO_PROPERTIES,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    Properties,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    Version,
    Will,
)
from leafcuttr_mqtt.packets.writer import encode
from leafcuttr_mqtt.people.current import _RUNNING
from leafcuttr_mqtt.server.running import Running
from leafcuttr_sdk import TopicPartition

P = TypeVar("P")
V3, V5 = Version.V3_1_1, Version.V5
PATIENCE_S = 20


class MqttClient:
    """One connection. What it is sent it reads packet by packet."""

    def __init__(self, stream: trio.abc.Stream, version: Version) -> None:
        self.stream = stream
        self.version = version
        self._reader = PacketReader.of_server(1 << 28, version)
        self._packets: list[Packet] = []

    async def send(self, *packets: Packet) -> None:
        await self.stream.send_all(b"".join([encode(packet, self.version) for packet in packets]))

    async def next(self) -> Packet | None:
        """The next packet; None at the end of the connection."""
        with trio.fail_after(PATIENCE_S):
            while not self._packets:
                try:
                    data = await self.stream.receive_some()
                except trio.BrokenResourceError:
                    return None
                if not data:
                    return None
                self._packets += self._reader.feed(bytes(data))
                if self._reader.error is not None:
                    raise self._reader.error
        return self._packets.pop(0)

    async def expect(self, kind: type[P]) -> P:
        packet = await self.next()
        assert isinstance(packet, kind), packet
        return packet

    async def nothing(self) -> None:
        """Nothing was sent before the answer to what is sent now."""
        await self.send(PingReq())
        await self.expect(PingResp)

    async def closed(self) -> None:
        assert await self.next() is None

    async def subscribe(
        self,
        *requests: SubscriptionRequest | str,
        qos: int = 2,
        packet_id: int = 1,
        identifier: int | None = None,
    ) -> SubAck:
        properties = (
            NO_PROPERTIES if identifier is None else Properties(subscription_identifiers=(identifier,))
        )
        asked = [
            each if isinstance(each, SubscriptionRequest) else SubscriptionRequest(each, qos)
            for each in requests
        ]
        await self.send(Subscribe(packet_id, tuple(asked), properties))
        return await self.expect(SubAck)

    async def publish(
        self, topic: str, payload: bytes = b"", qos: int = 0, *, packet_id: int = 1, **more: Any
    ) -> Packet | None:
        """Publish, and return PUBACK, PUBREC if that has an error, or PUBCOMP."""
        await self.send(Publish(topic, payload, qos, packet_id=packet_id if qos else 0, **more))
        if not qos:
            return None
        if qos == 1:
            return await self.expect(PubAck)
        received = await self.expect(PubRec)
        if received.reason >= 0x80:
            return received
        await self.send(PubRel(packet_id))
        return await self.expect(PubComp)

    async def message(self) -> Publish:
        """The next message, which is acknowledged."""
        packet = await self.expect(Publish)
        if packet.qos == 1:
            await self.send(PubAck(packet.packet_id))
        elif packet.qos == 2:
            await self.send(PubRec(packet.packet_id))
            others: list[Packet] = []
            while not isinstance(other := await self.next(), PubRel):
                assert isinstance(other, Publish), other
                others.append(other)
            assert other.packet_id == packet.packet_id
            self._packets[:0] = others
            await self.send(PubComp(packet.packet_id))
        return packet

    async def leave(self, reason: int = 0, properties: Properties = NO_PROPERTIES) -> None:
        """DISCONNECT."""
        await self.send(Disconnect(reason, properties))
        await self.closed()
        await self.stream.aclose()

    async def vanish(self) -> None:
        """Close the connection without a word."""
        await self.stream.aclose()


class RunningMqtt:
    """The MQTT broker, and the broker that it is a plugin of."""

    def __init__(self, broker: EmbeddedBroker, stop: Callable[[], None]) -> None:
        self.broker = broker
        self.stop = stop

    @property
    def port(self) -> int:
        return self.port_of("mqtt")

    def port_of(self, listener: str) -> int:
        return int(self.broker.listeners[listener].rpartition(":")[2])

    @property
    def running(self) -> Running:
        """What is behind the sockets, for tests of what no client can see."""
        address = f":{self.port}"
        return next(each for each in _RUNNING.values() if each.listeners["mqtt"].endswith(address))

    def sessions(self) -> set[str]:
        """The client identifiers that have sessions."""
        return set(self.running.hub.clients)

    async def dial(self, version: Version = V5) -> MqttClient:
        """A connection on which nothing was sent."""
        return MqttClient(await trio.open_tcp_stream("127.0.0.1", self.port), version)

    async def connect(
        self,
        client_id: str = "",
        version: Version = V5,
        *,
        clean: bool = True,
        keep_alive: int = 0,
        will: Will | None = None,
        user_name: str | None = None,
        password: bytes | None = None,
        properties: Properties = NO_PROPERTIES,
        present: bool | None = False,
    ) -> MqttClient:
        """A client that was let in; `present` is what CONNACK has to say of its session."""
        client = await self.dial(version)
        await client.send(
            Connect(version, client_id, clean, keep_alive, user_name, password, will, properties)
        )
        answer = await client.expect(ConnAck)
        assert answer.reason == 0, answer
        assert present is None or answer.session_present is present
        return client

    async def records(self, topic: str) -> list[tuple[bytes | None, bytes | None, dict[str, bytes | None]]]:
        """Keys, values and headers of all that is in a Kafka topic, partition after partition."""
        found: list[tuple[bytes | None, bytes | None, dict[str, bytes | None]]] = []
        for partition in range(self.broker.topics.partition_count(topic)):
            got = await self.broker.fetch({TopicPartition(topic, partition): 0}, max_bytes=1 << 30)
            found += [(record.key, record.value, dict(record.headers)) for record in got.records]
        return found


@asynccontextmanager
async def running_mqtt(
    directory: Path, settings: Mapping[str, Any] | None = None
) -> AsyncIterator[RunningMqtt]:
    """Serve until the end of the context. Settings have their whole names; mappings are `mqtt.topic.mapping....`."""
    given: dict[str, str | int | float | bool] = {
        "log.dirs": str(directory),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "lc.metrics.port": 0,
        "lc.mqtt.broker.enable": True,
        "mqtt.host": "127.0.0.1",
        "mqtt.port": 0,
        **(settings or {}),
    }
    stop = trio.Event()

    async def serve(*, task_status: trio.TaskStatus[EmbeddedBroker]) -> None:
        async with open_broker(given) as opened:
            task_status.started(opened)
            await stop.wait()

    async with trio.open_nursery() as nursery:
        opened = await nursery.start(serve)
        assert any(each.partition(".")[0] == "mqtt" for each in opened.listeners), (
            "the MQTT broker does not listen"
        )
        yield RunningMqtt(opened, stop.set)
        stop.set()

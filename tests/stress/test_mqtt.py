"""The MQTT broker and clients that vanish, and subscribers that never read: clients of Kafka and of MQTT are served
meanwhile, and afterwards the broker has what it had before."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import pytest
import trio

from leafcuttr_mqtt.server.connection import Connection
from mqtt.conformance import wire
from mqtt.conformance.raw import Raw
from support import librdkafka, mqtt
from support.crowds import Neighbour, many_descriptors, sockets
from support.mqtt_broker import MqttBroker, running_mqtt
from support.mqtt_crowd import ACCEPTED, KINDS, TOPIC, WILLS, mqtt_crowd, packets_of
from support.mqtt_neighbour import MqttNeighbour
from support.waiting import eventually, until

MB = 1 << 20
KEEP_ALIVE_S = 1
SLACK_MB = 12
"""What the allocator may take on the side."""


class State(NamedTuple):
    """What a broker has for its clients."""

    sockets: int
    connected: int
    sessions: int
    subscriptions: int


def overview(broker: MqttBroker) -> dict[str, Any]:
    assert broker.process is not None
    with urlopen(f"http://{broker.process.about['metrics']}/plugins/mqtt", timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def state_of(broker: MqttBroker) -> State:
    assert broker.process is not None
    found = overview(broker)
    # The socket of the request that asks may be open still.
    return State(sockets(broker.process), found["connected"], found["sessions"], found["subscriptions"])


def returned(broker: MqttBroker, before: State) -> bool:
    now = state_of(broker)
    return now.sockets <= before.sockets and now[1:] == before[1:]


def resident_mb(broker: MqttBroker) -> float:
    assert broker.process is not None
    return broker.process.resident_mb()


@contextmanager
def neighbours(broker: MqttBroker) -> Iterator[None]:
    """A client of Kafka and one of MQTT, who are served from the beginning to the end."""
    assert broker.kafka is not None
    # Its records have old timestamps.
    librdkafka.create(broker.kafka, "neighbour", retention_ms="-1")
    with (
        Neighbour(broker.kafka) as kafka,
        MqttNeighbour(f"{broker.host}:{broker.port}") as other,
    ):
        yield
    print(f"p99 of the neighbours: Kafka {kafka.p99_ms():.1f} ms, MQTT {other.p99_ms():.1f} ms")


@pytest.mark.alone
@pytest.mark.parametrize(
    ("how", "wanted", "waves"),
    [
        ("killed", 120, 2),
        pytest.param("killed", 10_000, 3, marks=pytest.mark.long),
        pytest.param("silent", 10_000, 3, marks=pytest.mark.long),
    ],
)
def test_connections_that_vanish(tmp_path: Path, how: str, wanted: int, waves: int) -> None:
    """Their process is killed, which closes their sockets; or it is stopped, so that nothing comes any more, and
    nothing is taken."""
    with many_descriptors(wanted) as allowed:
        count = allowed - allowed % KINDS
        # Those of a crowd that are connected first wait for the last.
        keep_alive = KEEP_ALIVE_S + count // 250 if how == "silent" else 0
        settings = {
            "mqtt.max.connections": str(count + 10),
            "mqtt.handshake.timeout.ms": str(1000 * (keep_alive or 60)),
        }
        with running_mqtt(tmp_path, settings) as broker, neighbours(broker):
            watcher = Raw(broker.host, broker.port, 5)
            watcher.connect("watcher")
            watcher.subscribe((WILLS, 0))
            before = state_of(broker)
            resident: list[float] = []
            most = 0.0
            for _ in range(waves):
                with mqtt_crowd(tmp_path, broker.port, count, keep_alive) as crowd:
                    assert overview(broker)["connected"] == before.connected + count * ACCEPTED // KINDS
                    most = resident_mb(broker)
                    crowd.send_signal(signal.SIGKILL if how == "killed" else signal.SIGSTOP)
                    # What is published meanwhile goes to subscribers that are not there any more.
                    watcher.publish(TOPIC, bytes(1000))
                    until(
                        lambda: returned(broker, before),
                        "all that the crowd had to be given back",
                        seconds=60 + 3 * keep_alive,
                    )
                resident.append(resident_mb(broker))
                wills = {watcher.message().payload.decode() for _ in range(count // KINDS)}
                assert wills == {f"crowd-{number}" for number in range(2, count, KINDS)}
            watcher.close()
            print(f"{count} connections: {most:.0f} MB, afterwards {resident} MB")
            assert resident[-1] - resident[0] < SLACK_MB, resident
            assert broker.process is not None
            assert "Traceback" not in broker.process.log
            assert len(broker.process.log.splitlines()) < 40, broker.process.log[:4000]


async def test_nothing_is_left_of_a_connection_that_has_vanished(tmp_path: Path) -> None:
    """Tasks, and what a connection is made of, which needs no collector: a broker hardly ever calls it."""
    settings = {"mqtt.handshake.timeout.ms": 1000}

    def connections() -> int:
        return sum(type(each) is Connection for each in gc.get_objects())

    def tasks() -> int:
        return trio.lowlevel.current_statistics().tasks_living

    async def vanish(found: mqtt.RunningMqtt) -> None:
        streams = []
        for number in range(4 * KINDS):
            stream = await trio.open_tcp_stream("127.0.0.1", found.port)
            streams.append(stream)
            packets, answers = packets_of(number, KEEP_ALIVE_S)
            for at, packet in enumerate(packets):
                await stream.send_all(packet)
                if at < answers:
                    assert await stream.receive_some()
        for number, stream in enumerate(streams):
            if number % 2:
                mqtt_reset(stream)
            # The others say nothing any more.
        await eventually(lambda: not found.running.connections, "the broker to end them")
        for stream in streams:
            await stream.aclose()
        await eventually(lambda: len(found.sessions()) == 0, "the sessions to end")

    async with mqtt.running_mqtt(tmp_path, settings) as found:
        await vanish(found)  # what it needs is imported
        gc.collect()
        gc.disable()
        try:
            before = tasks()
            await vanish(found)
            await eventually(lambda: tasks() <= before, "the tasks to end")
            await eventually(lambda: connections() == 0, "the connections to be let go")
        finally:
            gc.enable()


def mqtt_reset(stream: trio.SocketStream) -> None:
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    trio.lowlevel.notify_closing(stream.socket)
    os.close(stream.socket.detach())


SIZE = 10_000
CHUNK = 100
"""Messages that are published together: with QoS 1, all of them acknowledged before the next ones are."""
QUEUE_MB = 4
FLOOD = "flood/t"
SLOW_READER = {
    "mqtt.session.max.bytes": str(QUEUE_MB * MB),
    # The tests are about the queue, not about the end of such a connection.
    "mqtt.send.timeout.ms": "3600000",
}
MEGABYTES = pytest.mark.parametrize("megabytes", [12, pytest.param(1000, marks=pytest.mark.long)])


def message(number: int) -> bytes:
    return b"%09d" % number + bytes(SIZE - 9)


def flood(broker: MqttBroker, megabytes: int) -> int:
    """Publish so much; each message is acknowledged, and comes to a subscriber that reads. How many they were."""
    with Raw(broker.host, broker.port, 5) as publisher, Raw(broker.host, broker.port, 5) as reader:
        publisher.connect()
        reader.connect()
        reader.subscribe((FLOOD, 1))
        published = 0
        for _ in range(megabytes * 1_000_000 // (SIZE * CHUNK)):
            numbers = range(published, published + CHUNK)
            publisher.send(
                *(
                    wire.publish(5, FLOOD, message(number), qos=1, packet_id=1 + number % CHUNK)
                    for number in numbers
                )
            )
            for number in numbers:
                assert publisher.answer(wire.PUBACK, 1 + number % CHUNK).reason == 0
            for number in numbers:
                assert int(reader.message().payload[:9]) == number
            published += CHUNK
    return published


def rest(subscriber: Raw, last: int) -> list[int]:
    """The numbers of the messages that the broker has for it, up to the last that was published."""
    found = [-1]
    while found[-1] < last:
        found.append(int(subscriber.message().payload[:9]))
    assert found == sorted(set(found)), "they are not in their order"
    return found[1:]


@pytest.mark.alone
@MEGABYTES
def test_a_subscriber_that_never_reads_what_has_qos_0(tmp_path: Path, megabytes: int) -> None:
    """Its queue is bounded: what came first is dropped, and counted."""
    with running_mqtt(tmp_path, SLOW_READER) as broker, neighbours(broker):
        flood(broker, 1)
        before = resident_mb(broker)
        with Raw(broker.host, broker.port, 5) as subscriber:
            subscriber.connect("never")
            subscriber.subscribe((FLOOD, 0))
            published = flood(broker, megabytes)
            grown = resident_mb(broker) - before
            dropped = overview(broker)["dropped"]["queue-full"]
            got = rest(subscriber, published - 1)
            print(f"{published} messages, {dropped} dropped, {grown:.0f} MB more")
            assert len(got) + dropped == published
            assert dropped > 0
            assert (
                got[-(QUEUE_MB * MB // (2 * SIZE)) :]
                == list(range(published))[-(QUEUE_MB * MB // (2 * SIZE)) :]
            )
            assert grown < QUEUE_MB + SLACK_MB
            subscriber.ping()  # it is a client as any other again
        assert broker.process is not None
        assert "Traceback" not in broker.process.log


@pytest.mark.alone
@MEGABYTES
def test_a_session_that_outlives_its_connection_and_whose_client_never_reads(
    tmp_path: Path, megabytes: int
) -> None:
    """What it has not is in the log, within the bounds of a session, whether its client is connected or not; memory
    and disk are bounded."""
    keep = [("session_expiry", 3600)]
    with running_mqtt(tmp_path, SLOW_READER) as broker, neighbours(broker):
        with Raw(broker.host, broker.port, 5) as away:
            away.connect("away", properties=keep)
            away.subscribe((FLOOD, 1))
            away.disconnect()
        flood(broker, 1)
        before = resident_mb(broker)
        with Raw(broker.host, broker.port, 5) as subscriber:
            subscriber.connect("never", properties=keep)
            subscriber.subscribe((FLOOD, 1))
            published = flood(broker, megabytes)
            grown = resident_mb(broker) - before
            disk = queue_bytes(broker) / MB
            dropped = overview(broker)["dropped"]["queue-full"]
            with Raw(broker.host, broker.port, 5) as back:
                back.connect("away", clean=False, properties=keep)
                found = [rest(back, published - 1), rest(subscriber, published - 1)]
        print(f"{published} messages, {dropped} dropped, {grown:.0f} MB more, {disk:.0f} MB on the disk")
        # The first flood was for the one that was away, too.
        assert sum(map(len, found)) + dropped == 2 * published + CHUNK
        assert all(len(each) * SIZE < 2 * QUEUE_MB * MB for each in found)
        assert all(len(each) * SIZE > QUEUE_MB * MB // 2 for each in found)
        assert grown < SLACK_MB
        assert disk < 256
        assert broker.process is not None
        assert "Traceback" not in broker.process.log


def queue_bytes(broker: MqttBroker) -> int:
    assert broker.process is not None
    return sum(path.stat().st_size for path in broker.process.data.glob("__mqtt_queue-*/*.log"))

"""Settings of mappings, seen to act on messages of clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr.server import connection
from leafcuttr.wire import frame
from leafcuttr_mqtt.packets.types import PubAck, PubComp, Publish, PubRec, ReasonCode
from leafcuttr_sdk import Broker, TopicPartition
from leafcuttr_sdk.batches import batches_in
from leafcuttr_sdk.batches.compression import Codec
from leafcuttr_sdk.testing import running_broker
from support import librdkafka
from support.mqtt import V3, V5, RunningMqtt, running_mqtt

SMALL = {"mqtt.topic.mapping.small/#": "small"}


@pytest.mark.setting("mqtt.topic.mapping.<mqtt filter>", "mqtt.topic.key", "mqtt.topic.key.<mqtt filter>")
async def test_where_messages_go_and_by_which_keys(tmp_path: Path) -> None:
    settings = {
        "mqtt.topic.mapping.sensors/+/t": "sensors-{1}",
        "mqtt.topic.mapping.all/#": "all",
        "mqtt.topic.key": "{client_id}",
        "mqtt.topic.key.all/#": "of {1}",
    }
    async with running_mqtt(tmp_path, settings) as mqtt:
        client = await mqtt.connect("device")
        await client.publish("sensors/roof/t", b"1", 1)
        await client.publish("all/a/b", b"2", 1)
        await client.publish("sensors/roof", b"3", 1)
        assert [(key, value) for key, value, _ in await mqtt.records("sensors-roof")] == [(b"device", b"1")]
        assert [(key, value) for key, value, _ in await mqtt.records("all")] == [(b"of a/b", b"2")]


async def refusing(mqtt: RunningMqtt) -> None:
    """A Kafka topic that takes no message of a kilobyte."""
    await mqtt.broker.topics.create("small", configs={"max.message.bytes": "500"})


@pytest.mark.setting("mqtt.dead.letter.topic")
@pytest.mark.parametrize("qos", [1, 2])
async def test_what_a_client_cannot_be_told_of_is_a_dead_letter(tmp_path: Path, qos: int) -> None:
    async with running_mqtt(tmp_path, {**SMALL, "mqtt.dead.letter.topic": "letters"}) as mqtt:
        await refusing(mqtt)
        watcher = await mqtt.connect("w")
        await watcher.subscribe("small/#")
        client = await mqtt.connect("c", V3)
        answer = await client.publish("small/1", bytes(1000), qos)
        assert isinstance(answer, PubAck | PubComp) and not answer.reason
        ((key, value, headers),) = await mqtt.records("letters")
        assert (key, value) == (b"small/1", bytes(1000))
        assert headers["mqtt.refused.topic"] == b"small"
        await client.publish("small/1", b"fits", qos)
        assert (await watcher.message()).payload == b"fits"


async def test_a_client_of_5_0_is_told(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path, SMALL) as mqtt:
        await refusing(mqtt)
        client = await mqtt.connect("c", V5)
        for qos, kind in ((1, PubAck), (2, PubRec)):
            await client.send(
                Publish("small/1", bytes(1000), qos, packet_id=1),
                Publish("small/1", b"fits", qos, packet_id=2),
            )
            answer = await client.expect(kind)
            assert answer.reason == ReasonCode.QUOTA_EXCEEDED
            assert "small" in (answer.properties.reason_string or "")
            assert not (await client.expect(kind)).reason
        assert [value for _, value, _ in await mqtt.records("small")] == [b"fits", b"fits"]
        assert mqtt.broker.topics.get("mqtt-dead-letters") is None


@pytest.mark.setting("mqtt.refused.v3")
async def test_what_a_client_cannot_be_told_of_may_be_dropped(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path, {**SMALL, "mqtt.refused.v3": "drop"}) as mqtt:
        await refusing(mqtt)
        client = await mqtt.connect("c", V3)
        for qos in (1, 2):
            await client.publish("small/1", bytes(1000), qos)
        assert mqtt.running.refused == 2
        assert mqtt.broker.topics.get("mqtt-dead-letters") is None
        assert await mqtt.records("small") == []


@pytest.mark.setting("mqtt.refused.v3")
async def test_what_a_client_cannot_be_told_of_may_end_its_connection(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path, {**SMALL, "mqtt.refused.v3": "close"}) as mqtt:
        await refusing(mqtt)
        client = await mqtt.connect("c", V3)
        await client.send(Publish("small/1", bytes(1000), 1, packet_id=1))
        await client.closed()


async def codecs_of_far(broker: Broker) -> set[int]:
    """How the batches of a Kafka topic are compressed."""
    found: set[int] = set()
    for partition in range(broker.topics.partition_count("far")):
        read = await broker.read_batches(TopicPartition("far", partition), 0, max_bytes=1 << 20)
        found |= {batch.header.codec for batch in batches_in(read.data)}
    return found


@pytest.mark.setting(
    "mqtt.kafka.bootstrap.servers", "mqtt.kafka.client.id", "mqtt.kafka.property.<librdkafka property>"
)
async def test_messages_may_be_stored_in_another_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client_ids: set[bytes | None] = set()

    def read_client_id(*arguments: Any, **more: Any) -> tuple[bytes | None, int]:
        """Called by the other broker, which runs in this process: no other one has Kafka clients."""
        found = frame.read_client_id(*arguments, **more)
        client_ids.add(found[0])
        return found

    monkeypatch.setattr(connection, "read_client_id", read_client_id)
    with running_broker(tmp_path / "cluster") as cluster:
        settings = {
            "mqtt.topic.mapping.far/#": "far",
            "mqtt.kafka.bootstrap.servers": cluster.bootstrap_servers,
            "mqtt.kafka.client.id": "gateway",
            "mqtt.kafka.property.compression.type": "gzip",
        }
        async with running_mqtt(tmp_path / "here", settings) as mqtt:
            client = await mqtt.connect("c")
            for qos in (1, 2):
                await client.publish("far/1", b"%d" % qos, qos)
            assert mqtt.broker.topics.get("far") is None
            assert client_ids == {b"gateway"}
        assert await trio.to_thread.run_sync(cluster.call, codecs_of_far) == {Codec.GZIP}
        found = await trio.to_thread.run_sync(librdkafka.read, cluster.bootstrap_servers, "far", 2)
        assert [message.value() for message in found] == [b"1", b"2"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize(("mode", "letters"), [("dead-letter", 1), ("drop", 0), ("close", 0)])
async def test_each_way_with_each_qos(tmp_path: Path, mode: str, letters: int, qos: int) -> None:
    """What is too large for its topic does not hold up what comes after it."""
    async with running_mqtt(tmp_path, {**SMALL, "mqtt.refused.v3": mode}) as mqtt:
        await refusing(mqtt)
        client = await mqtt.connect("c", V3)
        number = 1 if qos else 0
        await client.send(
            Publish("small/1", bytes(1000), qos, packet_id=number),
            Publish("small/1", b"fits", qos, packet_id=2 * number),
        )
        if mode == "close":
            await client.closed()
        elif qos:
            kind = PubAck if qos == 1 else PubRec
            for each in (1, 2):
                answer = await client.expect(kind)
                assert (answer.packet_id, answer.reason) == (each, 0)
        else:
            await client.nothing()
        assert len(await mqtt.records("mqtt-dead-letters")) == letters
        # What came in the same piece may be stored, though nobody says so: its client sends it again.
        assert mode == "close" or len(await mqtt.records("small")) == 1
        assert mqtt.running.refused == (mode != "dead-letter")


async def test_a_letter_that_is_too_large_is_counted(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path, SMALL) as mqtt:
        await refusing(mqtt)
        await mqtt.broker.topics.create("mqtt-dead-letters", configs={"max.message.bytes": "500"})
        client = await mqtt.connect("c", V3)
        for qos in (0, 1, 2):
            await client.publish("small/1", bytes(1000), qos)
        await client.nothing()
        assert mqtt.running.refused == 3
        assert await mqtt.records("mqtt-dead-letters") == []

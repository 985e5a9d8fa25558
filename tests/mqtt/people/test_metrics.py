"""What a scrape shows of MQTT."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from leafcuttr_mqtt.packets.types import Properties, PubAck, Publish
from leafcuttr_mqtt.people import current
from leafcuttr_mqtt.people.metrics import readings
from leafcuttr_mqtt.server.running import Running
from support.mqtt import RunningMqtt, running_mqtt
from support.waiting import eventually

Scrape = dict[tuple[str, tuple[str, ...]], float]


async def scrape(mqtt: RunningMqtt) -> Scrape:
    async with httpx.AsyncClient() as client:
        page = (await client.get(f"http://{mqtt.broker.metrics_address}/metrics")).text
    return {
        (sample.name.removeprefix("leafcuttr_mqtt_"), tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name.startswith("leafcuttr_mqtt_")
    }


async def test_what_clients_do_is_counted(mqtt: RunningMqtt) -> None:
    before = await scrape(mqtt)
    listener = await mqtt.connect("listener")
    await listener.subscribe("devices/#", qos=2)
    sender = await mqtt.connect("sender")
    for qos, count in ((0, 3), (1, 4), (2, 5)):
        for number in range(count):
            await sender.publish(f"devices/{qos}", b"x", qos, packet_id=number + 1)
            await listener.message()
    burst = [Publish("devices/1", b"x", 1, packet_id=number) for number in range(1, 21)]
    await sender.send(*burst)
    for _ in burst:
        await sender.expect(PubAck)
        await listener.message()
    await sender.publish("kept", b"four", retain=True)
    await sender.nothing()
    await listener.nothing()
    found = await scrape(mqtt)
    for qos, count in (("0", 4), ("1", 24), ("2", 5)):
        assert found["messages_received_total", (qos,)] == count
        assert found["messages_sent_total", (qos,)] == count - (qos == "0")
    assert found["clients_accepted_total", ()] == 2
    assert found["sessions", ("connected",)] == 2
    assert found["subscriptions", ()] == 1
    assert (found["retained_messages", ()], found["retained_bytes", ()]) == (1, 4)
    # CONNECT and PINGREQ of both, SUBSCRIBE, 33 PUBLISH and 5 PUBREL; 24 PUBACK, 5 PUBREC and 5 PUBCOMP.
    assert found["packets_total", ("received",)] == 2 + 2 + 1 + 33 + 5 + 24 + 5 + 5
    # The same the other way, where the last message had no subscriber and needed no acknowledgement.
    assert found["packets_total", ("sent",)] == 2 + 2 + 1 + 32 + 5 + 24 + 5 + 5
    assert found["bytes_total", ("received",)] > found["packets_total", ("received",)] * 2
    assert found["bytes_total", ("sent",)] > found["packets_total", ("sent",)] * 2
    assert found["acknowledgement_seconds_count", ()] >= 9
    assert before["clients_accepted_total", ()] == 0


async def test_what_waits_is_seen_at_the_next_look(mqtt: RunningMqtt, running: Running) -> None:
    """Also how long the oldest message has waited, which is in the log only."""
    lasting = await mqtt.connect("lasting", clean=False, properties=Properties(session_expiry_interval=300))
    await lasting.subscribe("a", qos=1)
    await lasting.leave()
    sender = await mqtt.connect("sender")
    for _ in range(3):
        await sender.publish("a", b"x", 1)
    await running.sys_topics.look(10)
    found = await scrape(mqtt)
    assert (found["queued_messages", ()], found["sessions", ("away",)]) == (3, 1)
    assert found["queued_bytes", ()] > 3
    assert 0 <= found["queue_age_seconds", ()] < 60
    assert running.seen.oldest_ms
    again = await mqtt.connect(
        "lasting", clean=False, present=True, properties=Properties(session_expiry_interval=300)
    )
    sent = [await again.expect(Publish) for _ in range(3)]
    await running.sys_topics.look(10)
    assert (await scrape(mqtt))["inflight_messages", ()] == 3
    await again.send(*(PubAck(one.packet_id) for one in sent))
    await again.nothing()
    await running.sys_topics.look(10)
    found = await scrape(mqtt)
    assert (found["queued_messages", ()], found["queue_age_seconds", ()]) == (0, 0)


async def test_how_long_messages_wait_that_are_in_the_log_only(tmp_path: Path) -> None:
    """After a restart all are."""
    lasts = Properties(session_expiry_interval=300)
    async with running_mqtt(tmp_path) as mqtt:
        lasting = await mqtt.connect("lasting", clean=False, properties=lasts)
        await lasting.subscribe("a", qos=1)
        await lasting.leave()
        sender = await mqtt.connect("sender")
        await sender.publish("a", b"x", 1)
        came = mqtt.broker.clock.now_ms()
    async with running_mqtt(tmp_path):
        (running,) = current._RUNNING.values()
        await running.sys_topics.look(10)
        assert running.seen.oldest_ms is not None
        assert came - 60_000 < running.seen.oldest_ms <= came


async def test_drops_have_their_reason(mqtt: RunningMqtt) -> None:
    lasting = await mqtt.connect("lasting", clean=False, properties=Properties(session_expiry_interval=300))
    await lasting.subscribe("a", qos=1)
    await lasting.leave()
    sender = await mqtt.connect("sender")
    await sender.publish("a", b"x", 1)
    clean = await mqtt.connect("lasting")
    await clean.nothing()

    async def dropped() -> bool:
        return (await scrape(mqtt))["messages_dropped_total", ("session-ended",)] == 1

    await eventually(dropped, "the drop")


def test_nothing_is_shown_where_nothing_runs() -> None:
    class Nobody:
        """The key of a broker whose MQTT has failed."""

    found = list(readings(Nobody()))  # type: ignore[arg-type]
    assert len(found) >= 16
    assert all(list(reading.read()) == [] for reading in found)


@pytest.mark.parametrize("name", ["leafcuttr_mqtt_packets_total", "leafcuttr_mqtt_queue_age_seconds"])
def test_names(name: str) -> None:
    class Nobody: ...

    assert name in [reading.metric.name for reading in readings(Nobody())]  # type: ignore[arg-type]

"""What a scrape and `/health` show of bridges and of the ways down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from support.mqtt import RunningMqtt, running_mqtt
from support.mqtt_bridges import bridge, is_up
from support.waiting import eventually, free_port

from .test_metrics import Scrape, scrape


async def health(mqtt: RunningMqtt, check: str) -> dict[str, Any]:
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"http://{mqtt.broker.metrics_address}/health")
    assert answer.status_code == 200, "it can serve all the same"
    found: dict[str, Any] = answer.json()["checks"][f"mqtt:{check}"]
    return {"ok": found["ok"], "detail": found["detail"]}


async def until(mqtt: RunningMqtt, wanted: Scrape) -> None:
    async def there() -> bool:
        found = await scrape(mqtt)
        return all(found.get(key) == value for key, value in wanted.items())

    try:
        await eventually(there, str(wanted), seconds=10)
    except TimeoutError:
        found = await scrape(mqtt)
        assert {key: found.get(key) for key in wanted} == wanted
        raise


@pytest.mark.long
async def test_a_bridge(tmp_path: Path) -> None:
    port = free_port()
    topics = 'out/# out 1 "" site/, in/# in 1, narrow/+ out 1'
    settings = {
        **bridge(port, topics, protocol_version="5.0"),
        "mqtt.session.max.messages": "3",
    }
    async with running_mqtt(tmp_path / "here", settings) as here:

        def of(name: str, *labels: str) -> tuple[str, tuple[str, ...]]:
            return f"bridge_{name}", ("cloud", *labels)

        found = await scrape(here)
        assert (found[of("connected")], found[of("connections_total")]) == (0, 0)
        finding = await health(here, "bridges")
        assert not finding["ok"]
        assert finding["detail"].startswith("bridge cloud is not connected: ")
        async with running_mqtt(
            tmp_path / "there", {"mqtt.port": port, "mqtt.max.packet.bytes": 2000}
        ) as there:
            await is_up(here)
            assert await health(here, "bridges") == {"ok": True, "detail": "1 connected"}
            publisher, at_there = await here.connect("p"), await there.connect("p")
            for number in range(4):
                await publisher.publish("out/a", b"%d" % number, 1)
            for number in range(2):
                await at_there.publish("in/a", b"%d" % number, 1)
            await publisher.publish("out/a", bytes(3000), 1)  # the other broker takes no packet of that size
            await until(
                here,
                {
                    of("connected"): 1,
                    of("connections_total"): 1,
                    of("messages_total", "out"): 4,
                    of("messages_total", "in"): 2,
                    of("messages_dropped_total", "too-large"): 1,
                    of("queued_messages"): 0,
                    of("queued_bytes"): 0,
                    of("inflight_messages"): 0,
                },
            )
        await is_up(here, b"0")
        for number in range(5):
            await publisher.publish("out/a", b"%d" % number, 1)
        await until(
            here,
            {
                of("connected"): 0,
                of("queued_messages"): 3,
                of("messages_dropped_total", "queue-full"): 2,
                of("messages_total", "out"): 4,
            },
        )
        assert (await scrape(here))[of("queued_bytes")] > 0
        async with running_mqtt(tmp_path / "there", {"mqtt.port": port}):
            await until(
                here,
                {
                    of("connected"): 1,
                    of("connections_total"): 2,
                    of("messages_total", "out"): 7,
                    of("queued_messages"): 0,
                },
            )


@pytest.mark.long
async def test_a_way_down(tmp_path: Path) -> None:
    settings = {
        "mqtt.topic.egress.orders": "orders/{key}",
        "mqtt.topic.egress.empty": "e/{key}",
        "mqtt.topic.mapping.orders/small": "small",
        "mqtt.topic.mapping.orders/later": "later",
        "auto.create.topics.enable": "false",
    }
    async with running_mqtt(tmp_path, settings) as mqtt:
        await mqtt.broker.topics.create("orders", partitions=2)
        await mqtt.broker.topics.create("small", configs={"max.message.bytes": "500"})
        assert (await health(mqtt, "egress"))["ok"]
        egress = mqtt.running.egress
        assert egress is not None

        async def begun() -> bool:
            return len(egress.counts["orders"].positions) == 2

        await eventually(begun, "the beginning")
        for key, value in ((b"a", b"1"), (b"b", b"2"), (None, b"3"), (b"x/#", b"4"), (b"small", bytes(1000))):
            await mqtt.broker.produce("orders", value, key)
        await until(
            mqtt,
            {
                ("egress_messages_total", ("orders",)): 2,
                ("egress_messages_total", ("empty",)): 0,
                ("egress_left_out_total", ("no-field", "orders")): 1,
                ("egress_left_out_total", ("no-topic", "orders")): 1,
                ("egress_left_out_total", ("refused", "orders")): 1,
                ("egress_lag_records", ("orders",)): 0,
                ("egress_lag_records", ("empty",)): 0,
                ("egress_waiting", ("orders",)): 0,
            },
        )
        finding = await health(mqtt, "egress")
        assert finding == {"ok": True, "detail": "2 topics, 0 records behind"}
        await mqtt.broker.produce("orders", b"w", b"later")
        await until(mqtt, {("egress_waiting", ("orders",)): 1, ("egress_lag_records", ("orders",)): 1})
        finding = await health(mqtt, "egress")
        assert not finding["ok"]
        assert finding["detail"].startswith("orders: Kafka topic later: there is no Kafka topic later")
        await mqtt.broker.topics.create("later")
        await until(
            mqtt,
            {
                ("egress_waiting", ("orders",)): 0,
                ("egress_lag_records", ("orders",)): 0,
                ("egress_messages_total", ("orders",)): 3,
            },
        )
        assert (await health(mqtt, "egress"))["ok"]


async def test_without_any_there_is_no_check(mqtt: RunningMqtt) -> None:
    async with httpx.AsyncClient() as client:
        checks = (await client.get(f"http://{mqtt.broker.metrics_address}/health")).json()["checks"]
    assert {name for name in checks if name.startswith("mqtt:")} == {"mqtt:storing"}

"""What the admin port answers about MQTT, and what it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leafcuttr_mqtt.packets.types import (
    Disconnect,
    Properties,
    PubAck,
    Publish,
    ReasonCode,
    SubscriptionRequest,
    Will,
)
from leafcuttr_mqtt.people import current
from leafcuttr_mqtt.people.admin import routes
from leafcuttr_mqtt.people.rows import mapping_test
from leafcuttr_sdk.testing.route_checks import admin_route_report
from mqtt.people.conftest import Ask
from support.mqtt import V3, RunningMqtt, running_mqtt
from support.waiting import eventually

LASTS = Properties(session_expiry_interval=300)


async def test_clients_and_sessions(mqtt: RunningMqtt, ask: Ask) -> None:
    other = await mqtt.connect("plain", V3)
    sensor = await mqtt.connect(
        "sensor/7", user_name="anna", properties=LASTS, will=Will("gone", b"x", 0, False), clean=False
    )
    await sensor.subscribe(SubscriptionRequest("a/+", 1, no_local=True), "$share/g/b", identifier=9)
    clients = {row["client_id"]: row for row in (await ask("/clients")).json()}
    assert clients.keys() == {"plain", "sensor/7"}
    plain, row = clients["plain"], clients["sensor/7"]
    assert (plain["protocol"], plain["expiry_s"], plain["user_name"], plain["will"]) == (
        "3.1.1",
        0,
        None,
        None,
    )
    assert (row["protocol"], row["expiry_s"], row["user_name"], row["will"]) == ("5.0", 300, "anna", "gone")
    assert row["listener"] == "mqtt"
    assert row["address"].startswith("127.0.0.1:")
    assert row["connected_ms"] <= mqtt.broker.clock.now_ms()
    assert row["subscriptions"] == 2
    shown = (await ask("/clients/sensor%2F7")).json()["subscriptions"]
    assert [(one["filter"], one["qos"], one["no_local"], one["identifier"]) for one in shown] == [
        ("a/+", 1, True, 9),
        ("$share/g/b", 2, False, 9),
    ]
    await sensor.vanish()
    await eventually(lambda: _gone(ask, "sensor/7"), "the end of its connection")
    await other.nothing()
    assert (await ask("/clients/sensor%2F7")).status_code == 404
    session = (await ask("/sessions/sensor%2F7")).json()
    assert (session["connected"], len(session["subscriptions"])) == (False, 2)
    assert session["disconnected_ms"] >= row["connected_ms"]


async def _gone(ask: Ask, client_id: str) -> bool:
    return client_id not in [row["client_id"] for row in (await ask("/clients")).json()]


async def test_what_waits(mqtt: RunningMqtt, ask: Ask) -> None:
    lasting = await mqtt.connect("lasting", properties=LASTS, clean=False)
    await lasting.subscribe("a", qos=1)
    sender = await mqtt.connect("sender")
    await sender.publish("a", b"1", 1)
    await eventually(lambda: _row(ask, "lasting", in_flight=1), "what is under way")
    await lasting.vanish()
    for text in (b"2", b"3"):
        await sender.publish("a", text, 1)
    await eventually(lambda: _row(ask, "lasting", in_flight=1, waiting=2), "what waits")


async def _row(ask: Ask, client_id: str, **expected: Any) -> bool:
    row = (await ask(f"/sessions/{client_id}")).json()
    return bool(row.items() >= expected.items())


async def test_a_client_is_disconnected(mqtt: RunningMqtt, ask: Ask) -> None:
    """With the reason for it; its will is published and its session stays."""
    witness = await mqtt.connect("witness")
    await witness.subscribe("gone")
    victim = await mqtt.connect("v", properties=LASTS, will=Will("gone", b"v", 0, False), clean=False)
    assert (await ask("/clients/v", "DELETE")).json() == {"disconnected": True}
    assert (await victim.expect(Disconnect)).reason == ReasonCode.ADMINISTRATIVE_ACTION
    await victim.closed()
    assert (await witness.message()).payload == b"v"
    assert (await ask("/sessions/v")).status_code == 200
    answer = await ask("/clients/v", "DELETE")
    assert (answer.status_code, answer.json()["error"]) == (404, "no_such_client")


async def test_a_session_is_deleted(mqtt: RunningMqtt, ask: Ask) -> None:
    away = await mqtt.connect("away", properties=LASTS, clean=False)
    await away.subscribe("a", qos=1)
    await away.leave()
    here = await mqtt.connect("here", properties=LASTS, clean=False)
    for name in ("away", "here"):
        assert (await ask(f"/sessions/{name}", "DELETE")).json() == {"deleted": True}
    assert (await here.expect(Disconnect)).reason == ReasonCode.ADMINISTRATIVE_ACTION
    assert (await ask("/sessions")).json() == []
    assert (await ask("/sessions/away", "DELETE")).status_code == 404
    again = await mqtt.connect("away", properties=LASTS, clean=False, present=False)
    await again.nothing()


async def test_retained_messages(mqtt: RunningMqtt, ask: Ask) -> None:
    sender = await mqtt.connect("sender")
    for topic in ("a/1", "a/2", "b"):
        await sender.publish(topic, b"four", 1, retain=True)
    rows = (await ask("/retained")).json()
    assert {(row["topic"], row["bytes"], row["qos"], row["client_id"]) for row in rows} == {
        (topic, 4, 1, "sender") for topic in ("a/1", "a/2", "b")
    }
    assert [row["topic"] for row in (await ask("/retained", filter="b")).json()] == ["b"]
    assert (await ask("/retained", "DELETE")).status_code == 400
    assert (await ask("/retained", "DELETE", filter="a/#/b")).status_code == 400
    assert (await ask("/retained", filter="a+")).status_code == 400
    assert (await ask("/retained", "DELETE", filter="a/+")).json() == {"cleared": 2}
    assert [row["topic"] for row in (await ask("/retained")).json()] == ["b"]
    reader = await mqtt.connect("reader")
    await reader.subscribe("#")
    assert (await reader.message()).topic == "b"
    await reader.nothing()


async def test_very_many_rows_come_whole(mqtt: RunningMqtt, ask: Ask) -> None:
    sender = await mqtt.connect("sender")
    for number in range(1203):
        await sender.publish(f"many/{number}", b"x", retain=True)
    await sender.nothing()
    rows = (await ask("/retained")).json()
    assert [row["topic"] for row in rows] == [f"many/{number}" for number in range(1203)]


async def test_mappings(mqtt: RunningMqtt, ask: Ask) -> None:
    assert {row["filter"]: row["kafka_topic"] for row in (await ask("/mappings")).json()} == {
        "devices/#": "from-devices",
        "test/topic/+": "from-mqtt",
    }
    tested = (await ask("/mappings/test", topic="test/topic/t", client_id="me", qos="2")).json()
    (target,) = tested["targets"]
    assert (target["kafka_topic"], target["exists"], target["key"]) == ("from-mqtt", False, "test/topic/t")
    assert target["partition"] is None
    sender = await mqtt.connect("me")
    await sender.publish("test/topic/t", b"x", 2)
    (target,) = (await ask("/mappings/test", topic="test/topic/t", client_id="me", qos="2")).json()["targets"]
    ((key, _, headers),) = await mqtt.records("from-mqtt")
    assert (target["key"], target["exists"], target["partition"]) == (key and key.decode(), True, 0)
    assert {name: value.encode() for name, value in target["headers"].items()} == headers
    for nowhere in ("other", "$SYS/x"):
        assert (await ask("/mappings/test", topic=nowhere)).json()["targets"] == []
    for wrong in ({}, {"topic": "a/+"}, {"topic": "a", "qos": "x"}):
        assert (await ask("/mappings/test", **wrong)).status_code == 400


async def test_what_is_the_brokers_own_is_never_mapped(tmp_path: Path) -> None:
    async with running_mqtt(tmp_path, {"mqtt.topic.mapping.$mine/#": "mine"}):
        (running,) = current._RUNNING.values()
        assert mapping_test(running.writer, "$mine/x", "", 0)["targets"] == []
        assert running.writer.targets("$mine/x")


async def test_the_overview(mqtt: RunningMqtt, ask: Ask) -> None:
    one = await mqtt.connect("one")
    await one.subscribe("a")
    await one.publish("a", b"1", 1)
    found = (await ask("/")).json()
    assert found["listeners"] == {"mqtt": f"127.0.0.1:{mqtt.port}"}
    assert (found["connected"], found["sessions"], found["subscriptions"]) == (1, 1, 1)
    assert (found["messages_received"], found["retained"]) == ([0, 1, 0], 0)


async def test_health(mqtt: RunningMqtt) -> None:
    from leafcuttr.server.admin.plugged import health_checks

    one = await mqtt.connect("one")
    checks = {check.name: check for check in health_checks(mqtt.broker._core.plugged)}
    found = checks["mqtt:storing"].look()
    assert found == (True, "1 connected, 1 sessions")
    assert not checks["mqtt:storing"].required
    await one.nothing()


async def test_health_of_a_broker_that_cannot_store(tmp_path: Path) -> None:
    """A Kafka topic that there is not, and that is not made: its publisher waits until there is one."""
    from leafcuttr.server.admin.plugged import health_checks

    settings = {"auto.create.topics.enable": False, "mqtt.topic.mapping.a": "missing"}
    async with running_mqtt(tmp_path, settings) as mqtt:
        (check,) = (one for one in health_checks(mqtt.broker._core.plugged) if one.name == "mqtt:storing")
        sender = await mqtt.connect("sender")
        assert check.look().fine
        await sender.send(Publish("a", b"x", 1, packet_id=7))
        found = await eventually(lambda: None if (one := check.look()).fine else one, "trouble")
        assert "missing" in found.detail
        await mqtt.broker.topics.create("missing")
        assert (await sender.expect(PubAck)).packet_id == 7
        await eventually(lambda: check.look().fine, "the end of the trouble")


async def test_routes_keep_their_contract(mqtt: RunningMqtt) -> None:
    mine = [route for plugin, route in mqtt.broker._core.plugged.routes if plugin == "mqtt"]
    assert len(mine) == 8
    for route in mine:
        (await admin_route_report(route, "/plugins/mqtt")).raise_problems()


@pytest.mark.parametrize("path", ["/", "/clients", "/sessions/x", "/retained", "/mappings/test"])
async def test_without_a_broker_that_runs(path: str) -> None:
    from leafcuttr_sdk import Request

    class Nobody:
        """The key of a broker whose MQTT has failed."""

    (route,) = (one for one in routes(Nobody()) if one.path == path.replace("/x", "/{client_id}"))  # type: ignore[arg-type]
    answer = await route.handler(Request("GET", path, {}, {}, {"client_id": "x"}))
    assert answer.status == 404
    assert isinstance(answer.body, bytes)
    assert b"not_running" in answer.body

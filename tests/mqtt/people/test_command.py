"""`leafcuttr mqtt`, against a broker in this process."""

from __future__ import annotations

import json

import pytest
import trio

from leafcuttr_mqtt.packets.types import Disconnect, Properties, ReasonCode
from mqtt.people.conftest import Command
from support.mqtt import RunningMqtt

LASTS = Properties(session_expiry_interval=300)


def table(text: str) -> list[list[str]]:
    """The cells of the rows below the heads; two spaces or more are between cells."""
    return [[cell.strip() for cell in line.split("  ") if cell] for line in text.splitlines()[1:]]


async def test_clients(mqtt: RunningMqtt, command: Command) -> None:
    sensor = await mqtt.connect("sensor 7", user_name="anna")
    await sensor.subscribe("a/+", qos=1)
    shown = await command("clients")
    assert shown.status == 0, shown.err
    ((name, address, protocol, user, connected, *numbers),) = table(shown.out)
    assert (name, protocol, user, numbers) == ("sensor 7", "5.0", "anna", ["1", "0", "0"])
    assert address.startswith("127.0.0.1:")
    assert connected.endswith("s ago")
    (row,) = json.loads((await command("clients", "--json")).out)
    assert row["client_id"] == "sensor 7"
    shown = await command("clients", "show", "sensor 7")
    assert "client id: sensor 7\n" in shown.out
    assert shown.out.splitlines()[-1].split() == ["a/+", "1", "no", "no", "-"]
    assert json.loads((await command("clients", "show", "sensor 7", "--json")).out)["user_name"] == "anna"
    gone = await command("clients", "disconnect", "sensor 7")
    assert (gone.status, gone.out) == (0, "disconnected sensor 7\n")
    assert (await sensor.expect(Disconnect)).reason == ReasonCode.ADMINISTRATIVE_ACTION
    await sensor.closed()
    gone = await command("clients", "disconnect", "sensor 7")
    assert (gone.status, gone.err) == (1, "leafcuttr: no client with this id is connected\n")


async def test_sessions(mqtt: RunningMqtt, command: Command) -> None:
    away = await mqtt.connect("away", properties=LASTS, clean=False)
    await away.subscribe("a", qos=1)
    await away.leave()
    sender = await mqtt.connect("sender")
    await sender.publish("a", b"x", 1)
    shown = await command("sessions")
    (row,) = (cells for cells in table(shown.out) if cells[0] == "away")
    assert row[1].endswith("s ago")
    assert row[2:6] == ["5 min", "1", "0", "1"]
    assert "expiry s: 300\n" in (await command("sessions", "show", "away")).out
    deleted = await command("sessions", "delete", "away", "--json")
    assert (deleted.status, json.loads(deleted.out)) == (0, {"deleted": True})
    assert [row["client_id"] for row in json.loads((await command("sessions", "--json")).out)] == ["sender"]
    assert (await command("sessions", "delete", "away")).status == 1


async def test_messages_there_and_back(mqtt: RunningMqtt, command: Command) -> None:
    words = ("--retain", "--content-type", "text/plain", "-P", "unit=C", "-P", "at=a=b", "--expiry", "100")
    for qos in "012":
        sent = await command("publish", f"devices/{qos}", "21.5 °C", "--qos", qos, *words)
        assert (sent.status, sent.out, sent.err) == (0, "", "")
    shown = await command("subscribe", "devices/+", "--max", "3")
    assert sorted(shown.out.splitlines()) == [f"devices/{qos} 21.5 °C" for qos in "012"]
    shown = await command("subscribe", "devices/2", "--max", "1", "--json")
    assert json.loads(shown.out) == {
        "topic": "devices/2",
        "qos": 1,
        "retain": True,
        "payload": "21.5 °C",
        "content_type": "text/plain",
        "expires_after_s": 100,
        "user_properties": [["unit", "C"], ["at", "a=b"]],
    }
    assert {value for _, value, _ in await mqtt.records("from-devices")} == {"21.5 °C".encode()}
    listed = json.loads((await command("retained", "--json")).out)
    assert {row["topic"] for row in listed} == {"devices/0", "devices/1", "devices/2"}
    assert len(table((await command("retained", "--filter", "devices/1")).out)) == 1
    assert (await command("retained", "clear", "devices/#")).out == "cleared 3 retained messages\n"
    nothing = await command("subscribe", "devices/+", "--idle", "0.05", "--no-topics")
    assert (nothing.status, nothing.out) == (0, "")


async def test_standard_input(mqtt: RunningMqtt, command: Command) -> None:
    listener = await mqtt.connect("listener")
    await listener.subscribe("in")
    assert (await command("publish", "in", stdin="two\nlines\n")).status == 0
    assert (await command("publish", "in", "--lines", stdin="two\nlines\n")).status == 0
    found = [(await listener.message()).payload for _ in range(3)]
    assert found == [b"two\nlines\n", b"two", b"lines"]


async def test_a_payload_that_is_no_text(mqtt: RunningMqtt, command: Command) -> None:
    sender = await mqtt.connect("sender")
    await sender.publish("raw", b"\xff\0a", 1, retain=True)
    shown = await command("subscribe", "raw", "--max", "1", "--json")
    assert json.loads(shown.out)["payload_base64"] == "/wBh"
    # What would move the cursor of a terminal is shown as an escape.
    assert (await command("subscribe", "raw", "--max", "1")).out == "raw \\xff\\x00a\n"


async def test_messages_come_as_they_are_sent(mqtt: RunningMqtt, command: Command) -> None:
    """All qualities of service, acknowledged: none comes again."""
    async with trio.open_nursery() as nursery:

        async def send() -> None:
            sender = await mqtt.connect("sender")
            while True:
                answer = await sender.publish("live", b"?", 1)
                if getattr(answer, "reason", 0) == 0:
                    break
                await trio.sleep(0.01)
            for number in range(330):  # more than may be under way
                await sender.publish("live", b"%d" % number, number % 3)
            await sender.leave()

        nursery.start_soon(send)
        shown = await command("subscribe", "live", "--qos", "2", "--max", "331", "--no-topics")
    assert shown.out.splitlines() == ["?", *map(str, range(330))]


async def test_mappings(mqtt: RunningMqtt, command: Command) -> None:
    listed = await command("mappings")
    assert table(listed.out) == [
        ["devices/#", "from-devices", "{topic}"],
        ["test/topic/+", "from-mqtt", "{topic}"],
    ]
    tested = await command("mappings", "test", "devices/7", "--client-id", "me")
    assert tested.status == 0
    assert "from-devices" in tested.out
    assert "mqtt.client_id=me" in tested.out
    assert "there is none yet" in tested.out
    (row,) = json.loads((await command("mappings", "test", "devices/7", "--json")).out)
    assert (row["kafka_topic"], row["key"]) == ("from-devices", "devices/7")
    nowhere = await command("mappings", "test", "elsewhere")
    assert (nowhere.status, nowhere.out) == (
        1,
        "no mapping matches elsewhere: its messages are in no Kafka topic\n",
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("publish", "a/+", "x"), "'a/+' is no topic for a message: it has a wildcard, + or #"),
        (("publish", "a", "x", "--lines"), "--lines takes no MESSAGE"),
        (("publish", "a", "x", "-P", "unit"), "--property unit: write NAME=VALUE"),
        (("publish", "a", "x", "--password", "p"), "--password needs --username"),
        (("subscribe", "a/#/b"), "'a/#/b' is no topic filter: "),
        (("mappings", "test", "#"), "'#' is no topic for a message: "),
        (("retained", "clear", "a+"), "'a+' is no topic filter: "),
    ],
)
async def test_wrong_usage(command: Command, words: tuple[str, ...], line: str) -> None:
    ran = await command(*words)
    assert ran.status == 2
    assert line in ran.err


async def test_a_broker_that_is_not_there(command: Command) -> None:
    ran = await command("publish", "a", "x", "--mqtt-server", "127.0.0.1:1")
    assert ran.status == 1
    assert ran.err == "leafcuttr: no MQTT broker answers at 127.0.0.1:1: Connection refused\n"
    ran = await command("publish", "a", "x", "--mqtt-server", "nonsense")
    assert (ran.status, ran.err) == (1, "leafcuttr: 'nonsense' is no address: write HOST:PORT\n")


async def test_a_refused_message(mqtt: RunningMqtt, command: Command) -> None:
    """What is larger than the broker takes ends the connection, and the reason is shown."""
    ran = await command("publish", "a", stdin="x" * 1_100_000)
    assert ran.status == 1
    assert "packet too large" in ran.err or "broke" in ran.err or "closed" in ran.err

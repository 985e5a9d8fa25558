"""MQTT clients in JavaScript, Go and Java do what every MQTT client must: `support.mqtt_duties` says what that is."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from support.client_duties import Told
from support.mqtt_broker import MAPPED, MqttBroker
from support.mqtt_duties import AWAY, MESSAGES, MQTT_DUTIES, MQTT_PROGRAMS, SHARED, MqttProgram
from support.mqtt_records import records

Ran = Callable[[MqttProgram], tuple[str, Told]]
pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]


def cases() -> list[object]:
    found = []
    for program in MQTT_PROGRAMS:
        client = pytest.mark.client(program.client, version=program.version)
        needs = pytest.mark.skipif(bool(program.missing), reason=program.missing)
        for duty in MQTT_DUTIES:
            name = f"{program.client}-{program.version}-{duty}"
            found.append(pytest.param(program, duty, id=name, marks=[client, needs, pytest.mark.duty(duty)]))
    return found


@pytest.fixture(scope="session")
def ran(mqtt_broker: MqttBroker) -> Ran:
    """The prefix that a program used and what it said. It runs once, whichever of its duties is asked for first."""
    seen: dict[int, tuple[str, Told]] = {}

    def run(program: MqttProgram) -> tuple[str, Told]:
        number = MQTT_PROGRAMS.index(program)
        if number not in seen:
            prefix = f"{MAPPED}/duties-{os.getpid()}-{number}"
            words = [mqtt_broker.host, str(mqtt_broker.port), prefix]
            if program.web_sockets:
                assert mqtt_broker.web_sockets
                words.append(str(mqtt_broker.web_sockets))
            seen[number] = prefix, program.run(*words)
        return seen[number]

    return run


@pytest.mark.parametrize(("program", "duty"), cases())
def test_duty(ran: Ran, program: MqttProgram, duty: str) -> None:
    _, told = ran(program)
    assert duty in told.did, told.error


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(one, id=one.client, marks=pytest.mark.skipif(bool(one.missing), reason=one.missing))
        for one in MQTT_PROGRAMS
    ],
)
def test_all_of_it_is_in_the_kafka_topic(mqtt_broker: MqttBroker, ran: Ran, program: MqttProgram) -> None:
    """Behind its last duty a program has nothing more to complain about, and each message is stored once, in order."""
    prefix, told = ran(program)
    assert not told.error
    assert list(told.did) == list(MQTT_DUTIES)
    if mqtt_broker.kafka is None:
        return
    stored: dict[str, list[str]] = {}
    for record in records(mqtt_broker.kafka, MAPPED):
        stored.setdefault(record.headers["mqtt.topic"].decode(), []).append((record.value or b"").decode())
    for qos in range(3):
        assert stored[f"{prefix}/qos/{qos}"] == [str(number) for number in range(MESSAGES)]
    away = [f"{qos}-{number}" for qos in (1, 2) for number in range(AWAY)]
    assert stored[f"{prefix}/resumed"] == away
    assert sorted(map(int, stored[f"{prefix}/shared"])) == list(range(SHARED))
    assert stored[f"{prefix}/will"] == ["broken"]

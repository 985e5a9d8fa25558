"""Clients of the registry in JavaScript and Go do what every one must: `support.registry_duties` says what that is."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from support.client_duties import Told
from support.client_programs import Program
from support.librdkafka import create, read
from support.registry import RegistryProcess
from support.registry_duties import REGISTRY_DUTIES, REGISTRY_PROGRAMS

Ran = Callable[[Program], tuple[str, Told]]
pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]
FORMATS = ("avro", "json", "protobuf")


def cases() -> list[object]:
    found = []
    for program in REGISTRY_PROGRAMS:
        client = pytest.mark.client(program.client, version=program.version, lacks=program.lacks)
        needs = pytest.mark.skipif(bool(program.missing), reason=program.missing)
        for duty in REGISTRY_DUTIES:
            if duty not in program.lacks:
                marks = [client, needs, pytest.mark.duty(duty)]
                found.append(pytest.param(program, duty, id=f"{program.client}-{duty}", marks=marks))
    return found


@pytest.fixture(scope="session")
def ran(registry: RegistryProcess) -> Ran:
    """The name that a program used and what it said. It runs once, whichever of its duties is asked for first."""
    seen: dict[str, tuple[str, Told]] = {}

    def run(program: Program) -> tuple[str, Told]:
        if program.client not in seen:
            name = f"duties-{os.getpid()}-{len(seen)}"
            for topic in (f"{name}-{format}{suffix}" for format in FORMATS for suffix in ("", "-header")):
                create(registry.broker.address, topic, lc_schema_validation_value="full")
            seen[program.client] = name, program.run(registry.url, registry.broker.address, name)
        return seen[program.client]

    return run


@pytest.mark.parametrize(("program", "duty"), cases())
def test_duty(ran: Ran, program: Program, duty: str) -> None:
    _, told = ran(program)
    assert duty in told.did, told.error


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(one, id=one.client, marks=pytest.mark.skipif(bool(one.missing), reason=one.missing))
        for one in REGISTRY_PROGRAMS
    ],
)
def test_another_client_reads_what_it_wrote(ran: Ran, program: Program, registry: RegistryProcess) -> None:
    """Behind its last duty a program has nothing more to complain about."""
    name, told = ran(program)
    assert not told.error
    assert list(told.did) == [duty for duty in REGISTRY_DUTIES if duty not in program.lacks]
    client = SchemaRegistryClient({"url": registry.url})
    for suffix in ("",) if "header" in program.lacks else ("", "-header"):
        for format, deserializer in (
            ("avro", AvroDeserializer(client)),
            ("json", JSONDeserializer(None, schema_registry_client=client)),
        ):
            topic = f"{name}-{format}{suffix}"
            (found,) = read(registry.broker.address, topic, 1)
            context = SerializationContext(topic, MessageField.VALUE, found.headers())
            value = deserializer(found.value(), context)
            assert isinstance(value, dict) and (value["name"], value["age"]) == ("Ada Lovelace", 36)

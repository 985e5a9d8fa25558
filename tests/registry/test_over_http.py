"""The client of the SDK over HTTP keeps the contract of providers, at the registry of a broker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from leafcuttr_registry.avro.format import AvroFormat
from leafcuttr_sdk.http_schemas import HttpRegistry, HttpSchemaProvider
from leafcuttr_sdk.schemas import (
    IncompatibleSchemaError,
    SchemaError,
    SchemaFormat,
    SchemaNotFoundError,
    SchemaReference,
)
from leafcuttr_sdk.testing import check_schema_provider
from support.registry import RegistryProcess

AVRO = '{"type":"record","name":"R","fields":[{"name":"n","type":"int"}]}'


@pytest.fixture
def client(registry: RegistryProcess) -> Iterator[HttpRegistry]:
    formats: dict[str, SchemaFormat] = {"AVRO": AvroFormat()}
    client = HttpRegistry({"schema.registry.url": registry.url, "max.retries": "0"}, formats=formats)
    yield client
    client.close()


async def test_it_keeps_the_contract(client: HttpRegistry) -> None:
    await check_schema_provider(HttpSchemaProvider(client))


def test_refusals(client: HttpRegistry) -> None:
    client.register("refusals", "AVRO", AVRO)
    with pytest.raises(IncompatibleSchemaError):
        client.register("refusals", "AVRO", AVRO.replace('"int"', '"string"'))
    with pytest.raises(SchemaError):
        client.register("refusals", "AVRO", '{"type":"unheard"}')
    with pytest.raises(SchemaNotFoundError):
        client.find("refusals", "AVRO", '"int"')


def test_a_context_has_ids_of_its_own(client: HttpRegistry) -> None:
    text = AVRO.replace('"R"', '"Far"')
    there = client.register(":.far:orders", "AVRO", text)
    assert client.by_id(there.id, ":.far:others") == there
    assert client.by_id(there.guid).text == text
    assert client.belongs(there.guid, ":.far:orders")


def test_references_are_parsed_with_a_schema(client: HttpRegistry, registry: RegistryProcess) -> None:
    client.register("part", "AVRO", AVRO.replace('"R"', '"Part"'))
    whole = client.register(
        "whole",
        "AVRO",
        '{"type":"record","name":"Whole","fields":[{"name":"part","type":"Part"}]}',
        [SchemaReference("Part", "part", 1)],
    )
    assert whole.references == (SchemaReference("Part", "part", 1),)
    parsed = client.parsed(whole.id)
    assert parsed is not None
    assert parsed.codec().decode(b"\2") == {"part": {"n": 1}}
    fresh = HttpRegistry({"schema.registry.url": registry.url})
    assert list(fresh.resolved(fresh.by_id(whole.id))) == ["Part"]


def test_an_executor_needs_the_standard_library_alone(
    registry: RegistryProcess, client: HttpRegistry
) -> None:
    schema = client.register("alone", "AVRO", AVRO.replace('"R"', '"Alone"'))
    import leafcuttr_sdk

    folder = leafcuttr_sdk.__file__.rpartition("/leafcuttr_sdk/")[0]
    program = (
        f"import sys; sys.path.append({folder!r})\n"
        "from leafcuttr_sdk.http_schemas import HttpRegistry\n"
        f"print(HttpRegistry({{'schema.registry.url': {registry.url!r}}}).by_id({schema.id}).text)\n"
        "print([name for name in ('trio', 'leafcuttr', 'asyncio') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == [schema.text, "[]"]

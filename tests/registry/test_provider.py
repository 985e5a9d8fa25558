"""What other plugins get of the registry in their broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from leafcuttr_registry.provider import READING, RegistryProvider
from leafcuttr_sdk import (
    IncompatibleSchemaError,
    SchemaError,
    SchemaNotFoundError,
    SchemaProviderError,
    SchemaReference,
)
from leafcuttr_sdk.testing import RunningBroker, check_schema_provider, running_broker
from support.checked_topics import AVRO, OTHER, PROTOBUF
from support.registry import SETTINGS

if TYPE_CHECKING:
    from leafcuttr_sdk import Broker

INT = '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"string"}]}'


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with running_broker(tmp_path_factory.mktemp("provider"), SETTINGS, ["registry"]) as running:
        yield running


def schemas(broker: Broker) -> Any:
    assert broker.schemas is not None
    return broker.schemas


@pytest.mark.parametrize(
    "format, texts",
    [
        ("AVRO", (AVRO, AVRO.replace("}]", '},{"name":"a","type":"int","default":1}]'))),
        ("JSON", ('{"type":"object"}', '{"type":"object","description":"anything"}')),
        ("PROTOBUF", (PROTOBUF, PROTOBUF.replace("int64 id = 1;", "int64 id = 1;\n  string note = 2;"))),
    ],
)
def test_it_keeps_its_contract(broker: RunningBroker, format: str, texts: tuple[str, str]) -> None:
    broker.call(lambda inside: check_schema_provider(schemas(inside), format=format, texts=texts))


def test_before_the_topic_is_read_it_says_what_it_waits_for(broker: RunningBroker) -> None:
    async def ask(inside: Broker) -> None:
        early = RegistryProvider()
        assert early.waits_for == READING
        assert (early.get(1), early.parsed(1), early.belongs(1, "a")) == (None, None, False)
        for call in (early.by_id(1), early.by_version("a"), early.find("a", "AVRO", AVRO)):
            with pytest.raises(SchemaProviderError, match=READING):
                await call
        with pytest.raises(SchemaProviderError, match=READING):
            await early.register("a", "AVRO", AVRO)

    broker.call(ask)


def test_errors_are_those_of_the_contract(broker: RunningBroker) -> None:
    async def ask(inside: Broker) -> None:
        provider = schemas(inside)
        await provider.register("errors", "AVRO", AVRO)
        with pytest.raises(IncompatibleSchemaError, match=r"incompatible.*errors"):
            await provider.register("errors", "AVRO", INT)
        with pytest.raises(SchemaNotFoundError):
            await provider.find("errors", "AVRO", OTHER)
        with pytest.raises(SchemaNotFoundError, match="Version 9 not found"):
            await provider.by_version("errors", 9)
        with pytest.raises(SchemaNotFoundError, match="the reference 'x' means version 3 of subject errors"):
            await provider.register("errors", "AVRO", AVRO, [SchemaReference("x", "errors", 3)])
        with pytest.raises(SchemaError, match="Invalid schema type NONE"):
            await provider.register("errors", "NONE", AVRO)
        await provider.registry.set_mode("errors", "READONLY", force=False)
        with pytest.raises(SchemaProviderError, match="read-only"):
            await provider.register("errors", "AVRO", OTHER)

    broker.call(ask)


def test_a_service_that_stops_meanwhile_has_not_said_that_there_is_none(broker: RunningBroker) -> None:
    async def ask(inside: Broker) -> None:
        provider = schemas(inside)
        registry = provider.registry

        class Stopping:
            """Of a service that stops while its end is waited for."""

            state, reader, broker = registry.state, None, registry.broker

            async def reach_end(self) -> None:
                provider.registry = None

        stopping: Any = Stopping()
        stopping.reader = stopping
        provider.registry = stopping
        try:
            with pytest.raises(SchemaProviderError, match=READING):
                await provider.by_id(2**31 - 1)
        finally:
            provider.registry = registry

    broker.call(ask)


def test_a_reference_that_another_has_just_written(broker: RunningBroker) -> None:
    """What others append counts from then on, also before it has been followed."""
    from leafcuttr_registry.storage import keys, values
    from leafcuttr_registry.subjects.content import Content
    from leafcuttr_registry.subjects.events import Event, SchemaKey, SchemaValue
    from leafcuttr_sdk import Record

    async def ask(inside: Broker) -> None:
        provider = schemas(inside)
        key = SchemaKey("appended", 1)
        value = SchemaValue(
            7000,
            Content("AVRO", '{"type":"record","name":"Apart","fields":[{"name":"n","type":"int"}]}'),
            False,
        )
        await inside.produce_batch("_schemas", [Record(values.encode(Event(key, value)), keys.encode(key))])
        whole = '{"type":"record","name":"Holder","fields":[{"name":"apart","type":"Apart"}]}'
        reference = SchemaReference("Apart", "appended", 1)
        assert (await provider.register("holder", "AVRO", whole, [reference])).references == (reference,)

    broker.call(ask)


def test_reasons_of_what_is_not_compatible_are_one_line(broker: RunningBroker) -> None:
    async def ask(inside: Broker) -> None:
        provider = schemas(inside)
        text = PROTOBUF.replace("string text", "int32 text")
        await provider.register("lines", "PROTOBUF", PROTOBUF)
        with pytest.raises(IncompatibleSchemaError) as caught:
            await provider.register("lines", "PROTOBUF", text)
        assert len(str(caught.value).splitlines()) == 1

    broker.call(ask)


def test_threads_look_while_the_state_changes(broker: RunningBroker) -> None:
    """A reference to the latest version is looked for among versions that come and go meanwhile."""
    from leafcuttr_registry.subjects.content import Content
    from leafcuttr_registry.subjects.events import Event, SchemaKey, SchemaValue

    async def ask(inside: Broker) -> None:
        provider = schemas(inside)
        registry = provider.registry
        part = '{"type":"record","name":"Moving","fields":[{"name":"n","type":"int"}]}'
        whole = '{"type":"record","name":"Mover","fields":[{"name":"part","type":"Moving"}]}'
        content = Content("AVRO", whole, (SchemaReference("Moving", "moving", -1),))
        state = registry.state
        for number in range(1, 200):
            deleted = number > 1
            value = SchemaValue(8000 + number, Content("AVRO", f"{part}{' ' * number}"), deleted)
            state.apply(Event(SchemaKey("moving", number), value))
        state.apply(Event(SchemaKey("mover", 1), SchemaValue(9000, content, False)))
        done = trio.Event()

        async def look() -> None:
            def parse() -> None:
                for _ in range(300):
                    assert provider.parsed(9000).record_name == "Mover"
                    assert provider.get(8001) is not None and provider.belongs(8001, "moving")

            await trio.to_thread.run_sync(parse)
            done.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(look)
            number = 200
            while not done.is_set():
                value = SchemaValue(8000 + number, Content("AVRO", f"{part}{' ' * number}"), True)
                state.apply(Event(SchemaKey("moving", number), value))
                state.apply(
                    Event(SchemaKey("moving", 1), SchemaValue(8001, Content("AVRO", f"{part} "), False))
                )
                state.apply(Event(SchemaKey("moving", number), None))
                await trio.sleep(0)

    broker.call(ask)


def test_a_context_has_ids_of_its_own(broker: RunningBroker) -> None:
    async def ask(inside: Broker) -> None:
        provider = schemas(inside)
        for _ in range(2):
            there = await provider.register(":.far:orders", "AVRO", OTHER.replace("Other", "Far"))
        assert there.id == 1
        assert provider.get(1, ":.far:orders") == there
        assert provider.get(1) != there
        assert provider.get(there.guid) == there  # a guid is the same everywhere
        assert provider.belongs(1, ":.far:orders") is True
        assert provider.belongs(1, ":.far:others") is False
        assert provider.belongs(there.guid, ":.far:orders") is True
        assert provider.parsed(there.guid).record_name == "Far"

    broker.call(ask)


def test_references_are_parsed_with_a_schema(broker: RunningBroker) -> None:
    async def ask(inside: Broker) -> None:
        provider = schemas(inside)
        await provider.register(
            "part", "AVRO", '{"type":"record","name":"Part","fields":[{"name":"n","type":"int"}]}'
        )
        whole = await provider.register(
            "whole",
            "AVRO",
            '{"type":"record","name":"Whole","fields":[{"name":"part","type":"Part"}]}',
            [SchemaReference("Part", "part", -1)],
        )
        assert whole.references == (SchemaReference("Part", "part", 1),)
        parsed = await trio.to_thread.run_sync(provider.parsed, whole.id)
        assert parsed.codec().decode(b"\2") == {"part": {"n": 1}}

    broker.call(ask)


def test_after_a_restart_it_has_what_there_was(tmp_path: Path) -> None:
    async def register(inside: Broker) -> Any:
        return await schemas(inside).register("kept", "AVRO", AVRO)

    async def get(inside: Broker) -> Any:
        provider = schemas(inside)
        while provider.waits_for is not None:
            await trio.sleep(0.01)
        return provider.get(1), provider.belongs(1, "kept")

    with running_broker(tmp_path, SETTINGS, ["registry"]) as first:
        kept = first.call(register)
    with running_broker(tmp_path, SETTINGS, ["registry"]) as second:
        assert second.call(get) == (kept, True)


def test_versions_that_change_while_the_latest_is_looked_for() -> None:
    from leafcuttr_registry.provider import _resolved
    from leafcuttr_registry.subjects.content import Content
    from leafcuttr_registry.subjects.state import State, Version

    class Changing(State):
        times = 0

        def latest(self, subject: str) -> Version | None:
            self.times += 1
            if self.times < 3:
                raise RuntimeError("dictionary changed size during iteration")
            return Version(subject, 1, 1, Content("AVRO", "x"), False, 0)

    content = Content("AVRO", "y", (SchemaReference("r", "a", -1),))
    assert _resolved(Changing(), content, ".")["r"].text == "x"

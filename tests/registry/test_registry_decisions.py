"""What a registry decides on is what everyone has written before: clients and other registries write to its topic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr_registry.registry import Registry
from leafcuttr_registry.storage.topics import SCHEMAS
from leafcuttr_registry.subjects.refusals import Incompatible
from leafcuttr_registry.subjects.registering import Registration
from support.registries import opened

FIRST = '{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}'
SECOND = '{"type":"record","name":"R","fields":[{"name":"a","type":"string"},{"name":"b","type":"int","default":0}]}'
OTHER = '{"type":"record","name":"R","fields":[{"name":"c","type":"string"}]}'


async def append(registry: Registry, subject: str, version: int, id: int, schema: str) -> None:
    """As someone else."""
    key = f'{{"keytype":"SCHEMA","subject":"{subject}","version":{version},"magic":1}}'
    value = {"subject": subject, "version": version, "id": id, "schema": schema, "deleted": False}
    await registry.broker.produce(SCHEMAS, json.dumps(value).encode(), key.encode())


async def test_a_registration_waits_for_what_is_there_and_not_read(tmp_path: Path) -> None:
    async with opened(tmp_path) as registry, trio.open_nursery() as nursery:
        await append(registry, "other", 1, 100, FIRST)
        found: list[int] = []

        async def register() -> None:
            found.append((await registry.register("own", Registration("AVRO", SECOND))).id)
            nursery.cancel_scope.cancel()

        nursery.start_soon(register)
        await trio.sleep(0.05)
        assert found == []
        nursery.start_soon(registry.follow)
    assert found == [101]


async def test_a_version_that_comes_while_a_schema_is_compared_counts(tmp_path: Path) -> None:
    async with opened(tmp_path) as registry, trio.open_nursery() as nursery:
        nursery.start_soon(registry.follow)
        await registry.register("a", Registration("AVRO", FIRST))
        refused: list[Incompatible] = []

        async def register() -> None:
            try:
                await registry.register("a", Registration("AVRO", SECOND))
            except Incompatible as error:
                refused.append(error)

        async with registry._writing:
            nursery.start_soon(register)
            while not registry._writing.statistics().tasks_waiting:
                await trio.sleep(0.001)
            await append(registry, "a", 2, 50, OTHER)
        while not refused:
            await trio.sleep(0.001)
            assert len(registry.state.subjects["a"]) < 3, "it was compared with the version before"
        assert refused[0].messages
        nursery.cancel_scope.cancel()


async def test_other_subjects_may_change_meanwhile(tmp_path: Path) -> None:
    async with opened(tmp_path) as registry, trio.open_nursery() as nursery:
        nursery.start_soon(registry.follow)
        compared = 0
        differences = registry.checks.differences

        async def counting(*arguments: Any, **named: Any) -> Any:
            nonlocal compared
            compared += 1
            return await differences(*arguments, **named)

        registry.checks.differences = counting  # type: ignore[method-assign]
        await registry.register("a", Registration("AVRO", FIRST))
        done = trio.Event()

        async def register() -> None:
            await registry.register("a", Registration("AVRO", SECOND))
            done.set()

        async with registry._writing:
            nursery.start_soon(register)
            while not registry._writing.statistics().tasks_waiting:
                await trio.sleep(0.001)
            await append(registry, "b", 1, 50, OTHER)
        with trio.fail_after(60):
            await done.wait()
        assert compared == 1
        nursery.cancel_scope.cancel()


async def test_a_registry_that_was_closed_writes_no_more(tmp_path: Path) -> None:
    from leafcuttr_registry.subjects.refusals import Refusal

    async with opened(tmp_path) as registry:
        await registry.close()
        with pytest.raises(Refusal, match="restarted meanwhile"):
            await registry.set_mode("a", "READONLY", force=False)

"""Why a schema is not compatible with the versions before it: of thousands too, and in parts where there is no time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, count, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leafcuttr_registry.checks import comparing
from leafcuttr_registry.checks.comparing import Asked, Earlier, asked_in_words, messages
from leafcuttr_registry.checks.reading import Checks
from leafcuttr_registry.checks.turns import PATIENCE, Limit
from leafcuttr_registry.checks.work import Source
from leafcuttr_registry.registry import Registry
from leafcuttr_registry.subjects.refusals import Refusal
from support.registries import opened


def avro(*fields: str, type: str = "int") -> Source:
    members = [{"name": name, "type": type, "default": None if type == "null" else 0} for name in fields]
    return Source(json.dumps({"type": "record", "name": "R", "fields": members}), {})


def earlier(version: int, source: Source, type: str = "AVRO") -> Earlier:
    return Earlier(version, type, source, source.text.encode())


NEW = earlier(0, avro("a"))
GOOD = [earlier(at, avro(f"f{at}")) for at in range(1, 6)]
BAD = earlier(6, avro("a", type="null"))
ALL = Asked("BACKWARD_TRANSITIVE")


async def told(
    registry: Registry, versions: list[Earlier], asked: Asked = ALL, limit: Limit | None = None
) -> list[str]:
    return await messages(registry.checks, NEW, versions, asked, limit or Limit(60))


async def test_the_last_version_that_it_is_not_compatible_with_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path) as registry:
        assert await told(registry, GOOD) == []
        other = BAD._replace(version=9)
        found = await told(registry, [BAD, *GOOD, other, *(each._replace(version=10) for each in GOOD)])
        assert "{oldSchemaVersion: 9}" in found and "{oldSchemaVersion: 6}" not in found
        typed = earlier(8, Source("{}", {}), "JSON")
        assert "version 8 of type JSON" in (await told(registry, [BAD, typed, GOOD[0]]))[0]
        assert "{oldSchemaVersion: 9}" in await told(registry, [typed, other])
        assert await told(registry, [BAD, GOOD[0]], Asked("BACKWARD")) == []
        assert await told(registry, [BAD], Asked("NONE")) == []


def calls(monkeypatch: pytest.MonkeyPatch, registry: Registry) -> list[list[str]]:
    """The texts of the versions that each call of a worker gets."""
    found: list[list[str]] = []
    real = registry.checks.differences

    async def differences(type: str, new: Source, others: Any, **more: Any) -> Any:
        found.append([source.text for source, *_ in others])
        return await real(type, new, others, **more)

    monkeypatch.setattr(registry.checks, "differences", differences)
    return found


async def test_each_pair_is_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path) as registry:
        compared = calls(monkeypatch, registry)
        assert await told(registry, [*GOOD, GOOD[0]._replace(version=7)]) == []
        assert [len(each) for each in compared] == [len(GOOD)]
        assert await told(registry, GOOD) == []
        assert len(compared) == 1
        assert await told(registry, [*GOOD, BAD]) != []
        assert compared[1:] == [[BAD.source.text]]
        assert await told(registry, GOOD, Asked("FULL_TRANSITIVE")) == []
        assert len(compared[2]) == len(GOOD)


async def test_many_go_to_a_worker_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "_MOST_TEXT", 2 * len(GOOD[0].source.text))
    async with opened(tmp_path) as registry:
        compared = calls(monkeypatch, registry)
        assert await told(registry, GOOD) == []
        assert [len(each) for each in compared] == [2, 2, 1]


async def test_what_there_is_no_time_for_goes_on_with_the_next_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "_PART", 0.0)  # of what is left a worker compares one
    async with opened(tmp_path) as registry:
        for left in (5, 3):
            limit = Limit(60)
            using(monkeypatch, registry, limit, chain([1.0], repeat(61.0)))
            with pytest.raises(Refusal, match=f"of {left} versions 2 were compared within 60.0 s") as caught:
                await told(registry, GOOD, limit=limit)
            assert caught.value.code == 42201
        using(monkeypatch, registry, limit := Limit(60), repeat(1.0))
        assert await told(registry, GOOD, limit=limit) == []


def using(monkeypatch: pytest.MonkeyPatch, registry: Registry, limit: Limit, used: Iterator[float]) -> None:
    """Each comparison takes so much more of the processor's time."""
    real = Checks.differences

    async def differences(*given: Any, **more: Any) -> Any:
        found = await real(registry.checks, *given, **more)
        limit.worked_s += next(used)
        return found

    monkeypatch.setattr(registry.checks, "differences", differences)


async def test_where_others_took_the_time_it_is_busy(tmp_path: Path) -> None:
    limit = Limit(60)
    limit.waited_s = 61.0
    async with opened(tmp_path) as registry:
        with pytest.raises(Refusal, match="busy"):
            await told(registry, GOOD, limit=limit)
        limit.waited_s, limit.worked_s = 0.0, 61.0
        with pytest.raises(Refusal, match="of 5 versions 0 were compared"):
            await told(registry, GOOD, limit=limit)


async def test_what_a_machine_with_other_work_takes_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "_PART", 0.0)
    async with opened(tmp_path) as registry:
        clock(monkeypatch, 55.0)
        assert await told(registry, GOOD) == []


async def test_comparing_that_no_limit_ends_ends_by_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "_PART", 0.0)
    async with opened(tmp_path) as registry:
        clock(monkeypatch, 60.0 * PATIENCE / 3)
        with pytest.raises(Refusal, match="of 5 versions 2 were compared"):
            await told(registry, GOOD)


def clock(monkeypatch: pytest.MonkeyPatch, step_s: float) -> None:
    """Each look at it finds it so much later."""
    times = count(0.0, step_s)
    monkeypatch.setattr(comparing, "trio", SimpleNamespace(current_time=lambda: next(times)))


def test_the_last_message_says_what_was_asked() -> None:
    assert asked_in_words(ALL) == "{validateFields: 'false', compatibility: 'BACKWARD_TRANSITIVE'}"
    assert "validateFields: 'true'" in asked_in_words(ALL._replace(validate_fields=True))

"""The check of schema providers passes a sound one, and names what is wrong with broken ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio.testing

from leafcuttr_sdk.schemas import RegisteredSchema, SchemaReference, SchemaVersion
from leafcuttr_sdk.testing import ContractError, check_schema_provider
from leafcuttr_sdk.testing.schema_provider_checks import schema_provider_report
from support.column_registry import ColumnRegistry

COLUMNS: dict[str, Any] = {"format": "COLUMNS", "texts": ("id", "id,name")}


async def test_a_sound_one_passes() -> None:
    await check_schema_provider(ColumnRegistry(), **COLUMNS)


async def test_a_format_that_it_does_not_have() -> None:
    with pytest.raises(ContractError, match="there is no format AVRO"):
        await check_schema_provider(ColumnRegistry())


async def test_one_that_is_never_ready(autojump_clock: trio.testing.MockClock) -> None:
    class Waits(ColumnRegistry):
        waits_for = "the moon"

    with pytest.raises(ContractError, match="after 20 s it waits for the moon"):
        await check_schema_provider(Waits(), **COLUMNS)


async def test_one_that_is_ready_later(autojump_clock: trio.testing.MockClock) -> None:
    class Loads(ColumnRegistry):
        @property
        def waits_for(self) -> str | None:  # type: ignore[override]
            return "its schemas" if trio.current_time() < until else None

    until = trio.current_time() + 5
    await check_schema_provider(Loads(), **COLUMNS)


class TwoIds(ColumnRegistry):
    async def register(
        self, subject: str, format: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> RegisteredSchema:
        found = await super().register(subject, format, text, references)
        again = found._replace(id=found.id + 100 * len(self.by_key))
        self.by_key[again.id] = again
        return again


class OneId(ColumnRegistry):
    async def register(
        self, subject: str, format: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> RegisteredSchema:
        return (await super().register(subject, format, text, references))._replace(id=1)


class Forgets(ColumnRegistry):
    def get(self, key: int | str, subject: str | None = None) -> RegisteredSchema | None:
        return None

    async def by_id(self, key: int | str, subject: str | None = None) -> RegisteredSchema:
        return self.by_key[key]


class KeepsText(ColumnRegistry):
    def parsed(self, key: int | str, subject: str | None = None) -> Any:
        found = self.get(key)
        return found and found.text


class BelongsToAll(ColumnRegistry):
    def belongs(self, key: int | str, subject: str) -> bool:
        return key in self.by_key


class BelongsToNone(ColumnRegistry):
    def belongs(self, key: int | str, subject: str) -> bool:
        return False


class WrongError(ColumnRegistry):
    async def by_id(self, key: int | str, subject: str | None = None) -> RegisteredSchema:
        return self.by_key[key]


class FirstIsLatest(ColumnRegistry):
    async def by_version(self, subject: str, version: int | None = None) -> SchemaVersion:
        return await super().by_version(subject, version or 1)


class NoGuid(ColumnRegistry):
    async def by_id(self, key: int | str, subject: str | None = None) -> RegisteredSchema:
        return await super().by_id(key if isinstance(key, int) else 1_000_000)


class TakesAll(ColumnRegistry):
    async def register(
        self, subject: str, format: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> RegisteredSchema:
        if not text.replace(",", "").isidentifier():
            return RegisteredSchema(9, "", format, text)
        return await super().register(subject, format, text, references)


class OtherVersion(ColumnRegistry):
    async def find(
        self, subject: str, format: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> SchemaVersion:
        return (await super().find(subject, format, text, references))._replace(version=7)


class GivesNothing(ColumnRegistry):
    async def register(  # type: ignore[override]
        self, subject: str, format: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> None:
        await super().register(subject, format, text, references)


class FindsNothing(ColumnRegistry):
    async def find(  # type: ignore[override]
        self, subject: str, format: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> None:
        await super().find(subject, format, text, references)


class HasNoLatest(ColumnRegistry):
    async def by_version(self, subject: str, version: int | None = None) -> Any:
        return None if version is None else await super().by_version(subject, version)


@pytest.mark.parametrize(
    "broken, check, words",
    [
        (GivesNothing, "registers", "it gave None, not RegisteredSchema"),
        (FindsNothing, "registers", "find gives None, not SchemaVersion("),
        (HasNoLatest, "registers", "it gave None, not SchemaVersion"),
        (TwoIds, "registers", "one schema got the ids"),
        (OneId, "registers", "two schemas got the id 1"),
        (FirstIsLatest, "registers", "the latest version of two is 1"),
        (NoGuid, "registers", "there is no schema 1000000"),
        (OtherVersion, "registers", "find gives"),
        (Forgets, "remembers", "get(1) gives None"),
        (KeepsText, "remembers", "parsed(1) gives a str"),
        (BelongsToAll, "remembers", "not False for a subject that is not there"),
        (BelongsToNone, "remembers", "belongs(1) is not True"),
        (WrongError, "not found", "by_id raised KeyError"),
        (TakesAll, "refuses", "nothing gave a RegisteredSchema; it raises SchemaError"),
    ],
)
async def test_what_is_wrong_is_named(broken: type[ColumnRegistry], check: str, words: str) -> None:
    report = await schema_provider_report(broken(), **COLUMNS)
    (found,) = [each for each in report.checks if each.name == check]
    assert any(words in problem for problem in found.problems), report

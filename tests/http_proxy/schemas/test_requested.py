"""What a request says of its schemas."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_http.errors import ApiError
from leafcuttr_http.schemas import requested, shared
from leafcuttr_http.schemas.requested import Wanted, find, wanted
from leafcuttr_http.schemas.shared import Schemas
from leafcuttr_sdk.schemas import SchemaProvider, SchemaProviderError
from support.http_proxy import Running
from support.http_schemas import schemas_of


@pytest.mark.parametrize(
    "members, found",
    [
        ({}, Wanted("key")),
        ({"key_schema": None, "key_schema_id": None, "value_schema": "x"}, Wanted("key")),
        ({"key_schema": '"int"'}, Wanted("key", '"int"')),
        ({"key_schema_id": 0, "value_schema_id": 3}, Wanted("key", id=0)),
        ({"key_schema_id": "17"}, Wanted("key", id=17)),
        ({"key_schema_id": 2**31 - 1}, Wanted("key", id=2**31 - 1)),
    ],
)
def test_what_is_wanted(members: dict[str, Any], found: Wanted) -> None:
    assert wanted(members, "key") == found


@pytest.mark.parametrize(
    "members",
    [
        {"value_schema": '"int"', "value_schema_id": 1},
        {"value_schema": ""},
        {"value_schema": 5},
        {"value_schema": {}},
        {"value_schema_id": -1},
        {"value_schema_id": 2**31},
        {"value_schema_id": 1.5},
        {"value_schema_id": True},
        {"value_schema_id": []},
    ],
)
def test_what_makes_no_sense(members: dict[str, Any]) -> None:
    with pytest.raises(ApiError, match="value_schema") as caught:
        wanted(members, "value")
    assert caught.value.code == 422
    assert wanted(members, "key") == Wanted("key")


class TakesNone:
    """A registry whose register refuses whatever it is given, as others do that are read-only."""

    def __init__(self, provider: SchemaProvider) -> None:
        self._provider = provider

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    async def register(self, subject: str, format: str, text: str, references: Any = ()) -> Any:
        raise SchemaProviderError("it is read-only")


async def test_a_text_is_looked_up_before_it_is_registered(proxy: Running) -> None:
    real = schemas_of(proxy)
    registered = await real.register("t-value", "AVRO", '"int"')
    read_only: Any = TakesNone(real)
    for _ in range(2):
        found = await find(Schemas(proxy.broker), read_only, "t", "AVRO", Wanted("value", '"int"'))
        assert found == registered.id
    with pytest.raises(ApiError, match="value_schema in subject t-value: it is read-only") as caught:
        await find(Schemas(proxy.broker), read_only, "t", "AVRO", Wanted("value", '"long"'))
    assert caught.value.code == 40801
    assert await find(Schemas(proxy.broker), read_only, "t", "AVRO", Wanted("value")) is None


async def test_an_id_that_is_missing_is_asked_for_once(
    proxy: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "_MISSING_S", 1000.0)
    asked: list[int] = []

    class Counts(TakesNone):
        async def by_id(self, key: int) -> Any:
            asked.append(key)
            return await self._provider.by_id(key)

    schemas, counts = Schemas(proxy.broker), Counts(schemas_of(proxy))
    provider: Any = counts
    for _ in range(3):
        with pytest.raises(ApiError, match="value_schema_id 5: Schema 5 not found") as caught:
            await find(schemas, provider, "t", "AVRO", Wanted("value", id=5))
        assert caught.value.code == 40801
    assert asked == [5]


async def test_few_texts_are_remembered(proxy: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requested, "_REMEMBERED", 2)
    schemas = Schemas(proxy.broker)
    for text in ('"int"', '"long"', '"float"'):
        await find(schemas, schemas_of(proxy), text.strip('"'), "AVRO", Wanted("value", text))
    assert [subject for subject, _, _ in schemas.registered] == ["long-value", "float-value"]

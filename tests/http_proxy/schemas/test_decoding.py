"""Consumers and streams of records with schemas."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx_sse
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio_websocket import open_websocket_url

from leafcuttr_http.consumers import instance
from leafcuttr_http.schemas import shared
from leafcuttr_http.schemas.decoding import Decoder, to_text
from leafcuttr_http.schemas.shared import Schemas
from leafcuttr_http.streams import reader
from leafcuttr_http.streams.events import Event, decode
from leafcuttr_http.streams.positions import Positions
from leafcuttr_sdk import Record, StoredRecord
from leafcuttr_sdk.schema_framing import KEY_HEADER, VALUE_HEADER, guid_prefix, id_prefix, indexes
from leafcuttr_sdk.schemas import DataError, RegisteredSchema, SchemaProviderError
from support.http_proxy import Running
from support.http_schemas import (
    AVRO,
    JSONSCHEMA,
    ORDER,
    PERSON,
    PROTOBUF,
    USER,
    consumer,
    produced,
    schemas_of,
)

ANN = {"name": "ann", "age": {"int": 7}}
OF_ANN = b"\x06ann\x02\x0e"


async def registered(proxy: Running, subject: str, text: str, format: str = "AVRO") -> RegisteredSchema:
    return await schemas_of(proxy).register(subject, format, text)


def pairs(records: list[Any]) -> list[tuple[Any, Any]]:
    return [(record["key"], record["value"]) for record in records]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "type, format, schema, value, back",
    [
        (AVRO, "avro", USER, ANN, ANN),
        (JSONSCHEMA, "jsonschema", PERSON, {"name": "\u00fc"}, {"name": "\u00fc"}),
        (PROTOBUF, "protobuf", ORDER, {"id": 5}, {"id": "5", "note": ""}),
    ],
)
async def test_what_was_produced_is_read(
    proxy: Running, type: str, format: str, schema: str, value: Any, back: Any
) -> None:
    body = {
        "key_schema": schema,
        "value_schema": schema,
        "records": [{"key": value, "value": value, "headers": {"a": "b"}}, {"value": None}],
    }
    await produced(proxy, "t", body, type)
    async with proxy.client() as client:
        one = await consumer(client, "t", format)
        first, second = await one.read()
        assert (first["key"], first["value"]) == (back, back)
        assert first["headers"] == [{"name": "a", "value": "b"}]
        assert (first["partition"], first["offset"], first["topic"]) == (0, 0, "t")
        assert (second["key"], second["value"]) == (None, None)
        for accept, status in (
            ("application/vnd.kafka.v2+json", 200),
            ("application/json", 200),
            ("application/vnd.kafka.json.v2+json", 406),
            ("application/vnd.kafka.binary.v2+json", 406),
        ):
            await one.post("positions/beginning", {"partitions": [{"topic": "t", "partition": 0}]})
            answer = await one.ask(accept=accept)
            assert answer.status_code == status
            if status == 406:
                assert answer.json()["error_code"] == 40601


async def test_ids_in_headers_and_other_messages(proxy: Running) -> None:
    user = await registered(proxy, "t-value", USER)
    order = await registered(proxy, "o-value", ORDER, "PROTOBUF")
    guid, of_order = guid_prefix(UUID(user.guid)), guid_prefix(UUID(order.guid))
    records = [
        Record(OF_ANN, OF_ANN, ((KEY_HEADER, guid), (VALUE_HEADER, guid))),
        Record(guid + OF_ANN, b"a key"),
        Record(id_prefix(user.id) + OF_ANN, b"\0\0\0\1"),
    ]
    await proxy.broker.produce_batch("t", records)
    messages = [
        Record(b"\x08\x05", None, ((VALUE_HEADER, of_order + indexes((0, 0))),)),
        Record(id_prefix(order.id) + indexes((1,)) + b"\x08\x01"),
        Record(id_prefix(order.id) + b"\0"),
    ]
    await proxy.broker.produce_batch("o", messages)
    async with proxy.client() as client:
        found = pairs(await (await consumer(client, "t", "avro")).read())
        assert found == [(ANN, ANN), ("a key", ANN), ("\0\0\0\1", ANN)]
        found = pairs(await (await consumer(client, "o", "protobuf")).read())
        assert [value for _, value in found] == [{"n": 5}, {"b": True}, {"id": "0", "note": ""}]


async def test_what_cannot_be_decoded_does_not_go_lost(proxy: Running) -> None:
    user = await registered(proxy, "t-value", USER)
    order = await registered(proxy, "o-value", ORDER, "PROTOBUF")
    good = id_prefix(user.id) + OF_ANN
    bad: list[tuple[Record, str]] = [
        (Record(b"{}"), "value at offset 1 of t-0 cannot be decoded: the magic byte is 123"),
        (Record(id_prefix(999) + b"x"), "the registry has no schema 999"),
        (Record(id_prefix(order.id) + b"\0"), "is of type PROTOBUF, not AVRO"),
        (Record(id_prefix(user.id) + b"\x06an"), "value at offset 7 .*"),
        (Record(good, id_prefix(999)), "key at offset 9 of t-0 .*no schema 999"),
        (Record(b"", b"k"), "no bytes"),
    ]
    await proxy.broker.produce_batch("t", [each for record, _ in bad for each in (Record(good), record)])
    async with proxy.client() as client:
        one = await consumer(client, "t", "avro")
        for number, (_, says) in enumerate(bad):
            assert [each["offset"] for each in await one.read()] == [2 * number]
            for _ in range(2):
                answer = await one.ask()
                assert (answer.status_code, answer.json()["error_code"]) == (422, 42203)
                message = answer.json()["message"]
                assert re.search(says, message), message
                at = 2 * number + 1
                assert f"offset {at} of t-0" in message
                assert f"POST .../positions with offset {at + 1}" in message
            offsets = {"offsets": [{"topic": "t", "partition": 0, "offset": 2 * number + 2}]}
            await one.post("positions", offsets)


async def test_while_the_registry_is_not_ready(proxy: Running) -> None:
    await produced(proxy, "t", {"value_schema": '"int"', "records": [{"value": 1}]})
    schemas: Any = schemas_of(proxy)
    async with proxy.client() as client:
        one = await consumer(client, "t", "avro")
        kept, schemas.registry = schemas.registry, None
        try:
            answer = await one.ask()
            stream = await client.get("/topics/t/stream?format=avro")
        finally:
            schemas.registry = kept
        for each in (answer, stream):
            assert (each.status_code, each.headers["retry-after"]) == (503, "1")
            assert "_schemas" in each.json()["message"]
        assert pairs(await one.read()) == [(None, 1)]


@pytest.mark.long
async def test_an_answer_does_not_grow_beyond_its_limit(
    proxy: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instance, "_JSON_FACTOR", 1)
    fields = [f"  int32 a_field_with_a_long_name_{number} = {number};" for number in range(1, 100)]
    text = 'syntax = "proto3"; message Wide {' + "\n".join(fields) + "}"
    await produced(proxy, "t", {"value_schema": text, "records": [{"value": {}}] * 100}, PROTOBUF)
    offsets: list[int] = []
    async with proxy.client() as client:
        one = await consumer(client, "t", "protobuf", **{"fetch.max.bytes": 10_000})
        while len(offsets) < 100:
            found = await one.read()
            assert 0 < len(found) <= 4
            offsets += [each["offset"] for each in found]
    assert offsets == list(range(100))


async def test_records_are_decoded_in_a_thread(proxy: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    from threading import current_thread, main_thread

    threads = set()
    real = Decoder.value

    def noting(self: Decoder, data: bytes, headers: Any) -> Any:
        threads.add(current_thread() is main_thread())
        return real(self, data, headers)

    monkeypatch.setattr(Decoder, "value", noting)
    await produced(proxy, "t", {"value_schema": '"int"', "records": [{"value": 1}]})
    async with proxy.client() as client:
        await (await consumer(client, "t", "avro")).read()
        assert threads == {False}
        threads.clear()
        async with listening(proxy, "t", format="avro", **{"from": "earliest"}) as events:
            await events(1)
    assert threads == {False}


@asynccontextmanager
async def listening(proxy: Running, topic: str, **query: str) -> AsyncIterator[Any]:
    """What reads so many events."""
    async with (
        proxy.client() as client,
        httpx_sse.aconnect_sse(client, "GET", f"/topics/{topic}/stream", params=query) as source,
    ):
        source.response.raise_for_status()
        events = source.aiter_sse()

        async def records(count: int) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = []
            with trio.fail_after(60):
                while len(found) < count:
                    event = await anext(events)
                    if event.data:
                        assert event.event == "message", event
                        found.append(json.loads(event.data))
            return found

        yield records


async def test_streams(proxy: Running) -> None:
    user = await registered(proxy, "t-value", USER)
    order = await registered(proxy, "o-value", ORDER, "PROTOBUF")
    records = [
        Record(id_prefix(user.id) + OF_ANN, b"k"),
        Record(id_prefix(order.id) + b"\0", id_prefix(user.id) + OF_ANN),
        Record(b"plain", id_prefix(999)),
        Record(None, b"\xff"),
    ]
    await proxy.broker.produce_batch("t", records)
    avro_only = f"schema {order.id} is of type PROTOBUF, not AVRO"
    for format, second in (
        ("schema", {"value": {"id": "0", "note": ""}}),
        ("avro", {"value_base64": "AAAAAAIA", "value_error": avro_only}),
    ):
        async with listening(proxy, "t", format=format, **{"from": "earliest"}) as events:
            found = [
                {name: value for name, value in each.items() if name.startswith(("key", "value"))}
                for each in await events(4)
            ]
        assert found[0] == {"key": "k", "value": ANN}
        assert found[1] == {"key": ANN, **second}
        assert found[2]["key_error"] == "the registry has no schema 999"
        assert (found[2]["key_base64"], found[2]["value_base64"]) == ("AAAAA+c=", "cGxhaW4=")
        assert "magic byte" in found[2]["value_error"]
        assert found[3] == {"key_base64": "/w==", "value": None}


@pytest.mark.long
async def test_a_schema_that_some_values_would_keep_busy_for_ever(proxy: Running) -> None:
    """They are decoded in another process, with a deadline, and the others as ever."""
    schema = await registered(proxy, "t-value", '{"type":"string","pattern":"^(a+)+$"}', "JSON")
    busy = b'"' + b"a" * 40 + b'!"'
    records = [Record(id_prefix(schema.id) + data) for data in (b'"aa"', busy, b'"aaa"')]
    await proxy.broker.produce_batch("t", records)
    async with proxy.client() as client:
        one = await consumer(client, "t", "jsonschema")
        assert [each["value"] for each in await one.read()] == ["aa"]
        answer = await one.ask()
        assert (answer.status_code, answer.json()["error_code"]) == (422, 42203)
        assert "takes longer than 0.5 s" in answer.json()["message"]
    async with listening(proxy, "t", format="schema", **{"from": "earliest"}) as events:
        found = await events(3)
    assert [each.get("value") for each in found] == ["aa", None, "aaa"]
    assert "takes longer than 0.5 s" in found[1]["value_error"]


async def test_a_stream_that_goes_on_and_keys(proxy: Running) -> None:
    body = {"key_schema": '"string"', "value_schema": '"int"', "records": [{"key": "a", "value": 1}]}
    await produced(proxy, "t", body)
    async with (
        listening(proxy, "t", format="avro", key="b", **{"from": "earliest"}) as of_b,
        open_websocket_url(
            f"ws://127.0.0.1:{proxy.port}/topics/t/stream?format=schema&from=earliest"
        ) as socket,
    ):
        body["records"] = [{"key": "b", "value": 2}, {"key": "a", "value": 3}]
        await produced(proxy, "t", body)
        await proxy.broker.produce("t", b"\xff", b"b")
        found = await of_b(2)
        assert [(each["key"], each.get("value")) for each in found] == [("b", 2), ("b", None)]
        assert found[1]["value_base64"] == "/w=="
        records: list[Any] = []
        with trio.fail_after(60):
            while len(records) < 4:
                message = json.loads(await socket.get_message())
                records += message.get("records", [])
    assert [each.get("value") for each in records] == [1, 2, 3, None]


async def test_events_are_no_more_than_a_piece_may_have(proxy: Running) -> None:
    user = await registered(proxy, "t-value", USER)
    value = id_prefix(user.id) + OF_ANN
    records = [StoredRecord("t", 0, offset, 0, None, value) for offset in range(10)]
    schemas, positions = Schemas(proxy.broker), Positions(b"\0" * 4, [0])
    found: list[Event] = []
    for _ in decode(records, positions, Decoder(schemas, schemas_of(proxy), "AVRO"), 300, found):
        pass
    assert 0 < len(found) < 10 and sum(len(each.data) for each in found[:-1]) < 300
    assert positions.offsets == [len(found)]


@pytest.mark.parametrize("start", ["earliest", "latest"])
async def test_a_stream_waits_for_a_registry_that_is_not_ready(proxy: Running, start: str) -> None:
    await produced(proxy, "t", {"value_schema": '"int"', "records": [{"value": 1}]})
    schemas: Any = schemas_of(proxy)
    prefix = id_prefix((await schemas.by_version("t-value")).schema.id)
    async with listening(proxy, "t", format="avro", **{"from": start}) as events:
        if start == "earliest":
            await events(1)
        found: list[Any] = []

        async def follow() -> None:
            found.extend(await events(1))

        async with trio.open_nursery() as nursery:
            kept, schemas.registry = schemas.registry, None
            try:
                nursery.start_soon(follow)
                await proxy.broker.produce("t", prefix + b"\x04")
                await trio.sleep(0.3)
                assert found == []
            finally:
                schemas.registry = kept
    assert found[0]["value"] == 2


async def test_a_stream_of_wide_records_comes_in_pieces(
    proxy: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_MOST_DECODED", 2000)
    await proxy.broker.topics.create("t", partitions=2)
    records = [{"value": {"name": "x" * 300, "age": None}, "partition": number % 2} for number in range(60)]
    await produced(proxy, "t", {"value_schema": USER, "records": records})
    async with listening(proxy, "t", format="avro", **{"from": "earliest"}) as events:
        found = [(each["partition"], each["offset"]) for each in await events(60)]
    assert sorted(found) == [(partition, offset) for partition in (0, 1) for offset in range(30)]


async def test_a_schema_that_comes_after_records_were_read(proxy: Running) -> None:
    """Each batch is decoded by what is there then."""
    first = await registered(proxy, "t-value", USER)
    following = first.id + 1
    async with proxy.client() as client:
        await proxy.broker.produce("t", id_prefix(following) + b"\x02")
        one = await consumer(client, "t", "avro")
        assert (await one.ask()).json()["error_code"] == 42203
        assert (await registered(proxy, "u-value", '"int"')).id == following
        assert pairs(await one.read()) == [(None, 1)]


async def test_schemas_that_are_not_in_memory(proxy: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a registry elsewhere: it is asked once for each, before anything is decoded."""
    monkeypatch.setattr(shared, "_MISSING_S", 1000.0)
    await produced(
        proxy, "t", {"value_schema": '"int"', "records": [{"value": number} for number in range(3)]}
    )
    await proxy.broker.produce_batch("t", [Record(id_prefix(77) + b"x")] * 3)
    provider = schemas_of(proxy)
    id = (await provider.by_version("t-value")).schema.id
    get, by_id = provider.get, provider.by_id
    asked: list[int | str] = []
    failing = False

    async def ask(key: int | str, subject: str | None = None) -> RegisteredSchema:
        if failing:
            raise SchemaProviderError("it is not reachable")
        asked.append(key)
        return await by_id(key, subject)

    monkeypatch.setattr(provider, "by_id", ask)
    monkeypatch.setattr(provider, "get", lambda key, subject=None: get(key) if key in asked else None)
    async with proxy.client() as client:
        one = await consumer(client, "t", "avro")
        failing = True
        answer = await one.ask()
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "it is not reachable" in answer.json()["message"]
        async with listening(proxy, "t", format="avro", **{"from": "earliest"}) as events:
            assert [each["value_error"] for each in await events(6)] == ["it is not reachable"] * 6
        failing = False
        assert [each["value"] for each in await one.read()] == [0, 1, 2]
        assert sorted(asked, key=str) == [id, 77]
        assert "no schema 77" in (await one.ask()).json()["message"]
        assert sorted(asked, key=str) == [id, 77]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def test_half_of_a_surrogate_pair_as_text() -> None:
    assert to_text({"a": "\ud800"}) == '{"a":"\\ud800"}'
    assert to_text("\u00fc") == '"\u00fc"'
    with pytest.raises(DataError):
        to_text(float("nan"))


@given(json_values)
def test_values_as_text(value: Any) -> None:
    try:
        text = to_text(value)
    except DataError:
        assert "NaN" in json.dumps(value) or "Infinity" in json.dumps(value)
        return
    text.encode()
    assert "\n" not in text and "\r" not in text
    assert json.loads(text) == value

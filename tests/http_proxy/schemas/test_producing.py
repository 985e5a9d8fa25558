"""POST /topics/{topic} of the types with schemas, over real connections."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr_sdk import TopicPartition
from support.http_proxy import Running
from support.http_schemas import (
    AVRO,
    JSONSCHEMA,
    ORDER,
    PERSON,
    PROTOBUF,
    USER,
    post,
    produced,
    refused,
    schemas_of,
    serving,
)

ANN = {"name": "ann", "age": {"int": 7}}
ANN_BYTES = b"\x06ann\x02\x0e"


def prefix(id: int) -> bytes:
    return b"\0" + id.to_bytes(4, "big")


async def test_a_schema_is_given_once_and_its_id_afterwards(proxy: Running) -> None:
    body = {
        "key_schema": '"string"',
        "value_schema": USER,
        "records": [{"key": "a", "value": ANN}, {"key": None, "value": None}, {}],
    }
    answer = await produced(proxy, "t", body)
    key, value = answer["key_schema_id"], answer["value_schema_id"]
    assert list(answer) == ["offsets", "value_schema_id", "key_schema_id"]
    assert [each["offset"] for each in answer["offsets"]] == [0, 1, 2]
    assert type(key) is int and type(value) is int and key != value
    schemas = schemas_of(proxy)
    assert schemas.belongs(key, "t-key") and schemas.belongs(value, "t-value")
    assert not schemas.belongs(key, "t-value")
    again = {"key_schema_id": key, "value_schema_id": str(value), "records": [{"key": "a", "value": ANN}]}
    answer = await produced(proxy, "t", again)
    assert (answer["key_schema_id"], answer["value_schema_id"]) == (key, value)
    written = (prefix(key) + b"\x02a", prefix(value) + ANN_BYTES)
    assert await proxy.records("t") == [written, (None, None), (None, None), written]
    # The same text again: the same id, and no new version.
    answer = await produced(proxy, "t", body)
    assert answer["value_schema_id"] == value
    assert (await schemas.by_version("t-value")).version == 1


async def test_a_text_is_registered_again_after_its_subject_was_deleted(proxy: Running) -> None:
    body = {"value_schema": USER, "records": [{"value": ANN}]}
    id = (await produced(proxy, "t", body))["value_schema_id"]
    url = f"http://{proxy.broker.listeners['lc.schema.registry']}"
    async with proxy.client() as client:
        assert (await client.delete(f"{url}/subjects/t-value")).status_code == 200
    assert not schemas_of(proxy).belongs(id, "t-value")
    assert (await produced(proxy, "t", body))["value_schema_id"] == id
    assert schemas_of(proxy).belongs(id, "t-value")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "type, schema, value, data",
    [
        (AVRO, '{"type": "int"}', 12, b"\x18"),
        (AVRO, '"bytes"', "\u00ff", b"\x02\xff"),
        (AVRO, '["null", "string"]', {"string": "x"}, b"\x02\x02x"),
        (JSONSCHEMA, PERSON, {"name": "\u00fc"}, '{"name":"ü"}'.encode()),
        (PROTOBUF, ORDER, {"id": "5", "note": "n"}, b"\0\x08\x05\x12\x01n"),
    ],
)
async def test_data_of_each_type(proxy: Running, type: str, schema: str, value: Any, data: bytes) -> None:
    body = {"value_schema": schema, "records": [{"value": value}]}
    id = (await produced(proxy, "t", body, type))["value_schema_id"]
    older = type.replace(".v2", "")
    await produced(proxy, "t", {"value_schema_id": id, "records": [{"value": value}]}, older)
    assert await proxy.records("t") == [(None, prefix(id) + data)] * 2
    assert await proxy.counted("leafcuttr_http_records_produced_total", format=type.split(".")[2]) == 2


async def test_partition_headers_and_timestamp(proxy: Running) -> None:
    await proxy.broker.topics.create("t", partitions=2)
    record = {"value": 1, "partition": 1, "timestamp": 17, "headers": {"a": "b"}}
    await produced(proxy, "t", {"value_schema": '"int"', "records": [record]})
    answer = await produced(proxy, "t/partitions/1", {"value_schema": '"int"', "records": [{"value": 2}]})
    assert answer["offsets"] == [{"partition": 1, "offset": 1, "error_code": None, "error": None}]
    stored = [(await proxy.broker.fetch({TopicPartition("t", 1): at})).records[0] for at in (0, 1)]
    assert [each.value and each.value[5:] for each in stored] == [b"\x02", b"\x04"]
    assert (stored[0].timestamp, stored[0].headers) == (17, (("a", b"b"),))
    await refused(proxy, "t/partitions/9", {"value_schema": '"int"', "records": [{"value": 2}]}, 40402)


@pytest.mark.long
async def test_what_is_refused(proxy: Running) -> None:
    good = await produced(proxy, "t", {"value_schema": USER, "records": [{"value": ANN}]})
    id = good["value_schema_id"]
    order = (await produced(proxy, "o", {"value_schema": ORDER, "records": [{"value": {}}]}, PROTOBUF))[
        "value_schema_id"
    ]
    records = [{"value": ANN}]
    cases: list[tuple[Any, int, str]] = [
        (
            {"value_schema_id": id, "records": [{"key": 1, "value": ANN}]},
            42201,
            "Record 0: key .*key_schema_id",
        ),
        (
            {"key_schema": '"int"', "records": [{}, {"value": ANN}]},
            42202,
            "Record 1: value .*value_schema_id",
        ),
        (
            {"value_schema_id": id, "records": [*records, {"value": {"name": "b", "age": {"int": "x"}}}]},
            42203,
            "Record 1: value is not of schema .*age",
        ),
        (
            {"value_schema_id": id, "records": [{"value": {"name": 1, "age": None}}]},
            42203,
            "Record 0: .*name",
        ),
        ({"value_schema": "{", "records": records}, 42205, "value_schema is no schema of type AVRO"),
        ({"value_schema": '"no such type"', "records": records}, 42205, "no schema of type AVRO"),
        ({"value_schema": "\ud800", "records": records}, 42205, "surrogate"),
        ({"value_schema_id": order, "records": records}, 42205, "type PROTOBUF, not AVRO"),
        ({"value_schema_id": 9999, "records": records}, 40801, "9999"),
        (
            {"value_schema": '{"type":"enum","name":"E","symbols":["A"]}', "records": records},
            40801,
            "t-value: .*",
        ),
        ({"value_schema": USER, "value_schema_id": id, "records": records}, 422, "exclude each other"),
        ({"value_schema": {"type": "int"}, "records": records}, 422, "as a string"),
        ({"value_schema": " ", "records": records}, 422, "as a string"),
        ({"value_schema_id": "x", "records": records}, 422, "whole number"),
        ({"value_schema_id": -1, "records": records}, 422, "whole number"),
        ({"value_schema_id": True, "records": records}, 422, "whole number"),
        ({"schema": USER, "records": records}, 422, "'value_schema'"),
        ({"value_schema_id": id, "records": []}, 422, "records"),
        ({"value_schema_id": id, "records": [{"valeu": ANN}]}, 42206, "valeu"),
        (b"{", 400, "JSON"),
    ]
    for body, code, says in cases:
        message = await refused(proxy, "t", body, code)
        assert re.search(says, message), (body, message)
    assert len(await proxy.records("t")) == 1
    # A schema that was refused is in no subject.
    assert (await schemas_of(proxy).by_version("t-value")).version == 1


async def test_nothing_is_registered_for_a_body_that_is_no_json(proxy: Running) -> None:
    from leafcuttr_sdk.schemas import SchemaNotFoundError

    large = json.dumps({"value_schema": '"int"', "records": [{"value": 1}] * 20_000})
    for body in (large[:-1].encode(), b'{"value_schema": "\\"int\\"", "records": [{"value": 1}'):
        await refused(proxy, "t", body, 400)
    with pytest.raises(SchemaNotFoundError):
        await schemas_of(proxy).by_version("t-value")


@pytest.mark.long
async def test_a_large_body_whose_schema_comes_last(proxy: Running) -> None:
    records = [{"value": {"name": f"{number:0100}", "age": None}} for number in range(3000)]
    answer = await produced(proxy, "t", {"records": records, "value_schema": USER})
    assert [each["offset"] for each in answer["offsets"]] == list(range(3000))
    stored = await proxy.records("t")
    assert stored[2999] == (None, prefix(answer["value_schema_id"]) + b"\xc8\x01" + b"%0100d\0" % 2999)
    records[2990]["value"] = 5
    message = await refused(proxy, "t", {"records": records, "value_schema": USER}, 42203)
    assert message.startswith("Record 2990: value")
    assert len(await proxy.records("t")) == 3000


async def test_others_have_their_turn_while_records_are_encoded(proxy: Running) -> None:
    """The loop is never held as long as encoding takes: it runs in a thread."""
    from threading import current_thread, main_thread

    from leafcuttr_http.schemas import producing

    threads = set()
    real = producing.add_converted

    def noting(*arguments: Any) -> None:
        threads.add(current_thread() is main_thread())
        real(*arguments)

    producing.add_converted = noting
    try:
        for count in (1, 3000):
            await produced(proxy, "t", {"value_schema": '"int"', "records": [{"value": 1}] * count})
    finally:
        producing.add_converted = real
    assert threads == {False}


async def test_a_request_with_a_key_is_stored_once(proxy: Running) -> None:
    body = {"value_schema": '"int"', "records": [{"value": 1}]}
    first = await post(proxy, "t", body, idempotency_key="k")
    again = await post(proxy, "t", body, idempotency_key="k")
    assert first.json() == again.json() and again.headers["idempotent-replayed"] == "true"
    assert first.json()["value_schema_id"] is not None
    other = await post(proxy, "t", body, JSONSCHEMA, idempotency_key="k")
    assert other.json()["error_code"] == 42208
    assert len(await proxy.records("t")) == 1


async def test_lines_have_no_schemas(proxy: Running) -> None:
    answer = await post(
        proxy, "t", b'{"value": 1, "value_schema": "x"}\n{"value": 2}\n', "application/x-ndjson"
    )
    codes = [json.loads(line)["error_code"] for line in answer.text.splitlines()]
    assert codes == [42206, None]


async def test_other_types_take_no_schemas(proxy: Running) -> None:
    body = {"value_schema": '"int"', "records": [{"value": 1}]}
    assert "schema" in await refused(proxy, "t", body, 422, "application/vnd.kafka.json.v2+json")


async def test_while_the_registry_is_not_ready(proxy: Running) -> None:
    schemas: Any = schemas_of(proxy)
    kept, schemas.registry = schemas.registry, None
    try:
        answer = await post(proxy, "t", {"value_schema": '"int"', "records": [{"value": 1}]})
    finally:
        schemas.registry = kept
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "_schemas" in answer.json()["message"]
    assert proxy.broker.topics.partition_count("t") == 0


async def test_a_registry_that_takes_no_schemas_still_knows_its_own(proxy: Running) -> None:
    body = {"value_schema": '"int"', "records": [{"value": 1}]}
    await produced(proxy, "t", body)
    url = f"http://{proxy.broker.listeners['lc.schema.registry']}"
    async with proxy.client() as client:
        await client.put(f"{url}/mode", content=b'{"mode": "READONLY"}')
    other = {"value_schema": '{ "type": "int" }', "records": [{"value": 1}]}
    await produced(proxy, "t", other)
    assert "t-value" in await refused(proxy, "t", {**body, "value_schema": '"string"'}, 40801)


async def test_a_request_that_takes_too_long_lets_go_of_its_thread(tmp_path: Path) -> None:
    from threading import Event

    from leafcuttr_http.schemas import producing

    held, left = Event(), Event()
    real = producing.add_converted

    def slow(*arguments: Any) -> None:
        real(*arguments)
        if not held.wait(0.01):
            return
        left.set()

    producing.add_converted = slow
    try:
        async with serving(tmp_path / "data", {"request.timeout.ms": 1000}) as proxy:
            body = {"value_schema": '"int"', "records": [{"value": 1}] * 1000}
            answer = await post(proxy, "t", body)
            assert (answer.status_code, answer.json()["error_code"]) == (500, 50003)
            held.set()
            await trio.to_thread.run_sync(left.wait, 10)
            await trio.sleep(0.2)
            assert await proxy.records("t") == []
    finally:
        producing.add_converted = real


@pytest.mark.long
async def test_a_schema_that_some_values_would_keep_busy_for_ever(proxy: Running) -> None:
    """Its values are checked in another process, with a deadline."""
    body: dict[str, Any] = {"value_schema": '{"type":"string","pattern":"^(a+)+$"}'}
    good = {**body, "records": [{"value": "aaa"}, {"value": None}]}
    id = (await produced(proxy, "busy", good, JSONSCHEMA))["value_schema_id"]
    assert await proxy.records("busy") == [(None, prefix(id) + b'"aaa"'), (None, None)]
    for value, why in (("a" * 40 + "!", "takes longer than 0.5 s"), ("b", "is not of schema")):
        said = await refused(proxy, "busy", {**body, "records": [{"value": value}]}, 42203, JSONSCHEMA)
        assert why in said
    assert len(await proxy.records("busy")) == 2

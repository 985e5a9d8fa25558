"""POST /topics/{topic}, over real connections."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr_sdk import TopicPartition
from support.http_proxy import Running, running

V2 = "application/vnd.kafka.v2+json"
V2_JSON = "application/vnd.kafka.json.v2+json"
V2_BINARY = "application/vnd.kafka.binary.v2+json"


async def post(
    proxy: Running, path: str, body: Any, content_type: str = "application/json", **headers: str
) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with proxy.client() as client:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await client.post(path, content=content, headers={"content-type": content_type, **named})


async def test_the_example_of_the_manual(proxy: Running) -> None:
    body = (
        b'{"records":[{"key":"someKeyText", "value":{"name": "testUser"}},'
        b' {"key":"someKeyText", "value":{"name": "testUser2"}}]}'
    )
    answer = await post(proxy, "/topics/jsontest", body, accept="application/json")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "offsets": [
            {"partition": 0, "offset": 0, "error_code": None, "error": None},
            {"partition": 0, "offset": 1, "error_code": None, "error": None},
        ],
        "value_schema_id": None,
        "key_schema_id": None,
    }
    assert list(answer.json()) == ["offsets", "value_schema_id", "key_schema_id"]
    assert await proxy.records("jsontest") == [
        (b"someKeyText", b'{"name":"testUser"}'),
        (b"someKeyText", b'{"name":"testUser2"}'),
    ]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("sent", "accept", "answered"),
    [
        ("application/json", None, "application/json"),
        ("application/json; charset=UTF-8", "*/*", "application/json"),
        ("application/json", V2, V2),
        ("application/json", "text/html, application/*;q=0.5", "application/json"),
        (V2_JSON, None, V2),
        (V2_JSON, "application/json", "application/json"),
        (V2_JSON, f"application/json;q=0.2, {V2};q=0.3", V2),
        (V2_BINARY, "*/*;q=0.1", V2),
    ],
)
async def test_the_answer_has_the_accepted_type(
    proxy: Running, sent: str, accept: str | None, answered: str
) -> None:
    headers = {} if accept is None else {"accept": accept}
    async with proxy.client() as client:
        if accept is None:
            del client.headers["accept"]
        answer = await client.post(
            "/topics/t", content=b'{"records":[{"value":"AAAA"}]}', headers={"content-type": sent, **headers}
        )
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == answered


async def test_formats_of_the_api(proxy: Running) -> None:
    await post(proxy, "/topics/t", {"records": [{"key": "k", "value": "v"}, {"key": {"a": 1}}]}, V2_JSON)
    await post(
        proxy, "/topics/t", {"records": [{"key": "AP8=", "value": "AA=="}, {"value": None}]}, V2_BINARY
    )
    assert await proxy.records("t") == [
        (b'"k"', b'"v"'), (b'{"a":1}', None), (b"\x00\xff", b"\x00"), (None, None),
    ]  # fmt: skip


async def test_headers_partition_and_timestamp(proxy: Running) -> None:
    await proxy.broker.topics.create("t", partitions=3)
    record = {"value": 1, "partition": 2, "timestamp": 1_700_000_000_123, "headers": {"a": "ü"}}
    answer = await post(proxy, "/topics/t", {"records": [record]})
    assert answer.json()["offsets"][0] == {"partition": 2, "offset": 0, "error_code": None, "error": None}
    (stored,) = (await proxy.broker.fetch({TopicPartition("t", 2): 0})).records
    assert (stored.timestamp, stored.headers) == (1_700_000_000_123, (("a", "ü".encode()),))


async def test_a_partition_of_the_path(proxy: Running) -> None:
    await proxy.broker.topics.create("t", partitions=3)
    answer = await post(proxy, "/topics/t/partitions/1", {"records": [{"key": "a"}, {"key": "b"}]}, V2_JSON)
    assert [offset["partition"] for offset in answer.json()["offsets"]] == [1, 1]
    for path, body, status, code in (
        ("/topics/t/partitions/3", {"records": [{}]}, 404, 40402),
        ("/topics/t/partitions/x", {"records": [{}]}, 404, 40402),
        (f"/topics/t/partitions/{2**31}", {"records": [{}]}, 404, 40402),
        ("/topics/t/partitions/1", {"records": [{"partition": 2}]}, 422, 42206),
    ):
        answer = await post(proxy, path, body)
        assert (answer.status_code, answer.json()["error_code"]) == (status, code), path


async def test_a_topic_that_belongs_to_another_plugin(proxy: Running) -> None:
    await proxy.broker.topics.create("theirs", internal=True, owned=True)
    for path in ("/topics/theirs", "/topics/theirs/partitions/0"):
        answer = await post(proxy, path, {"records": [{"value": 1}]})
        assert (answer.status_code, answer.json()["error_code"]) == (403, 40301), path
        assert "belongs to" in answer.json()["message"]
    assert await proxy.records("theirs") == []


async def test_nothing_is_stored_of_a_request_that_is_wrong(proxy: Running) -> None:
    await proxy.broker.topics.create("t")
    for content_type, body, code, says in (
        (
            "application/json",
            {"records": [{"value": 1}, {"valeu": 2}]},
            42206,
            "Record 1: has no member 'valeu'",
        ),
        (
            V2_BINARY,
            {"records": [{"value": "AAAA"}, {"value": 7}]},
            42206,
            "Record 1: value has to be a string",
        ),
        (
            "application/json",
            b'{"records":[{"value":1},{"value":"\\ud800"}]}',
            42207,
            "Record 1: value has half",
        ),
        (
            "application/json",
            b'{"records":[{"value":1},{"value":1e999}]}',
            42207,
            "Record 1: value has a number",
        ),
        ("application/json", b'{"records":[{"value":1},{"value":', 400, "line 1 column"),
        ("application/json", b'{"records":[{"value":"\xff"}]}', 400, "not UTF-8"),
        ("application/json", {"records": []}, 422, "at least one record"),
    ):
        answer = await post(proxy, "/topics/t", body, content_type)
        assert answer.json()["error_code"] == code
        assert says in answer.json()["message"]
        assert answer.status_code == (code if code < 1000 else code // 100)
    assert await proxy.records("t") == []


async def test_errors_of_single_records(proxy: Running) -> None:
    await proxy.broker.topics.create("t", configs={"max.message.bytes": "2000"})
    records = [{"value": "x" * 3000}, {"value": 1, "partition": 7}, {"value": 2}]
    answer = await post(proxy, "/topics/t", {"records": records})
    assert answer.status_code == 200
    large, nowhere, stored = answer.json()["offsets"]
    assert large["error_code"] == 50002 and "MESSAGE_TOO_LARGE" in large["error"]
    assert nowhere["error_code"] == 40402 and large["offset"] is nowhere["partition"] is None
    assert stored == {"partition": 0, "offset": 0, "error_code": None, "error": None}


async def test_topics_that_are_not_there(tmp_path: Path) -> None:
    async with running(tmp_path / "data", broker={"auto.create.topics.enable": "false"}) as proxy:
        answer = await post(proxy, "/topics/nope", {"records": [{}]})
        assert (answer.status_code, answer.json()["error_code"]) == (404, 40401)
        answer = await post(proxy, "/topics/nope/partitions/0", {"records": [{}]})
        assert (answer.status_code, answer.json()["error_code"]) == (404, 40401)
        answer = await post(proxy, "/topics/a%20b", {"records": [{}]})
        assert answer.status_code in (404, 422)
        answer = await post(proxy, "/topics/%FF", {"records": [{}]})
        assert (answer.status_code, answer.json()["error_code"]) == (404, 40401)
        assert proxy.broker.topics.names() == []


async def test_names_come_percent_encoded(proxy: Running) -> None:
    assert (await post(proxy, "/topics/a%2Eb%5Fc", {"records": [{}]})).status_code == 200
    assert proxy.broker.topics.names() == ["a.b_c"]
    answer = await post(proxy, "/topics/a%2Fb", {"records": [{}]})
    assert answer.status_code == 422
    assert proxy.broker.topics.names() == ["a.b_c"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("content_type", "says"),
    [
        ("application/vnd.kafka.avro.v2+json", "schema registry"),
        ("application/vnd.kafka.jsonschema.v2+json", "schema registry"),
        ("application/vnd.kafka.protobuf.v2+json", "schema registry"),
        (V2, "application/vnd.kafka.json.v2+json"),
        ("application/x-www-form-urlencoded", "application/json"),
        ("text/plain", "application/json"),
        ("application/json; charset=utf-16", "UTF-8"),
    ],
)
async def test_types_that_are_not_read(proxy: Running, content_type: str, says: str) -> None:
    answer = await post(proxy, "/topics/t", {"records": [{}]}, content_type)
    assert (answer.status_code, answer.json()["error_code"]) == (415, 41501)
    assert says in answer.json()["message"]
    assert proxy.broker.topics.names() == []


async def test_types_that_cannot_be_answered(proxy: Running) -> None:
    answer = await post(proxy, "/topics/t", {"records": [{}]}, accept="text/html")
    assert (answer.status_code, answer.json()["error_code"]) == (406, 406)
    assert answer.headers["content-type"] == "application/json"
    assert proxy.broker.topics.names() == []


async def test_gzip(proxy: Running) -> None:
    body = json.dumps({"records": [{"value": "x" * 100}] * 50}).encode()
    halves = gzip.compress(body[:100]) + gzip.compress(body[100:])
    for data in (gzip.compress(body), halves):
        answer = await post(proxy, "/topics/t", data, content_encoding="gzip")
        assert len(answer.json()["offsets"]) == 50
    for data, says in ((b"no gzip", "not gzip"), (gzip.compress(body)[:-9], "too early"), (b"", "too early")):
        answer = await post(proxy, "/topics/t", data, content_encoding="gzip")
        assert answer.status_code == 400 and says in answer.json()["message"]
    answer = await post(proxy, "/topics/t", body, content_encoding="br")
    assert answer.status_code == 415 and answer.headers["accept-encoding"] == "gzip, identity"
    assert len(await proxy.records("t")) == 100


async def test_a_gzip_bomb_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path / "data", {"max.request.bytes": 100_000}) as proxy:
        bomb = gzip.compress(b'{"records":[{"value":"' + b"0" * 50_000_000 + b'"}]}')
        assert len(bomb) < 100_000
        answer = await post(proxy, "/topics/t", bomb, content_encoding="gzip")
        assert (answer.status_code, answer.json()["error_code"]) == (413, 413)
        assert proxy.broker.topics.names() == []


@pytest.mark.long
async def test_a_large_request_is_stored_whole_while_others_get_their_turn(proxy: Running) -> None:
    body = {"records": [{"key": number, "value": "x" * 1000} for number in range(8000)]}
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.sleep(0)
            turns += 1

    async with trio.open_nursery() as nursery:
        answer = await post(proxy, "/topics/t", body)
        # The loop went round while it was parsed, converted and stored; that is more often than for its bytes alone.
        nursery.cancel_scope.cancel()
    offsets = answer.json()["offsets"]
    assert [offset["offset"] for offset in offsets] == list(range(8000))
    stored = await proxy.records("t")
    assert [key for key, _ in stored] == [str(number).encode() for number in range(8000)]


@pytest.mark.setting("lc.http.proxy.max.record.bytes")
async def test_one_record_may_be_too_long(tmp_path: Path) -> None:
    async with running(tmp_path / "data", {"max.record.bytes": 2000}) as proxy:
        body = {"records": [{"value": 1}, {"value": "x" * 3000}]}
        answer = await post(proxy, "/topics/t", body)
        assert answer.status_code == 413 and "max.record.bytes" in answer.json()["message"]
        assert proxy.broker.topics.names() == []


async def test_what_is_counted(proxy: Running) -> None:
    await post(proxy, "/topics/t", {"records": [{}, {}]})
    await post(proxy, "/topics/t", b"x")
    requests = "leafcuttr_http_requests_total"
    assert await proxy.counted(requests, endpoint="produce", method="POST", status="200") == 1
    assert await proxy.counted(requests, endpoint="produce", method="POST", status="400") == 1
    assert await proxy.counted("leafcuttr_http_records_produced_total", format="json") == 2
    assert await proxy.counted("leafcuttr_http_request_seconds_total", endpoint="produce") > 0


async def test_binary_of_every_byte(proxy: Running) -> None:
    data = bytes(range(256))
    body = {"records": [{"key": base64.b64encode(data).decode(), "value": base64.b64encode(data).decode()}]}
    await post(proxy, "/topics/t", body, V2_BINARY)
    assert await proxy.records("t") == [(data, data)]

"""What clients of other proxies send: slashes at the end, bodies that say nothing, numbers as texts."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from trio_websocket import ConnectionRejected, open_websocket_url

from leafcuttr_http.app import PARTS
from leafcuttr_http.documentation import describe
from leafcuttr_sdk import CommittedOffset, TopicPartition
from support.http_proxy import Running, running

V2 = {"content-type": "application/vnd.kafka.v2+json"}
BROKER = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}
T0 = TopicPartition("t", 0)


@pytest.fixture
async def proxy(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path / "data", {"cors.allowed.origins": "*"}, broker=BROKER) as found:
        await found.view.topics.create("t", partitions=1)
        yield found


def operations() -> list[tuple[str, str]]:
    """All of the document but streams, which do not end, deletion last."""
    found = [
        (method.upper(), path)
        for path, methods in describe(PARTS, "1")["paths"].items()
        for method in methods
        if not path.endswith("/stream")
    ]
    return sorted(found, key=lambda each: each[0] == "DELETE")


def shape(answer: httpx.Response) -> tuple[int, str | None, Any]:
    """What has to be the same, whichever the name of the consumer and the offset of the record."""
    text = re.sub(r"rest-consumer-[0-9a-f-]+", "NAME", answer.text)
    if answer.headers.get("content-type", "").endswith("json") and answer.content:
        text = json.dumps(json.loads(re.sub(r'"offset":\s*\d+', '"offset":0', text)))
    return answer.status_code, answer.headers.get("content-type"), text


@pytest.mark.long
async def test_a_slash_at_the_end_changes_nothing(client: httpx.AsyncClient) -> None:
    bodies = {
        "/topics/{topic}": {"records": [{"value": 1}]},
        "/topics/{topic}/partitions/{partition}": {"records": [{"value": 1}]},
        "/consumers/{group}/instances/{name}/subscription": {"topics": ["t"]},
    }
    await client.post("/consumers/g", json={"name": "n", "format": "json"}, headers=V2)
    tried = 0
    for method, path in operations():
        real = path.format(topic="t", partition="0", group="g", name="n")
        for verb in {method, "HEAD", "OPTIONS", "PATCH"}:
            if verb == "DELETE" and real.endswith("/n"):
                continue
            body = bodies.get(path)
            given: dict[str, Any] = {} if body is None or verb != "POST" else {"json": body}
            answers = []
            for slash in ("", "/"):
                query = "?timeout=1" if real.endswith("records") else ""
                answers.append(await client.request(verb, f"{real}{slash}{query}", **given))
            without, with_one = answers
            assert shape(with_one) == shape(without), (verb, real)
            assert with_one.headers.get("allow") == without.headers.get("allow")
            assert not with_one.has_redirect_location
            if verb == method:
                assert with_one.status_code != 404, (verb, real)
            tried += 1
    assert tried > 60
    assert (await client.delete("/consumers/g/instances/n/")).status_code == 204
    assert (await client.get("/consumers/g/instances/n/subscription/")).json()["error_code"] == 40403


async def test_an_empty_segment_is_no_slash_at_the_end(client: httpx.AsyncClient) -> None:
    for path in ("/topics//", "/consumers//", "/topics/t//", "/consumers/g/instances//"):
        assert (await client.get(path)).status_code == 404, path
        assert (await client.post(path, json={"records": [{"value": 1}]})).status_code in (404, 405), path
    missing = await client.get("/topics/a%2F")
    assert missing.status_code == 404
    assert (await client.get("/")).status_code == 200


async def test_streams_with_a_slash_at_the_end(proxy: Running, client: httpx.AsyncClient) -> None:
    await proxy.view.produce("t", b"1")
    with trio.fail_after(60):
        async with client.stream("GET", "/topics/t/stream/?from=earliest") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            async for line in answer.aiter_lines():
                if line.startswith("data:"):
                    assert json.loads(line[5:])["value"] == 1
                    break
        url = f"ws://127.0.0.1:{proxy.port}/topics/t/stream/?from=earliest"
        async with open_websocket_url(url) as socket:
            while (message := json.loads(await socket.get_message()))["type"] == "heartbeat":
                pass
            assert message["records"][0]["value"] == 1
        with pytest.raises(ConnectionRejected) as refused:
            async with open_websocket_url(f"ws://127.0.0.1:{proxy.port}/topics/t/stream//"):
                pass
        assert refused.value.status_code == 404


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
async def test_curl_with_slashes(proxy: Running) -> None:
    async def curl(*arguments: str) -> Any:
        done = await trio.run_process(["curl", "-sS", "-m", "60", *arguments], capture_stdout=True)
        return json.loads(done.stdout)

    url = proxy.url
    assert "t" in await curl(f"{url}/topics/")
    record = '{"records": [{"value": 1, "partition": "0"}]}'
    sent = await curl(
        f"{url}/topics/t/", "-H", "Content-Type: application/vnd.kafka.json.v2+json", "-d", record
    )
    assert sent["offsets"][0]["error"] is None
    # An absolute target, as through a proxy.
    assert "t" in await curl("-x", url, "http://other.example/topics/")


async def committed_by(proxy: Running, client: httpx.AsyncClient, group: str, body: bytes) -> Any:
    """What a group has committed after a consumer has read one record and sent this body."""
    made = {"name": "n", "format": "json", "auto.offset.reset": "earliest", "auto.commit.enable": False}
    made["consumer.request.timeout.ms"] = 20_000
    assert (await client.post(f"/consumers/{group}", json=made, headers=V2)).status_code == 200
    one = f"/consumers/{group}/instances/n"
    await client.post(f"{one}/subscription", json={"topics": ["t"]}, headers=V2)
    assert len((await client.get(f"{one}/records")).json()) == 1
    answer = await client.post(f"{one}/offsets", content=body, headers=V2)
    assert (answer.status_code, answer.json()) == (200, []), answer.text
    found = await client.request("GET", f"{one}/offsets", content=b"{}", headers=V2)
    assert found.json() == (await client.get(f"{one}/offsets")).json()
    return proxy.view.groups.committed(group)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("body", [b"", b"{}", b"null", b" {} ", b'{"offsets": null}'])
async def test_a_commit_that_names_nothing_commits_all(
    proxy: Running, client: httpx.AsyncClient, body: bytes
) -> None:
    await proxy.view.produce("t", b"1")
    with trio.fail_after(60):
        assert await committed_by(proxy, client, "g", body) == {T0: CommittedOffset(1)}


async def test_a_commit_of_no_offsets_commits_none(proxy: Running, client: httpx.AsyncClient) -> None:
    await proxy.view.produce("t", b"1")
    with trio.fail_after(60):
        assert not await committed_by(proxy, client, "g", b'{"offsets": []}')


async def test_other_bodies_of_a_commit_are_refused(client: httpx.AsyncClient) -> None:
    await client.post("/consumers/g", json={"name": "n"}, headers=V2)
    for what in ("assignments", "positions", "positions/end"):
        for body in (b"{}", b"null", b'{"offsets": null}', b'{"partitions": null}'):
            answer = await client.post(f"/consumers/g/instances/n/{what}", content=body, headers=V2)
            assert answer.status_code == 422, (what, body)
    for body in (b"[]", b"0", b'{"offset": []}', b'{"offsets": {}}', b"{"):
        answer = await client.post("/consumers/g/instances/n/offsets", content=body, headers=V2)
        assert answer.status_code in (400, 422), body


async def test_a_subscription_that_names_nothing_changes_nothing(client: httpx.AsyncClient) -> None:
    await client.post("/consumers/g", json={"name": "n"}, headers=V2)
    path = "/consumers/g/instances/n/subscription"
    assert (
        await client.post(path, json={"topics": ["t"], "topic_pattern": None}, headers=V2)
    ).status_code == 204
    for body in ({}, {"topics": None}, {"topics": None, "topic_pattern": None}):
        assert (await client.post(path, json=body, headers=V2)).status_code == 204
        assert (await client.get(path)).json() == {"topics": ["t"]}
    assert (await client.post(path, json={"topics": []}, headers=V2)).status_code == 204
    assert (await client.get(path)).json() == {"topics": []}


async def test_numbers_as_texts(proxy: Running, client: httpx.AsyncClient) -> None:
    records = [{"value": 1, "partition": "0", "timestamp": "17"}, {"value": 2, "partition": 0.0}]
    sent = await client.post("/topics/t", json={"records": records})
    assert [each["error"] for each in sent.json()["offsets"]] == [None, None], sent.text
    await client.post("/consumers/g", json={"name": "n", "format": "json"}, headers=V2)
    one = "/consumers/g/instances/n"
    at = {"topic": "t", "partition": "0"}
    assert (await client.post(f"{one}/assignments", json={"partitions": [at]}, headers=V2)).status_code == 204
    assert (
        await client.post(f"{one}/positions", json={"offsets": [{**at, "offset": "1"}]}, headers=V2)
    ).status_code == 204
    with trio.fail_after(60):
        while not (found := (await client.get(f"{one}/records")).json()):
            pass
    assert [record["value"] for record in found] == [2]
    assert (
        await client.post(f"{one}/offsets", json={"offsets": [{**at, "offset": 1.0}]}, headers=V2)
    ).status_code == 200
    assert proxy.view.groups.committed("g") == {T0: CommittedOffset(2)}
    for wrong in ("1.0", "one", "-1", "", " 1", "٣", 1e300, True, "9" * 25):
        body = {"partitions": [{"topic": "t", "partition": wrong}]}
        assert (await client.post(f"{one}/assignments", json=body, headers=V2)).status_code == 422, wrong
        produced = await client.post("/topics/t", json={"records": [{"value": 1, "partition": wrong}]})
        assert produced.json().get("error_code") == 42206, wrong


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("application/vnd.kafka.v2+json; charset=utf-8", 200),
        ('Application/Vnd.Kafka.V2+JSON ; Charset="UTF-8"', 200),
        ("application/json;charset=utf-8;odata=verbose", 200),
        ("application/json;", 200),
        ("application/vnd.kafka.v2+json; charset=latin-1", 415),
        ("text/plain; charset=utf-8", 415),
    ],
)
async def test_types_with_parameters(client: httpx.AsyncClient, header: str, status: int) -> None:
    answer = await client.post("/consumers/g", content=b"{}", headers={"content-type": header})
    assert answer.status_code == status, answer.text


async def test_an_error_is_of_the_type_of_the_request(client: httpx.AsyncClient) -> None:
    for header in ("application/json", "Application/JSON; charset=utf-8"):
        answer = await client.post("/topics/nowhere", content=b"{}", headers={"content-type": header})
        assert answer.headers["content-type"] == "application/json"

"""Topics, partitions, brokers, and what no path or method is there for."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.http_proxy import Running, running

V2 = "application/vnd.kafka.v2+json"


async def test_topics_and_partitions(proxy: Running) -> None:
    await proxy.broker.topics.create("b", partitions=2, configs={"retention.ms": "1000"})
    await proxy.broker.topics.create("a")
    await proxy.broker.produce("b", b"1", partition=1)
    replica = {"broker": 1, "leader": True, "in_sync": True}
    parts = [{"partition": number, "leader": 1, "replicas": [replica]} for number in (0, 1)]
    async with proxy.client() as client:
        for path, expected in (
            ("/topics", ["a", "b"]),
            ("/topics/b/partitions", parts),
            ("/topics/b/partitions/1", parts[1]),
            ("/topics/b/partitions/1/offsets", {"beginning_offset": 0, "end_offset": 1}),
            ("/brokers", {"brokers": [1]}),
        ):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()) == (200, expected)
            assert answer.headers["content-type"] == V2
            head = await client.head(path)
            assert (head.status_code, head.content) == (200, b"")
        topic = (await client.get("/topics/b")).json()
        assert topic["name"] == "b" and topic["partitions"] == parts
        assert topic["configs"]["retention.ms"] == "1000"
        assert (await client.get("/")).json()["cluster_id"] == proxy.broker.cluster.cluster_id


@pytest.mark.one_in(6)
@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/topics/nope", 404, 40401),
        ("GET", "/topics/nope/partitions", 404, 40401),
        ("GET", "/topics/nope/partitions/0", 404, 40401),
        ("GET", "/topics/t/partitions/1", 404, 40402),
        ("GET", "/topics/t/partitions/-1", 404, 40402),
        ("GET", "/topics/t/partitions/" + "9" * 5000, 404, 40402),
        ("GET", "/topics/t/partitions/1/offsets", 404, 40402),
        ("GET", "/nothing", 404, 404),
        ("GET", "/%FF", 404, 404),
        ("DELETE", "/topics", 405, 405),
        ("POST", "/brokers", 405, 405),
        ("PUT", "/topics/t", 405, 405),
    ],
)
async def test_what_is_not_there(proxy: Running, method: str, path: str, status: int, code: int) -> None:
    await proxy.broker.topics.create("t")
    async with proxy.client() as client:
        answer = await client.request(method, path)
    assert (answer.status_code, answer.json()["error_code"]) == (status, code)
    assert answer.json()["message"]
    if status == 405:
        assert answer.headers["allow"]


async def test_405_names_what_is_allowed_where_the_front_serves_too(proxy: Running) -> None:
    async with proxy.client() as client:
        answer = await client.put("/topics/t")
        assert answer.headers["allow"] == "GET, HEAD, OPTIONS, POST"
        answer = await client.options("/topics/t")
        assert answer.status_code == 200 and set(answer.headers["allow"].split(", ")) == {
            "GET", "HEAD", "OPTIONS", "POST",
        }  # fmt: skip


async def test_not_acceptable(proxy: Running) -> None:
    async with proxy.client() as client:
        answer = await client.get("/topics", headers={"accept": "text/html"})
    assert (answer.status_code, answer.json()["error_code"]) == (406, 406)


async def test_cors_is_off_by_default(proxy: Running) -> None:
    async with proxy.client() as client:
        answer = await client.get("/topics", headers={"origin": "https://a.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("origins", ["https://a.example,https://c.example", "*"])
@pytest.mark.setting("lc.http.proxy.cors.allowed.origins")
async def test_cors(tmp_path: Path, origins: str) -> None:
    async with (
        running(tmp_path / "data", {"cors.allowed.origins": origins}) as proxy,
        proxy.client() as client,
    ):
        ask = {"origin": "https://a.example", "access-control-request-method": "POST"}
        preflight = await client.options("/topics/t", headers=ask)
        assert preflight.status_code == 204
        assert "POST" in preflight.headers["access-control-allow-methods"]
        assert "content-type" in preflight.headers["access-control-allow-headers"]
        expected = "*" if origins == "*" else "https://a.example"
        for path in ("/topics", "/nothing"):
            answer = await client.get(path, headers={"origin": "https://a.example"})
            assert answer.headers["access-control-allow-origin"] == expected
        answer = await client.post(
            "/topics/t",
            content=b'{"records":[{}]}',
            headers={"origin": "https://a.example", "content-type": "application/json"},
        )
        assert answer.headers["access-control-allow-origin"] == expected
        if origins != "*":
            other = await client.options("/topics/t", headers={**ask, "origin": "https://b.example"})
            assert "access-control-allow-origin" not in other.headers
            assert other.headers["vary"] == "origin"

"""Consumers of REST proxy API v2, over real connections."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from leafcuttr_http.consumers.instance import Instance
from leafcuttr_sdk import CommittedOffset, Record, TopicPartition
from support.http_proxy import Running, running
from support.waiting import eventually, within

V2 = "application/vnd.kafka.v2+json"
V2_JSON = "application/vnd.kafka.json.v2+json"
V2_BINARY = "application/vnd.kafka.binary.v2+json"
V2_AVRO = "application/vnd.kafka.avro.v2+json"

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
BROKER = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}


@asynccontextmanager
async def serving(directory: Path, **settings: int) -> AsyncIterator[Running]:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    async with running(directory, named, broker=BROKER) as proxy:
        await proxy.view.topics.create("t", partitions=2)
        yield proxy


@pytest.fixture
async def proxy(tmp_path: Path) -> AsyncIterator[Running]:
    async with serving(tmp_path / "data") as found:
        yield found


class Api:
    """One client of the proxy."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def create(self, group: str = "g", **config: Any) -> One:
        named = {name.replace("_", "."): value for name, value in config.items()}
        answer = await self.ask("POST", f"/consumers/{group}", {"format": "json", **named})
        assert answer.status_code == 200, answer.text
        found = answer.json()
        base = httpx.URL(found["base_uri"])
        assert base.path == f"/consumers/{group}/instances/{found['instance_id']}"
        return One(self, base.path)

    async def ask(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        headers = {"accept": V2, **options.pop("headers", {})}
        if body is not None:
            options["content"] = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers.setdefault("content-type", V2)
        return await self.client.request(method, path, headers=headers, **options)


class One:
    """One consumer, as the client knows it."""

    def __init__(self, api: Api, path: str) -> None:
        self.api = api
        self.path = path

    async def post(self, what: str, body: Any = None, status: int = 204) -> Any:
        answer = await self.api.ask("POST", f"{self.path}/{what}", body)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    async def get(self, what: str, body: Any = None, status: int = 200, **headers: str) -> Any:
        answer = await self.api.ask("GET", f"{self.path}/{what}", body, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def read(self, count: int = 1, query: str = "?timeout=20000") -> list[Any]:
        """Read until there are so many records."""
        found: list[Any] = []
        with trio.fail_after(60):
            while len(found) < count:
                found += await self.get(f"records{query}")
        return found

    async def refused(self, code: int, method: str, what: str = "", body: Any = None, **options: Any) -> str:
        answer = await self.api.ask(method, f"{self.path}/{what}" if what else self.path, body, **options)
        assert (answer.status_code, answer.json()["error_code"]) == (
            code if code < 1000 else code // 100,
            code,
        ), answer.text
        message = answer.json()["message"]
        assert isinstance(message, str) and message
        return message


@pytest.fixture
async def api(proxy: Running) -> AsyncIterator[Api]:
    async with proxy.client() as client:
        yield Api(client)


def pairs(records: list[Any]) -> list[tuple[Any, Any]]:
    return [(record["key"], record["value"]) for record in records]


async def test_from_the_first_record_to_the_last_commit(proxy: Running, api: Api) -> None:
    await proxy.view.produce("t", b'{"a": 1}', b'"k"', partition=0, timestamp=7)
    await proxy.view.produce("t", None, None, partition=1, headers=(("h", b"x"), ("b", b"\xff"), ("n", None)))
    one = await api.create(auto_offset_reset="earliest", consumer_request_timeout_ms=20_000)
    await one.post("subscription", {"topics": ["t"]})
    assert await one.get("subscription") == {"topics": ["t"]}
    assert await one.get("assignments") == {"partitions": []}
    found = sorted(await one.read(2), key=lambda record: record["partition"])
    assert found[0] == {
        "topic": "t", "key": "k", "value": {"a": 1}, "partition": 0, "offset": 0, "timestamp": 7,
    }  # fmt: skip
    assert (found[1]["key"], found[1]["value"]) == (None, None)
    assert found[1]["headers"] == [
        {"name": "h", "value": "x"},
        {"name": "b", "value_base64": "/w=="},
        {"name": "n", "value": None},
    ]
    assert await one.get("assignments") == {
        "partitions": [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}]
    }
    assert await one.post("offsets", status=200) == []
    assert proxy.view.groups.committed("g") == {T0: CommittedOffset(1), T1: CommittedOffset(1)}
    members = proxy.view.groups.get("g")
    assert members is not None and len(members.members) == 1
    deleted = await api.ask("DELETE", one.path)
    assert (deleted.status_code, deleted.content) == (204, b"")
    await one.refused(40403, "GET", "records")
    await one.refused(40403, "DELETE")
    await eventually(lambda: is_empty(proxy), "the member to leave")


async def test_the_binary_format_is_base64(proxy: Running, api: Api) -> None:
    await proxy.view.produce("t", b"\x00\xff", b"key", partition=0)
    one = await api.create(format="binary", auto_offset_reset="earliest", consumer_request_timeout_ms=20_000)
    await one.post("subscription", {"topics": ["t"]})
    answer = await api.ask("GET", f"{one.path}/records", headers={"accept": V2_BINARY})
    assert answer.headers["content-type"] == V2_BINARY
    assert pairs(answer.json()) == [(base64.b64encode(b"key").decode(), "AP8=")]


async def test_accept_has_to_agree_with_the_format(api: Api) -> None:
    one = await api.create()
    for accept, content_type in (
        (V2_JSON, V2_JSON),
        (V2, V2),
        ("*/*", V2_JSON),
        ("application/json", "application/json"),
    ):
        answer = await api.ask("GET", f"{one.path}/records?timeout=1", headers={"accept": accept})
        assert (answer.status_code, answer.headers["content-type"]) == (200, content_type)
    for accept in (V2_BINARY, V2_AVRO):
        message = await one.refused(40601, "GET", "records", headers={"accept": accept})
        assert "json" in message
    await one.refused(406, "GET", "records", headers={"accept": "text/html"})
    answer = await api.ask("POST", "/consumers/g", {"format": "avro"})
    assert (answer.status_code, answer.json()["error_code"]) == (406, 40601)


async def test_what_is_no_json_does_not_go_lost(proxy: Running, api: Api) -> None:
    for value in (b"1", b"no json", b"2"):
        await proxy.view.produce("t", value, b"plain key", partition=0)
    one = await api.create(auto_offset_reset="earliest", consumer_request_timeout_ms=20_000)
    await one.post("subscription", {"topics": ["t"]})
    assert pairs(await one.read()) == [("plain key", 1)]
    for _ in range(2):
        assert "offset 1 of t-0" in await one.refused(42203, "GET", "records")
    await one.post("offsets", status=200)
    assert proxy.view.groups.committed("g")[T0] == CommittedOffset(1)
    await one.post("positions", {"offsets": [{"topic": "t", "partition": 0, "offset": 2}]})
    assert pairs(await one.read()) == [("plain key", 2)]


async def test_a_pattern_finds_topics_that_come_later(proxy: Running, api: Api) -> None:
    one = await api.create(auto_offset_reset="earliest", consumer_request_timeout_ms=20_000)
    await one.post("subscription", {"topic_pattern": "new-.*"})
    assert await one.get("records?timeout=50") == []
    await proxy.view.topics.create("new-1")
    await proxy.view.produce("new-1", b"1")
    assert pairs(await one.read()) == [(None, 1)]
    assert await one.get("subscription") == {"topics": ["new-1"]}
    await one.refused(40903, "POST", "subscription", {"topics": ["t"]})
    await one.refused(40903, "POST", "assignments", {"partitions": [{"topic": "t", "partition": 0}]})
    answer = await api.ask("DELETE", f"{one.path}/subscription")
    assert answer.status_code == 204
    await one.refused(422, "POST", "subscription", {"topic_pattern": "a)"})
    await one.post("subscription", {"topics": ["t"]})


async def test_assigned_partitions_and_positions(proxy: Running, api: Api) -> None:
    for value in range(5):
        await proxy.view.produce("t", b"%d" % value, partition=0)
    one = await api.create()
    at = {"partitions": [{"topic": "t", "partition": 0}]}
    await one.refused(40903, "POST", "positions/beginning", at)
    await one.post("assignments", at)
    assert await one.get("assignments") == at
    await one.refused(40903, "POST", "subscription", {"topics": ["t"]})
    await one.post("positions/beginning", at)
    assert [value for _, value in pairs(await one.read(5))] == [0, 1, 2, 3, 4]
    await one.post("positions", {"offsets": [{"topic": "t", "partition": 0, "offset": 3}]})
    assert [value for _, value in pairs(await one.read(2))] == [3, 4]
    await one.post("positions/end", at)
    assert await one.get("records?timeout=10") == []
    await one.refused(404, "POST", "positions/middle", at)
    # What is committed is the offset of a record that was read; the group goes on behind it.
    await one.post(
        "offsets", {"offsets": [{"topic": "t", "partition": 0, "offset": 2, "metadata": "note"}]}, 200
    )
    expected = {"offsets": [{"topic": "t", "partition": 0, "offset": 3, "metadata": "note"}]}
    assert await one.get("offsets", at) == expected
    assert await one.get("offsets") == expected
    nowhere = {"partitions": [{"topic": "t", "partition": 9}]}
    await one.refused(40402, "GET", "offsets", nowhere)
    await one.refused(40402, "POST", "offsets", {"offsets": [{"topic": "no", "partition": 0, "offset": 2}]})
    assert await one.get("offsets", {"partitions": [{"topic": "t", "partition": 1}]}) == {"offsets": []}


async def test_auto_commit_commits_what_was_answered(proxy: Running, api: Api) -> None:
    for value in range(4):
        await proxy.view.produce("t", b"%d" % value, partition=0)
    one = await api.create(auto_offset_reset="earliest", consumer_request_timeout_ms=20_000)
    await one.post("subscription", {"topics": ["t"]})
    assert len(await one.read(1, "?max_bytes=2")) == 2
    assert T0 not in proxy.view.groups.committed("g")  # nobody knows yet whether the client has got them
    assert len(await one.read(1, "?max_bytes=1")) == 1
    assert proxy.view.groups.committed("g")[T0] == CommittedOffset(2)
    await api.ask("DELETE", one.path)
    await eventually(
        lambda: proxy.view.groups.committed("g")[T0] == CommittedOffset(3), "the commit of the last record"
    )
    two = await api.create(auto_commit_enable="false", consumer_request_timeout_ms=20_000)
    await two.post("subscription", {"topics": ["t"]})
    assert [value for _, value in pairs(await two.read())] == [3]
    await api.ask("DELETE", two.path)
    three = await api.create(auto_commit_enable=False, consumer_request_timeout_ms=20_000)
    await three.post("subscription", {"topics": ["t"]})
    assert [value for _, value in pairs(await three.read())] == [3]


async def test_two_instances_share_a_topic(proxy: Running, api: Api) -> None:
    found: list[Any] = []
    consumers = [await api.create(auto_offset_reset="earliest") for _ in range(2)]
    for one in consumers:
        await one.post("subscription", {"topics": ["t"]})
    with trio.fail_after(60):
        while True:
            for one in consumers:
                await one.get("records?timeout=50")
            shares = [len((await one.get("assignments"))["partitions"]) for one in consumers]
            if shares == [1, 1]:
                break
    for value in range(20):
        await proxy.view.produce("t", b"%d" % value, partition=value % 2)
    with trio.fail_after(60):
        while len(found) < 20:
            for one in consumers:
                found += [record["value"] for record in await one.get("records?timeout=50")]
    assert sorted(found) == list(range(20))


@pytest.fixture
def instances(monkeypatch: pytest.MonkeyPatch) -> list[Instance]:
    """Those that were asked for records, from within."""
    found: list[Instance] = []
    read = Instance.read

    async def noted(self: Instance, *words: Any) -> str:
        if self not in found:
            found.append(self)
        return await read(self, *words)

    monkeypatch.setattr(Instance, "read", noted)
    return found


async def test_reads_wait_for_enough_and_in_turn(proxy: Running, api: Api, instances: list[Instance]) -> None:
    one = await api.create(
        consumer_request_timeout_ms="25000", fetch_min_bytes="10", auto_commit_enable=False
    )
    at = {"partitions": [{"topic": "t", "partition": 0}]}
    await one.post("assignments", at)
    await one.post("positions/beginning", at)
    answers: list[list[Any]] = []

    async def read() -> None:
        answers.append(await one.get("records?timeout=25000"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await eventually(lambda: bool(instances) and instances[0]._reading.locked(), "the first read")
        (instance,) = instances
        nursery.start_soon(read)
        await eventually(lambda: instance._reading.statistics().tasks_waiting == 1, "the second read")
        for number, value in enumerate((b"11111", b"22222", b"33333", b"44444")):
            assert not answers or value in (b"33333", b"44444")
            # What was taken and not answered with is not committed by a request that commits meanwhile.
            await one.post("offsets", status=200)
            await proxy.view.produce("t", value, partition=0)
            await eventually(lambda end=number + 1: instance.consumer.position(T0) == end, "the record")
    assert [[record["value"] for record in answer] for answer in answers] == [[11111, 22222], [33333, 44444]]
    assert proxy.view.groups.committed("g")[T0].offset <= 2


def is_empty(proxy: Running) -> bool:
    group = proxy.view.groups.get("g")
    return group is not None and not group.members


async def until_it_reads(proxy: Running) -> None:
    """A consumer joins its group with its first read."""

    def joined() -> bool:
        group = proxy.view.groups.get("g")
        return group is not None and bool(group.members)

    await eventually(joined, "the consumer's read")


async def test_a_consumer_that_is_deleted_while_a_read_waits(proxy: Running, api: Api) -> None:
    one = await api.create(consumer_request_timeout_ms=60_000)
    await one.post("subscription", {"topics": ["t"]})
    async with trio.open_nursery() as nursery:
        assert not proxy.view.groups.get("g")
        nursery.start_soon(one.refused, 40403, "GET", "records")
        await until_it_reads(proxy)
        assert (await api.ask("DELETE", one.path)).status_code == 204


async def test_the_proxy_stops_while_a_read_waits(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as proxy, proxy.client() as client:
        one = await Api(client).create(consumer_request_timeout_ms=250_000)
        await one.post("subscription", {"topics": ["t"]})
        answers: list[list[Any]] = []

        async def read() -> None:
            answers.append(await one.get("records"))

        with trio.CancelScope(shield=True), within(120, "the end of the read"):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(read)
                await until_it_reads(proxy)
                proxy.stop()
        assert answers == [[]]


async def test_a_client_that_leaves_while_it_waits_takes_nothing_with_it(
    proxy: Running, api: Api, instances: list[Instance]
) -> None:
    one = await api.create(
        auto_offset_reset="earliest", consumer_request_timeout_ms=60_000, fetch_min_bytes=100
    )
    at = {"partitions": [{"topic": "t", "partition": 0}]}
    await one.post("assignments", at)
    await one.post("positions/beginning", at)
    async with proxy.client() as other, trio.open_nursery() as nursery:
        nursery.start_soon(One(Api(other), one.path).get, "records")
        await proxy.view.produce("t", b"1", partition=0)
        await eventually(
            lambda: bool(instances) and instances[0].consumer.position(T0) == 1, "the first record"
        )
        nursery.cancel_scope.cancel()
    served = proxy.core.plugged.counts["lc.http.proxy"]
    await eventually(lambda: served.open == 1, "the end of the other's connection")
    await proxy.view.produce("t", json.dumps("x" * 100).encode(), partition=0)
    assert [value for _, value in pairs(await one.read(2))] == [1, "x" * 100]


@pytest.mark.setting("lc.http.proxy.consumer.idle.timeout.ms")
async def test_idle_consumers_go(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", consumer_idle_timeout_ms=300) as proxy, proxy.client() as client:
        api = Api(client)
        idle = await api.create(name="idle", consumer_request_timeout_ms=300)
        await idle.post("subscription", {"topics": ["t"]})
        await idle.get("records?timeout=300")

        async def gone() -> bool:
            return (await api.ask("GET", f"{idle.path}/subscription")).status_code != 200

        # A request about it keeps it, hence the pause: longer than its idle time.
        await eventually(gone, "the end of the consumer", pause=0.5)
        await eventually(lambda: is_empty(proxy), "the member to leave")
        assert await proxy.counted("leafcuttr_http_consumers") == 0


@pytest.mark.setting("lc.http.proxy.consumer.max")
async def test_no_more_than_allowed(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", consumer_max=1) as proxy, proxy.client() as client:
        api = Api(client)
        one = await api.create(name="only one")
        answer = await api.ask("POST", "/consumers/g", {"name": "another"})
        assert (answer.status_code, answer.json().get("error_code")) == (503, 503)
        answer = await api.ask("POST", "/consumers/g", {"name": "only one"})
        assert (answer.status_code, answer.json()["error_code"]) == (409, 40902)
        assert (await api.ask("DELETE", one.path)).status_code == 204
        await api.create()


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", 400),
        (b"[]", 422),
        (b"\xff", 400),
        ({"maxWindowSize": 1}, 422),
        ({"format": "xml"}, 42204),
        ({"format": ""}, 42204),
        ({"format": "protobuf"}, 40601),
        ({"auto.offset.reset": "middle"}, 42204),
        ({"auto.offset.reset": ""}, 42204),
        ({"isolation.level": ""}, 42204),
        ({"auto.commit.enable": "maybe"}, 42204),
        ({"fetch.min.bytes": -2}, 42204),
        ({"fetch.min.bytes": "many"}, 42204),
        ({"consumer.request.timeout.ms": 10**9}, 42204),
        ({"name": "a/b"}, 42204),
        ({"name": ""}, 42204),
        ({"name": ["n"]}, 42204),
    ],
)
async def test_configs_that_are_refused(api: Api, body: Any, code: int) -> None:
    answer = await api.ask("POST", "/consumers/g", body)
    assert (answer.status_code, answer.json()["error_code"]) == (code if code < 1000 else code // 100, code)


async def test_bodies_that_are_refused(api: Api) -> None:
    one = await api.create()
    for what, body in (
        ("subscription", {"topics": "t"}),
        ("subscription", b"null"),
        ("subscription", {"topics": [1]}),
        ("assignments", {"partitions": [{"topic": "t"}]}),
        ("assignments", {"partitions": [{"topic": "t", "partition": -1}]}),
        ("assignments", {"offsets": []}),
        ("positions", {"offsets": [{"topic": "t", "partition": 0}]}),
        ("positions", {"offsets": [{"topic": "t", "partition": 0, "offset": 1.5}]}),
        ("offsets", {"offsets": [{"topic": "t", "partition": 0, "offset": 1, "metadata": 5}]}),
    ):
        await one.refused(422, "POST", what, body)
    await one.refused(40903, "POST", "subscription", {"topics": ["t"], "topic_pattern": "t"})
    await one.refused(415, "POST", "subscription", b"<x/>", headers={"content-type": "text/xml"})
    await one.refused(422, "GET", "records?timeout=soon")
    head = await api.ask("HEAD", f"{one.path}/records")
    assert (head.status_code, head.headers["allow"]) == (405, "GET")
    missing = One(api, "/consumers/g/instances/nobody")
    for method, what in (
        ("GET", "subscription"), ("POST", "subscription"), ("DELETE", "subscription"), ("GET", "assignments"),
        ("POST", "assignments"), ("POST", "positions"), ("POST", "positions/end"), ("GET", "records"),
        ("POST", "offsets"), ("GET", "offsets"), ("DELETE", ""),
    ):  # fmt: skip
        await missing.refused(40403, method, what, {} if method == "POST" else None)


async def test_no_body_is_the_default_consumer(api: Api) -> None:
    answer = await api.client.post("/consumers/some%20group", headers={"host": "proxy.example:81"})
    found = answer.json()
    assert (
        found["base_uri"]
        == f"http://proxy.example:81/consumers/some%20group/instances/{found['instance_id']}"
    )
    path = httpx.URL(found["base_uri"]).raw_path.decode()
    assert (await api.ask("GET", f"{path}/assignments")).json() == {"partitions": []}


@pytest.mark.setting("lc.http.proxy.consumer.max.response.bytes")
async def test_many_records_come_in_answers_that_are_bounded(tmp_path: Path) -> None:
    async with (
        serving(tmp_path / "data", consumer_max_response_bytes=10_000) as proxy,
        proxy.client() as client,
    ):
        await proxy.view.produce_batch(
            "t", [Record(b"%d" % (10**19 + n)) for n in range(3000)], partitions=[0] * 3000
        )
        one = await Api(client).create(auto_offset_reset="earliest", consumer_request_timeout_ms=20_000)
        await one.post("subscription", {"topics": ["t"]})
        answers = [await one.read()]
        while sum(map(len, answers)) < 3000:
            answers.append(await one.read())
        assert max(map(len, answers)) <= 500
        assert [record["value"] - 10**19 for answer in answers for record in answer] == list(range(3000))


async def test_a_group_of_http_and_kafka_members(proxy: Running, api: Api) -> None:
    """Both sides together get every record once, and Kafka's tools see what was committed over HTTP."""
    from confluent_kafka import Consumer, ConsumerGroupTopicPartitions
    from confluent_kafka.admin import AdminClient

    servers = proxy.broker.bootstrap_servers
    theirs: list[int] = []
    stop = trio.Event()
    options = {
        "bootstrap.servers": servers,
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 300,
        "partition.assignment.strategy": "range",
    }
    consumer = Consumer(options)
    consumer.subscribe(["t"])

    async def read_theirs() -> None:
        while not stop.is_set():
            message = await trio.to_thread.run_sync(consumer.poll, 0.1)
            if message is not None and not message.error():
                theirs.append(int(message.value()))

    ours: list[int] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(read_theirs)
        one = await api.create(auto_offset_reset="earliest", auto_commit_enable=False)
        await one.post("subscription", {"topics": ["t"]})
        with trio.fail_after(60):
            while len((await one.get("assignments"))["partitions"]) != 1 or len(consumer.assignment()) != 1:
                await one.get("records?timeout=100")
        for value in range(40):
            await proxy.view.produce("t", b"%d" % value, partition=value % 2)
        with trio.fail_after(60):
            while len(ours) + len(theirs) < 40:
                ours += [record["value"] for record in await one.get("records?timeout=100")]
        (mine,) = (await one.get("assignments"))["partitions"]
        await one.post("offsets", status=200)
        stop.set()
    assert sorted(ours + theirs) == list(range(40))
    assert len(ours) == len(theirs) == 20

    def committed() -> int:
        admin = AdminClient({"bootstrap.servers": servers})
        (asked,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("g")]).values()
        (offset,) = [
            each.offset for each in asked.result(30).topic_partitions if each.partition == mine["partition"]
        ]
        return int(offset)

    assert await trio.to_thread.run_sync(committed) == 20
    await trio.to_thread.run_sync(consumer.close)

"""What a consumer over HTTP can be created with: Kafka's settings are honoured or named in the log, others refused."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from confluent_kafka import Producer
from trio.testing import wait_all_tasks_blocked

from leafcuttr_http.consumers import configuration, pages
from leafcuttr_http.consumers.kafka_settings import HONOURED, KAFKA, OF_THE_API
from leafcuttr_sdk import Record
from support import jars
from support.http_proxy import Running, running
from support.pages import DOCS
from support.waiting import eventually

JSON = {"content-type": "application/vnd.kafka.v2+json"}
BROKER = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}
PROGRAM = """
public class ConsumerNames {
    public static void main(String[] arguments) {
        org.apache.kafka.clients.consumer.ConsumerConfig.configNames().forEach(System.out::println);
    }
}
"""


@pytest.fixture
async def proxy(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path / "data", broker=BROKER) as found:
        await found.view.topics.create("t", partitions=1)
        yield found


async def created(client: httpx.AsyncClient, group: str = "g", **config: Any) -> str:
    """The path of a consumer with these settings; `_` stands for the dots."""
    given = {name.replace("_", "."): value for name, value in config.items()}
    body = {"format": "json", "auto.offset.reset": "earliest", **given}
    answer = await client.post(f"/consumers/{group}", json=body, headers=JSON)
    assert answer.status_code == 200, answer.text
    return httpx.URL(answer.json()["base_uri"]).path


async def subscribed(client: httpx.AsyncClient, **config: Any) -> str:
    one = await created(client, **config)
    assert (await client.post(f"{one}/subscription", json={"topics": ["t"]}, headers=JSON)).status_code == 204
    return one


async def read(client: httpx.AsyncClient, one: str, query: str = "") -> list[Any]:
    answer = await client.get(f"{one}/records{query}")
    assert answer.status_code == 200, answer.text
    found: list[Any] = [record["value"] for record in answer.json()]
    return found


@pytest.mark.long
@pytest.mark.skipif(jars.missing() is not None, reason=jars.missing() or "")
def test_the_names_are_those_of_kafka(tmp_path: Path) -> None:
    program = tmp_path / "ConsumerNames.java"
    program.write_text(PROGRAM)
    done = subprocess.run(
        ["java", "-cp", f"{jars.home('4.3.1')}/libs/*", str(program)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert set(done.stdout.split()) == KAFKA


def test_every_one_is_in_the_document_and_the_honoured_ones_on_the_page() -> None:
    schema = pages.schemas()["ConsumerConfig"]
    assert schema["properties"].keys() == {*OF_THE_API, *KAFKA}
    assert {name for name in KAFKA if schema["properties"][name]} == HONOURED
    page = (DOCS / "reference" / "http.md").read_text()
    table = page.partition("## Settings of a consumer")[2].partition("\n## ")[0]
    rows = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")}
    assert rows == HONOURED
    assert all(f"`{name}`" in table for name in OF_THE_API)


@pytest.mark.parametrize("value", ["5", 5, 1.5, True, None, [], {}, "x" * 1000])
def test_one_without_effect_may_have_any_value(value: object) -> None:
    import json

    given = dict.fromkeys(sorted(KAFKA - HONOURED), value)
    assert configuration.config(json.dumps(given).encode(), 1000) == configuration.InstanceConfig(
        None, ignored=tuple(sorted(KAFKA - HONOURED))
    )


async def test_all_of_them_at_once(
    proxy: Running, client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    """As a client does that hands on its whole configuration; what has no effect is one line, without values."""
    caplog.set_level(logging.INFO)
    honoured = {
        "auto.offset.reset": "earliest", "client.id": "c", "enable.auto.commit": "false", "fetch.max.bytes": "1000",
        "fetch.max.wait.ms": "500", "fetch.min.bytes": "1", "group.instance.id": "one",
        "isolation.level": "read_committed", "max.poll.interval.ms": "300000", "max.poll.records": "500",
        "session.timeout.ms": "45000",
    }  # fmt: skip
    assert honoured.keys() == HONOURED
    body = {**dict.fromkeys(KAFKA - HONOURED, "hunter2"), **honoured}
    answer = await client.post("/consumers/g", json=body, headers=JSON)
    assert answer.status_code == 200, answer.text
    (line,) = [record.getMessage() for record in caplog.records if "no effect" in record.getMessage()]
    for name in KAFKA - HONOURED:
        assert name in line
    assert "hunter2" not in caplog.text
    caplog.clear()
    await client.post("/consumers/g", json=honoured, headers=JSON)
    assert "no effect" not in caplog.text


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("sesion.timeout.ms", "session.timeout.ms"),
        ("max.poll.record", "max.poll.records"),
        ("auto.commit.enabled", "auto.commit.enable"),
        ("Isolation.Level", "isolation.level"),
        ("fetch_min_bytes", "fetch.min.bytes"),
        ("zzz", None),
    ],
)
async def test_a_misspelt_one_is_refused_with_the_nearest(
    client: httpx.AsyncClient, given: str, meant: str | None
) -> None:
    answer = await client.post("/consumers/g", json={given: "1"}, headers=JSON)
    assert (answer.status_code, answer.json()["error_code"]) == (422, 422)
    assert repr(given) in answer.json()["message"]
    assert ("did you mean" in answer.json()["message"]) == (meant is not None)
    assert meant is None or repr(meant) in answer.json()["message"]


@pytest.mark.one_in(6)
@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("client.id", "c" * 256),
        ("client.id", "\ud800"),
        ("enable.auto.commit", "perhaps"),
        ("fetch.max.bytes", -1),
        ("fetch.max.wait.ms", "soon"),
        ("group.instance.id", "a b"),
        ("group.instance.id", ""),
        ("isolation.level", "serializable"),
        ("max.poll.interval.ms", 0),
        ("max.poll.records", 0),
        ("max.poll.records", 1.5),
        ("max.poll.records", True),
        ("session.timeout.ms", 2**31),
        ("auto.offset.reset", "by_duration:PT1H"),
    ],
)
async def test_bad_values(client: httpx.AsyncClient, name: str, bad: object) -> None:
    import json

    answer = await client.post("/consumers/g", content=json.dumps({name: bad}).encode(), headers=JSON)
    assert (answer.status_code, answer.json()["error_code"]) == (422, 42204), answer.text
    assert name in answer.json()["message"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("config", "same"),
    [
        ({"auto.commit.enable": False, "enable.auto.commit": "false"}, True),
        ({"auto.commit.enable": True, "enable.auto.commit": False}, False),
        ({"fetch.min.bytes": 5, "responseMinBytes": "5"}, True),
        ({"consumer.request.timeout.ms": 5, "requestWaitMs": 6}, False),
    ],
)
async def test_two_names_for_one_thing(client: httpx.AsyncClient, config: dict[str, Any], same: bool) -> None:
    answer = await client.post("/consumers/g", json=config, headers=JSON)
    assert answer.status_code == (200 if same else 422), answer.text


def test_older_names_and_kafkas_mean_the_same() -> None:
    assert configuration.config(b'{"enable.auto.commit": "FALSE"}', 9000).auto_commit is False
    assert configuration.config(b'{"responseMinBytes": 7}', 9000).min_bytes == 7
    assert configuration.config(b'{"requestWaitMs": "2000"}', 9000).request_s == 2
    assert configuration.config(b'{"name": 17}', 9000).name == "17"


@pytest.mark.parametrize("body", [b"", b" ", b"{}", b"null", b" null "])
def test_nothing_said_is_the_defaults(body: bytes) -> None:
    assert configuration.config(body, 9000) == configuration.InstanceConfig(None)


async def test_max_poll_records(proxy: Running, client: httpx.AsyncClient) -> None:
    for number in range(5):
        await proxy.view.produce("t", b"%d" % number)
    one = await subscribed(client, max_poll_records="2", consumer_request_timeout_ms=20_000)
    with trio.fail_after(60):
        found = [await read(client, one) for _ in range(3)]
    assert found == [[0, 1], [2, 3], [4]]


async def test_max_poll_records_bounds_what_is_waited_for(proxy: Running, client: httpx.AsyncClient) -> None:
    one = await subscribed(
        client, max_poll_records=1, fetch_min_bytes=1000, consumer_request_timeout_ms=60_000
    )
    await proxy.view.produce("t", b"1")
    with trio.fail_after(30):
        assert await read(client, one) == [1]


async def test_max_poll_records_of_several_rounds(proxy: Running, client: httpx.AsyncClient) -> None:
    one = await subscribed(
        client, max_poll_records=2, fetch_min_bytes=1000, consumer_request_timeout_ms=60_000
    )
    found: list[list[Any]] = []
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def first_read() -> None:
                found.append(await read(client, one))

            await proxy.view.produce("t", b"1")
            await wait_all_tasks_blocked(0.1)  # the read has taken it, and waits for more bytes
            await proxy.view.produce_batch("t", [Record(b"2"), Record(b"3"), Record(b"4")])
        found.append(await read(client, one))
    assert found == [[1, 2], [3, 4]]


async def test_fetch_max_bytes(proxy: Running, client: httpx.AsyncClient) -> None:
    for _ in range(4):
        await proxy.view.produce("t", b'"%s"' % (b"x" * 98))
    one = await subscribed(client, fetch_max_bytes=250, consumer_request_timeout_ms=20_000)
    with trio.fail_after(60):
        assert len(await read(client, one)) == 2
        assert len(await read(client, one, "?max_bytes=120")) == 1
        assert len(await read(client, one, "?max_bytes=1000000")) == 1


async def test_fetch_max_wait_ms(proxy: Running, client: httpx.AsyncClient) -> None:
    """Less than fetch.min.bytes is answered with after this time, and not only after that of the whole read."""
    one = await subscribed(
        client, fetch_min_bytes=10_000, fetch_max_wait_ms=10, consumer_request_timeout_ms=300_000
    )
    await proxy.view.produce("t", b"1")
    with trio.fail_after(60):
        assert await read(client, one) == [1]


async def test_isolation_level(proxy: Running, client: httpx.AsyncClient) -> None:
    def aborted() -> None:
        producer = Producer(
            {"bootstrap.servers": proxy.view.bootstrap_servers, "transactional.id": "x", "linger.ms": 0}
        )
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce("t", b'"aborted"')
        producer.flush(60)
        producer.abort_transaction(60)

    await trio.to_thread.run_sync(aborted)
    await proxy.view.produce("t", b'"plain"')
    both = await subscribed(client, group="both", consumer_request_timeout_ms=20_000)
    only = await subscribed(
        client, group="only", isolation_level="READ_COMMITTED", consumer_request_timeout_ms=20_000
    )
    found: dict[str, list[Any]] = {both: [], only: []}
    with trio.fail_after(60):
        for one, values in found.items():
            while "plain" not in values:
                values += await read(client, one)
    assert found == {both: ["aborted", "plain"], only: ["plain"]}


async def test_client_and_instance_id(proxy: Running, client: httpx.AsyncClient) -> None:
    one = await subscribed(
        client, client_id="till", group_instance_id="i-1", consumer_request_timeout_ms=20_000
    )
    await proxy.view.produce("t", b"1")
    with trio.fail_after(60):
        assert await read(client, one) == [1]
    (member,) = proxy.core.groups.find("g").members
    assert (member.client_id, member.instance_id) == ("till", "i-1")
    assert member.member_id.startswith("i-1-")
    await client.delete(one)
    await client.get("/topics")  # whatever was to be done has been done
    assert [each.instance_id for each in proxy.core.groups.find("g").members] == ["i-1"], "it is static"


async def test_session_and_poll_interval(proxy: Running, client: httpx.AsyncClient) -> None:
    one = await subscribed(client, session_timeout_ms=7_000, consumer_request_timeout_ms=20_000)
    await proxy.view.produce("t", b"1")
    with trio.fail_after(60):
        assert await read(client, one) == [1]
    (member,) = proxy.core.groups.find("g").members
    assert member.session_timeout_ms == 7_000
    short = await created(client, group="h", session_timeout_ms=1)
    await client.post(f"{short}/subscription", json={"topics": ["t"]}, headers=JSON)
    answer = await client.get(f"{short}/records")
    assert answer.status_code == 500
    assert "INVALID_SESSION_TIMEOUT" in answer.json()["message"]
    brief = await subscribed(client, group="i", max_poll_interval_ms=50, consumer_request_timeout_ms=20_000)
    with trio.fail_after(60):
        assert await read(client, brief) == [1]
    await eventually(lambda: proxy.core.groups.find("i").is_empty, "the end of the member")

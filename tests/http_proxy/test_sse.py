"""Streams of server-sent events, over real connections."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx_sse
import pytest
import trio
import trio.testing

from leafcuttr_http.streams import events
from leafcuttr_http.streams.events import Chunk
from leafcuttr_http.streams.hub import Tap
from leafcuttr_sdk import Record, StoredRecord
from support.http_proxy import Running, running
from support.waiting import within

PATIENCE_S = 60


class Listener:
    """One stream, read as a client of the standard reads it."""

    def __init__(self, source: httpx_sse.EventSource) -> None:
        self._events = source.aiter_sse()
        self.id = ""

    async def next(self) -> httpx_sse.ServerSentEvent:
        """The next event with data."""
        with trio.fail_after(PATIENCE_S):
            while True:
                event = await anext(self._events)
                self.id = event.id or self.id
                if event.data:
                    return event

    async def records(self, count: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while len(found) < count:
            event = await self.next()
            assert event.event == "message", event
            found.append(json.loads(event.data))
        return found


@asynccontextmanager
async def listening(
    proxy: Running, topic: str, *, last: str | None = None, **query: str
) -> AsyncIterator[Listener]:
    headers = {"last-event-id": last} if last else {}
    async with proxy.client() as client:
        path = f"/topics/{topic}/stream"
        async with httpx_sse.aconnect_sse(client, "GET", path, params=query, headers=headers) as source:
            source.response.raise_for_status()
            yield Listener(source)


async def fill(proxy: Running, topic: str, count: int, start: int = 0, **members: Any) -> None:
    records = [Record(b"%d" % number, **members) for number in range(start, start + count)]
    partitions = [
        number % proxy.broker.topics.partition_count(topic) for number in range(start, start + count)
    ]
    await proxy.broker.produce_batch(topic, records, partitions=partitions)


async def test_what_is_there_and_what_comes(proxy: Running) -> None:
    await proxy.broker.topics.create("t", partitions=3)
    await fill(proxy, "t", 100)
    async with listening(proxy, "t", **{"from": "earliest"}) as listener:
        first = await listener.records(100)
        await fill(proxy, "t", 50, 100)
        then = await listener.records(50)
    for part, expected in ((first, range(100)), (then, range(100, 150))):
        assert sorted(each["value"] for each in part) == list(expected)
    by_partition: dict[int, list[int]] = {}
    for each in first + then:
        by_partition.setdefault(each["partition"], []).append(each["offset"])
    assert by_partition == {number: list(range(50)) for number in range(3)}


async def test_an_event_is_the_whole_record(proxy: Running) -> None:
    await proxy.broker.topics.create("t")
    headers = (("h", b"text"), ("none", None), ("bytes", b"\xff"))
    await proxy.broker.produce(
        "t", b'{ "a":\n [1, 2.50, "\\u0041"]\r\n}', "k\u00e9y\n".encode(), headers=headers, timestamp=7
    )
    await proxy.broker.produce("t", None)
    await proxy.broker.produce("t", b"no json", b"\xff\x00", timestamp=8)
    await proxy.broker.produce("t", b"NaN", timestamp=8)
    shown = [
        {"name": "h", "value": "text"},
        {"name": "none", "value": None},
        {"name": "bytes", "value_base64": "/w=="},
    ]
    async with listening(proxy, "t", **{"from": "earliest"}) as listener:
        event = await listener.next()
        assert event.event == "message" and event.id
        assert '2.50, "\\u0041"' in event.data  # as it was stored, to the digit
        whole, tombstone, binary, constant = [json.loads(event.data), *(await listener.records(3))]
    assert whole == {
        "topic": "t", "partition": 0, "offset": 0, "timestamp": 7, "key": "k\u00e9y\n", "value": {"a": [1, 2.5, "A"]},
        "headers": shown,
    }  # fmt: skip
    assert (tombstone["key"], tombstone["value"], tombstone["headers"]) == (None, None, [])
    assert "value" not in binary and binary["value_base64"] == "bm8ganNvbg=="
    assert "key" not in binary and binary["key_base64"] == "/wA="
    assert constant["value_base64"] == "TmFO"
    async with listening(proxy, "t", format="binary", **{"from": "earliest"}) as listener:
        first, second, *_ = await listener.records(2)
    assert (first["key"], second["value"]) == ("a8OpeQo=", None)
    assert first["value"].startswith("eyAiYSI6")


async def test_it_goes_on_behind_the_last_event(proxy: Running) -> None:
    await proxy.broker.topics.create("t", partitions=5)
    await fill(proxy, "t", 200)
    seen: list[int] = []
    last = None
    # Broken off after each number of events, wherever that is.
    for count in (1, 7, 40, 2, 50, 100):
        async with listening(proxy, "t", last=last, **{"from": "earliest"}) as listener:
            seen += [each["value"] for each in await listener.records(count)]
            last = listener.id
    assert sorted(seen) == list(range(200))
    await fill(proxy, "t", 10, 200)
    await proxy.broker.topics.add_partitions("t", 6)
    await proxy.broker.produce("t", b"999", partition=5)
    async with listening(proxy, "t", last_event_id=last or "") as listener:
        assert sorted(each["value"] for each in await listener.records(11)) == [*range(200, 210), 999]


async def test_before_the_first_event_there_is_an_id(proxy: Running) -> None:
    await proxy.broker.topics.create("t")
    await fill(proxy, "t", 5)
    async with proxy.client() as client, client.stream("GET", "/topics/t/stream") as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["cache-control"] == "no-store"
        lines = answer.aiter_lines()
        assert (await anext(lines)).startswith("retry: ")
        id = (await anext(lines)).removeprefix("id: ")
        assert id and await anext(lines) == ""
    await fill(proxy, "t", 2, 5)
    async with listening(proxy, "t", last=id) as listener:
        assert [each["value"] for each in await listener.records(2)] == [5, 6]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"from": "earliest"}, 0),
        ({"offset": "3"}, 3),
        ({"offset": "0:4"}, 4),
        ({"offset": "99"}, 10),
        ({"time": "1500"}, 5),
        ({"time": "1970-01-01T00:00:01.7Z"}, 7),
        ({"time": "1970-01-01T00:00:01.7"}, 7),
        ({"time": "1970-01-01T01:00:01.7+01:00"}, 7),
        ({"time": "99999"}, 10),
        ({"from": "latest"}, 10),
        ({}, 10),
    ],
)
async def test_where_it_begins(proxy: Running, query: dict[str, str], expected: int) -> None:
    await proxy.broker.topics.create("t")
    records = [Record(b"%d" % number, timestamp=1000 + 100 * number) for number in range(10)]
    await proxy.broker.produce_batch("t", records)
    async with listening(proxy, "t", **query) as listener:
        await proxy.broker.produce("t", b"10")
        assert [each["offset"] for each in await listener.records(1)] == [expected]


@pytest.mark.one_in(6)
@pytest.mark.parametrize(
    ("topic", "query", "status", "words"),
    [
        ("none", "", 404, "no topic"),
        ("%ff", "", 404, "no topic"),
        ("t", "?from=middle", 422, "earliest or latest"),
        ("t", "?from=earliest&offset=3", 422, "Only one of"),
        ("t", "?offset=-1", 422, "whole number"),
        ("t", "?offset=1:0", 422, "no partition 1"),
        ("t", "?offset=0:5", 422, "ends at 0"),
        ("t", "?time=yesterday", 422, "milliseconds"),
        ("t", "?format=avro", 422, "json or binary"),
        ("t", "?formt=json", 422, "formt"),
        ("t", "?format=json&format=json", 422, "twice"),
        ("t", "?format=binary&key=%21", 422, "base64"),
        ("t", "?last_event_id=x", 422, "id of the last event"),
        ("t", "?credits=3", 422, "credits"),
    ],
)
async def test_what_makes_no_sense(proxy: Running, topic: str, query: str, status: int, words: str) -> None:
    await proxy.broker.topics.create("t")
    async with proxy.client() as client:
        answer = await client.get(f"/topics/{topic}/stream{query}")
        assert answer.status_code == status, answer.text
        assert words in answer.json()["message"]
        refused = await client.get("/topics/t/stream", headers={"accept": "application/json"})
        assert refused.status_code == 406


async def test_only_some_keys(proxy: Running) -> None:
    await proxy.broker.topics.create("t", partitions=2)
    async with listening(proxy, "t", key="a", **{"from": "earliest"}) as listener:
        for number in range(20):
            await proxy.broker.produce("t", b"%d" % number, b"ab"[number % 2 :][:1])
        assert [each["value"] for each in await listener.records(10)] == list(range(0, 20, 2))
    async with listening(proxy, "t", key="Yg==", format="binary", **{"from": "earliest"}) as listener:
        assert {each["key"] for each in await listener.records(10)} == {"Yg=="}


@pytest.mark.setting("lc.http.proxy.stream.heartbeat.ms")
async def test_a_silent_stream_says_where_it_is(tmp_path: Path) -> None:
    async with running(tmp_path / "data", {"stream.heartbeat.ms": 100}) as proxy:
        await proxy.broker.topics.create("t")
        async with proxy.client() as client:
            query = {"key": "none", "from": "earliest"}
            async with client.stream("GET", "/topics/t/stream", params=query) as answer:
                lines = answer.aiter_lines()
                ids: list[str] = []
                # Eight within that time: every fifteen seconds, as by default, would be too few.
                with within(PATIENCE_S, "eight times where it is"):
                    while len(set(ids)) < 2 or len(ids) < 8:
                        line = await anext(lines)
                        assert not line.startswith("data")
                        if line.startswith("id: "):
                            ids.append(line.removeprefix("id: "))
                            if len(ids) == 3:
                                await fill(proxy, "t", 3)  # of another key: passed over, and said so
        async with listening(proxy, "t", last=ids[-1]) as listener:
            await fill(proxy, "t", 1, 3)
            assert [each["value"] for each in await listener.records(1)] == [3]


async def test_a_deleted_topic_ends_its_streams(proxy: Running) -> None:
    await proxy.broker.topics.create("t")
    async with listening(proxy, "t") as listener, listening(proxy, "t", **{"from": "earliest"}) as other:
        await fill(proxy, "t", 1)
        await listener.records(1)
        last = listener.id
        await proxy.broker.topics.delete("t")
        for each in (listener, other):
            event = await each.next()
            if event.event == "message":
                event = await each.next()
            assert (event.event, json.loads(event.data)["reason"]) == ("end", "deleted")
            with trio.fail_after(PATIENCE_S), pytest.raises(StopAsyncIteration):
                await each.next()
    # Another one of that name: the id belongs to the old one, and the stream says so.
    await proxy.broker.topics.create("t")
    await fill(proxy, "t", 1)
    async with listening(proxy, "t", last=last) as listener:
        assert (await listener.next()).event == "reset"
        assert [each["offset"] for each in await listener.records(1)] == [0]


async def test_retention_that_passes_a_stream(proxy: Running) -> None:
    await proxy.broker.topics.create("t", partitions=2)
    await fill(proxy, "t", 20)
    async with listening(proxy, "t", **{"from": "earliest"}) as listener:
        await listener.records(1)
        last = listener.id
    await proxy.broker.topics.delete_records("t", 0, 5)
    async with listening(proxy, "t", last=last) as listener:
        gap = await listener.next()
        assert gap.event == "gap"
        told = json.loads(gap.data)
        assert (told["partition"], told["to_offset"]) == (0, 5) and told["from_offset"] in (0, 1)
        rest = await listener.records(5 + 10 - (1 if told["from_offset"] == 0 else 0))
    assert [each["offset"] for each in rest if each["partition"] == 0] == list(range(5, 10))


async def test_partitions_that_come_while_it_streams(proxy: Running) -> None:
    await proxy.broker.topics.create("t")
    async with listening(proxy, "t") as listener:
        await fill(proxy, "t", 1)
        await listener.records(1)
        await proxy.broker.topics.add_partitions("t", 3)
        for partition in (2, 1, 0):
            await proxy.broker.produce("t", b"%d" % partition, partition=partition)
        assert sorted(each["value"] for each in await listener.records(3)) == [0, 1, 2]


async def test_a_partition_that_cannot_be_read_harms_no_other(proxy: Running) -> None:
    await proxy.broker.topics.create("t", partitions=2)
    async with listening(proxy, "t") as listener:
        await fill(proxy, "t", 2)
        await listener.records(2)
        proxy.core.topics.by_name["t"].partitions[0].log.take_offline("a test says so")
        event = await listener.next()
        assert event.event == "unreadable"
        assert json.loads(event.data) == {"partition": 0, "message": "a test says so"}
        await proxy.broker.produce("t", b"7", partition=1)
        assert [each["value"] for each in await listener.records(1)] == [7]


async def test_damage_on_the_disk_harms_no_other_partition(proxy: Running) -> None:
    await proxy.broker.topics.create("t", partitions=2)
    await fill(proxy, "t", 20)
    path = proxy.core.topics.by_name["t"].partitions[0].log.directory / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    async with listening(proxy, "t", **{"from": "earliest"}) as listener:
        event = await listener.next()
        assert event.event == "unreadable" and "CRC" in event.data
        assert [each["partition"] for each in await listener.records(10)] == [1] * 10


@pytest.mark.setting("lc.http.proxy.stream.buffer.bytes")
async def test_a_slow_client_loses_nothing_and_delays_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, drop, waiting, left = Tap.put, Tap.drop, [], []

    def note_size(self: Tap, chunk: Chunk) -> bool:
        taken = put(self, chunk)
        if len(self._chunks) > 1:
            waiting.append(self._size)
        return taken

    def note_drop(self: Tap) -> None:
        left.append(self)
        drop(self)

    monkeypatch.setattr(Tap, "put", note_size)
    monkeypatch.setattr(Tap, "drop", note_drop)
    async with running(tmp_path / "data", {"stream.buffer.bytes": 10_000}) as proxy:
        await proxy.broker.topics.create("t")
        count = 3000
        async with listening(proxy, "t", offset="0") as quick:
            stream = await trio.open_tcp_stream("127.0.0.1", proxy.port)
            await stream.send_all(b"GET /topics/t/stream?offset=0 HTTP/1.1\r\nHost: x\r\n\r\n")
            head = await stream.receive_some(10_000)
            assert b"200" in head
            seen: list[int] = []
            for start in range(0, count, 100):  # far more than sockets and buffers hold
                records = [
                    Record(b'{"n":%d,"fill":"%s"}' % (n, b"x" * 5000)) for n in range(start, start + 100)
                ]
                await proxy.broker.produce_batch("t", records)
                seen += [each["value"]["n"] for each in await quick.records(100)]
            assert seen == list(range(count))
            data = bytearray()
            with trio.fail_after(PATIENCE_S):
                while b'"n":%d,' % (count - 1) not in data[-20_000:]:
                    data += await stream.receive_some(1 << 20)
            await stream.aclose()
    assert left and all(size <= 10_000 for size in waiting), "one that is behind reads from the log"
    lines = [line for line in bytes(data).split(b"\n") if line.startswith(b"data: ")]
    found = [int(number) for number in re.findall(rb'"value":\{"n":(\d+),', bytes(data))]
    assert lines and found == list(range(count))


@pytest.mark.setting("lc.http.proxy.max.streams")
async def test_there_are_only_so_many(tmp_path: Path) -> None:
    async with running(tmp_path / "data", {"max.streams": 2}) as proxy:
        await proxy.broker.topics.create("t")
        async with listening(proxy, "t"), listening(proxy, "t"), proxy.client() as client:
            assert await proxy.counted("leafcuttr_http_streams") == 2
            async with client.stream("GET", "/topics/t/stream") as refused:
                assert refused.status_code == 503  # else its body would have no end
                assert b"max.streams" in await refused.aread()
        with trio.fail_after(PATIENCE_S):  # once those two have been seen to leave
            while True:
                async with proxy.client() as client, client.stream("GET", "/topics/t/stream") as answer:
                    if answer.status_code == 200:
                        break


async def test_a_stop_ends_streams_so_that_they_come_again(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as proxy:
        await proxy.broker.topics.create("t")
        async with listening(proxy, "t") as listener:
            proxy.stop()
            with trio.CancelScope(shield=True):
                event = await listener.next()
                assert (event.event, json.loads(event.data)["reason"]) == ("end", "stopping")


@pytest.mark.long
async def test_many_streams_share_what_is_read(proxy: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []
    real = events.FORMATS["json"]

    def counting(record: StoredRecord) -> str:
        encoded.append(record.offset)
        return real(record)

    monkeypatch.setitem(events.FORMATS, "json", counting)
    await proxy.broker.topics.create("t")
    seen: list[list[int]] = []

    async def listen(*, task_status: trio.TaskStatus[None]) -> None:
        async with listening(proxy, "t") as listener:
            task_status.started()
            seen.append([each["value"] for each in await listener.records(1000)])

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            await nursery.start(listen)
        for start in range(0, 1000, 50):
            await fill(proxy, "t", 50, start)
            await trio.testing.wait_all_tasks_blocked()  # the streams have sent it
    assert seen == [list(range(1000))] * 20
    assert len(encoded) < 2000  # by the hub once; by each only what came before it was there


async def test_a_failure_in_a_hub_ends_its_streams_and_no_more(
    proxy: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await proxy.view.topics.create("t")
    await proxy.view.topics.create("other")
    async with listening(proxy, "t") as listener, listening(proxy, "other") as other:
        for topic in ("t", "other"):
            await fill(proxy, topic, 1)
        await listener.records(1)
        await other.records(1)
        real = events.FORMATS["json"]

        def broken(record: StoredRecord) -> str:
            if record.topic == "t":
                raise ZeroDivisionError
            return real(record)

        for hub in list(_hubs(proxy)):
            monkeypatch.setattr(hub._reader, "_encode", broken)
        await fill(proxy, "t", 1)
        event = await listener.next()
        assert (event.event, json.loads(event.data)["reason"]) == ("end", "failed")
        await fill(proxy, "other", 1)
        await other.records(1)
    assert "ZeroDivisionError" in caplog.text


def _hubs(proxy: Running) -> list[Any]:
    import gc

    from leafcuttr_http.streams.hub import Hub

    return [each for each in gc.get_objects() if type(each) is Hub and not each.ended]


async def test_over_http_2(proxy: Running) -> None:
    await proxy.view.topics.create("t")
    await fill(proxy, "t", 300)
    async with proxy.client(http1=False, http2=True) as client, trio.open_nursery() as nursery:

        async def listen() -> None:
            query = {"from": "earliest"}
            async with httpx_sse.aconnect_sse(client, "GET", "/topics/t/stream", params=query) as source:
                assert source.response.http_version == "HTTP/2"
                found = await Listener(source).records(300)
                assert [each["value"] for each in found] == list(range(300))

        for _ in range(5):  # on one connection
            nursery.start_soon(listen)

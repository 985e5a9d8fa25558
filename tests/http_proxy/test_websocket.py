"""Streams over WebSocket, by a client of another make (trio-websocket)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from trio_websocket import ConnectionClosed, ConnectionRejected, WebSocketConnection, open_websocket_url

from leafcuttr_sdk import Record
from support.http_proxy import Running, running

PATIENCE_S = 60


class Listener:
    """One stream; `id` is that of what came last."""

    def __init__(self, socket: WebSocketConnection) -> None:
        self.socket = socket
        self.id = ""

    async def message(self) -> dict[str, Any]:
        with trio.fail_after(PATIENCE_S):
            found: dict[str, Any] = json.loads(await self.socket.get_message())
        self.id = found.get("id", self.id)
        return found

    async def next(self) -> dict[str, Any]:
        while (found := await self.message())["type"] == "heartbeat":
            pass
        return found

    async def records(self, count: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while len(found) < count:
            message = await self.next()
            assert message["type"] == "records", message
            found += message["records"]
        assert len(found) == count
        return found

    async def closed(self) -> tuple[int, str]:
        with trio.fail_after(PATIENCE_S), pytest.raises(ConnectionClosed):
            while True:
                await self.socket.get_message()
        reason = self.socket.closed
        assert reason is not None
        return reason.code, reason.reason or ""


@asynccontextmanager
async def listening(proxy: Running, query: str = "", **options: Any) -> AsyncIterator[Listener]:
    url = f"ws://127.0.0.1:{proxy.port}/topics/t/stream{query}"
    async with open_websocket_url(url, **options) as socket:
        yield Listener(socket)


async def fill(proxy: Running, count: int, start: int = 0) -> None:
    await proxy.broker.produce_batch(
        "t", [Record(b"%d" % number, b"k") for number in range(start, start + count)]
    )


async def test_records_in_order_with_an_id_to_go_on_from(proxy: Running) -> None:
    await proxy.broker.topics.create("t")
    await fill(proxy, 2500)
    async with listening(proxy, "?from=earliest") as listener:
        assert (await listener.message())["type"] == "heartbeat"
        found = await listener.records(2500)
        await fill(proxy, 10, 2500)
        found += await listener.records(10)
        last = listener.id
    assert [each["value"] for each in found] == list(range(2510))
    assert found[0].keys() == {"topic", "partition", "offset", "timestamp", "key", "value", "headers"}
    await fill(proxy, 5, 2510)
    async with listening(proxy, f"?last_event_id={last}") as listener:
        assert [each["value"] for each in await listener.records(5)] == list(range(2510, 2515))


async def test_a_client_says_how_much_it_can_take(proxy: Running) -> None:
    await proxy.broker.topics.create("t")
    await fill(proxy, 100)
    async with listening(proxy, "?from=earliest&credits=3") as listener:
        assert [each["value"] for each in await listener.records(3)] == [0, 1, 2]
        last = listener.id
        with trio.move_on_after(0.3) as scope:
            await listener.next()
        assert scope.cancelled_caught  # no credits, no records
        for granted, expected in ((1, [3]), (5, list(range(4, 9)))):
            await listener.socket.send_message(json.dumps({"credits": granted}))
            assert [each["value"] for each in await listener.records(granted)] == expected
        await fill(proxy, 100, 100)
        await listener.socket.send_message('{"credits": 191}')
        assert [each["value"] for each in await listener.records(191)] == list(range(9, 200))
    async with listening(proxy, f"?last_event_id={last}&credits=10") as listener:
        assert [each["value"] for each in await listener.records(10)] == list(range(3, 13))


async def test_a_client_that_takes_nothing_loses_nothing(tmp_path: Path) -> None:
    async with running(tmp_path / "data", {"stream.buffer.bytes": 1024, "stream.heartbeat.ms": 100}) as proxy:
        await proxy.broker.topics.create("t")
        async with listening(proxy, "?credits=1") as listener:
            for start in range(0, 2000, 100):
                await fill(proxy, 100, start)
                await trio.testing.wait_all_tasks_blocked()  # what the listener may have, it has been sent
            assert [each["value"] for each in await listener.records(1)] == [0]
            assert (await listener.message())["type"] == "heartbeat"
            await listener.socket.send_message('{"credits": 1999}')
            assert [each["value"] for each in await listener.records(1999)] == list(range(1, 2000))


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("no json", 1008),
        ("[1]", 1008),
        ('{"credits": 0}', 1008),
        ('{"credits": true}', 1008),
        ('{"credits": 1, "more": 2}', 1008),
        ('{"credits": 10000000}', 1008),
        (b"bytes", 1003),
        ('{"credits": 1}' + " " * 5000, 1009),
    ],
)
async def test_what_clients_may_not_say(proxy: Running, message: str | bytes, code: int) -> None:
    await proxy.broker.topics.create("t")
    async with listening(proxy, "?credits=0") as listener:
        await listener.socket.send_message(message)
        assert (await listener.closed())[0] == code
    async with listening(proxy) as listener:
        await listener.socket.send_message('{"credits": 1}')
        assert await listener.closed() == (1008, "this stream was opened without credits")


async def test_a_deleted_topic_and_a_stop(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as proxy:
        await proxy.broker.topics.create("t")
        async with listening(proxy) as listener:
            await listener.message()
            await proxy.broker.topics.delete("t")
            assert await listener.closed() == (4404, "the topic was deleted")
        await proxy.broker.topics.create("t")
        with trio.CancelScope(shield=True):
            async with listening(proxy) as listener:
                await listener.message()
                proxy.stop()
                assert (await listener.closed())[0] == 1001


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/topics/none/stream", 404, "no topic"),
        ("/topics/t/stream?from=nowhere", 422, "earliest or latest"),
        ("/topics/t/stream?credits=x", 422, "credits"),
    ],
)
async def test_what_is_refused_before_the_handshake(
    proxy: Running, path: str, status: int, words: str
) -> None:
    await proxy.broker.topics.create("t")
    with pytest.raises(ConnectionRejected) as refused:
        async with open_websocket_url(f"ws://127.0.0.1:{proxy.port}{path}"):
            pass
    assert refused.value.status_code == status
    assert words in json.loads(refused.value.body or b"{}")["message"]


async def test_pages_of_other_origins(tmp_path: Path) -> None:
    allowed = {"cors.allowed.origins": "https://fine.test"}
    async with running(tmp_path / "data", allowed) as proxy:
        await proxy.broker.topics.create("t")
        for origin in (b"https://fine.test", f"http://127.0.0.1:{proxy.port}".encode()):
            async with listening(proxy, extra_headers=[(b"origin", origin)]) as listener:
                await listener.message()
        with pytest.raises(ConnectionRejected) as refused:
            async with listening(proxy, extra_headers=[(b"origin", b"https://evil.test")]):
                pass
        assert refused.value.status_code == 403


async def test_no_stream_compresses_for_itself(proxy: Running) -> None:
    await proxy.broker.topics.create("t")
    with trio.fail_after(PATIENCE_S):
        stream = await trio.open_tcp_stream("127.0.0.1", proxy.port)
        await stream.send_all(
            b"GET /topics/t/stream HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
        )
        head = await stream.receive_some(10_000)
        await stream.aclose()
    assert b"101" in head and b"permessage-deflate" not in head

"""Streams of the HTTP proxy whose clients go on with what they may not, or may not any more: they read nothing, come
back again and again, or share a connection with others."""

from __future__ import annotations

import base64
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest
import trio
import trio.testing
from h2.errors import ErrorCodes
from trio_websocket import ConnectionRejected, open_websocket_url

from leafcuttr.state.security.quota_entities import entity_of
from leafcuttr.state.security.users import CredentialDeletion
from leafcuttr_sdk import Record
from support.http_proxy import Running, running
from support.http_users import ALICE, BOB, SHA256, STANDARD, grant, revoke, user
from support.waiting import within

WEBSOCKET = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


def authorization(who: tuple[str, str]) -> str:
    return f"Basic {base64.b64encode(':'.join(who).encode()).decode()}"


@asynccontextmanager
async def secured(tmp_path: Path, **settings: str | int) -> AsyncIterator[Running]:
    """Both may read the topic `t`, which has 4 MB."""
    given: dict[str, str | int] = {"auth": "basic", **settings}
    async with running(tmp_path / "data", given, broker={"authorizer.class.name": STANDARD}) as proxy:
        for who in (ALICE, BOB):
            await user(proxy, *who)
            await grant(proxy, "READ TOPIC t", principal=f"User:{who[0]}")
        await proxy.broker.topics.create("t", partitions=1)
        for _ in range(20):
            await proxy.broker.produce_batch("t", [Record(b'"%s"' % (b"x" * 20_000), b"k")] * 10)
        yield proxy


def connections(proxy: Running) -> int:
    return proxy.core.plugged.served["lc.http.proxy"].connections


async def delete(proxy: Running, name: str) -> None:
    await proxy.core.users.alter([], [CredentialDeletion(name, SHA256)])


@pytest.mark.parametrize(
    ("head", "gone"),
    [
        (WEBSOCKET, "the user"),
        pytest.param(WEBSOCKET, "the right", marks=pytest.mark.long),
        pytest.param("", "the user", marks=pytest.mark.long),
        pytest.param("", "the right", marks=pytest.mark.long),
    ],
    ids=["WebSocket, user", "WebSocket, right", "events, user", "events, right"],
)
async def test_one_that_reads_nothing_ends_all_the_same(tmp_path: Path, head: str, gone: str) -> None:
    """Otherwise it would have an hour for what is being sent."""
    async with secured(tmp_path, **{"request.timeout.ms": 3_600_000}) as proxy:
        with socket.socket() as small:
            small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            small.setblocking(False)
            stream = trio.SocketStream(trio.socket.from_stdlib_socket(small))
            await stream.socket.connect(("127.0.0.1", proxy.port))
            request = f"GET /topics/t/stream?from=earliest HTTP/1.1\r\nHost: x\r\n{head}"
            await stream.send_all(f"{request}Authorization: {authorization(ALICE)}\r\n\r\n".encode())
            with within(60, "the stream's begin"):
                await stream.receive_some(1)
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert connections(proxy) == 1
            if gone == "the user":
                await delete(proxy, "alice")
            else:
                await revoke(proxy)
            with within(60, "the end of the connection"):
                while connections(proxy):
                    await trio.sleep(0.01)


async def test_one_that_comes_back_again_and_again_gets_no_more_than_its_quota(tmp_path: Path) -> None:
    async with secured(tmp_path, **{"request.timeout.ms": 1000}) as proxy:
        await proxy.core.quotas.alter({entity_of({"user": "alice"}): {"consumer_byte_rate": 1000.0}})
        url = f"{proxy.url.replace('http', 'ws')}/topics/t/stream?from=earliest"
        head = [(b"authorization", authorization(ALICE).encode())]
        with within(60, "a WebSocket and a refusal"):
            async with open_websocket_url(url, extra_headers=head) as first:
                while '"records"' not in str(await first.get_message()):
                    pass
            with pytest.raises(ConnectionRejected) as refused:
                async with open_websocket_url(url, extra_headers=head):
                    pass
            assert refused.value.status_code == 429
            assert any(name == b"retry-after" for name, _ in refused.value.headers or ())
            head = [(b"authorization", authorization(BOB).encode())]
            async with open_websocket_url(url, extra_headers=head) as other:
                assert "heartbeat" in str(await other.get_message())


@pytest.mark.parametrize("websocket", [False, pytest.param(True, marks=pytest.mark.long)])
async def test_of_two_users_of_one_connection_one_is_deleted(tmp_path: Path, websocket: bool) -> None:
    """As behind a reverse proxy that speaks HTTP/2. The other one's stream goes on, and each is asked for by itself."""
    method = [(":method", "CONNECT"), (":protocol", "websocket")] if websocket else [(":method", "GET")]
    version = [("sec-websocket-version", "13")] if websocket else []
    connection = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding=None))
    async with secured(tmp_path) as proxy, await trio.open_tcp_stream("127.0.0.1", proxy.port) as stream:
        events: list[h2.events.Event] = []

        def request(number: int, who: tuple[str, str]) -> None:
            fields = [
                *method,
                (":scheme", "http"),
                (":authority", "x"),
                (":path", "/topics/t/stream"),
                ("authorization", authorization(who)),
                *version,
            ]
            connection.send_headers(number, fields, end_stream=not websocket)

        async def next_of(number: int, kind: type[h2.events.Event]) -> h2.events.Event:
            with within(60, f"{kind.__name__} of stream {number}"):
                while True:
                    for at, event in enumerate(events):
                        if isinstance(event, kind) and getattr(event, "stream_id", None) == number:
                            return events.pop(at)
                    await stream.send_all(connection.data_to_send())
                    data = await stream.receive_some(65536)
                    assert data, "the connection has ended"
                    events.extend(connection.receive_data(data))

        async def status(number: int) -> bytes:
            answer = await next_of(number, h2.events.ResponseReceived)
            assert isinstance(answer, h2.events.ResponseReceived)
            return dict(answer.headers)[b":status"]

        connection.initiate_connection()
        for number, who in ((1, ALICE), (3, BOB), (5, ("alice", "wrong"))):
            request(number, who)
        assert [await status(number) for number in (1, 3, 5)] == [b"200", b"200", b"401"]
        for number in (1, 3):
            await next_of(number, h2.events.DataReceived)
        events.clear()
        await delete(proxy, "alice")
        reset = await next_of(1, h2.events.StreamReset)
        assert isinstance(reset, h2.events.StreamReset) and reset.error_code == ErrorCodes.CANCEL
        await proxy.broker.produce("t", b'"after"', key=b"k")
        found = b""
        while b'"after"' not in found:
            data = await next_of(3, h2.events.DataReceived)
            assert isinstance(data, h2.events.DataReceived)
            found += data.data
        request(7, ALICE)
        assert await status(7) == b"401"

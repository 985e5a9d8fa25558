"""Clients that abuse WebSockets over HTTP/2 (RFC 8441): what is kept of each is bounded, and each ends."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import h2.events
import pytest
import trio
import trio.testing
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hypercorn.protocol.h2 import BUFFER_HIGH_WATER
from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, Ping, TextMessage

from attack.test_http2 import COMMON, DATA, Client, Fields, frame
from leafcuttr_sdk.web import Application, Exchange
from leafcuttr_sdk.web.asgi import Message, Receive, Scope, Send
from leafcuttr_sdk.web.connection import connection_of
from leafcuttr_sdk.web.http2 import Http2
from support.waiting import within
from support.web_service import Served, serving

CONNECT: Fields = [(b":method", b"CONNECT"), (b":protocol", b"websocket"), (b":path", b"/"), *COMMON]
VERSION: Fields = [(b"sec-websocket-version", b"13")]
END_STREAM = 1


class Service:
    """It takes messages once it may, and says hello to all other requests."""

    def __init__(self) -> None:
        self.got: list[Message] = []
        self.take = trio.Event()
        self.ended = trio.Event()
        self.protocol: Any = None

    async def hello(self, exchange: Exchange) -> None:
        self.protocol = connection_of(exchange.scope)._protocol.protocol
        await exchange.reply("hello")

    async def websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.protocol = connection_of(scope)._protocol.protocol
        try:
            await receive()
            if scope["path"] == "/late":
                await self.take.wait()
            await send({"type": "websocket.accept"})
            if scope["path"] == "/large":
                await send({"type": "websocket.send", "bytes": bytes(100_000)})
            await self.take.wait()
            while not self.got or self.got[-1]["type"] == "websocket.receive":
                self.got.append(await receive())
        finally:
            self.ended.set()

    @property
    def kinds(self) -> list[str]:
        return [message["type"].removeprefix("websocket.") for message in self.got]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Service, Served]]:
    service = Service()
    few = {"max.buffered.bytes": 1024}
    async with serving(tmp_path, lambda _: Application(service.hello, service.websocket), few) as found:
        yield service, found


@pytest.fixture(autouse=True)
def _nothing_is_said(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert not [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


@asynccontextmanager
async def connected(served: Served, window: int = 65_535) -> AsyncIterator[Client]:
    """`window`: of each of its streams."""
    async with await trio.open_tcp_stream("127.0.0.1", served.port) as stream:
        client = Client(stream)
        client.connection.initiate_connection()
        client.connection.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: window})
        await client.flush()
        yield client


async def opened(client: Client, number: int = 1, path: bytes = b"/") -> Connection:
    fields = [(name, path if name == b":path" else value) for name, value in CONNECT]
    await client.request(number, fields + VERSION, end=False)
    await client.found(
        lambda event: isinstance(event, h2.events.ResponseReceived) and event.stream_id == number
    )
    return Connection(ConnectionType.CLIENT)


async def is_alive(client: Client) -> None:
    client.connection.ping(b"12345678")
    await client.flush()
    await client.found(lambda event: isinstance(event, h2.events.PingAckReceived))


async def none_is_left(served: Served) -> None:
    with within(10, "the end of all connections"):
        while "leafcuttr_tested_connections 0.0" not in await served.metrics():
            pass


async def test_handshakes_that_are_refused_leave_nothing(served: tuple[Service, Served]) -> None:
    """They have no version."""
    async with connected(served[1]) as client:
        for number in (1, 3, 5):
            await client.request(number, CONNECT, end=False)
            await client.found(
                lambda event: isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset))
            )
        await client.is_answered(7)
        await is_alive(client)
        assert not served[0].protocol.streams and served[0].protocol.idle


async def test_pings_whose_answers_are_not_taken(served: tuple[Service, Served]) -> None:
    """No more are read when so much waits; and the end of the connection waits for nothing."""
    service, server = served
    service.take.set()
    sent = 0
    async with connected(server, window=0) as client:
        socket = await opened(client)
        pings = socket.send(Ping(payload=b"p" * 125)) * 20
        while client.connection.local_flow_control_window(1) >= len(pings) and sent < 300_000:
            client.connection.send_data(1, pings)
            sent += len(pings)
            await client.flush()
            await trio.testing.wait_all_tasks_blocked()
            await is_alive(client)
        assert sent < 300_000
        for number in (None, 1):
            client.connection.increment_flow_control_window(sent, number)
        await client.flush()
        pongs = 0
        while pongs < sent * 127 // 131:
            data = await client.found(lambda event: isinstance(event, h2.events.DataReceived))
            assert isinstance(data, h2.events.DataReceived)
            pongs += len(data.data)
    with within(10, "the end of the handler"):
        await service.ended.wait()
    await none_is_left(server)


@pytest.mark.parametrize("how", ["reset", "left"])
async def test_what_is_kept_of_pings(served: tuple[Service, Served], how: str) -> None:
    service, server = served
    service.take.set()
    async with connected(server, window=0) as client:
        socket = await opened(client)
        for _ in range(3):
            client.connection.send_data(1, socket.send(Ping(payload=b"p" * 125)) * 120)
            await client.flush()
        await trio.testing.wait_all_tasks_blocked()
        kept = len(service.protocol.stream_buffers[1].buffer)
        assert BUFFER_HIGH_WATER <= kept < BUFFER_HIGH_WATER + 4096
        # Its handler ends while the task waits that answers them.
        if how == "reset":
            client.connection.reset_stream(1)
            await client.flush()
            with within(10, "the end of the handler"):
                await service.ended.wait()
            await is_alive(client)
    await none_is_left(server)


async def test_messages_are_taken_while_what_is_sent_waits(served: tuple[Service, Served]) -> None:
    service, server = served
    async with connected(server, window=1000) as client:
        socket = await opened(client, path=b"/large")
        await client.found(lambda event: isinstance(event, h2.events.DataReceived))
        for event in (TextMessage(data="x"), CloseConnection(1000)):
            client.connection.send_data(1, socket.send(event))
            await client.flush()
            await trio.testing.wait_all_tasks_blocked()
        await client.is_answered(3)
        assert 1 not in service.protocol.streams
        service.take.set()


async def test_a_client_that_leaves_while_its_pings_are_answered(
    served: tuple[Service, Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before what sends has seen that there is more."""
    service, server = served
    service.take.set()

    async def send_nothing(self: Http2) -> None:
        pass

    monkeypatch.setattr(Http2, "send_task", send_nothing)
    async with connected(server) as client:
        socket = await opened(client)
        client.connection.send_data(1, socket.send(Ping(payload=b"p" * 100)) * 150)
        client.connection.send_data(1, socket.send(Ping(payload=b"p" * 100)) * 150)
        client.connection.send_data(1, socket.send(Ping(payload=b"p" * 100)) * 150)
        await client.flush()
        await trio.testing.wait_all_tasks_blocked()
    with within(10, "the end of the handler"):
        await service.ended.wait()
    await none_is_left(server)


@pytest.mark.long
async def test_others_have_their_turn_between_many_small_frames(
    served: tuple[Service, Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of one message, which give nobody else a turn by themselves."""
    turns = 0
    at: list[int] = []
    receive_data = Connection.receive_data

    def noted(self: Connection, data: bytes | None) -> None:
        if data:
            assert len(data) <= 4096
            at.append(turns)
        receive_data(self, data)

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with connected(served[1]) as client, trio.open_nursery() as nursery:
        await opened(client)
        monkeypatch.setattr(Connection, "receive_data", noted)
        nursery.start_soon(other)
        parts = b"\x01\x80\0\0\0\0" + b"\0\x80\0\0\0\0" * 2700
        await client.stream.send_all(
            frame(DATA, parts[:16_000], stream=1) + frame(DATA, parts[16_000:], 0, 1)
        )
        await client.is_answered(3)
        with within(10, "all parts"):
            while len(at) < 4:
                await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
        served[0].take.set()
    # Of two tasks that take turns one may be the last of its round, and the first of the next.
    assert all(before < after for before, after in zip(at, at[2:], strict=False))


@pytest.mark.parametrize(
    ("data", "kinds"),
    [
        (b"", ["disconnect"]),
        (b"\x81\xfe\x10\0abcd123", ["disconnect"]),  # 3 bytes of 4096
        (b"\x81\x81\0\0\0\0x" * 10, ["receive"] * 10 + ["disconnect"]),
        (b"\x81\x81\0\0\0\0x\x88\x80\0\0\0\0", ["receive", "disconnect"]),
    ],
    ids=["nothing", "part", "messages", "close"],
)
async def test_a_client_that_ends_its_half(
    served: tuple[Service, Served], data: bytes, kinds: list[str]
) -> None:
    """As the end of a connection would be (RFC 8441, 5): what was sent before is taken, and the stream ends."""
    service, server = served
    async with connected(server) as client:
        await opened(client)
        await client.stream.send_all(frame(DATA, data, END_STREAM, 1))
        await trio.testing.wait_all_tasks_blocked()
        service.take.set()
        ended = await client.found(
            lambda event: isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset))
        )
        assert isinstance(ended, h2.events.StreamEnded)
        with within(10, "the end of the handler"):
            await service.ended.wait()
        await client.is_answered(3)
        assert service.kinds == kinds and 1 not in service.protocol.streams


async def test_a_client_that_ends_its_half_before_the_handshake_is_answered(
    served: tuple[Service, Served],
) -> None:
    service, server = served
    async with connected(server) as client:
        fields = [(name, b"/late" if name == b":path" else value) for name, value in CONNECT]
        await client.request(1, fields + VERSION)
        answer = await client.found(lambda event: isinstance(event, h2.events.ResponseReceived))
        assert isinstance(answer, h2.events.ResponseReceived) and (b":status", b"400") in answer.headers
        service.take.set()
        with within(10, "the end of the handler"):
            await service.ended.wait()
        await client.is_answered(3)
        assert service.kinds == ["disconnect"]


async def test_what_waits_behind_the_end_of_a_half_does_not_count_once_it_is_reset(
    served: tuple[Service, Served],
) -> None:
    service, server = served
    async with connected(server) as client:
        socket = await opened(client)
        for _ in range(30):
            client.connection.send_data(1, socket.send(TextMessage(data="x" * 1000)))
        client.connection.end_stream(1)
        await client.flush()
        await client.is_answered(3)
        assert client.connection.outbound_flow_control_window < 60_000
        client.connection.reset_stream(1, ErrorCodes.CANCEL)
        await client.flush()
        await client.is_answered(5)
        assert client.connection.outbound_flow_control_window == 65_535
        service.take.set()

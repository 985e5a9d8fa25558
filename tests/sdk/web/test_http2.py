"""HTTP/2 where an answer ends before its request, or in its middle: one stream ends, and the connection goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest
import trio
import trio.testing
from h2.errors import ErrorCodes
from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, Ping, TextMessage

from leafcuttr_sdk.web import ApiError, Application, Exchange, Routes
from leafcuttr_sdk.web.asgi import Message, Receive, Scope, Send
from support.waiting import within
from support.web_service import Served, serving

_HEADERS, _RST_STREAM = 1, 3
"""Types of frames (RFC 9113, 6)."""


class Client:
    """A client that sends what a test wants, and takes what comes when the test asks for it."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self.connection = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self._events: list[h2.events.Event] = []
        self.received = b""

    async def begin(self, path: str, *, number: int, method: str = "POST", end: bool = False) -> None:
        fields = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "x")]
        self.connection.send_headers(number, fields, end_stream=end)
        await self.flush()

    async def open_websocket(self, number: int) -> Connection:
        """RFC 8441. What the connection makes of messages is to be sent on this stream."""
        fields = [(":method", "CONNECT"), (":protocol", "websocket"), (":path", "/"), (":scheme", "http")]
        fields += [(":authority", "x"), ("sec-websocket-version", "13")]
        self.connection.send_headers(number, fields)
        await self.flush()
        answer = await self.wait(h2.events.ResponseReceived, number)
        assert isinstance(answer, h2.events.ResponseReceived) and dict(answer.headers)[":status"] == "200"
        return Connection(ConnectionType.CLIENT)

    async def flush(self) -> None:
        await self._stream.send_all(self.connection.data_to_send())

    async def wait(self, kind: type[h2.events.Event], number: int) -> h2.events.Event:
        """The next event of this kind of the stream of this number; those before it are dropped."""
        with within(30, f"{kind.__name__} of stream {number}"):
            while True:
                while self._events:
                    event = self._events.pop(0)
                    if isinstance(event, kind) and getattr(event, "stream_id", None) == number:
                        return event
                data = await self._stream.receive_some(65536)
                assert data, "the server has closed the connection"
                self.received += data
                self._events += self.connection.receive_data(data)
                await self.flush()

    async def answers(self, number: int) -> None:
        """The connection serves another request."""
        await self.begin("/hello", number=number, method="GET", end=True)
        await self.wait(h2.events.ResponseReceived, number)
        await self.wait(h2.events.StreamEnded, number)


@asynccontextmanager
async def connected(served: Served) -> AsyncIterator[Client]:
    async with await trio.open_tcp_stream("127.0.0.1", served.port) as stream:
        client = Client(stream)
        client.connection.initiate_connection()
        await client.flush()
        yield client


async def hello(exchange: Exchange) -> None:
    await exchange.reply("hello")


async def refuse(exchange: Exchange) -> None:
    raise ApiError(403, "No.")


def application(**handlers: object) -> Application:
    routes = Routes()
    routes.add("GET", "/hello", hello)
    for name, handler in handlers.items():
        routes.add("POST", f"/{name}", handler)  # type: ignore[arg-type]
    return Application(routes)


async def test_what_is_sent_after_the_answer_costs_its_own_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The client learns that no more is wanted; what was under way already is dropped, and takes nothing of the
    window that other streams share."""
    monkeypatch.setattr("leafcuttr_sdk.web.bodies._DISCARD_S", 0.0)
    async with (
        serving(tmp_path, lambda _: application(hello=hello, refuse=refuse)) as served,
        connected(served) as client,
    ):
        for number, path in enumerate(("/hello", "/refuse") * 4):
            number = number * 4 + 1
            await client.begin(path, number=number)
            await client.wait(h2.events.ResponseReceived, number)
            for _ in range(3):  # less than half the window: h2 gives back that much at a time
                client.connection.send_data(number, bytes(10_000))
            await client.flush()
            await client.wait(h2.events.StreamEnded, number)
            reset = await client.wait(h2.events.StreamReset, number)
            assert isinstance(reset, h2.events.StreamReset) and reset.error_code == ErrorCodes.NO_ERROR
            await client.answers(number + 2)
    assert "failed" not in caplog.text


async def test_an_answer_while_its_body_waits_to_be_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """More pieces are there than the queue of a request has places. The handler sends its answer by itself:
    `Exchange.answer` would read them."""
    go_on = trio.Event()

    async def late(exchange: Exchange) -> None:
        await go_on.wait()
        await exchange.send({"type": "http.response.start", "status": 200, "headers": []})
        await exchange.send({"type": "http.response.body", "body": b"late", "more_body": False})

    async with serving(tmp_path, lambda _: application(late=late)) as served, connected(served) as client:
        await client.begin("/late", number=1)
        for _ in range(40):
            client.connection.send_data(1, bytes(1_000))
        await client.flush()
        for _ in range(20):
            await trio.testing.wait_all_tasks_blocked()
        go_on.set()
        await client.wait(h2.events.StreamEnded, 1)
        await client.answers(3)
    assert "failed" not in caplog.text


async def test_a_request_that_ended_with_its_answer_is_not_reset(tmp_path: Path) -> None:
    async with serving(tmp_path, lambda _: application()) as served, connected(served) as client:
        for number in (1, 3, 5):
            await client.answers(number)
        kinds, rest = [], client.received
        while rest:
            length = 9 + int.from_bytes(rest[:3], "big")
            kinds.append(rest[3])
            rest = rest[length:]
        assert kinds.count(_HEADERS) == 3 and _RST_STREAM not in kinds


async def test_a_handler_that_fails_in_its_answer_resets_its_stream(tmp_path: Path) -> None:
    async def fail(exchange: Exchange) -> None:
        await exchange.send({"type": "http.response.start", "status": 200, "headers": []})
        await exchange.send({"type": "http.response.body", "body": b"some", "more_body": True})
        raise RuntimeError("broken")

    async with serving(tmp_path, lambda _: application(fail=fail)) as served, connected(served) as client:
        await client.begin("/fail", number=1, end=True)
        await client.wait(h2.events.DataReceived, 1)
        reset = await client.wait(h2.events.StreamReset, 1)
        assert isinstance(reset, h2.events.StreamReset) and reset.error_code == ErrorCodes.INTERNAL_ERROR
        await client.answers(3)


async def test_a_body_of_unknown_length_is_read_within_the_limits(tmp_path: Path) -> None:
    """HTTP/2 has no Transfer-Encoding: that there is a body, its frames say alone."""
    seen: list[bool] = []

    async def look(exchange: Exchange) -> None:
        seen.append(exchange.all_read)
        await exchange.read()
        seen.append(exchange.all_read)
        await hello(exchange)

    limits = {"max.request.bytes": 1024}
    async with (
        serving(tmp_path, lambda _: application(look=look), limits) as served,
        connected(served) as client,
    ):
        await client.begin("/look", number=1)
        client.connection.send_data(1, bytes(1000), end_stream=True)
        await client.flush()
        await client.wait(h2.events.StreamEnded, 1)
    assert seen == [False, True]


async def test_where_too_much_waits_the_window_of_the_connection_is_kept(tmp_path: Path) -> None:
    """A connection has its first 64 KiB; what waits of them is given back when the handler has answered."""
    go_on = trio.Event()

    async def late(exchange: Exchange) -> None:
        await go_on.wait()
        await exchange.reply("late")

    few = {"max.buffered.bytes": 1024}
    async with (
        serving(tmp_path, lambda _: application(late=late), few) as served,
        connected(served) as client,
    ):
        await client.begin("/late", number=1)
        for _ in range(30):
            client.connection.send_data(1, bytes(1_000))
        await client.flush()
        await client.answers(3)
        # All but the first kibibyte.
        assert client.connection.outbound_flow_control_window == 65_535 - 29_000
        go_on.set()
        await client.wait(h2.events.StreamEnded, 1)
        await client.answers(5)
        assert client.connection.outbound_flow_control_window == 65_535


async def test_a_whole_body_that_was_answered_unread_does_not_count(tmp_path: Path) -> None:
    """The handler sends its answer by itself: `Exchange.answer` would read it."""

    async def blind(exchange: Exchange) -> None:
        await go_on.wait()
        await exchange.send({"type": "http.response.start", "status": 200, "headers": []})
        await exchange.send({"type": "http.response.body", "body": b"blind", "more_body": False})

    few = {"max.buffered.bytes": 1024}
    async with (
        serving(tmp_path, lambda _: application(blind=blind), few) as served,
        connected(served) as client,
    ):
        for number in (1, 5):
            go_on = trio.Event()
            await client.begin("/blind", number=number)
            client.connection.send_data(number, bytes(1_000), end_stream=True)
            await client.flush()
            await client.answers(number + 2)
            assert client.connection.outbound_flow_control_window == 65_535
            go_on.set()
            await client.wait(h2.events.StreamEnded, number)


async def test_what_is_read_and_its_padding_are_given_back(tmp_path: Path) -> None:
    async def count(exchange: Exchange) -> None:
        await exchange.reply(len(await exchange.read()))

    async with serving(tmp_path, lambda _: application(count=count)) as served, connected(served) as client:
        await client.begin("/count", number=1)
        sent = 0
        while sent < 300_000:
            with within(30, "the window"):
                while client.connection.local_flow_control_window(1) < 1_300:
                    await client.wait(h2.events.WindowUpdated, 1)
            client.connection.send_data(1, bytes(1_000), pad_length=200)
            sent += 1_000
            await client.flush()
        client.connection.end_stream(1)
        await client.flush()
        got = await client.wait(h2.events.DataReceived, 1)
        assert isinstance(got, h2.events.DataReceived) and got.data == b"300000"
        await client.answers(3)
        assert client.connection.outbound_flow_control_window == 65_535


def application_of(websocket: Callable[[Scope, Receive, Send], Awaitable[None]]) -> Application:
    return application()._replace(websocket=websocket)


class Late:
    """Accepts a WebSocket, and takes what comes once it may."""

    def __init__(self) -> None:
        self.go_on, self.ended = trio.Event(), trio.Event()
        self.got: list[Message] = []

    async def websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await self.go_on.wait()
        while not self.got or self.got[-1]["type"] == "websocket.receive":
            self.got.append(await receive())
        self.ended.set()


async def test_a_websocket_whose_handler_takes_nothing_holds_up_no_other_stream(tmp_path: Path) -> None:
    """What comes for it waits within the window of its stream, and is there when the handler asks for it."""
    late = Late()
    async with (
        serving(tmp_path, lambda _: application_of(late.websocket)) as served,
        connected(served) as client,
    ):
        socket = await client.open_websocket(1)
        for _ in range(40):
            client.connection.send_data(1, socket.send(TextMessage(data="x" * 1000)))
        await client.flush()
        await client.answers(3)
        while client.connection.local_flow_control_window(1) > 2_000:
            client.connection.send_data(1, socket.send(TextMessage(data="x" * 1000)))
        await client.flush()
        await client.answers(5)
        late.go_on.set()
        with within(30, "the window"):
            while client.connection.local_flow_control_window(1) < 16_000:
                await client.wait(h2.events.WindowUpdated, 1)
        client.connection.send_data(1, socket.send(CloseConnection(code=1000)))
        await client.flush()
        await client.wait(h2.events.StreamEnded, 1)
    assert len(late.got) > 60 and all(len(message["text"]) == 1000 for message in late.got[:-1])
    assert late.got[-1]["type"] == "websocket.disconnect"


@pytest.mark.parametrize("how", ["reset", "closed"])
async def test_the_end_of_a_websocket_whose_handler_takes_nothing(tmp_path: Path, how: str) -> None:
    """Its stream is reset, or its connection closed: neither waits for the handler, which is told at the end of what it
    has not taken."""
    late = Late()
    async with serving(tmp_path, lambda _: application_of(late.websocket)) as served:
        async with connected(served) as client:
            socket = await client.open_websocket(1)
            for _ in range(40):
                client.connection.send_data(1, socket.send(TextMessage(data="x")))
            await client.flush()
            await client.answers(3)
            if how == "reset":
                client.connection.reset_stream(1)
                await client.flush()
                await client.answers(5)
                late.go_on.set()
                with within(30, "the end of the handler"):
                    await late.ended.wait()
                await client.answers(7)
        late.go_on.set()
        with within(30, "no connection that is left"):
            await late.ended.wait()
            while "leafcuttr_tested_connections 0.0" not in await served.metrics():
                pass
    assert [message["type"] for message in late.got[-2:]] == ["websocket.receive", "websocket.disconnect"]


async def test_a_websocket_is_answered_as_over_a_connection_of_its_own(tmp_path: Path) -> None:
    """Messages and pings while its handler sends; and a handler that ends takes its stream with it only."""

    async def websocket(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["text"] != "end":
            await send({"type": "websocket.send", "text": message["text"] * 2})

    async with (
        serving(tmp_path, lambda _: application_of(websocket)) as served,
        connected(served) as client,
    ):
        socket = await client.open_websocket(1)
        for number in range(100):
            sent = socket.send(TextMessage(data=f"{number} ")) + socket.send(Ping(payload=b"p"))
            client.connection.send_data(1, sent)
            await client.flush()
            events: list[object] = []
            while len(events) < 2:
                data = await client.wait(h2.events.DataReceived, 1)
                assert isinstance(data, h2.events.DataReceived)
                socket.receive_data(data.data)
                events += socket.events()
            assert {type(event).__name__ for event in events} == {"TextMessage", "Pong"}
            assert any(getattr(event, "data", "") == f"{number} {number} " for event in events)
        client.connection.send_data(1, socket.send(TextMessage(data="end")))
        await client.flush()
        await client.wait(h2.events.StreamReset, 1)
        client.connection.ping(b"12345678")
        await client.answers(3)


@pytest.mark.parametrize("by", ["handler", "client", "reset"])
async def test_no_task_is_left_of_a_websocket(tmp_path: Path, by: str) -> None:
    async def websocket(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        if by != "handler":
            await receive()

    async with (
        serving(tmp_path, lambda _: application_of(websocket)) as served,
        connected(served) as client,
    ):
        await client.answers(1)
        await trio.testing.wait_all_tasks_blocked()
        before = trio.lowlevel.current_statistics().tasks_living
        for number in range(3, 30, 2):
            socket = await client.open_websocket(number)
            if by == "client":
                client.connection.send_data(number, socket.send(CloseConnection(code=1000)))
            elif by == "reset":
                client.connection.reset_stream(number)
            await client.flush()
        await client.answers(31)
        await trio.testing.wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_living == before


async def test_what_waits_for_a_websocket_that_is_reset_does_not_count(tmp_path: Path) -> None:
    """Its handler goes on. Where too much waits the window of the connection is kept until then."""
    go_on = trio.Event()

    async def websocket(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await go_on.wait()

    few = {"max.buffered.bytes": 1024}
    async with (
        serving(tmp_path, lambda _: application_of(websocket), few) as served,
        connected(served) as client,
    ):
        socket = await client.open_websocket(1)
        for number, size in ((3, 1), (5, 1000)):
            for _ in range(30):
                client.connection.send_data(1, socket.send(TextMessage(data="x" * size)))
            await client.flush()
            await client.answers(number)
        assert client.connection.outbound_flow_control_window < 40_000
        client.connection.reset_stream(1)
        await client.flush()
        await client.answers(7)
        assert client.connection.outbound_flow_control_window == 65_535
        go_on.set()

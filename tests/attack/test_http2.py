"""Clients that abuse HTTP/2 of an HTTP service: each costs its own stream or its own connection, one reason in a frame
and no line in the log, while others are served (RFC 9113, 10.5; CVE-2023-44487)."""

from __future__ import annotations

import itertools
import logging
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest
import trio
import trio.testing
from h2.errors import ErrorCodes

from leafcuttr_sdk.web import Application, Exchange
from leafcuttr_sdk.web.http2 import MOST_UNDER_WAY, Http2
from support.waiting import within
from support.web_service import Served, serving

Fields = list[tuple[bytes, bytes]]
COMMON: Fields = [(b":scheme", b"http"), (b":authority", b"x")]
GET: Fields = [(b":method", b"GET"), (b":path", b"/"), *COMMON]
DATA, HEADERS, PRIORITY, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 4, 6, 7, 8, 9


def frame(
    kind: int, payload: bytes = b"", flags: int = 0, stream: int = 0, length: int | None = None
) -> bytes:
    size = len(payload) if length is None else length
    return size.to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def priority(stream: int, depends_on: int) -> bytes:
    return frame(PRIORITY, struct.pack("!IB", depends_on, 15), stream=stream)


class Client:
    """It sends what h2 would not."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        config = h2.config.H2Configuration(
            header_encoding=None,
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
            validate_inbound_headers=False,
        )
        self.connection = h2.connection.H2Connection(config)
        self.events: list[h2.events.Event] = []

    async def request(self, number: int, fields: Fields = GET, *, end: bool = True) -> None:
        self.connection.send_headers(number, fields, end_stream=end)
        await self.flush()

    async def flush(self) -> None:
        await self.stream.send_all(self.connection.data_to_send())

    async def found(self, looked_for: Callable[[h2.events.Event], bool]) -> h2.events.Event:
        """The first such event; those before it are dropped."""
        with within(30, "an event"):
            while True:
                while self.events:
                    if looked_for(event := self.events.pop(0)):
                        return event
                data = await self.stream.receive_some(65536)
                assert data, "the server has closed the connection"
                self.events += self.connection.receive_data(data)
                await self.flush()

    async def is_answered(self, number: int) -> None:
        await self.request(number)
        answer = await self.found(
            lambda event: isinstance(event, h2.events.ResponseReceived) and event.stream_id == number
        )
        assert isinstance(answer, h2.events.ResponseReceived)
        assert (b":status", b"200") in answer.headers

    async def reason(self) -> int | None:
        """Why the server has closed the connection, from its last frame."""
        found = await self.found(lambda event: isinstance(event, h2.events.ConnectionTerminated))
        assert isinstance(found, h2.events.ConnectionTerminated)
        await self.end()
        return found.error_code

    async def end(self) -> None:
        with within(30, "the end of the connection"), suppress(trio.BrokenResourceError):
            while await self.stream.receive_some(65536):
                pass


class Service:
    """Its answers wait until they may go on."""

    def __init__(self) -> None:
        self.begun = 0
        self.go_on = trio.Event()
        self.go_on.set()

    async def __call__(self, exchange: Exchange) -> None:
        self.begun += 1
        await self.go_on.wait()
        await exchange.reply("hello")


@asynccontextmanager
async def connected(served: Served) -> AsyncIterator[Client]:
    async with await trio.open_tcp_stream("127.0.0.1", served.port) as stream:
        client = Client(stream)
        client.connection.initiate_connection()
        await client.flush()
        yield client


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[tuple[Service, Served]]:
    found = Service()
    async with serving(tmp_path, lambda _: Application(found)) as served:
        yield found, served


@pytest.fixture(autouse=True)
def _nothing_is_said(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert not [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


async def test_requests_that_make_no_sense_cost_their_streams(service: tuple[Service, Served]) -> None:
    odd: list[Fields] = [
        [(b":method", b"GET"), (b":path", b"/\xff"), *COMMON],
        [(b":method", b"G\xe9T"), (b":path", b"/"), *COMMON],
        [(b":method", b"CONNECT"), (b":authority", b"x:80")],
        [(b":method", b"CONNECT"), (b":protocol", b"connect-udp"), (b":path", b"/"), *COMMON],
    ]
    async with connected(service[1]) as client:
        await client.is_answered(1)
        for number, fields in enumerate(odd):
            await client.request(4 * number + 3, fields, end=False)
            reset = await client.found(lambda event: isinstance(event, h2.events.StreamReset))
            assert isinstance(reset, h2.events.StreamReset)
            assert (reset.stream_id, reset.error_code) == (4 * number + 3, ErrorCodes.PROTOCOL_ERROR)
            await client.is_answered(4 * number + 5)
        assert service[0].begun == len(odd) + 1


async def test_trees_of_priorities_are_none(service: tuple[Service, Served]) -> None:
    """A thousand and more of them, a chain of them, and a circle."""
    chain = b"".join(priority(number, max(number - 2, 0)) for number in range(101, 2501, 2))
    async with connected(service[1]) as client:
        await client.stream.send_all(chain + priority(101, 2499) + priority(1, 301))
        await client.is_answered(1)


async def test_the_rest_of_a_frame_that_is_too_long_is_not_waited_for(
    service: tuple[Service, Served],
) -> None:
    async with connected(service[1]) as client:
        await client.is_answered(1)
        await client.stream.send_all(frame(DATA, bytes(20_000), stream=1, length=0xFFFFFF))
        assert await client.reason() == ErrorCodes.FRAME_SIZE_ERROR


UPGRADE = b"Host: x\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\n"
SETTING = b"HTTP2-Settings: AAQAAP__\r\n"


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"GET / HTTP/1.1\r\n", SETTING + b"\r\n"),
        (b"GET / HTTP/1.1\r\n", SETTING * 2 + b"\r\n"),
        (b"GET / HTTP/1.1\r\n", b"HTTP2-Settings: AAAA\r\n\r\n"),  # the half of a setting
        (b"GET / HTTP/1.1\r\n", b"HTTP2-Settings: AAT_____\r\n\r\n"),  # a window that is too large
        (b"GET / HTTP/1.1\r\n", b"\r\n"),
        (b"GET / HTTP/1.0\r\n", SETTING + b"\r\n"),
        (b"POST / HTTP/1.1\r\n", SETTING + b"Content-Length: 5\r\n\r\nabcde"),
        (b"POST / HTTP/1.1\r\n", SETTING + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"),
    ],
)
async def test_nobody_gets_from_http_1_to_http_2(
    service: tuple[Service, Served], start: bytes, more: bytes
) -> None:
    """By `Upgrade: h2c`, which would be a tunnel through what stands in front (RFC 9113, 3.1 has given it up)."""
    _, served = service
    async with await trio.open_tcp_stream("127.0.0.1", served.port) as stream:
        await stream.send_all(start + UPGRADE + more)
        with within(30, "the end of the connection"):
            answer = b"".join([data async for data in stream])
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b'"hello"')


async def test_a_preface_may_come_in_any_parts(service: tuple[Service, Served]) -> None:
    _, served = service
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    for cut in range(1, len(preface)):
        async with await trio.open_tcp_stream("127.0.0.1", served.port) as stream:
            client = Client(stream)
            client.connection.initiate_connection()
            first = client.connection.data_to_send()
            assert first.startswith(preface)
            await stream.send_all(first[:cut])
            await trio.testing.wait_all_tasks_blocked()
            await stream.send_all(first[cut:])
            await client.is_answered(1)


POST: Fields = [(b":method", b"POST"), (b":path", b"/"), *COMMON]
WINDOW = 65_535


async def fill(client: Client, number: int) -> None:
    """Send as much of a body as the window of its stream takes, in many frames."""
    left = WINDOW
    while left:
        size = min(left, 1_000, client.connection.local_flow_control_window(number))
        if size:
            client.connection.send_data(number, bytes(size))
            left -= size
            await client.flush()
        else:
            await client.found(
                lambda event: isinstance(event, h2.events.WindowUpdated) and not event.stream_id
            )


async def test_bodies_that_are_not_read_hold_up_their_own_streams(service: tuple[Service, Served]) -> None:
    """Each keeps what its window lets through, and the connection serves others; when they are answered, what has not
    been read is dropped, and its stream ends with NO_ERROR (RFC 9113, 8.1)."""
    answer, served = service
    held = range(1, 21, 2)
    async with connected(served) as client:
        answer.go_on = trio.Event()
        for number in held:
            await client.request(number, POST, end=False)
            await fill(client, number)
            assert client.connection.streams[number].outbound_flow_control_window == 0
        go_on, answer.go_on = answer.go_on, trio.Event()
        answer.go_on.set()
        for number in range(21, 31, 2):
            await client.is_answered(number)
        go_on.set()
        ends: dict[int, int | None] = {}
        while len(ends) < len(held):
            event = await client.found(lambda event: isinstance(event, h2.events.StreamReset))
            assert isinstance(event, h2.events.StreamReset)
            ends[event.stream_id] = event.error_code
        assert ends == dict.fromkeys(held, ErrorCodes.NO_ERROR)
        await client.is_answered(31)
    async with connected(served) as client:
        await client.is_answered(1)


async def test_a_body_that_is_reset_unread_and_a_connection_that_ends_so(
    service: tuple[Service, Served],
) -> None:
    answer, served = service
    answer.go_on = trio.Event()
    async with connected(served) as other:
        async with connected(served) as client:
            for number in (1, 3):
                await client.request(number, POST, end=False)
                await fill(client, number)
            client.connection.reset_stream(1)
            await client.flush()
            answer.go_on.set()
            await client.is_answered(5)
            answer.go_on = trio.Event()
            await client.request(7, POST, end=False)
            await fill(client, 7)
        answer.go_on.set()
        await other.is_answered(1)


@pytest.mark.long
async def test_requests_that_are_reset_at_once(service: tuple[Service, Served]) -> None:
    """Their handlers go on, but there are only so many of them; a client that has few is served."""
    handler, served = service
    async with connected(served) as client, connected(served) as other:
        handler.go_on = trio.Event()

        async def resets(count: int, start: int) -> None:
            for number in range(start, start + 2 * count, 2):
                client.connection.send_headers(number, GET, end_stream=True)
                client.connection.reset_stream(number)
            await client.flush()

        await resets(MOST_UNDER_WAY - 1, 1)
        while handler.begun < MOST_UNDER_WAY - 1:
            await trio.testing.wait_all_tasks_blocked()
        handler.go_on.set()
        await client.is_answered(2 * MOST_UNDER_WAY - 1)
        handler.go_on = trio.Event()
        await resets(2 * MOST_UNDER_WAY, 2 * MOST_UNDER_WAY + 1)
        assert await client.reason() == ErrorCodes.ENHANCE_YOUR_CALM
        assert handler.begun <= 2 * MOST_UNDER_WAY
        handler.go_on.set()
        await other.is_answered(1)


@pytest.mark.long
async def test_a_connection_that_its_client_ends_behind_a_request(service: tuple[Service, Served]) -> None:
    """The window that its body has used up cannot be given back any more."""
    async with connected(service[1]) as client:
        client.connection.send_headers(1, [(b":method", b"POST"), *GET[1:]])
        for _ in range(3):
            client.connection.send_data(1, bytes(16_000))
        client.connection.close_connection()
        await client.flush()
        await client.end()


@pytest.mark.long
async def test_others_have_their_turn_between_many_small_frames(
    service: tuple[Service, Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = 0
    at: list[int] = []
    handle = Http2.handle

    async def noted(self: Http2, event: object) -> None:
        assert len(getattr(event, "data", b"")) <= 4096
        at.append(turns)
        await handle(self, event)  # type: ignore[arg-type]

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with connected(service[1]) as client, trio.open_nursery() as nursery:
        await client.is_answered(1)
        monkeypatch.setattr(Http2, "handle", noted)
        nursery.start_soon(other)
        await client.stream.send_all(frame(PING, bytes(8)) * 3000)
        await client.is_answered(3)
        nursery.cancel_scope.cancel()
    assert len(at) > 10 and all(before < after for before, after in itertools.pairwise(at))


FLOODS = {
    "a bomb of HPACK": (frame(HEADERS, b"\x40\x01x\x7f\xa1\x1e" + b"a" * 4000 + b"\xbe" * 10_000, 5, 1),),
    "continuations": (frame(HEADERS, b"\x82", 0, 1), frame(CONTINUATION, b"\0\1a\1b" * 500, 0, 1) * 100),
    "settings out of range": (frame(SETTINGS, struct.pack("!HI", 4, 1 << 31)),),
    "a window that overflows": (frame(WINDOW_UPDATE, b"\x7f\xff\xff\xff") * 2,),
    "data of no stream": (frame(DATA, b"x", 0, 1),),
    "Transfer-Encoding": (frame(HEADERS, b"\x82\x84\x86\x41\1x\0\x11transfer-encoding\7chunked", 5, 1),),
    "two hosts": (frame(HEADERS, b"\x82\x84\x86\x41\1x\x41\1y", 5, 1),),
    "padding that is all": (frame(HEADERS, b"\xff\x82\x84\x86", 13, 1),),
    "a stream of the server": (frame(HEADERS, b"\x82\x84\x86\x41\1x", 5, 2),),
}


@pytest.mark.long
@pytest.mark.parametrize("data", FLOODS.values(), ids=FLOODS)
async def test_floods_end_their_own_connection(
    service: tuple[Service, Served], data: tuple[bytes, ...]
) -> None:
    async with connected(service[1]) as other, connected(service[1]) as client:
        await other.is_answered(1)
        with suppress(trio.BrokenResourceError):
            for each in data:
                await client.stream.send_all(each)
        assert await client.reason() != ErrorCodes.NO_ERROR
        await other.is_answered(3)
    assert service[0].begun == 2


@pytest.mark.long
@pytest.mark.parametrize(
    "data",
    [
        frame(PING, bytes(8)),
        frame(SETTINGS, struct.pack("!HI", 4, 1000)),
        frame(WINDOW_UPDATE, b"\0\0\0\1"),
        frame(0xF0),
        priority(1, 3),
    ],
    ids=["ping", "settings", "window", "unknown", "priority"],
)
async def test_a_client_that_sends_small_frames_and_reads_nothing(
    service: tuple[Service, Served], data: bytes
) -> None:
    async with (
        connected(service[1]) as other,
        connected(service[1]) as client,
        trio.open_nursery() as nursery,
    ):
        await other.is_answered(1)

        async def send() -> None:
            with suppress(trio.BrokenResourceError):
                while True:
                    await client.stream.send_all(data * 2000)

        nursery.start_soon(send)
        for number in range(3, 43, 2):
            await other.is_answered(number)
        nursery.cancel_scope.cancel()

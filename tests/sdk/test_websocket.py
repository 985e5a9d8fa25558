"""WebSockets given to the handler of a byte stream, with trio-websocket's own client at the other end."""

from __future__ import annotations

import logging
import sys

import pytest
import trio
import trio.testing
from trio_websocket import (
    ConnectionClosed,
    ConnectionRejected,
    WebSocketConnection,
    open_websocket,
)

from leafcuttr_sdk import ByteStream, Peer, PluginError
from leafcuttr_sdk.serving import Handler
from leafcuttr_sdk.websocket import _Carrier, serve, websocket_handler
from plugins.serving.conftest import PREFIX, Served, Start, becomes, echo, reset, start

__all__ = ["start"]  # the fixture
PONG = b"\x8a\x80\0\0\0\0"


def open_at(served: Served, path: str = "/", *subprotocols: str):  # type: ignore[no-untyped-def]
    host, port = served.address
    return open_websocket(host, port, path, use_ssl=False, subprotocols=subprotocols)


async def received(client: WebSocketConnection, count: int) -> bytes:
    got = b""
    while len(got) < count:
        got += await client.get_message()
    return got


async def test_messages_are_one_stream(start: Start) -> None:
    seen: list[object] = []

    async def handler(stream: ByteStream) -> None:
        assert isinstance(stream, trio.abc.HalfCloseableStream)
        seen.extend([stream.peer, stream.listener, stream.peer_certificate, stream.peer_certificate_der])
        await echo(stream)
        seen.append("at its end")

    served = start(websocket_handler(handler))
    async with open_at(served) as client:
        await client.send_message(b"one")
        assert await received(client, 3) == b"one"
        data = bytes(range(256)) * 2000
        await client.send_message(data)
        assert await received(client, len(data)) == data
    await becomes(lambda: not served.server.connections, "its end")
    assert isinstance(seen[0], Peer) and seen[0].host == "127.0.0.1"
    assert seen[1:] == [PREFIX, None, None, "at its end"]
    assert served.ends == {}


async def test_a_part_of_a_message(start: Start) -> None:
    got: list[bytes] = []

    async def handler(stream: ByteStream) -> None:
        while data := await stream.receive_some(2):
            got.append(data)

    served = start(websocket_handler(handler))
    async with open_at(served) as client:
        await client.send_message(b"abcde")
        await client.send_message(b"")
        await client.send_message(b"f")
    await becomes(lambda: not served.server.connections, "its end")
    assert got == [b"ab", b"cd", b"e", b"f"]


@pytest.mark.parametrize("most", [None, 1000])
async def test_others_have_their_turn_between_many_small_frames(
    start: Start, monkeypatch: pytest.MonkeyPatch, most: int | None
) -> None:
    """A client can put ten thousand of them into what is read at once."""
    turns = 0
    at: list[int] = []
    receive = _Carrier.receive_some

    async def noted(self: _Carrier, max_bytes: int | None = None) -> bytes | bytearray:
        data = await receive(self, max_bytes)
        at.append(turns)
        assert data.count(PONG) <= 700
        return data

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    monkeypatch.setattr(_Carrier, "receive_some", noted)
    served = start(websocket_handler(echo, max_message_bytes=most))
    async with open_at(served) as client, trio.open_nursery() as nursery:
        nursery.start_soon(other)
        empty = b"\2\x80\0\0\0\0" + b"\0\x80\0\0\0\0" * 3000 + b"\x80\x80\0\0\0\0"
        await client._stream.send_all(PONG * 3000 + empty)
        await client.send_message(b"at last")
        assert await received(client, 7) == b"at last"
        nursery.cancel_scope.cancel()
    assert len(at) > 5 and len(set(at)) == len(at)


async def test_the_end_of_a_handler_closes_it_properly(start: Start) -> None:
    async def handler(stream: ByteStream) -> None:
        await stream.send_all(b"bye")

    served = start(websocket_handler(handler))
    async with open_at(served) as client:
        assert await client.get_message() == b"bye"
        with pytest.raises(ConnectionClosed) as closed:
            await client.get_message()
        assert closed.value.reason is not None and closed.value.reason.code == 1000
    await becomes(lambda: not served.server.connections, "its end")
    assert served.ends == {}


async def test_subprotocols_and_paths(start: Start) -> None:
    served = start(websocket_handler(echo, subprotocols=("mqtt", "mqttv3.1"), path="/mqtt"))
    async with open_at(served, "/mqtt?x=1", "other", "mqttv3.1", "mqtt") as client:
        assert client.subprotocol == "mqtt"
        await client.send_message(b"x")
        assert await client.get_message() == b"x"
    for path, offered, status in (("/mqtt", (), 400), ("/mqtt", ("other",), 400), ("/", ("mqtt",), 404)):
        with pytest.raises(ConnectionRejected) as rejected:
            async with open_at(served, path, *offered):
                pass
        assert rejected.value.status_code == status
    await becomes(lambda: served.ends == {"reset": 3}, "three without a handshake")


class Asked:
    """What `serve` asks the broker for."""

    def __init__(self, **settings: tuple[str, ...]) -> None:
        self.logger = logging.getLogger("test.websocket")
        self._lists = settings
        self.settings = self
        self.handler: Handler = echo

    def int(self, name: str) -> int:
        assert name == "x.handshake.timeout.ms"
        return 10_000

    def list(self, name: str) -> tuple[str, ...]:
        return self._lists[name]

    async def serve(self, prefix: str, handler: Handler, **options: object) -> None:
        self.handler = handler


async def dial(served: Served, *origins: str) -> tuple[int, str]:
    """Connect as the page of these origins does: the status and the body of what refuses it."""
    try:
        headers = [(b"Origin", each.encode("latin-1")) for each in origins]
        host, port = served.address
        async with open_websocket(host, port, "/", use_ssl=False, extra_headers=headers) as client:
            await client.send_message(b"x")
            assert await client.get_message() == b"x"
    except ConnectionRejected as rejected:
        return rejected.status_code, (rejected.body or b"").decode()
    return 101, ""


async def test_pages_of_other_sites(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    asked = Asked(**{"x.allowed.origins": ("https://fine.test",)})
    await serve(asked, "x", echo)  # type: ignore[arg-type]
    served = start(asked.handler)
    port = served.address[1]
    assert await dial(served) == (101, "")
    for origin in (
        "https://fine.test",
        f"http://127.0.0.1:{port}",
        "http://127.0.0.1:3000",
        "https://127.0.0.1",
    ):
        assert await dial(served, origin) == (101, "")
    assert not caplog.records
    for origins in (
        ("https://evil.test",),
        ("https://fine.test", "https://evil.test"),
        ("https://evil.test",) * 2,
    ):
        status, said = await dial(served, *origins)
        assert status == 403
        assert said == (
            "pages of 'https://evil.test' may not connect here; allowed are those of '127.0.0.1' at any port, "
            "https://fine.test; x.allowed.origins names others\n"
        )
    assert [record.message for record in caplog.records] == [
        f"{PREFIX} refused a client at 127.0.0.1: {said.strip()}"
    ]
    assert (await dial(served, "\x9b" + "e" * 9000))[0] == 403
    await becomes(lambda: served.ends == {"reset": 4}, "four without a handshake")
    assert len(caplog.records) == 1


async def test_pages_where_a_plugin_has_no_setting_for_them(start: Start) -> None:
    asked = Asked()
    await serve(asked, "x", echo)  # type: ignore[arg-type]
    served = start(asked.handler)
    assert await dial(served, "http://127.0.0.1:3000") == (101, "")
    status, said = await dial(served, "null")
    assert (status, said.endswith("at any port\n")) == (403, True)
    await serve(asked, "x", echo, origins=("null",))  # type: ignore[arg-type]
    served = start(asked.handler)
    assert await dial(served, "null") == (101, "")


HANDSHAKE = (
    b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nHost: "
)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x00\xff" * 100,
        b"POST / HTTP/1.1\r\n\r\n",
        b"\n\n\n",
        HANDSHAKE + b"\xff\xfe\r\n\r\n",
        HANDSHAKE + b"xn--a" + b"\xc3" * 10 + b"\r\n\r\n",
    ],
)
async def test_what_is_no_websocket_ends_one_connection(start: Start, sent: bytes) -> None:
    called: list[ByteStream] = []

    async def handler(stream: ByteStream) -> None:
        called.append(stream)

    served = start(websocket_handler(handler))
    async with await served.connect() as client:
        await client.send_all(sent)
        await client.send_eof()
        try:
            while await client.receive_some():
                pass
        except trio.BrokenResourceError:
            pass
    await becomes(lambda: not served.server.connections, "its end")
    assert served.ends == {"reset": 1} and not called


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\n" * 100, bytes(300)])
async def test_one_that_resets_its_connection_before_it_is_answered(start: Start, sent: bytes) -> None:
    """The answer says what is wrong, and cannot be sent: nobody is at fault but the client."""
    served = start(websocket_handler(echo))
    for _ in range(5):
        client = await served.connect()
        await client.send_all(sent)
        await reset(client)
    await becomes(lambda: served.server.connections == 0 and sum(served.ends.values()) == 5, "their ends")
    assert served.ends == {"reset": 5}


@pytest.mark.parametrize("accept", [True, False])
async def test_the_answer_to_a_handshake_cannot_be_sent(accept: bool) -> None:
    stream, client = trio.testing.memory_stream_pair()
    head = (
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {}\r\n"
    )
    await client.send_all(
        f"GET / HTTP/1.1\r\nHost: x\r\n{head}\r\n".format("AAAAAAAAAAAAAAAAAAAAAA==").encode()
    )
    client.receive_stream.close()  # type: ignore[attr-defined]
    handle = websocket_handler(echo, path="/" if accept else "/elsewhere")
    with trio.fail_after(60), pytest.raises(BaseExceptionGroup) as raised:
        await handle(stream)  # type: ignore[arg-type]
    assert raised.group_contains(trio.BrokenResourceError) and not raised.group_contains(ConnectionClosed)


async def test_a_ping_that_cannot_be_answered(start: Start) -> None:
    """While its handler waits for something else: it is told at its next step."""
    told: list[BaseException] = []
    go = trio.Event()

    async def handler(stream: ByteStream) -> None:
        await stream.receive_some()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stream.receive_some)
                await go.wait()
        except* trio.BrokenResourceError as errors:
            told.extend(errors.exceptions)

    served = start(websocket_handler(handler))
    async with trio.open_nursery() as nursery:
        connection = await served.connect()
        from trio_websocket import wrap_client_stream

        client = await wrap_client_stream(nursery, connection, "localhost", "/")
        await client.send_message(b"x")
        for number in range(50):
            nursery.start_soon(client.ping, b"%d" % number)
        await trio.testing.wait_all_tasks_blocked()
        await reset(connection)
        nursery.cancel_scope.cancel()
    await becomes(lambda: not served.server.connections, "its end")
    assert told and "failed" not in served.ends


async def test_a_handshake_has_its_time(start: Start, autojump_clock: trio.testing.MockClock) -> None:
    served = start(websocket_handler(echo, handshake_s=5))
    async with await served.connect() as client:
        await client.send_all(b"GET / HTTP/1.1\r\n")
        assert await client.receive_some() == b""
    assert served.ends == {"reset": 1}


async def test_a_text_message_ends_it(start: Start) -> None:
    served = start(websocket_handler(echo))
    async with open_at(served) as client:
        await client.send_message("text")
        with pytest.raises(ConnectionClosed) as closed:
            await client.get_message()
        assert closed.value.reason is not None and closed.value.reason.code == 1003
    await becomes(lambda: served.ends == {"reset": 1}, "its end")


async def test_a_message_that_is_too_long_ends_it(start: Start) -> None:
    served = start(websocket_handler(echo, max_message_bytes=1000))
    async with open_at(served) as client:
        await client.send_message(bytes(1001))
        with pytest.raises(ConnectionClosed) as closed:
            await client.get_message()
        assert closed.value.reason is not None and closed.value.reason.code == 1009
    await becomes(lambda: not served.server.connections, "its end")


async def test_a_reset(start: Start) -> None:
    served = start(websocket_handler(echo))
    async with trio.open_nursery() as nursery:
        connection = await served.connect()
        from trio_websocket import wrap_client_stream

        client = await wrap_client_stream(nursery, connection, "localhost", "/")
        await client.send_message(b"x")
        assert await client.get_message() == b"x"
        await reset(connection)
        nursery.cancel_scope.cancel()
    await becomes(lambda: served.ends == {"reset": 1}, "its end")


async def test_what_its_handler_raises(start: Start) -> None:
    async def handler(stream: ByteStream) -> None:
        await stream.receive_some()
        raise ValueError("no")

    served = start(websocket_handler(handler))
    async with open_at(served) as client:
        await client.send_message(b"x")
        with pytest.raises(ConnectionClosed):
            await client.get_message()
    await becomes(lambda: served.ends == {"failed": 1}, "its end")
    assert served.server.failures[0].startswith("ValueError: no (")


async def test_a_stop_waits_for_what_the_handler_has_begun(start: Start) -> None:
    """Although the WebSocket could receive at any time."""
    going, go_on = trio.Event(), trio.Event()

    async def handler(stream: ByteStream) -> None:
        async for _ in stream:
            going.set()
            await go_on.wait()
            await stream.send_all(b"stored")

    served = start(websocket_handler(handler))
    async with open_at(served) as client, open_at(served) as idle:
        await client.send_message(b"1")
        await going.wait()
        served.scope.cancel()
        with pytest.raises(ConnectionClosed):
            await idle.get_message()
        assert not served.ended.is_set()
        go_on.set()
        assert await client.get_message() == b"stored"
        with pytest.raises(ConnectionClosed):
            await client.get_message()
    await served.ended.wait()
    assert served.ends == {}


async def test_a_stop_waits_for_a_handler_that_has_not_received_yet(start: Start) -> None:
    going, go_on = trio.Event(), trio.Event()

    async def handler(stream: ByteStream) -> None:
        going.set()
        await go_on.wait()
        await stream.send_all(b"hello")

    served = start(websocket_handler(handler))
    async with open_at(served) as client:
        await going.wait()
        await trio.testing.wait_all_tasks_blocked()
        served.scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        go_on.set()
        assert await client.get_message() == b"hello"
    await served.ended.wait()


async def test_what_a_handler_does_not_take_waits_in_the_kernel(start: Start) -> None:
    async def handler(stream: ByteStream) -> None:
        await trio.sleep_forever()

    served = start(websocket_handler(handler))
    sent = 0
    with trio.CancelScope() as scope:
        async with open_at(served) as client, trio.open_nursery() as nursery:

            async def send() -> None:
                nonlocal sent
                for _ in range(1000):
                    await client.send_message(bytes(64 * 1024))
                    sent += 1

            nursery.start_soon(send)
            await trio.testing.wait_all_tasks_blocked(0.2)
            scope.cancel()
    assert 0 < sent < 1000


def test_without_its_package_a_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trio_websocket", None)
    with pytest.raises(PluginError, match=r"pip install 'trio-websocket>=0\.11'"):
        websocket_handler(echo)

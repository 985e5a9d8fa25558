"""A served listener: what clients and handlers do wrong ends one connection, and a stop lets handlers finish."""

from __future__ import annotations

import inspect
import logging
import socket
import ssl
from pathlib import Path

import pytest
import trio
import trustme
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr.plugins.serving.server import Server
from leafcuttr.runtime.plugin_parts import Part, owner, part_in
from leafcuttr.state.plugged import Plugged
from leafcuttr_sdk import ByteStream
from plugins.serving.conftest import LIMITS, PREFIX, Start, becomes, echo, reset
from support.waiting import within


async def answered(client: trio.abc.Stream, data: bytes = b"hello") -> None:
    await client.send_all(data)
    got = b""
    while len(got) < len(data):
        more = await client.receive_some()
        assert more
        got += more
    assert got == data


async def ended(client: trio.abc.ReceiveStream) -> bool:
    """Whether the server has ended it."""
    try:
        with within(60, "the end of the connection"):
            return await client.receive_some() == b""
    except trio.BrokenResourceError:
        return True


def lines(caplog: pytest.LogCaptureFixture, text: str = "listener ") -> list[str]:
    return [record.getMessage() for record in caplog.records if text in record.getMessage()]


async def test_handlers_get_a_stream_and_who_it_is(start: Start) -> None:
    seen: list[object] = []

    async def handler(stream: ByteStream) -> None:
        assert isinstance(stream, trio.abc.HalfCloseableStream)
        seen.extend([stream.peer, stream.listener, stream.peer_certificate, stream.peer_certificate_der])
        assert stream.tls is None and stream.busy is False
        await echo(stream)

    served = start(handler)
    async with await served.connect() as client:
        await answered(client)
        assert served.server.connections == served.plugged.connections == 1
        address = client.socket.getsockname()
        await client.send_eof()
        assert await client.receive_some() == b""
    assert seen == [address, PREFIX, None, None]
    assert str(seen[0]) == f"127.0.0.1:{address[1]}"
    await becomes(lambda: not served.server.connections, "the end of the handler")
    assert served.plugged.connections == 0
    assert served.ends == {}


async def test_a_reset_ends_one_connection(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    served = start(echo)
    async with await served.connect() as other:
        for _ in range(5):
            client = await served.connect()
            await answered(client)
            await reset(client)
        await becomes(lambda: served.ends == {"reset": 5}, "five resets")
        await answered(other)
    assert len(lines(caplog)) == 1
    assert lines(caplog)[0].startswith(f"listener {PREFIX} of plugin greeter: a connection broke (127.0.0.1:")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no greeting\nand more"), "ValueError: no greeting ("),
        (SystemExit(3), "SystemExit: 3 ("),
        (BaseExceptionGroup("both", [KeyError("x"), SystemExit()]), "KeyError: 'x'"),
        (StopIteration("over"), "StopIteration"),
        (RuntimeError("x" * 1_000_000), "RuntimeError: xxx"),
        (OSError("the disk"), "OSError: the disk"),
    ],
)
async def test_what_a_handler_raises_ends_one_connection(
    start: Start, caplog: pytest.LogCaptureFixture, error: BaseException, said: str
) -> None:
    async def handler(stream: ByteStream) -> None:
        if await stream.receive_some() == b"fail":
            raise error
        await stream.send_all(b"well")

    served = start(handler)
    for _ in range(3):
        client = await served.connect()
        await client.send_all(b"fail")
        assert await ended(client)
    async with await served.connect() as client:
        await client.send_all(b"well")
        assert await client.receive_some() == b"well"
    assert served.ends == {"failed": 3}
    (line,) = lines(caplog, "plugin greeter")
    assert line.startswith(f"plugin greeter: handler of {PREFIX} failed: ") and len(line) < 1500
    assert said in line or "coroutine raised StopIteration" in line
    assert "\n" not in line
    assert len(served.server.failures) == 3


def test_ctrl_c_goes_on_to_the_program() -> None:
    """In `leafcuttr serve`, which takes SIGINT in another way, it is a failure: test_serve.py."""

    async def handler(stream: ByteStream) -> None:
        raise KeyboardInterrupt

    async def program() -> None:
        sock = socket.create_server(("127.0.0.1", 0))
        sock.setblocking(False)
        server = Server(Plugged(), "greeter", PREFIX, handler, LIMITS, lambda: 10, None)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.run, [sock], sock.close)
            await trio.open_tcp_stream(*sock.getsockname())

    with pytest.raises(BaseExceptionGroup) as caught:
        trio.run(program)
    assert caught.group_contains(KeyboardInterrupt)


async def test_a_cancellation_that_was_kept_is_a_failure(start: Start) -> None:
    """There is no scope that would catch it."""
    kept: list[BaseException] = []

    async def handler(stream: ByteStream) -> None:
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.sleep(0)
            except trio.Cancelled as error:
                kept.append(error)
                raise
        raise kept[0]

    served = start(handler)
    assert await ended(await served.connect())
    await becomes(lambda: served.ends == {"failed": 1}, "a failure")


async def test_a_handler_that_is_no_coroutine_fails(start: Start) -> None:
    served = start(lambda stream: None)  # type: ignore[arg-type, return-value]
    assert await ended(await served.connect())
    await becomes(lambda: served.ends == {"failed": 1}, "a failure")


async def is_broken(stream: ByteStream) -> None:
    raise trio.BrokenResourceError


async def test_a_handler_is_called_as_every_part_of_a_plugin(start: Start) -> None:
    """So the watchdog names it while it holds the loop, and the tasks that it starts."""
    found: list[object] = []

    async def task() -> None:
        found.append(owner.get())

    async def handler(stream: ByteStream) -> None:
        frames, frame = [], inspect.currentframe()
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        found.append(part_in(frames))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(task)

    served = start(handler)
    assert await ended(await served.connect())
    assert found == [Part("greeter", f"handler of {PREFIX}")] * 2


async def test_connections_are_counted_by_how_they_end(start: Start) -> None:
    async def handler(stream: ByteStream) -> None:
        if await stream.receive_some() == b"fail":
            raise ValueError
        await echo(stream)

    served = start(handler, most=1)
    for sent in (b"fail", b"x"):
        client = await served.connect()
        await client.send_all(sent)
        await client.send_eof()
        assert await ended(client)
        await becomes(lambda: not served.server.connections, "its end")
    client = await served.connect()
    await becomes(lambda: served.server.connections == 1, "a connection")
    assert await ended(await served.connect())
    counts = served.plugged.counts[PREFIX]
    assert (counts.plugin, counts.accepted, counts.open, counts.ends["refused"]) == ("greeter", 3, 1, 1)
    assert dict(counts.ended()) == {"closed": 1, "failed": 1}
    await reset(client)
    await becomes(lambda: dict(counts.ended()) == {"closed": 1, "failed": 1, "reset": 1}, "a reset")
    assert counts.open == 0
    assert served.plugged.counts_of("greeter", PREFIX) is counts, "those of the next start go on from here"


async def test_one_line_a_minute_has_the_number(
    start: Start, caplog: pytest.LogCaptureFixture, mock_clock: MockClock
) -> None:
    caplog.set_level(logging.INFO)
    served = start(is_broken)
    for number in range(4):
        await ended(await served.connect())
        await becomes(lambda number=number: served.ends == {"reset": number + 1}, "a reset")
    assert len(lines(caplog)) == 1
    for _ in range(7):
        await wait_all_tasks_blocked(0.01)
        mock_clock.jump(10)
    await becomes(lambda: len(lines(caplog)) == 2, "the second line")
    assert ", and 2 more in " in lines(caplog)[1]


async def test_what_was_counted_is_said_at_the_end(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    served = start(is_broken)
    for _ in range(3):
        await ended(await served.connect())
    await served.stop()
    assert len(lines(caplog)) == 2


async def test_above_the_budget_connections_are_refused(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    served = start(echo, most=3)
    clients = [await served.connect() for _ in range(3)]
    for client in clients:
        await answered(client)
    for _ in range(4):
        assert await ended(await served.connect())
    assert served.ends == {"refused": 4}
    (line,) = lines(caplog)
    assert f"a connection was refused: 3 are open ({PREFIX}.max.connections)" in line
    await clients.pop().aclose()
    await becomes(lambda: served.server.connections == 2, "a place")
    async with await served.connect() as client:
        await answered(client)
    for client in clients:
        await client.aclose()


async def test_above_the_budget_a_client_gets_the_refusal(start: Start) -> None:
    served = start(echo, most=1, refusal=b"too many")
    async with await served.connect() as one:
        await answered(one)
        async with await served.connect() as two:
            assert await two.receive_some() == b"too many"
            assert await ended(two)
        assert served.ends == {"refused": 1}


async def test_no_plain_refusal_is_sent_to_a_client_that_speaks_tls(
    start: Start, context: ssl.SSLContext
) -> None:
    served = start(echo, most=0, refusal=b"too many", context=context)
    assert await ended(await served.connect())


async def test_a_busy_connection_is_not_idle(start: Start, mock_clock: MockClock) -> None:
    """Its handler receives while it answers."""
    streams: list[ByteStream] = []

    async def handler(stream: ByteStream) -> None:
        streams.append(stream)
        stream.busy = True
        await echo(stream)

    served = start(handler, limits=LIMITS._replace(idle_s=40.0))
    client = await served.connect()
    await answered(client)
    assert streams[0].busy
    for _ in range(6):
        await wait_all_tasks_blocked(0.01)
        mock_clock.jump(10)
    await wait_all_tasks_blocked(0.01)
    assert served.ends == {}
    streams[0].busy = False
    assert not streams[0].busy
    for _ in range(3):
        await wait_all_tasks_blocked(0.01)
        mock_clock.jump(10)
        await answered(client)  # no byte counts: the handler has said what it is at
    assert served.ends == {}, "the time is counted from the end of the request"
    for _ in range(2):
        await wait_all_tasks_blocked(0.01)
        mock_clock.jump(10)
    assert await ended(client)
    await becomes(lambda: served.ends == {"idle": 1}, "its end")


async def test_idle_connections_are_ended(
    start: Start, caplog: pytest.LogCaptureFixture, mock_clock: MockClock
) -> None:
    caplog.set_level(logging.INFO)
    busy = trio.Event()

    async def handler(stream: ByteStream) -> None:
        if await stream.receive_some() == b"wait":
            await busy.wait()
            await stream.send_all(b"waited")
        else:
            await echo(stream)

    served = start(handler, limits=LIMITS._replace(idle_s=40.0))
    silent, lively, working = [await served.connect() for _ in range(3)]
    await working.send_all(b"wait")
    await silent.send_all(b"x")
    await lively.send_all(b"y")
    await becomes(lambda: served.server.connections == 3, "connections")
    for _ in range(5):
        await wait_all_tasks_blocked(0.01)
        await lively.send_all(b"y")
        await wait_all_tasks_blocked(0.01)
        mock_clock.jump(10)
    assert await ended(silent)
    await becomes(lambda: served.ends == {"idle": 1}, "an idle one")
    assert served.server.connections == 2
    assert "a connection was idle for too long" in lines(caplog)[0]
    busy.set()
    assert await working.receive_some() == b"waited"
    await working.aclose()
    await lively.aclose()


async def test_a_client_that_takes_nothing_is_ended(start: Start, mock_clock: MockClock) -> None:
    broken: list[str] = []

    async def handler(stream: ByteStream) -> None:
        try:
            await stream.send_all(bytes(64 * 1024 * 1024))
        except trio.BrokenResourceError as error:
            broken.append(str(error))
            raise

    served = start(handler)
    client = await served.connect()
    await becomes(lambda: served.server.connections == 1, "a connection")
    await wait_all_tasks_blocked(0.05)
    assert not broken
    for _ in range(3):  # the client's system may take some for it in the first
        mock_clock.jump(31)
        await wait_all_tasks_blocked(0.05)
    assert served.ends == {"slow": 1}
    assert broken == ["the client has taken nothing for 30 s"]
    await client.aclose()


async def test_a_client_that_takes_it_slowly_is_not_ended(start: Start, mock_clock: MockClock) -> None:
    size = 32 * 1024 * 1024

    async def handler(stream: ByteStream) -> None:
        await stream.send_all(bytes(size))

    served = start(handler)
    async with await served.connect() as client:
        got = 0
        for _ in range(10):
            await wait_all_tasks_blocked(0.01)
            mock_clock.jump(20)
            enough = got + 512 * 1024
            while got < enough:
                more = len(await client.receive_some(64 * 1024))
                assert more
                got += more
        while got < size:
            got += len(await client.receive_some(1024 * 1024))
        assert await client.receive_some() == b""
    assert served.ends == {}


async def test_what_is_sent_last_arrives_although_the_client_sends_on(start: Start) -> None:
    """A close with bytes that nobody has read is a reset, which takes back what was sent."""

    async def handler(stream: ByteStream) -> None:
        await stream.receive_some(1)
        await stream.send_all(b"that is enough")

    served = start(handler)
    client = await served.connect()
    await client.send_all(b"x" * 1000)
    assert await client.receive_some() == b"that is enough"
    assert await client.receive_some() == b""
    await client.aclose()


# The stop


async def test_a_stop_lets_handlers_finish_what_they_have_begun(start: Start) -> None:
    going, go_on = trio.Event(), trio.Event()
    done: list[str] = []

    async def handler(stream: ByteStream) -> None:
        try:
            async for _ in stream:
                going.set()
                await go_on.wait()
                done.append("stored")
                await stream.send_all(b"stored")
            done.append("at its end")
        finally:
            done.append("ended")

    served = start(handler)
    client, idle = await served.connect(), await served.connect()
    await client.send_all(b"1")
    await going.wait()
    await becomes(lambda: served.server.connections == 2, "both")
    served.scope.cancel()
    assert await ended(idle)
    assert done == ["ended"]
    with pytest.raises(OSError):
        await served.connect()
    assert not served.ended.is_set()
    go_on.set()
    assert await client.receive_some() == b"stored"
    assert await ended(client)
    await served.ended.wait()
    assert done == ["ended", "stored", "ended"]
    assert served.ends == {}


async def test_a_stop_as_it_starts(start: Start) -> None:
    for turns in range(4):
        served = start(echo)
        for _ in range(turns):
            await trio.lowlevel.checkpoint()
        served.scope.cancel()
        with within(60, "the stop"):
            await served.ended.wait()


async def test_a_stop_waits_for_a_busy_connection_until_it_is_not(start: Start) -> None:
    streams: list[ByteStream] = []

    async def handler(stream: ByteStream) -> None:
        streams.append(stream)
        stream.busy = True
        await echo(stream)

    served = start(handler)
    client = await served.connect()
    await answered(client)
    served.scope.cancel()
    await wait_all_tasks_blocked(0.01)
    await answered(client)
    assert not served.ended.is_set()
    await wait_all_tasks_blocked(0.01)  # it waits for the client again
    streams[0].busy = False
    assert await ended(client)
    await served.ended.wait()
    assert served.ends == {}


async def test_a_stop_waits_for_no_handler_for_long(start: Start, mock_clock: MockClock) -> None:
    said: list[str] = []

    async def handler(stream: ByteStream) -> None:
        await stream.receive_some()
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await stream.send_all(b"bye")
                said.append("bye")
                with pytest.raises(trio.BrokenResourceError):
                    await stream.send_all(bytes(64 * 1024 * 1024))
                said.append("cut")

    served = start(handler)
    client = await served.connect()
    await client.send_all(b"1")
    await becomes(lambda: served.server.connections == 1, "a connection")
    await wait_all_tasks_blocked(0.01)
    served.scope.cancel()
    await wait_all_tasks_blocked(0.01)
    assert said == []
    mock_clock.jump(2.01)
    await becomes(lambda: said == ["bye"], "its last words")
    await wait_all_tasks_blocked(0.01)
    mock_clock.jump(1.01)
    await served.ended.wait()
    assert said == ["bye", "cut"]
    assert served.ends == {"cut": 1}
    await client.aclose()


async def test_a_handlers_own_nursery_ends_with_the_stop(start: Start) -> None:
    """Its cancellations come as a group."""

    async def handler(stream: ByteStream) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            nursery.start_soon(echo, stream)

    served = start(handler)
    client = await served.connect()
    await answered(client)
    await served.stop()
    assert served.ends == {}
    await client.aclose()


async def test_a_failure_beside_a_cancellation_is_told(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails_late() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("late")

    async def handler(stream: ByteStream) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fails_late)
            nursery.start_soon(echo, stream)

    served = start(handler)
    client = await served.connect()
    await answered(client)
    await served.stop()
    assert served.ends == {"failed": 1}
    (line,) = lines(caplog, "plugin greeter")
    assert line.startswith(f"plugin greeter: handler of {PREFIX} failed: ValueError: late (")
    (failed,) = served.server.failures
    assert failed.startswith("ValueError: late (")
    await client.aclose()


# Unix sockets


async def test_a_unix_socket(start: Start, tmp_path: Path) -> None:
    peers: list[str] = []

    async def handler(stream: ByteStream) -> None:
        peers.append(str(stream.peer))
        await echo(stream)

    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(tmp_path / "s"))
    sock.listen()
    served = start(handler, sock=sock, context=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    async with await trio.open_unix_socket(tmp_path / "s") as client:
        await answered(client)
    assert peers == [f"unix:{tmp_path / 's'}"]
    await served.stop()


# TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def context(authority: trustme.CA) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(made)
    authority.configure_trust(made)
    return made


@pytest.fixture
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    made = ssl.create_default_context()
    authority.configure_trust(made)
    return made


def over_tls(client: trio.SocketStream, context: ssl.SSLContext) -> trio.SSLStream[trio.SocketStream]:
    return trio.SSLStream(client, context, server_hostname="localhost")


async def test_tls_with_the_certificate_of_a_client(
    start: Start, authority: trustme.CA, context: ssl.SSLContext, trusting: ssl.SSLContext
) -> None:
    context.verify_mode = ssl.CERT_REQUIRED
    seen: list[object] = []

    async def handler(stream: ByteStream) -> None:
        assert stream.peer_certificate is not None and stream.peer_certificate_der is not None
        assert stream.tls is not None and str(stream.tls.version()).startswith("TLS")
        stream.busy = True
        assert stream.busy
        stream.busy = False
        seen.append(stream.peer_certificate["subjectAltName"])
        assert ssl.DER_cert_to_PEM_cert(stream.peer_certificate_der).startswith("-----BEGIN")
        with pytest.raises(NotImplementedError):
            await stream.send_eof()
        await echo(stream)

    served = start(handler, context=context)
    without = over_tls(await served.connect(), trusting)
    with pytest.raises(trio.BrokenResourceError):
        await without.receive_some()
    await becomes(lambda: served.ends == {"tls": 1}, "a refusal")
    authority.issue_cert("me@example.org").configure_cert(trusting)
    client = over_tls(await served.connect(), trusting)
    await answered(client, b"x" * 1_000_000)
    await client.aclose()
    assert seen == [(("email", "me@example.org"),)]
    await becomes(lambda: not served.server.connections, "its end")
    assert served.ends == {"tls": 1}


async def test_the_end_of_a_handler_over_tls_is_told_to_the_client(
    start: Start, context: ssl.SSLContext, trusting: ssl.SSLContext
) -> None:
    async def handler(stream: ByteStream) -> None:
        await stream.send_all(b"all")

    served = start(handler, context=context)
    client = over_tls(await served.connect(), trusting)  # not https_compatible: a close_notify has to come
    assert await client.receive_some() == b"all"
    assert await client.receive_some() == b""
    await client.aclose()


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.0\r\n\r\n", b"hello\n", bytes(500)])
async def test_plain_text_on_a_tls_port_ends_one_connection(
    start: Start,
    context: ssl.SSLContext,
    trusting: ssl.SSLContext,
    sent: bytes,
    caplog: pytest.LogCaptureFixture,
) -> None:
    served = start(echo, context=context)
    client = await served.connect()
    await client.send_all(sent)
    while not await ended(client):
        pass
    await becomes(lambda: served.ends == {"tls": 1}, "no handshake")
    (line,) = lines(caplog)
    assert "a TLS handshake failed: the client speaks no TLS, " in line
    good = over_tls(await served.connect(), trusting)
    await answered(good)
    await good.aclose()


async def test_a_half_open_handshake_ends_after_its_time(
    start: Start, context: ssl.SSLContext, mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    served = start(echo, context=context)
    client = await served.connect()
    await client.send_all(b"\x16\x03\x01\x02\x00\x01\x00")  # the beginning of a ClientHello
    await becomes(lambda: served.server.connections == 1, "a connection")
    await wait_all_tasks_blocked(0.01)
    mock_clock.jump(9)
    await wait_all_tasks_blocked(0.01)
    assert served.ends == {}
    mock_clock.jump(1.5)
    assert await ended(client)
    await becomes(lambda: served.ends == {"handshake": 1}, "its end")
    assert "a handshake took too long" in lines(caplog)[0]


async def test_a_client_that_leaves_in_a_handshake(start: Start, context: ssl.SSLContext) -> None:
    served = start(echo, context=context)
    await (await served.connect()).aclose()
    await becomes(lambda: served.ends == {"reset": 1}, "its end")
    client = await served.connect()
    await client.send_all(b"\x16\x03\x01\x02\x00\x01\x00")
    await reset(client)
    await becomes(lambda: served.ends == {"reset": 2}, "its end")


async def test_a_stop_ends_a_handshake(start: Start, context: ssl.SSLContext) -> None:
    served = start(echo, context=context)
    client = await served.connect()
    await becomes(lambda: served.server.connections == 1, "a connection")
    await served.stop()
    assert await ended(client)

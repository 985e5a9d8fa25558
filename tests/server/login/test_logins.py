"""A log-in as a whole: who the client is afterwards, what is left, and how one ends that does not come to its end."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr.config.listeners import Listener
from leafcuttr.config.settings import Settings
from leafcuttr.handlers.context import RequestContext, context_of
from leafcuttr.server.login.logins import LOGIN_S, Logins
from leafcuttr.server.transport import PlainTransport
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.named_users import named_users
from leafcuttr_sdk.authentication import Principal
from support.token_issuer import Issuer

Serve = Callable[..., Awaitable[Broker]]
Pair = tuple[socket.socket, socket.socket]
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.in.plain.sasl.jaas.config": JAAS,
    "connection.failed.authentication.delay.ms": "0",
}
HANDSHAKE = b"\0\0\0\x11" + b"\0\x11\0\0\0\0\0\x01\xff\xff\0\x05PLAIN"
VERSIONS = b"\0\0\0\x0a" + b"\0\x12\0\0\0\0\0\x01\xff\xff"
GOOD, BAD = b"\0\0\0\x0d\0alice\0secret", b"\0\0\0\x0c\0alice\0wrong"


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    yield ours, theirs
    ours.close()
    theirs.close()


def context() -> RequestContext:
    return context_of(Listener("IN", "h", 1, "h", 1, "SASL_PLAINTEXT"), "10.0.0.7", 1234, 1)


async def under_way(logins: Logins) -> trio.CancelScope:
    while not logins._under_way:
        await trio.lowlevel.checkpoint()
    (scope,) = logins._under_way
    return scope


async def test_who_it_is_and_what_is_left(serve: Serve, pair: Pair) -> None:
    logins, given = Logins(await serve(SETTINGS)), context()
    pair[1].sendall(HANDSHAKE + GOOD + b"the next")
    assert await logins.succeeds(PlainTransport(pair[0]), given) == b"the next"
    assert given.client.principal == Principal("User", "alice")
    assert not logins.failed


async def test_a_refusal(serve: Serve, pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    logins, given = Logins(await serve(SETTINGS)), context()
    pair[1].sendall(HANDSHAKE + BAD)
    with caplog.at_level(logging.WARNING):
        assert await logins.succeeds(PlainTransport(pair[0]), given) is None
    assert given.client.principal == Principal("User", "ANONYMOUS")
    assert logins.failed == {"IN": 1}
    (line,) = [each.getMessage() for each in caplog.records]
    assert line == (
        "closing the connection from 10.0.0.7:1234 on IN: Authentication failed: Invalid username or password"
    )


async def test_one_that_takes_too_long(
    serve: Serve, pair: Pair, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LOGIN_S == 10
    monkeypatch.setattr("leafcuttr.server.login.logins.LOGIN_S", 0.01)
    monkeypatch.setattr("leafcuttr.server.arrivals._LEAST_S", 0.01)
    logins = Logins(await serve(SETTINGS))
    pair[1].sendall(HANDSHAKE)
    assert await logins.succeeds(PlainTransport(pair[0]), context()) is None
    assert logins.failed == {"IN": 1}
    assert "no log-in within 0.01 seconds" in caplog.text
    assert not logins._under_way


async def test_one_that_takes_much_too_long(
    serve: Serve, pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever takes it: nothing keeps a connection that is not served for longer than a minute."""
    logins = Logins(await serve(SETTINGS))
    pair[1].sendall(HANDSHAKE)

    async def hurry() -> None:
        scope = await under_way(logins)
        assert scope.deadline - trio.current_time() <= 60
        scope.deadline = trio.current_time()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hurry)
        assert await logins.succeeds(PlainTransport(pair[0]), context()) is None
    assert "no log-in within 60 seconds" in caplog.text
    assert not logins._under_way


async def test_the_time_that_the_broker_takes_is_not_the_clients(
    serve: Serve, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time was over when its turn came, and it answers at once."""
    monkeypatch.setattr("leafcuttr.server.login.logins.LOGIN_S", -1.0)
    logins, given = Logins(await serve(SETTINGS)), context()
    async with trio.open_nursery() as nursery:

        async def answer() -> None:
            pair[1].sendall(HANDSHAKE)
            pair[1].setblocking(False)
            await trio.lowlevel.wait_readable(pair[1])
            pair[1].sendall(GOOD)

        nursery.start_soon(answer)
        assert await logins.succeeds(PlainTransport(pair[0]), given) == b""
    assert given.client.principal == Principal("User", "alice")


@pytest.mark.parametrize("what", ["requests", "a request, byte by byte"])
async def test_one_that_always_sends_something_has_no_longer(
    serve: Serve, pair: Pair, caplog: pytest.LogCaptureFixture, mock_clock: MockClock, what: str
) -> None:
    """Not by what it may ask again and again, and not by a request that does not end."""
    logins, client = Logins(await serve(SETTINGS)), trio.socket.from_stdlib_socket(pair[1])
    pair[1].setblocking(False)

    async def send() -> None:
        if what == "a request, byte by byte":
            await client.send((1000).to_bytes(4, "big"))
        for _ in range(30):
            if what == "requests":
                await client.send(VERSIONS)
                assert await client.recv(65536)
            else:
                await client.send(b"x")
            await wait_all_tasks_blocked(0.001)
            mock_clock.jump(0.5)
        raise AssertionError("it has 15 seconds")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        assert await logins.succeeds(PlainTransport(pair[0]), context()) is None
        nursery.cancel_scope.cancel()
    assert "no log-in within 10 seconds" in caplog.text


async def test_the_stop_ends_it(serve: Serve, pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    logins = Logins(await serve(SETTINGS))

    async def stop() -> None:
        await under_way(logins)
        logins.stop()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(stop)
        assert await logins.succeeds(PlainTransport(pair[0]), context()) is None
    assert not logins.failed and "10.0.0.7" not in caplog.text


async def test_a_client_that_leaves_with_its_refusal(
    serve: Serve, pair: Pair, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """OAUTHBEARER says so in a step that succeeds, and not all clients wait for the last one."""
    issuer = Issuer()
    issuer.add("ES256", "a")
    settings = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": issuer.write(tmp_path / "keys.json"),
    }
    broker = await serve(settings)
    logins = Logins(broker)
    source = logins._token_checker("IN")._keys
    assert list(broker.token_keys) == [source], "which is followed"
    source.read()
    message = b"n,,\x01auth=Bearer x.y.z\x01\x01"
    handshake = b"\0\0\0\x17" + b"\0\x11\0\0\0\0\0\x01\xff\xff\0\x0bOAUTHBEARER"
    pair[1].sendall(handshake + len(message).to_bytes(4, "big") + message)
    pair[1].shutdown(socket.SHUT_WR)
    with caplog.at_level(logging.WARNING):
        assert await logins.succeeds(PlainTransport(pair[0]), context()) is None
    assert logins.failed == {"IN": 1}
    (line,) = [each.getMessage() for each in caplog.records]
    assert line.endswith("on IN: a token of OAUTHBEARER is refused: a part of it is not base64url")


def test_without_the_packages_of_tokens_and_tickets() -> None:
    """The line names the command that mends it, before a setting that is missing too."""
    program = (
        "import sys\n"
        "from importlib.abc import MetaPathFinder\n"
        "class Missing(MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('cryptography', 'gssapi'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from leafcuttr.config.settings import Settings\n"
        "from leafcuttr.server.login.logins import check_kerberos, read_token_keys\n"
        "for check in (read_token_keys, check_kerberos):\n"
        "    try:\n"
        "        check(Settings(), 'IN')\n"
        "    except Exception as error:\n"
        "        print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "StartError the listener IN offers OAUTHBEARER, which needs cryptography, which is not installed: "
        "pip install 'leafcuttr[security]'\n"
        "StartError the listener IN offers GSSAPI (sasl.enabled.mechanisms), which needs the package gssapi, which is "
        "not installed: pip install 'leafcuttr[kerberos]'\n"
    )


def test_users_that_the_settings_name_are_read_once_for_all_connections() -> None:
    settings = Settings(SETTINGS)
    assert named_users(settings, "IN") is named_users(settings, "IN")
    changed = Settings({**SETTINGS, "listener.name.in.plain.sasl.jaas.config": JAAS.replace("secret", "new")})
    assert named_users(changed, "IN") == {"alice": "new"}

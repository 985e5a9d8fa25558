"""Clients of a listener with TLS and a log-in that try to have more of the event loop than their quota."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr.server.tls_transport import TlsTransport
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.quota_entities import entity_of
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest
from leafcuttr.wire.messages.metadata import MetadataRequest
from leafcuttr.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from leafcuttr.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.peer import Peer, serves
from support.tls_peer import Certificates

Serve = Callable[..., Awaitable[Broker]]
METADATA = MetadataRequest(topics=[])
JAAS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret" user_bob="secret";'
)


class Spent:
    """What the loop's stopwatches count here: nothing, but for what the test says."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> Spent:
    clock = Spent()
    monkeypatch.setattr("leafcuttr_sdk._stopwatch.perf_counter", clock)
    return clock


class Attacked(NamedTuple):
    broker: Broker
    certificates: Certificates

    async def connect(self) -> Peer:
        stream = await trio.open_tcp_stream("127.0.0.1", self.broker.listeners[0].port)
        tls: Any = trio.SSLStream(stream, self.certificates.client(), server_hostname="127.0.0.1")
        await tls.do_handshake()
        return Peer(tls)

    async def log_in(self, name: str, peer: Peer | None = None) -> Peer:
        peer = peer or await self.connect()
        assert (await peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)).error_code == 0
        given = SaslAuthenticateRequest(auth_bytes=b"\0%s\0secret" % name.encode())
        assert (await peer.ask(given, 2)).error_code == 0
        return peer

    async def limit(self, percentage: float) -> None:
        """Of alice."""
        await self.broker.quotas.alter({entity_of({"user": "alice"}): {"request_percentage": percentage}})

    @property
    def left_s(self) -> float:
        """Of what alice may have of the loop."""
        limits = self.broker.quotas.limits_of("alice", "peer")
        assert limits is not None and limits.request is not None
        return limits.request.level(trio.current_time())


@pytest.fixture
async def attacked(serve: Serve, mock_clock: MockClock, tmp_path: Path) -> Attacked:
    ours = Certificates(tmp_path)
    settings = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "ssl.keystore.location": ours.issue("127.0.0.1").file,
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": JAAS,
    }
    return Attacked(await serve(settings), ours)


async def test_to_decrypt_and_encrypt_counts_and_to_log_in_does_not(
    attacked: Attacked, spent: Spent, mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handshake is nobody's: who it is is known after it only."""

    def takes(name: str, seconds: float) -> None:
        method = getattr(TlsTransport, name)

        def slow(self: TlsTransport, *given: Any) -> Any:
            spent.now_s += seconds
            return method(self, *given)

        monkeypatch.setattr(TlsTransport, name, slow)

    takes("_step", 1000.0)
    takes("receive_into", 0.25)
    takes("send", 0.125)
    await attacked.limit(100.0)
    async with await attacked.log_in("alice") as peer:
        assert spent.now_s > 1000
        assert attacked.left_s == 1
        began_s = spent.now_s
        for request, version in ((METADATA, 12), (ApiVersionsRequest(), 0)):
            await peer.ask(request, version)
            assert attacked.left_s < 1
        # What an answer costs is charged with the next one.
        assert 1 - attacked.left_s == spent.now_s - began_s - 0.125
        await peer.ask(METADATA, 12)
        assert 1 - attacked.left_s == spent.now_s - began_s - 0.125
        async with await attacked.log_in("bob") as other:
            left_s = attacked.left_s
            assert (await other.ask(METADATA, 12)).throttle_time_ms == 0
            assert attacked.left_s == left_s


async def test_one_is_held_back_on_each_connection_that_it_opens_and_others_are_not(
    attacked: Attacked, spent: Spent, mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Kafka a connection learns by its first answer that it is held back. What that took is not forgotten with
    the connection."""
    from leafcuttr.handlers import metadata

    handle = metadata.handle

    def slow(*given: Any) -> Any:
        spent.now_s += 0.5
        return handle(*given)

    monkeypatch.setattr("leafcuttr.server.routes._routes", {})
    monkeypatch.setattr(metadata, "handle", slow)
    await attacked.limit(1.0)
    count, counts = 5, attacked.broker.counts
    async with AsyncExitStack() as stack, trio.open_nursery() as nursery:
        other = await stack.enter_async_context(await attacked.log_in("bob"))
        answered = 0

        async def hammer(peer: Peer) -> None:
            nonlocal answered
            while True:
                told = await peer.ask(METADATA, 12)
                assert told.throttle_time_ms == 1000, "a window, and no more"
                answered += 1

        for number in range(1, count + 1):
            nursery.start_soon(hammer, await stack.enter_async_context(await attacked.log_in("alice")))
            await wait_all_tasks_blocked(0.001)
            assert (answered, counts.paused) == (number, number)
            assert await serves(other)
            assert (await other.ask(METADATA, 12)).throttle_time_ms == 0
        mock_clock.jump(0.99)
        await wait_all_tasks_blocked(0.001)
        assert answered == count
        mock_clock.jump(0.01)
        await wait_all_tasks_blocked(0.001)
        assert answered == 2 * count
        nursery.cancel_scope.cancel()
    assert attacked.left_s == pytest.approx(0.02 - 0.5 * 2 * count)
    async with await attacked.log_in("alice") as peer:
        assert (await peer.ask(METADATA, 12)).throttle_time_ms == 1000


async def test_new_connections_are_held_before_their_handshake(
    attacked: Attacked, spent: Spent, mock_clock: MockClock
) -> None:
    """Where a quota bounds them too, what a client has by the first answer of each connection is bounded."""
    await attacked.limit(1e-7)
    await attacked.broker.quotas.alter({entity_of({"ip": None}): {"connection_creation_rate": 2.0}})
    shaken = served = 0

    async def come() -> None:
        nonlocal shaken, served
        async with await attacked.connect() as peer:
            shaken += 1
            await attacked.log_in("alice", peer)
            await peer.ask(METADATA, 12)
            served += 1

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(come)
        for expected in (2, 4, 6):
            # They shake hands in threads, for which the test's clock does not wait.
            while served < expected:
                await wait_all_tasks_blocked(0.005)
            assert (shaken, served, attacked.broker.counts.held) == (expected, expected, 6 - expected)
            mock_clock.jump(1)

"""Connections above the rate of their address are held, and then served."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr.server import address_rates
from leafcuttr.server.address_rates import AddressRates
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.quota_entities import CONNECTION_CREATION_RATE, entity_of
from support.peer import Peer, connect, serves

Serve = Callable[..., Awaitable[Broker]]


class PeerOf:
    """What is read of a transport here."""

    peer_gone = False


async def limit(broker: Broker, rate: float | None, ip: str | None = None) -> None:
    await broker.quotas.alter({entity_of({"ip": ip}): {CONNECTION_CREATION_RATE: rate}})


class Served:
    def __init__(self, rates: AddressRates, nursery: trio.Nursery) -> None:
        self._rates, self._nursery = rates, nursery
        self.times: list[float] = []
        self.refused = 0

    def come(self, host: str = "10.0.0.1", transport: Any = None) -> None:
        self._nursery.start_soon(self._come, host, transport or PeerOf())

    async def _come(self, host: str, transport: Any) -> None:
        if await self._rates.may_serve(transport, "PLAINTEXT", host):
            self.times.append(round(trio.current_time() - self.began, 3))
        else:
            self.refused += 1

    began = 0.0


@pytest.fixture
async def broker(serve: Serve, mock_clock: MockClock) -> Broker:
    return await serve()


@pytest.fixture
async def served(broker: Broker, nursery: trio.Nursery) -> Served:
    return Served(AddressRates(broker), nursery)


async def pass_time(clock: MockClock, seconds: float) -> None:
    for _ in range(round(seconds * 10)):
        await wait_all_tasks_blocked()
        clock.jump(0.1)
    await wait_all_tasks_blocked()


async def test_one_that_need_not_wait_counts_as_none_that_is_held(serve: Serve) -> None:
    """By a clock that goes on meanwhile."""
    broker = await serve()
    await limit(broker, 1000)
    async with await connect(broker) as peer:
        assert await serves(peer)
    assert not broker.counts.throttled


async def test_each_is_served_in_its_turn(broker: Broker, served: Served, mock_clock: MockClock) -> None:
    await limit(broker, 2)
    for _ in range(6):
        served.come()
    served.come("10.0.0.2")
    await pass_time(mock_clock, 3)
    assert served.times == pytest.approx([0, 0, 0, 0.5, 1, 1.5, 2], abs=0.11)
    assert broker.counts.throttled[CONNECTION_CREATION_RATE].count == 4


async def test_those_whose_peers_have_gone_take_nobodys_turn(
    broker: Broker, served: Served, mock_clock: MockClock
) -> None:
    await limit(broker, 1)
    gone = [PeerOf() for _ in range(5)]
    served.come()
    await wait_all_tasks_blocked()
    for one in gone:
        served.come(transport=one)
    await wait_all_tasks_blocked()
    served.come()
    for one in gone:
        one.peer_gone = True
    await pass_time(mock_clock, 2.5)
    assert (len(served.times), served.refused) == (2, 5)


async def test_another_quota_holds_for_those_that_are_held(
    broker: Broker, served: Served, mock_clock: MockClock
) -> None:
    await limit(broker, 1)
    for _ in range(20):
        served.come()
    await wait_all_tasks_blocked()
    assert len(served.times) == 1
    assert broker.counts.held == 19
    await limit(broker, None)
    await pass_time(mock_clock, 1.1)
    assert len(served.times) == 20
    assert broker.counts.held == 0
    assert not served._rates._turns


async def test_more_than_could_be_served_in_time_are_closed_at_once(
    broker: Broker,
    served: Served,
    mock_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging.getLogger("leafcuttr"), "propagate", True)
    await limit(broker, 1)
    for _ in range(50):
        served.come()
    await wait_all_tasks_blocked()
    assert (len(served.times), broker.counts.held, served.refused) == (1, 29, 20)
    lines = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert lines == [
        "closing the connection from 10.0.0.1 on PLAINTEXT: too many connections of its address are held by a quota"
    ]
    await pass_time(mock_clock, 31)
    assert broker.counts.held == 0


async def test_a_stop_ends_all_that_are_held(broker: Broker, served: Served) -> None:
    await limit(broker, 1)
    for _ in range(5):
        served.come()
    await wait_all_tasks_blocked()
    served._rates.stop()
    await wait_all_tasks_blocked()
    assert (len(served.times), served.refused, broker.counts.held) == (1, 4, 0)


async def test_a_host_by_its_name(
    broker: Broker, served: Served, mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_up(name: str, *_: object, **__: object) -> list[Any]:
        if name == "edge.example":
            return [(2, 1, 6, "", ("10.0.0.1", 0))]
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    await limit(broker, 1, "edge.example")
    await limit(broker, 1, "gone.example")
    for host in ("10.0.0.1", "::ffff:10.0.0.1", "10.0.0.2", "10.0.0.2"):
        served.come(host)
        while not served._rates._names:
            await trio.lowlevel.checkpoint()
        await wait_all_tasks_blocked()
    assert len(served.times) == 3
    assert address_rates._addresses(("edge.example", "gone.example")) == {"10.0.0.1": "edge.example"}


async def test_nothing_of_a_connection_is_read_before(broker: Broker, mock_clock: MockClock) -> None:
    await limit(broker, 1)
    async with (
        await connect(broker) as first,
        await connect(broker) as second,
        trio.open_nursery() as nursery,
    ):
        assert await serves(first)
        answered = trio.Event()

        async def ask() -> None:
            assert await serves(second)
            answered.set()

        nursery.start_soon(ask)
        await wait_all_tasks_blocked(0.02)
        assert not answered.is_set()
        await pass_time(mock_clock, 1.1)
        await answered.wait()


async def test_a_stop_does_not_wait_for_them(serve: Serve, mock_clock: MockClock) -> None:
    stop, ended = trio.Event(), trio.Event()
    broker = await serve(stop=stop, ended=ended)
    await limit(broker, 1)
    peers: list[Peer] = [await connect(broker) for _ in range(3)]
    assert await serves(peers[0])
    await wait_all_tasks_blocked(0.02)
    stop.set()
    await ended.wait()
    for peer in peers:
        await peer.stream.aclose()

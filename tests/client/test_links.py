"""The links to addresses: when they are connected, how long they wait, and what is wrong with them."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from leafcuttr.client.errors import ConnectionLost, Unreachable
from leafcuttr.client.links import Links
from leafcuttr.client.settings import ClientSettings, HostPort
from leafcuttr.wire.api import ApiKey
from leafcuttr.wire.messages.metadata import MetadataRequest
from support.scripted_broker import HANG_UP, ScriptedBroker, metadata
from support.waiting import free_port

ASK = MetadataRequest(topics=[])


def links(nursery: trio.Nursery, backoff_s: float = 1, most_s: float = 8) -> Links:
    settings = ClientSettings(
        bootstrap=(HostPort("127.0.0.1", 1),), reconnect_backoff_s=backoff_s, reconnect_backoff_max_s=most_s
    )
    return Links(settings, nursery)


async def test_a_connection_is_shared_and_lanes_are_apart(nursery: trio.Nursery) -> None:
    broker = ScriptedBroker({ApiKey.METADATA: lambda call: metadata(call.broker)})
    await broker.start(nursery)
    all_of = links(nursery)
    address = HostPort("127.0.0.1", broker.port)
    link = all_of.to(address, "")
    assert link is all_of.to(address, "")
    assert not link.is_open

    async with trio.open_nursery() as connecting:
        for _ in range(5):
            connecting.start_soon(link.connected)
    assert broker.connections == 1
    assert link.is_open
    assert await all_of.to(address, "fetch").connected() is not await link.connected()
    assert broker.connections == 2


async def test_a_link_that_fails_waits_longer_each_time(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    link = links(nursery).to(HostPort("127.0.0.1", free_port()), "")
    waits = list[float]()
    for _ in range(7):
        began = trio.current_time()
        with pytest.raises(Unreachable):
            await link.connected()
        waits.append(trio.current_time() - began)
    assert waits[0] == 0
    for waited, expected in zip(waits[1:], (1, 2, 4, 8, 8, 8), strict=True):
        assert 0.8 * expected <= waited <= 1.2 * expected
    assert (
        len({round(waited / expected, 6) for waited, expected in zip(waits[4:], (8, 8, 8), strict=True)}) == 3
    )


async def test_a_link_that_was_lost_is_not_connected_again_at_once(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    broker = ScriptedBroker({ApiKey.METADATA: lambda call: HANG_UP})
    await broker.start(nursery)
    link = links(nursery).to(HostPort("127.0.0.1", broker.port), "")
    for _ in range(3):
        connection = await link.connected()
        with pytest.raises(ConnectionLost):
            await connection.request(ASK, timeout_s=60)
        assert not link.is_open
        began = trio.current_time()
        await link.connected()
        assert 0.8 <= trio.current_time() - began <= 1.2, "one that was reached begins at the least back-off"
        link.close(ConnectionLost("enough"))
        # Later than the back-off it is connected at once.
        await trio.sleep(5)
        began = trio.current_time()
        await link.connected()
        assert trio.current_time() == began
        link.close(ConnectionLost("enough"))
        await trio.sleep(5)


async def test_a_link_that_was_reached_begins_anew(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    broker = ScriptedBroker({ApiKey.METADATA: lambda call: None}, port=free_port())
    link = links(nursery).to(HostPort("127.0.0.1", broker.port), "")
    for _ in range(4):
        with pytest.raises(Unreachable):
            await link.connected()
    await broker.start(nursery)
    await link.connected()
    link.close(ConnectionLost("enough"))
    began = trio.current_time()
    await link.connected()
    assert 0.8 <= trio.current_time() - began <= 1.2


async def test_one_that_is_cancelled_leaves_the_turn_to_the_next(nursery: trio.Nursery) -> None:
    go_on = trio.Event()

    async def wait(call: object) -> object:
        await go_on.wait()
        return HANG_UP

    slow = ScriptedBroker({ApiKey.API_VERSIONS: wait})
    await slow.start(nursery)
    link = links(nursery).to(HostPort("127.0.0.1", slow.port), "")
    async with trio.open_nursery() as connecting:
        connecting.start_soon(link.connected)
        await trio.testing.wait_all_tasks_blocked()
        connecting.cancel_scope.cancel()
    go_on.set()
    with pytest.raises(ConnectionLost):
        await link.connected()
    assert slow.connections == 2


async def test_what_is_wrong_with_the_links(nursery: trio.Nursery) -> None:
    all_of = links(nursery)
    one, other = HostPort("one", 1), HostPort("other", 2)
    assert all_of.trouble is None
    all_of.fails(one, Unreachable("no broker answers at one:1"))
    all_of.fails(one, Unreachable("no broker answers at one:1, still"))
    assert all_of.trouble == "no broker answers at one:1, still"
    all_of.fails(other, Unreachable("no broker answers at other:2"))
    assert all_of.trouble == "no broker answers at one:1, still (and 1 more)"
    all_of.works(one)
    assert all_of.trouble == "no broker answers at other:2"
    all_of.forgive([other])
    assert all_of.trouble is None


async def test_links_to_brokers_that_are_no_more(nursery: trio.Nursery) -> None:
    broker = ScriptedBroker({ApiKey.METADATA: lambda call: None})
    await broker.start(nursery)
    all_of = links(nursery)
    address = HostPort("127.0.0.1", broker.port)
    connection = await all_of.to(address, "").connected()
    all_of.keep({address}, Unreachable("gone"))
    assert connection.is_open
    all_of.fails(address, Unreachable("no broker answers there"))
    all_of.keep(set(), Unreachable("gone"))
    assert str(connection.error) == "gone"
    assert all_of.trouble is None
    assert await all_of.to(address, "").connected() is not connection

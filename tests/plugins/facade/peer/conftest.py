"""The broker as a peer in process, whose coordinators run, in the time of a clock that jumps when everybody sleeps."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple

import pytest
import trio
from trio.testing import MockClock

from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.state.broker import Broker as Core
from leafcuttr_sdk import Broker, Plugin
from leafcuttr_sdk.peers import Peer
from support.trio_time import TrioTime

Open = Callable[..., Core]


class Live(NamedTuple):
    """One running broker: itself, as a plugin has it, and as a peer."""

    core: Core
    view: Broker
    peer: Peer


Run = Callable[..., AbstractAsyncContextManager[Live]]


@pytest.fixture
def clock() -> TrioTime:
    return TrioTime()


@pytest.fixture
def run(open_core: Open, autojump_clock: MockClock) -> Run:
    """A broker with a topic `t` of two partitions."""

    @asynccontextmanager
    async def running(**settings: str) -> AsyncIterator[Live]:
        core = open_core(
            **{
                "group_initial_rebalance_delay_ms": "0",
                "offsets_topic_num_partitions": "2",
                "transaction_state_log_num_partitions": "2",
                **settings,
            }
        )
        async with trio.open_nursery() as nursery:
            await nursery.start(core.groups.run)
            await nursery.start(core.transactions.run)
            view = make_broker_view(core, Plugin("sample", 1, ""))
            if view.topics.get("t") is None:
                await view.topics.create("t", partitions=2)
            async with view.peer() as peer:
                yield Live(core, view, peer)
            nursery.cancel_scope.cancel()

    return running

"""Peers over the network, at a broker in a process of its own: ours, and in the long runs Apache Kafka too."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final

import pytest

from leafcuttr_sdk.peers import Peer
from support import jars
from support.broker_process import running_broker
from support.real_kafka import real_kafka
from support.remote_peers import peer_at

QUICKLY: Final = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
_NUMBERS: Final = itertools.count(1)


@pytest.fixture(scope="module", params=["leafcuttr", pytest.param("kafka", marks=pytest.mark.long)])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a broker listens, for all tests of a file."""
    folder = tmp_path_factory.mktemp("cluster")
    if request.param == "leafcuttr":
        with running_broker(folder, QUICKLY) as broker:
            yield broker.address
        return
    if why := jars.missing():
        pytest.skip(why)
    with real_kafka(folder, *(f"{name}={value}" for name, value in QUICKLY.items())) as kafka:
        yield str(kafka)


@pytest.fixture
def open_peer(address: str) -> Callable[..., AbstractAsyncContextManager[Peer]]:
    """Another client of the same broker, with settings of its own."""
    return partial(peer_at, address)


@pytest.fixture
async def peer(address: str) -> AsyncIterator[Peer]:
    async with peer_at(address) as found:
        yield found


@pytest.fixture
async def topic(peer: Peer) -> str:
    """A new topic of three partitions."""
    name = f"topic-{next(_NUMBERS)}"
    await peer.create_topic(name, partitions=3)
    return name

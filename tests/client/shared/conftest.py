"""A broker with either version of transactions, and owners of transactions there."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager

import pytest

from leafcuttr.client.calls import Calls
from leafcuttr.client.cluster import open_cluster
from leafcuttr.client.properties import client_settings
from leafcuttr.client.shared.owner import SharedProducer, open_owner
from leafcuttr.runtime.clock import SystemClock
from leafcuttr_sdk.blocking_peers import SharedTransaction
from support.broker_process import running_broker
from support.remote_peers import QUICK
from support.transactional import lower_transaction_version

SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "50"}
OpenOwner = Callable[..., AbstractAsyncContextManager[SharedProducer]]


@pytest.fixture(scope="module", params=[2, 1], ids=["version 2", "version 1"])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker whose transactions have this version."""
    with running_broker(tmp_path_factory.mktemp("owner"), SETTINGS) as broker:
        if request.param == 1:
            lower_transaction_version(broker.address)
        yield broker.address


@pytest.fixture
async def calls(address: str) -> AsyncIterator[Calls]:
    settings = client_settings({"bootstrap.servers": address, **QUICK})
    async with open_cluster(settings, clock=SystemClock()) as cluster:
        yield Calls(cluster)


@pytest.fixture
def opened(calls: Calls) -> OpenOwner:
    def open_one(
        transaction: str | SharedTransaction, timeout_ms: int = 60_000
    ) -> AbstractAsyncContextManager[SharedProducer]:
        return open_owner(calls, SystemClock(), logging.getLogger("test"), transaction, timeout_ms)

    return open_one

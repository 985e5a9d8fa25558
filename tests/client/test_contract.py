"""A cluster over the network keeps the contract of peers: LeafCuttr in a process of its own, and Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leafcuttr_sdk import Broker
from leafcuttr_sdk.testing import running_broker as sdk_broker
from leafcuttr_sdk.testing.peer_checks import PROMISES, peer_report
from support import jars
from support.broker_process import running_broker
from support.peer_contract import keeps_contract
from support.real_kafka import real_kafka


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with running_broker(tmp_path_factory.mktemp("ours"), settings) as served:
        yield served.address


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    reason = jars.missing()
    if reason:
        pytest.skip(reason)
    with real_kafka(tmp_path_factory.mktemp("kafka")) as address:
        yield str(address)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("promise", list(PROMISES))
async def test_leafcuttr(ours: str, promise: str) -> None:
    await keeps_contract(ours, promise)


@pytest.mark.long
async def test_kafka(kafka: str) -> None:
    await keeps_contract(kafka, *PROMISES)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("first", ["in process", "over TCP"])
def test_a_broker_in_process_and_over_tcp_are_one_cluster(tmp_path: Path, first: str) -> None:
    """Claims, fencing and offsets of the one hold for the other."""

    async def both(inside: Broker, address: str) -> None:
        async with inside.peer() as here, inside.peer({"bootstrap.servers": address}) as there:
            peer, second = (here, there) if first == "in process" else (there, here)
            only = frozenset({"cluster", "claims", "fencing"})
            report = await peer_report(peer, second=second, only=only)
        assert {each.name for each in report.checks} == only
        report.raise_problems()

    with sdk_broker(tmp_path / "data") as broker:
        broker.call(lambda inside: both(inside, broker.bootstrap_servers))

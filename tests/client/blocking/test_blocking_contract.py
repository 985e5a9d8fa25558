"""A cluster over the network keeps the contract of blocking peers: LeafCuttr in a process of its own, and Apache Kafka
by both versions of its transactions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leafcuttr_sdk.blocking_peers import open_peer
from leafcuttr_sdk.testing.blocking_peer_checks import BLOCKING_PROMISES, blocking_peer_report
from support import jars
from support.broker_process import running_broker
from support.real_kafka import real_kafka
from support.transactional import lower_transaction_version


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_broker(tmp_path_factory.mktemp("ours")) as served:
        yield served.address


def check(address: str, *promises: str) -> None:
    properties = {"bootstrap.servers": address}
    with open_peer(properties) as peer, open_peer(properties) as second:
        report = blocking_peer_report(peer, second=second, only=frozenset(promises))
    assert {each.name for each in report.checks} == set(promises)
    report.raise_problems()


@pytest.mark.one_in(6)
@pytest.mark.parametrize("promise", list(BLOCKING_PROMISES))
def test_leafcuttr(ours: str, promise: str) -> None:
    check(ours, promise)


@pytest.mark.long
def test_leafcuttr_with_the_older_version_of_transactions(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        lower_transaction_version(broker.address)
        check(broker.address, *BLOCKING_PROMISES)


@pytest.mark.long
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
@pytest.mark.parametrize("level", [0, 1, 2])
def test_kafka(tmp_path: Path, level: int) -> None:
    """`level` is Kafka's `transaction.version`."""
    formatted = () if level == 2 else ("--feature", f"transaction.version={level}")
    with real_kafka(tmp_path, formatted=formatted) as address:
        check(str(address), *BLOCKING_PROMISES)

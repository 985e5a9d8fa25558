"""A relay to a Kafka of two brokers, one of which is killed again and again: leaders of partitions and coordinators
change, and each record comes once, in its order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import trio

from forward.clusters import create, produce, until, values
from forward.conftest import MakeRun, started
from support import jars, librdkafka
from support.live_broker import LiveBroker
from support.real_kafka import real_kafka
from support.second_kafka import SecondBroker
from support.waiting import until as wait_until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
    pytest.mark.timeout(900),
]
PARTITIONS = 4
KILLS = 3
OF_BOTH = (
    "broker.session.timeout.ms=3000",
    "default.replication.factor=2",
    "offsets.topic.replication.factor=2",
    "transaction.state.log.replication.factor=2",
    "transaction.state.log.num.partitions=4",
    "leader.imbalance.check.interval.seconds=1",
    "leader.imbalance.per.broker.percentage=0",
)


def has_both(address: str) -> bool:
    return len(librdkafka.admin(address).list_topics(timeout=10).brokers) == 2


def in_sync(address: str) -> bool:
    """Whether every partition has both brokers in sync, and leads at its first one."""
    found = librdkafka.admin(address).list_topics(timeout=10).topics.values()
    parts = [each for topic in found for each in topic.partitions.values()]
    return all(len(each.isrs) == 2 and each.leader == each.replicas[0] for each in parts)


async def test_leaders_and_coordinators_that_die(tmp_path: Path, make_run: MakeRun, edge: LiveBroker) -> None:
    create(edge.address, "led", PARTITIONS)
    expected: list[list[str]] = [[] for _ in range(PARTITIONS)]

    async def more() -> None:
        for partition, some in enumerate(expected):
            texts = [f"{partition}:{number}" for number in range(len(some), len(some) + 300)]
            await trio.to_thread.run_sync(produce, edge.address, "led", texts, partition)
            some += texts

    with real_kafka(tmp_path / "first", *OF_BOTH) as first:
        address = str(first)
        second = SecondBroker(tmp_path / "second", tmp_path / "first")
        await trio.to_thread.run_sync(second.start)
        try:
            await trio.to_thread.run_sync(wait, partial(has_both, address), "both brokers")
            run = make_run([edge.address], address, {"led": "led"})

            async def copied() -> None:
                total = sum(map(len, expected))
                await until(lambda: run.counters.total >= total, "what came is copied", 180)

            async with started(run):
                await more()
                await copied()
                for _ in range(KILLS):
                    await trio.to_thread.run_sync(wait, partial(in_sync, address), "both in sync")
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(more)
                        nursery.start_soon(trio.to_thread.run_sync, second.kill)
                    await more()
                    await copied()
                    await trio.to_thread.run_sync(second.start)
                assert run.report.exactly_once
            assert (run.status, run.why) == (0, None)
            for partition in range(PARTITIONS):
                assert values(address, "led", partition) == expected[partition]
        finally:
            second.kill()


def wait(holds: Callable[[], bool], what: str) -> None:
    wait_until(holds, what, seconds=180, pause=0.2)

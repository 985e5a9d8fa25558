"""A relay to a Kafka of two brokers, one of which is killed again and again: leaders of partitions and coordinators
change, and each record comes once, in its order."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
import trio

from forward.clusters import create, produce, until, values
from forward.conftest import MakeRun, started
from support import jars, librdkafka
from support.live_broker import LiveBroker
from support.real_kafka import CLUSTER_ID, VERSION, listening, real_kafka
from support.waiting import free_port
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
SECOND = """process.roles=broker
node.id=2
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
"""


class SecondBroker:
    """Keeps its data and its port from start to start."""

    def __init__(self, folder: Path, first: Path) -> None:
        folder.mkdir()
        lines = (first / "server.properties").read_text().splitlines()
        voters = next(line.partition("=")[2] for line in lines if line.startswith("controller.quorum.voters"))
        self._folder, self._port = folder, free_port()
        self._file = folder / "server.properties"
        settings = SECOND.format(voters=voters, port=self._port, data=folder / "data")
        self._file.write_text("\n".join([settings, *OF_BOTH, ""]))
        form = jars.java(
            VERSION, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self._file)
        )
        subprocess.run(form, check=True, capture_output=True)
        self._running = ExitStack()

    def start(self) -> None:
        command = jars.java(VERSION, "kafka.Kafka", str(self._file), heap="256m")
        self._running.enter_context(listening(command, self._port, self._folder / "kafka.log"))

    def kill(self) -> None:
        self._running.close()


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

"""Leaders that die while batches are on their way to them: two brokers of Apache Kafka."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from leafcuttr_sdk.broker import LATEST
from leafcuttr_sdk.peers import Peer, PeerAppender
from leafcuttr_sdk.records import Appended
from leafcuttr_sdk.types import TopicPartition
from support import jars
from support.real_kafka import CLUSTER_ID, VERSION, real_kafka
from support.remote_peers import new_batch, peer_at, values_in
from support.waiting import eventually, free_port, within

pytestmark = pytest.mark.long

SECOND = """process.roles=broker
node.id=2
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
"""


@contextmanager
def second_broker(folder: Path, first: Path) -> Iterator[subprocess.Popen[bytes]]:
    folder.mkdir()
    lines = (first / "server.properties").read_text().splitlines()
    voters = next(line.partition("=")[2] for line in lines if line.startswith("controller.quorum.voters"))
    file = folder / "server.properties"
    file.write_text(SECOND.format(voters=voters, port=free_port(), data=folder / "data"))
    form = jars.java(VERSION, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(file))
    subprocess.run(form, check=True, capture_output=True)
    with (folder / "kafka.log").open("wb") as out:
        command = jars.java(VERSION, "kafka.Kafka", str(file), heap="256m")
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def test_leaders_that_die_lose_and_double_nothing(tmp_path: Path) -> None:
    if why := jars.missing():
        pytest.skip(why)
    with (
        real_kafka(tmp_path / "first", "broker.session.timeout.ms=3000") as address,
        second_broker(tmp_path / "second", tmp_path / "first") as dying,
    ):
        async with peer_at(str(address)) as peer:

            async def both() -> bool:
                return await peer.node_count() == 2

            await eventually(both, "the second broker")
            await peer.create_topic("t", partitions=4, replication_factor=2)
            tps = [TopicPartition("t", number) for number in range(4)]
            before = (await peer.topics(["t"]))["t"].leader_epochs
            written: list[bytes] = []
            read: dict[TopicPartition, list[bytes]] = {}
            stop = trio.Event()
            async with peer.appender() as appender, trio.open_nursery() as nursery:
                nursery.start_soon(write, appender, tps, written, stop)
                nursery.start_soon(follow, peer, tps, read, stop)
                await trio.sleep(1)
                dying.kill()
                with within(60, "new leaders"):
                    while (await peer.topics(["t"]))["t"].leader_epochs == before:
                        await trio.sleep(0.2)
                await trio.sleep(1)
                stop.set()
            assert len(written) > 10
            assert read == dict.fromkeys(tps, written)


async def write(
    appender: PeerAppender, tps: list[TopicPartition], written: list[bytes], stop: trio.Event
) -> None:
    while not stop.is_set():
        value = b"%d" % len(written)
        for answer in await appender.append([new_batch(tp, value) for tp in tps]):
            assert isinstance(answer, Appended), answer
        written.append(value)


async def follow(
    peer: Peer, tps: list[TopicPartition], read: dict[TopicPartition, list[bytes]], stop: trio.Event
) -> None:
    """Read while the leaders change, and what is left at the end."""
    read.update({tp: [] for tp in tps})
    positions = dict.fromkeys(tps, 0)
    ends: dict[TopicPartition, int] = {}
    async with peer.reader() as reader:
        reader.assign(positions)
        with within(90, "the end"):
            while not ends or any(positions[tp] < end for tp, end in ends.items()):
                if stop.is_set():
                    ends = await peer.offsets(dict.fromkeys(tps, LATEST))
                with trio.move_on_after(0.2):
                    for each in await reader.read():
                        assert each.error is None
                        read[each.partition] += values_in(each)
                        positions[each.partition] = each.next_offset

"""Leaders that die while batches are on their way to them: two brokers of Apache Kafka."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
import trio

from leafcuttr_sdk.broker import LATEST
from leafcuttr_sdk.peers import Peer, PeerAppender
from leafcuttr_sdk.records import Appended
from leafcuttr_sdk.types import TopicPartition
from support import jars
from support.real_kafka import real_kafka
from support.remote_peers import new_batch, peer_at, values_in
from support.second_kafka import SecondBroker
from support.waiting import eventually, within

pytestmark = pytest.mark.long


async def test_leaders_that_die_lose_and_double_nothing(tmp_path: Path) -> None:
    if why := jars.missing():
        pytest.skip(why)
    with (
        real_kafka(tmp_path / "first", "broker.session.timeout.ms=3000") as address,
        ExitStack() as running,
    ):
        dying = SecondBroker(tmp_path / "second", tmp_path / "first")
        running.callback(dying.kill)
        dying.start()
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
                await trio.to_thread.run_sync(dying.kill)
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

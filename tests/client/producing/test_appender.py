"""Appending idempotently, over the network."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import trio

from leafcuttr.errors import (
    BrokerError,
    CorruptMessage,
    MessageTooLarge,
    OutOfOrderSequence,
    RequestTimedOut,
    UnknownTopicOrPartition,
)
from leafcuttr_sdk.broker import LATEST
from leafcuttr_sdk.peers import Peer, PeerAppender
from leafcuttr_sdk.records import Appended, NewBatch
from leafcuttr_sdk.types import TopicPartition
from support.broker_process import running_broker
from support.cutting_proxy import CuttingProxy
from support.remote_peers import new_batch, peer_at, read_to
from support.waiting import free_port, within

OpenPeer = Callable[..., AbstractAsyncContextManager[Peer]]


async def stored(peer: Peer, topic: str, partitions: int = 3) -> dict[TopicPartition, list[bytes]]:
    tps = [TopicPartition(topic, number) for number in range(partitions)]
    ends = await peer.offsets(dict.fromkeys(tps, LATEST))
    async with peer.reader() as reader:
        reader.assign({tp: 0 for tp in tps if ends[tp]})
        return await read_to(reader, ends)


def offsets(answers: list[Appended | BrokerError]) -> list[int]:
    found = []
    for answer in answers:
        assert isinstance(answer, Appended), answer
        found.append(answer.base_offset)
    return found


async def test_each_batch_gets_its_offsets(peer: Peer, topic: str) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with peer.appender() as appender:
        answers = await appender.append([new_batch(first, b"a", b"b"), new_batch(second, b"c")])
        assert answers == [Appended(0, 1), Appended(0, 0)]
        assert await appender.append([new_batch(first, b"d")]) == [Appended(2, 2)]
        assert await appender.append([]) == []
    assert await stored(peer, topic) == {
        first: [b"a", b"b", b"d"], second: [b"c"], TopicPartition(topic, 2): []
    }  # fmt: skip


async def test_many_batches_of_a_partition_in_one_call_keep_their_order(peer: Peer, topic: str) -> None:
    tps = [TopicPartition(topic, number) for number in range(3)]
    batches = [new_batch(tp, b"%d" % number) for number in range(40) for tp in tps]
    async with peer.appender() as appender:
        assert offsets(await appender.append(batches)) == [number for number in range(40) for _ in tps]
    assert await stored(peer, topic) == {tp: [b"%d" % number for number in range(40)] for tp in tps}


async def test_calls_beside_each_other_keep_their_order(peer: Peer, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with peer.appender() as appender, trio.open_nursery() as nursery:

        async def call(number: int, task_status: trio.TaskStatus[None]) -> None:
            task_status.started()
            offsets(await appender.append([new_batch(tp, b"%d" % number)]))

        for number in range(20):
            await nursery.start(call, number)
    assert (await stored(peer, topic))[tp] == [b"%d" % number for number in range(20)]


async def small_batches(peer: Peer, topic: str) -> str:
    """A topic of batches of 1000 bytes: a setting that is changed may come into force behind the answer."""
    await peer.create_topic(f"{topic}-small", partitions=3, configs={"max.message.bytes": "1000"})
    return f"{topic}-small"


async def test_what_is_refused_takes_along_what_is_behind_it(peer: Peer, topic: str) -> None:
    topic = await small_batches(peer, topic)
    tp, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with peer.appender() as appender:
        offsets(await appender.append([new_batch(tp, b"a")]))
        answers = await appender.append(
            [new_batch(tp, b"b" * 2000), new_batch(tp, b"c"), new_batch(other, b"d"), new_batch(tp, b"e")]
        )
        kinds = [type(answer) for answer in answers]
        assert kinds == [MessageTooLarge, OutOfOrderSequence, Appended, OutOfOrderSequence]
        assert "an earlier batch was not appended" in str(answers[1])
        assert offsets(await appender.append([new_batch(tp, b"f")])) == [1]
    assert (await stored(peer, topic))[tp] == [b"a", b"f"]


async def test_the_first_batch_that_is_refused_takes_along_what_is_behind_it(peer: Peer, topic: str) -> None:
    topic = await small_batches(peer, topic)
    tp = TopicPartition(topic, 0)
    async with peer.appender() as appender:
        answers = await appender.append([new_batch(tp, b"b" * 2000), new_batch(tp, b"c")])
        assert [type(answer) for answer in answers] == [MessageTooLarge, OutOfOrderSequence]
    assert (await stored(peer, topic))[tp] == []


async def test_bytes_that_are_no_batch_are_not_sent(peer: Peer, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    broken = bytearray(new_batch(tp, b"value").batch)
    broken[-1] ^= 1
    async with peer.appender() as appender:
        answers = await appender.append([NewBatch(tp, broken), NewBatch(tp, b"x"), new_batch(tp, b"behind")])
        assert [type(answer) for answer in answers] == [CorruptMessage, CorruptMessage, OutOfOrderSequence]
        assert await appender.append([new_batch(tp, b"good")]) == [Appended(0, 0)]


async def test_a_large_batch_that_is_damaged_is_refused_by_the_broker(peer: Peer, topic: str) -> None:
    """Nobody computes its CRC before that; what is behind it is not appended either."""
    tp = TopicPartition(topic, 0)
    damaged = new_batch(tp, bytes(100_000))
    damaged.batch[-1] ^= 1  # type: ignore[index]
    async with peer.appender() as appender:
        await appender.append([new_batch(tp, b"before")])
        answers = await appender.append([damaged, new_batch(tp, b"behind")])
        assert [type(one) for one in answers] == [CorruptMessage, OutOfOrderSequence]
        (appended,) = await appender.append([new_batch(tp, bytes(100_000))])
        assert appended == Appended(1, 1)


async def test_partitions_that_do_not_exist(peer: Peer, topic: str) -> None:
    wrong = [TopicPartition("nowhere", 0), TopicPartition(topic, 9)]
    right = TopicPartition(topic, 0)
    async with peer.appender() as appender:
        answers = await appender.append([new_batch(tp, b"x") for tp in (*wrong, right)])
        assert [type(answer) for answer in answers] == [
            UnknownTopicOrPartition,
            UnknownTopicOrPartition,
            Appended,
        ]
        assert not await peer.topics(["nowhere"])


async def test_a_cluster_that_is_away(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    tp = TopicPartition("t", 0)
    async with peer_at(address, delivery_timeout_ms="300") as peer:
        assert peer.trouble is None
        async with peer.appender() as appender:
            (answer,) = await appender.append([new_batch(tp, b"x")])
        assert isinstance(answer, RequestTimedOut)
        assert str(answer) == f"no broker answers at {address}"
        assert peer.trouble == f"no broker answers at {address}"


async def test_calls_that_wait_at_the_end_of_the_context_are_answered(tmp_path: Path) -> None:
    proxy = CuttingProxy()
    tp = TopicPartition("t", 0)
    answers: list[Appended | BrokerError] = []
    with running_broker(tmp_path, {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(proxy.serve, broker.port)
            async with peer_at(proxy.address) as peer:
                await peer.create_topic("t", partitions=1)
                async with trio.open_nursery() as callers, peer.appender() as appender:
                    offsets(await appender.append([new_batch(tp, b"a")]))
                    proxy.is_open = False
                    proxy.cut_all()

                    async def call(task_status: trio.TaskStatus[None]) -> None:
                        task_status.started()
                        answers.extend(await appender.append([new_batch(tp, b"b")]))

                    await callers.start(call)
            assert [type(answer) for answer in answers] == [RequestTimedOut]
            assert "the appender was closed" in str(answers[0])
            with pytest.raises(RuntimeError, match="closed"):
                await appender.append([new_batch(tp, b"c")])
            nursery.cancel_scope.cancel()


class Cut:
    """How many bytes pass, by a seed: sometimes in a request, sometimes in an answer, sometimes at once."""

    def __init__(self, seed: int, connections: int) -> None:
        self.random = random.Random(seed)
        self.left = connections

    def __iter__(self) -> Iterator[tuple[int | None, int | None]]:
        while self.left:
            self.left -= 1
            size = self.random.choice([10, 100, 1000, 2000, 4000])
            yield self.random.choice([(size, None), (None, size // 10 + 1), (size, size // 10 + 1)])


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 20))])
async def test_connections_that_are_cut_anywhere_lose_and_double_nothing(tmp_path: Path, seed: int) -> None:
    proxy = CuttingProxy()
    with running_broker(tmp_path, {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(proxy.serve, broker.port)
            async with peer_at(proxy.address) as peer:
                await peer.create_topic("t", partitions=3)
                proxy.cuts = iter(Cut(seed, 80))
                proxy.cut_all()
                async with peer.appender() as appender:
                    with within(120, "all answers"):
                        written = await append_much(appender)
                assert proxy.cut > 10
                proxy.cuts = iter(())
                assert await stored(peer, "t") == written
            nursery.cancel_scope.cancel()


async def append_much(appender: PeerAppender) -> dict[TopicPartition, list[bytes]]:
    """Five calls beside each other, 100 in all; what is to be in the partitions. All have to be appended."""
    tps = [TopicPartition("t", number) for number in range(3)]
    written: dict[TopicPartition, list[bytes]] = {tp: [] for tp in tps}
    places = trio.Semaphore(5)
    async with trio.open_nursery() as nursery:

        async def call(batches: list[NewBatch], task_status: trio.TaskStatus[None]) -> None:
            task_status.started()
            offsets(await appender.append(batches))
            places.release()

        for number in range(100):
            await places.acquire()
            batches = []
            for tp in tps[: number % 3 + 1]:
                values = [b"%d-%d" % (number, each) + bytes(100) for each in range(number % 4 + 1)]
                written[tp] += values
                batches.append(new_batch(tp, *values))
            await nursery.start(call, batches)
    return written


async def test_what_is_not_acknowledged_in_time_may_have_been_appended(tmp_path: Path) -> None:
    proxy = CuttingProxy()
    tp = TopicPartition("t", 0)
    with running_broker(tmp_path, {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(proxy.serve, broker.port)
            async with peer_at(proxy.address, delivery_timeout_ms="700", request_timeout_ms="500") as peer:
                await peer.create_topic("t", partitions=1)
                async with peer.appender() as appender:
                    offsets(await appender.append([new_batch(tp, b"a")]))
                    proxy.is_open = False
                    proxy.cut_all()
                    (answer,) = await appender.append([new_batch(tp, b"b")])
                    assert isinstance(answer, RequestTimedOut)
                    proxy.is_open = True
                    # The appender goes on by itself, with another epoch.
                    offsets(await appender.append([new_batch(tp, b"c")]))
                found = (await stored(peer, "t", 1))[tp]
                assert found in ([b"a", b"c"], [b"a", b"b", b"c"])
            nursery.cancel_scope.cancel()


async def test_a_broker_that_is_killed_and_comes_back(tmp_path: Path) -> None:
    from support.broker_process import start_broker

    port = free_port()
    settings = {"listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    broker = start_broker(tmp_path, settings)
    try:
        async with peer_at(broker.address) as peer:
            await peer.create_topic("t", partitions=3)
            async with peer.appender() as appender, trio.open_nursery() as nursery:
                written: list[dict[TopicPartition, list[bytes]]] = []

                async def write() -> None:
                    written.append(await append_much(appender))

                nursery.start_soon(write)
                await trio.sleep(0)
                broker.process.kill()
                await trio.to_thread.run_sync(broker.process.wait)
                broker = await trio.to_thread.run_sync(start_broker, tmp_path, settings)
            assert await stored(peer, "t") == written[0]
    finally:
        broker.stop()

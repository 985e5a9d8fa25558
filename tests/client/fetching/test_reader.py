"""Reading from leaders, over the network."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import trio

from leafcuttr.client import protocol
from leafcuttr.errors import OffsetOutOfRange, UnknownTopicId, UnknownTopicOrPartition
from leafcuttr.wire.api import APIS, ApiKey
from leafcuttr.wire.messages.delete_topics import DeleteTopicsRequest
from leafcuttr_sdk.broker import LATEST
from leafcuttr_sdk.peers import Peer, PeerRead
from leafcuttr_sdk.types import TopicPartition
from support.broker_process import running_broker
from support.cutting_proxy import CuttingProxy
from support.remote_peers import new_batch, peer_at, read_to, values_in
from support.waiting import within
from support.wire_client import WireClient

OpenPeer = Callable[..., AbstractAsyncContextManager[Peer]]


async def fill(
    peer: Peer, topic: str, counts: dict[int, int], size: int = 0
) -> dict[TopicPartition, list[bytes]]:
    """So many batches of two records in each partition; the values that were written."""
    written: dict[TopicPartition, list[bytes]] = {}
    async with peer.appender() as appender:
        for number, count in counts.items():
            tp = TopicPartition(topic, number)
            values = [b"%d-%d" % (number, each) + bytes(size) for each in range(2 * count)]
            for at in range(0, len(values), 2):
                (answer,) = await appender.append([new_batch(tp, *values[at : at + 2])])
                assert not isinstance(answer, Exception), answer
            written[tp] = values
    return written


async def one_read(peer: Peer, positions: dict[TopicPartition, int], **options: int) -> list[PeerRead]:
    async with peer.reader(**options) as reader:  # type: ignore[arg-type]
        reader.assign(positions)
        return list(await reader.read())


async def test_many_partitions_by_one_reader(peer: Peer, topic: str) -> None:
    written = await fill(peer, topic, {0: 3, 1: 1, 2: 5})
    async with peer.reader() as reader:
        reader.assign(dict.fromkeys(written, 0))
        assert await read_to(reader, {tp: len(values) for tp, values in written.items()}) == written


async def test_a_start_within_a_batch(peer: Peer, topic: str) -> None:
    (tp,) = written = await fill(peer, topic, {1: 2})
    (read,) = await one_read(peer, {tp: 1})
    assert (values_in(read), read.next_offset, read.high_watermark, read.log_start_offset) == (
        written[tp],
        4,
        4,
        0,
    )
    (read,) = await one_read(peer, {tp: 2})
    assert values_in(read) == written[tp][2:]


async def test_what_is_appended_later_arrives(peer: Peer, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with peer.reader() as reader, peer.appender() as appender:
        reader.assign({tp: 0})
        for number in range(5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(appender.append, [new_batch(tp, b"%d" % number)])
                with within(30, "the record"):
                    (read,) = await reader.read()
            assert (values_in(read), read.next_offset) == ([b"%d" % number], number + 1)


async def test_at_most_so_much_is_fetched_and_not_handed_out(peer: Peer, topic: str) -> None:
    written = await fill(peer, topic, {0: 20, 1: 20}, size=5000)
    async with peer.reader(max_bytes=40_000, partition_bytes=15_000) as reader:
        reader.assign(dict.fromkeys(written, 0))
        found: dict[TopicPartition, list[bytes]] = {tp: [] for tp in written}
        while any(len(found[tp]) < 40 for tp in written):
            reads = await reader.read()
            assert len({read.partition for read in reads}) == len(reads)
            assert sum(len(read.data) for read in reads) <= 40_000
            for read in reads:
                assert len(read.data) <= 15_000
                found[read.partition] += values_in(read)
    assert found == written


async def test_a_batch_larger_than_all_limits_is_read(peer: Peer, topic: str) -> None:
    written = await fill(peer, topic, {0: 2, 1: 2}, size=50_000)
    async with peer.reader(max_bytes=1000, partition_bytes=1000) as reader:
        reader.assign(dict.fromkeys(written, 0))
        assert await read_to(reader, dict.fromkeys(written, 4)) == written


async def test_batches_larger_than_the_share_of_a_partition_come_of_all_partitions(
    peer: Peer, topic: str
) -> None:
    """Once one has come: with a smaller share each fetch would have one partition only."""
    written = await fill(peer, topic, {0: 8, 1: 8, 2: 8}, size=50_000)
    async with peer.reader(partition_bytes=1000) as reader:
        reader.assign(dict.fromkeys(written, 0))
        await reader.read()
        together = [len(await reader.read()) for _ in range(2)]
    assert together[-1] == 3


async def test_pause_keeps_what_was_read_for_resume(peer: Peer, topic: str) -> None:
    written = await fill(peer, topic, {0: 1, 1: 1})
    first, second = written
    async with peer.reader() as reader:
        reader.assign({first: 0})
        reader.pause(first, TopicPartition("other", 0))
        reader.assign({second: 0})
        assert await read_to(reader, {second: 2}) == {second: written[second]}
        reader.resume(first)
        assert await read_to(reader, {first: 2}) == {first: written[first]}


async def test_assigned_anew_it_goes_on_there(peer: Peer, topic: str) -> None:
    (tp,) = written = await fill(peer, topic, {0: 3})
    async with peer.reader() as reader:
        reader.assign({tp: 0})
        await read_to(reader, {tp: 6})
        for start in (2, 4, 0):
            reader.assign({tp: start})
            assert await read_to(reader, {tp: 6}) == {tp: written[tp][start:]}


async def test_what_is_not_assigned_any_more_does_not_come(peer: Peer, topic: str) -> None:
    written = await fill(peer, topic, {0: 1, 1: 1})
    first, second = written
    async with peer.reader() as reader:
        reader.assign({first: 0})
        reader.unassign(first, TopicPartition("other", 0))
        reader.assign({second: 0})
        assert await read_to(reader, {second: 2}) == {second: written[second]}


async def test_a_cancelled_read_loses_nothing(peer: Peer, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with peer.reader() as reader:
        reader.assign({tp: 0})
        with trio.move_on_after(0.05):
            await reader.read()
        written = await fill(peer, topic, {0: 2})
        assert await read_to(reader, {tp: 4}) == written


async def test_one_task_reads(peer: Peer) -> None:
    async with peer.reader() as reader, trio.open_nursery() as nursery:
        nursery.start_soon(reader.read)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await reader.read()
        nursery.cancel_scope.cancel()


async def test_a_position_outside_of_the_log(peer: Peer, topic: str) -> None:
    written = await fill(peer, topic, {0: 1, 1: 1})
    first, second = written
    async with peer.reader() as reader:
        reader.assign({first: 100, second: 0})
        seen: dict[TopicPartition, PeerRead] = {}
        while len(seen) < 2:
            seen |= {read.partition: read for read in await reader.read()}
        assert isinstance(seen[first].error, OffsetOutOfRange)
        assert seen[second].error is None
        # It is left alone until it is assigned again.
        reader.assign({first: 0})
        assert await read_to(reader, {first: 2}) == {first: written[first]}


async def test_partitions_that_do_not_exist(peer: Peer, topic: str) -> None:
    for tp in (TopicPartition("nowhere", 0), TopicPartition(topic, 9)):
        (read,) = await one_read(peer, {tp: 0})
        assert isinstance(read.error, UnknownTopicOrPartition)


async def delete(address: str, topic: str) -> None:
    def call() -> None:
        with WireClient(address) as client:
            answer = client.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000), 4)
            assert not answer.responses[0].error_code

    await trio.to_thread.run_sync(call)


async def test_a_topic_that_is_deleted(peer: Peer, topic: str, address: str) -> None:
    (tp,) = written = await fill(peer, topic, {0: 1})
    async with peer.reader() as reader:
        reader.assign({tp: 0})
        assert await read_to(reader, {tp: 2}) == written
        await delete(address, topic)
        with within(30, "the error"):
            (read,) = await reader.read()
        assert isinstance(read.error, UnknownTopicOrPartition)


async def test_a_topic_that_is_deleted_and_created_anew(peer: Peer, topic: str, address: str) -> None:
    (tp,) = written = await fill(peer, topic, {0: 1})
    async with peer.reader() as reader:
        reader.assign({tp: 0})
        assert await read_to(reader, {tp: 2}) == written
        reader.pause(tp)
        await delete(address, topic)
        await peer.create_topic(topic, partitions=1)
        anew = await fill(peer, topic, {0: 3})
        reader.resume(tp)
        with within(30, "the error"):
            (read,) = await reader.read()
        assert isinstance(read.error, UnknownTopicId)
        reader.assign({tp: 0})
        assert await read_to(reader, {tp: 6}) == anew


async def test_a_topic_that_is_created_anew_where_it_is_read_by_its_name(
    topic: str, address: str, open_peer: OpenPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of brokers before Kafka 3.1, whose metadata has ids that Fetch does not: the metadata is looked at again."""
    monkeypatch.setattr(protocol, "APIS", {**APIS, ApiKey.FETCH: APIS[ApiKey.FETCH]._replace(max_version=12)})
    monkeypatch.setattr(protocol, "_BY_MODULE", {api.module: api for api in protocol.APIS.values()})
    async with open_peer(metadata_max_age_ms="50") as peer, peer.reader() as reader:
        (tp,) = await fill(peer, topic, {0: 1})
        reader.assign({tp: 0})
        await read_to(reader, {tp: 2})
        reader.pause(tp)
        await delete(address, topic)
        await peer.create_topic(topic, partitions=1)
        await fill(peer, topic, {0: 3})
        reader.resume(tp)
        error = None
        with within(30, "the error"):
            while error is None:
                ((*_, error),) = await reader.read()
        assert isinstance(error, UnknownTopicId)


async def test_transactions_that_were_aborted(peer: Peer, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with peer.transaction(f"t-{topic}") as producer:
        for number in range(4):
            try:
                async with producer.begin() as transaction:
                    await transaction.append([new_batch(tp, b"%d" % number)])
                    if number % 2:
                        raise KeyError
            except KeyError:
                pass
    end = (await peer.offsets({tp: LATEST}, committed=True))[tp]
    async with peer.reader(committed=True) as reader:
        reader.assign({tp: 0})
        assert await read_to(reader, {tp: end}) == {tp: [b"0", b"2"]}
    async with peer.reader(committed=False) as reader:
        reader.assign({tp: 0})
        assert await read_to(reader, {tp: end}) == {tp: [b"0", b"1", b"2", b"3"]}


async def test_what_an_open_transaction_holds_back_does_not_come(peer: Peer, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with peer.transaction(f"o-{topic}") as producer, peer.reader() as reader:
        reader.assign({tp: 0})
        async with producer.begin() as transaction:
            await transaction.append([new_batch(tp, b"a")])
            with trio.move_on_after(0.2):
                assert not await reader.read()
        assert await read_to(reader, {tp: 2}) == {tp: [b"a"]}


@pytest.mark.long
async def test_through_connections_that_are_cut_anywhere(tmp_path: Path) -> None:
    chosen = random.Random(5)
    proxy = CuttingProxy((None, chosen.choice([30, 300, 3000, 30_000])) for _ in range(60))
    settings = {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}
    with running_broker(tmp_path, settings) as broker:
        async with trio.open_nursery() as nursery:
            cuts, proxy.cuts = proxy.cuts, iter(())
            nursery.start_soon(proxy.serve, broker.port)
            async with peer_at(proxy.address) as peer:
                await peer.create_topic("t", partitions=2)
                written = await fill(peer, "t", {0: 20, 1: 20}, size=2000)
                proxy.cuts = itertools.chain(cuts)
                proxy.cut_all()
                async with peer.reader(partition_bytes=20_000) as reader:
                    reader.assign(dict.fromkeys(written, 0))
                    with within(60, "all records"):
                        assert await read_to(reader, dict.fromkeys(written, 40)) == written
            assert proxy.cut > 10
            nursery.cancel_scope.cancel()

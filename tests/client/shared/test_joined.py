"""Batches for a transaction that another process has begun."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
import trio

from leafcuttr.client.calls import Calls
from leafcuttr.client.shared import joined as joined_module
from leafcuttr.client.shared.joined import open_joined
from leafcuttr.client.shared.owner import SharedProducer
from leafcuttr.errors import CorruptMessage, OutOfOrderSequence
from leafcuttr_sdk.batches import batches_in
from leafcuttr_sdk.errors import ProducerFenced
from leafcuttr_sdk.peers import Peer
from leafcuttr_sdk.records import Appended, NewBatch
from leafcuttr_sdk.types import TopicPartition
from support.remote_peers import new_batch
from support.shared_transactions import sees, write

OpenOwner = Callable[..., AbstractAsyncContextManager[SharedProducer]]


async def test_batches_carry_the_producer_the_epoch_and_sequences_from_0_on(
    calls: Calls, opened: OpenOwner, peer: Peer, topic: str
) -> None:
    tp = TopicPartition(topic, 0)
    async with opened(f"x-{topic}") as owner:
        shared = await owner.begin_shared()
        async with open_joined(calls, shared) as joined:
            answers = await joined.append([new_batch(tp, b"a", b"b"), new_batch(tp, b"c")])
            answers += await joined.append([new_batch(tp, b"d")])
            assert answers == [Appended(0, 1), Appended(2, 2), Appended(3, 3)]
            assert await joined.append([]) == []
        async with peer.reader(committed=False) as reader:
            reader.assign({tp: 0})
            (read,) = await reader.read()
        headers = [batch.header for batch in batches_in(read.data)]
        assert [
            (each.producer_id, each.producer_epoch, each.base_sequence, each.is_transactional)
            for each in headers
        ] == [(shared.producer_id, shared.epoch, sequence, True) for sequence in (0, 2, 3)]
        await owner.commit({tp: 4})


async def test_calls_keep_their_order_while_partitions_are_joined(
    calls: Calls, opened: OpenOwner, peer: Peer, topic: str
) -> None:
    tps = [TopicPartition(topic, number) for number in range(3)]
    async with opened(f"x-{topic}") as owner:
        shared = await owner.begin_shared()
        async with open_joined(calls, shared) as joined, trio.open_nursery() as nursery:

            async def call(batches: list[NewBatch], task_status: trio.TaskStatus[None]) -> None:
                task_status.started()
                for answer in await joined.append(batches):
                    assert isinstance(answer, Appended)

            for number in range(12):
                named = tps[: 1 + number // 4]
                await nursery.start(call, [new_batch(tp, b"%d" % number) for tp in named])
        await owner.commit({tps[0]: 12, tps[1]: 8, tps[2]: 4})
    for place, first in enumerate((0, 4, 8)):
        await sees(peer, tps[place], *(b"%d" % number for number in range(first, 12)))


async def test_no_call_overtakes_one_that_joins_another_partition(
    calls: Calls, opened: OpenOwner, peer: Peer, topic: str
) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with opened(f"x-{topic}") as owner:
        async with open_joined(calls, await owner.begin_shared()) as joined:
            await joined.append([new_batch(first, b"0")])
            async with trio.open_nursery() as nursery:

                async def call(batches: list[NewBatch], task_status: trio.TaskStatus[None]) -> None:
                    task_status.started()
                    for answer in await joined.append(batches):
                        assert isinstance(answer, Appended)

                await nursery.start(call, [new_batch(first, b"1"), new_batch(second, b"1")])
                await nursery.start(call, [new_batch(first, b"2")])
        await owner.commit({first: 3, second: 1})
    await sees(peer, first, b"0", b"1", b"2")


async def test_once_a_batch_is_refused_all_later_ones_are(
    calls: Calls, opened: OpenOwner, topic: str
) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    damaged = bytearray(new_batch(first, b"a").batch)
    damaged[-1] ^= 1
    async with opened(f"x-{topic}") as owner, open_joined(calls, await owner.begin_shared()) as joined:
        (refused,) = await joined.append([NewBatch(first, damaged)])
        assert isinstance(refused, CorruptMessage)
        assert await joined.append([new_batch(second, b"b"), new_batch(first, b"c")]) == [refused] * 2


async def test_what_another_has_written_to_a_partition_is_noticed_at_the_first_batch(
    calls: Calls, opened: OpenOwner, topic: str
) -> None:
    """A batch like one of the other's would be taken for a repetition: an answer without an error, and not stored."""
    tp, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with opened(f"x-{topic}") as owner:
        shared = await owner.begin_shared()
        await write(calls, shared, tp, b"a")
        async with open_joined(calls, shared) as joined:
            assert await joined.append([new_batch(other, b"b")]) == [Appended(0, 0)]
            answers = await joined.append([new_batch(other, b"c"), new_batch(tp, b"again")])
            assert [type(answer) for answer in answers] == [OutOfOrderSequence] * 2
            assert str(answers[0]).startswith(
                f"{tp}: another process has written 1 records of the transaction"
            )


async def test_without_an_answer_on_what_was_written_it_goes_on(
    calls: Calls, opened: OpenOwner, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster before Kafka 2.8, or a client that may not read the topic."""

    async def does_not_tell(*_: object) -> None:
        return None

    monkeypatch.setattr(joined_module, "records_written", does_not_tell)
    tp = TopicPartition(topic, 0)
    async with opened(f"x-{topic}") as owner:
        shared = await owner.begin_shared()
        await write(calls, shared, tp, b"a", b"b")
        await owner.commit({tp: 2})


async def test_the_batches_of_a_transaction_that_is_over_are_refused_and_say_why(
    calls: Calls, opened: OpenOwner, topic: str
) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with opened(f"x-{topic}") as owner:
        shared = await owner.begin_shared()
        async with open_joined(calls, shared) as joined:
            await joined.append([new_batch(first, b"a")])
            await owner.abort()
            await owner.begin_shared()
            for tp in (first, second):
                (answer,) = await joined.append([new_batch(tp, b"late")])
                assert isinstance(answer, ProducerFenced)
                assert f"The transaction of 'x-{topic}' with epoch {shared.epoch} is over" in str(answer)


async def test_its_end_drops_what_is_not_acknowledged(calls: Calls, opened: OpenOwner, topic: str) -> None:
    async with opened(f"x-{topic}") as owner:
        async with open_joined(calls, await owner.begin_shared()) as joined:
            pass
        with pytest.raises(RuntimeError, match="closed"):
            await joined._sender.append([new_batch(TopicPartition(topic, 0), b"a")], joined._identity)

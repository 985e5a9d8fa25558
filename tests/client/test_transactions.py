"""Transactions over the network."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr.client import transactions
from leafcuttr.client.producing.sender import BatchSender
from leafcuttr.client.transactions import RemoteProducer, RemoteTransaction
from leafcuttr.errors import BrokerError, InvalidRequest, MessageTooLarge, UnknownTopicOrPartition
from leafcuttr.wire.messages.end_txn import EndTxnRequest
from leafcuttr_sdk.broker import LATEST
from leafcuttr_sdk.errors import (
    InvalidTransactionTimeout,
    ProducerFenced,
    TransactionAborted,
    TransactionTimedOut,
)
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.peers import Peer
from leafcuttr_sdk.records import Appended, Record
from leafcuttr_sdk.transactions import OpenTransaction
from leafcuttr_sdk.types import TopicPartition
from support.broker_process import running_broker
from support.cutting_proxy import CuttingProxy
from support.remote_peers import new_batch, peer_at, read_to
from support.transactional import lower_transaction_version
from support.waiting import eventually, within

OpenPeer = Callable[..., AbstractAsyncContextManager[Peer]]


async def visible(peer: Peer, topic: str, partitions: int = 3) -> list[list[bytes]]:
    """What readers of committed records see."""
    tps = [TopicPartition(topic, number) for number in range(partitions)]
    ends = await peer.offsets(dict.fromkeys(tps, LATEST), committed=True)
    async with peer.reader(committed=True) as reader:
        reader.assign({tp: 0 for tp in tps if ends[tp]})
        found = await read_to(reader, ends)
    return [found[tp] for tp in tps]


async def sees(peer: Peer, topic: str, *expected: list[bytes]) -> None:
    """Readers of committed records see this in the first partitions: once the markers are written, which a cluster may
    do behind the answer."""
    found: list[list[bytes]] = []

    async def same() -> bool:
        found[:] = await visible(peer, topic)
        return found[: len(expected)] == list(expected)

    try:
        await eventually(same, "what is visible", seconds=10)
    except TimeoutError:
        assert found[: len(expected)] == list(expected)


async def committed(peer: Peer, group: str, expected: dict[TopicPartition, CommittedOffset]) -> None:
    """The same of a group's offsets."""

    async def same() -> bool:
        return await peer.committed(group) == expected

    await eventually(same, f"the offsets {expected}", seconds=10)


async def test_all_of_it_is_visible_at_the_end_of_the_block(peer: Peer, topic: str) -> None:
    tps = [TopicPartition(topic, number) for number in range(3)]
    async with peer.transaction(f"x-{topic}") as producer:
        assert producer.transactional_id == f"x-{topic}"
        for number in range(3):
            async with producer.begin() as transaction:
                answers = await transaction.append([new_batch(tp, b"%d" % number) for tp in tps])
                assert answers == [Appended(2 * number, 2 * number)] * 3
                await transaction.append([new_batch(tps[0], b"more"), new_batch(tps[0], b"still")])
                await transaction.append([])
                await sees(peer, topic, [], [], [])
                break
    await sees(peer, topic, [b"0", b"more", b"still"], [b"0"], [b"0"])


async def test_one_after_the_other(peer: Peer, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with peer.transaction(f"x-{topic}") as producer:
        for number in range(20):
            async with producer.begin() as transaction:
                await transaction.append([new_batch(tp, b"%d" % number)])
            async with producer.begin():
                pass  # one without records leaves nothing in the log
    await sees(peer, topic, [b"%d" % number for number in range(20)])
    assert await peer.offsets({tp: LATEST}, committed=True) == {tp: 40}


async def test_what_the_block_raises_aborts_and_comes_out_as_it_is(peer: Peer, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with peer.transaction(f"x-{topic}") as producer:
        for number in range(6):
            if number % 2:
                async with producer.begin() as transaction:
                    await transaction.append([new_batch(tp, b"%d" % number)])
                continue
            with pytest.raises(KeyError):
                async with producer.begin() as transaction:
                    await transaction.append([new_batch(tp, b"%d" % number)])
                    raise KeyError(number)
    await sees(peer, topic, [b"1", b"3", b"5"])


async def test_a_cancelled_block_is_aborted_at_once(peer: Peer, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with peer.transaction(f"x-{topic}") as producer:
        with trio.CancelScope() as scope:
            async with producer.begin() as transaction:
                await transaction.append([new_batch(tp, b"gone")])
                scope.cancel()
                await trio.lowlevel.checkpoint()

        async def ended() -> bool:
            return await peer.offsets({tp: LATEST}, committed=True) == {tp: 2}

        await eventually(ended, "the marker")
        async with producer.begin() as transaction:
            await transaction.append([new_batch(tp, b"kept")])
    await sees(peer, topic, [b"kept"])


@pytest.mark.parametrize("answered", [True, False])
async def test_a_cancelled_commit_is_followed_by_no_abort(
    peer: Peer, topic: str, answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is answered or cut short: an abort might be one of the next transaction."""
    tp, ends, ask = TopicPartition(topic, 0), list[bool](), RemoteProducer.coordinator
    monkeypatch.setattr(transactions, "PATIENCE_S", 60.0 if answered else 0.05)
    scope = trio.CancelScope()

    async def noted(producer: RemoteProducer, request: Any, code_of: Any, **options: Any) -> Any:
        if isinstance(request, EndTxnRequest):
            ends.append(request.committed)
            scope.cancel()
            if not answered:
                await trio.sleep_forever()
        return await ask(producer, request, code_of, **options)

    monkeypatch.setattr(RemoteProducer, "coordinator", noted)
    async with peer.transaction(f"x-{topic}") as producer:
        with scope:
            async with producer.begin() as transaction:
                await transaction.append([new_batch(tp, b"first")])
        assert scope.cancelled_caught and ends == [True]
        monkeypatch.undo()
        async with producer.begin() as transaction:
            await transaction.append([new_batch(tp, b"next")])
    await sees(peer, topic, [b"first", b"next"] if answered else [b"next"])


async def test_a_call_that_is_cancelled_leaves_nothing(peer: Peer, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with peer.transaction(f"x-{topic}") as producer:
        with pytest.raises(TransactionAborted, match="a call was cancelled"):
            async with producer.begin() as transaction:
                with trio.CancelScope() as scope:
                    scope.cancel()
                    await transaction.append([new_batch(tp, b"gone")])
        async with producer.begin() as transaction:
            await transaction.append([new_batch(tp, b"kept")])
    await sees(peer, topic, [b"kept"])


async def test_calls_of_several_tasks_are_written_in_their_order_and_acknowledged_together(
    peer: Peer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tps = [TopicPartition(topic, number) for number in range(3)]
    begin, answered = BatchSender.begin, RemoteTransaction._answered
    begun, five = 0, trio.Event()

    def noted(sender: BatchSender, *arguments: Any) -> Any:
        nonlocal begun
        begun += 1
        if begun == 5:
            five.set()
        return begin(sender, *arguments)

    async def held(transaction: RemoteTransaction, answers: Any) -> list[Appended]:
        await five.wait()
        return await answered(transaction, answers)

    monkeypatch.setattr(BatchSender, "begin", noted)
    monkeypatch.setattr(RemoteTransaction, "_answered", held)
    async with (
        peer.transaction(f"x-{topic}") as producer,
        producer.begin() as transaction,
        trio.open_nursery() as nursery,
    ):
        with within(30, "five calls at a time"):
            for number in range(20):
                nursery.start_soon(transaction.append, [new_batch(tp, b"%d" % number) for tp in tps])
                await trio.lowlevel.checkpoint()
                await trio.lowlevel.checkpoint()
            await five.wait()
    await sees(peer, topic, *[[b"%d" % number for number in range(20)]] * 3)


async def test_a_call_that_waits_for_its_turn_fails_with_the_transaction(peer: Peer, topic: str) -> None:
    tp, caught = TopicPartition(topic, 0), list[type]()

    async def append(transaction: OpenTransaction) -> None:
        try:
            await transaction.append([new_batch(tp, b"late")])
        except BrokerError as error:
            caught.append(type(error))

    async with peer.transaction(f"x-{topic}") as producer:
        with pytest.raises(TransactionAborted, match="a call was cancelled"):
            async with producer.begin() as transaction, trio.open_nursery() as nursery:
                assert isinstance(transaction, RemoteTransaction)
                turn = transaction._one_at_a_time
                async with turn:
                    nursery.start_soon(append, transaction)
                    while not turn.statistics().tasks_waiting:
                        await trio.lowlevel.checkpoint()
                    with trio.CancelScope() as scope:
                        scope.cancel()
                        await transaction.append([new_batch(tp, b"gone")])
    assert caught == [TransactionAborted]
    await sees(peer, topic, [])


async def test_calls_under_way_settle_before_the_epoch_changes(
    peer: Peer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them has found that the transaction took too long."""
    tps, name, caught = [TopicPartition(topic, number) for number in range(2)], f"x-{topic}", list[type]()
    answered, explained = RemoteTransaction._answered, RemoteProducer.explained
    release, explanations = trio.Event(), list[int]()

    async def held(transaction: RemoteTransaction, answers: Any) -> list[Appended]:
        try:
            found = await answers()
        finally:
            if transaction._under_way == 2 and not release.is_set():
                release.set()
                while not transaction._explaining.locked():  # by the other call
                    await trio.lowlevel.checkpoint()
                await trio.testing.wait_all_tasks_blocked()
            else:
                await release.wait()

        async def again() -> Any:
            return found

        return await answered(transaction, again)

    async def noted(producer: RemoteProducer, *arguments: Any) -> BrokerError:
        assert isinstance(transaction, RemoteTransaction)
        explanations.append(transaction._under_way)
        return await explained(producer, *arguments)

    async def append(transaction: OpenTransaction, tp: TopicPartition) -> None:
        try:
            await transaction.append([new_batch(tp, b"late")])
        except BrokerError as error:
            caught.append(type(error))

    async with peer.transaction(name, timeout_ms=100) as producer:
        with pytest.raises(TransactionAborted):
            async with producer.begin() as transaction:
                await transaction.append([new_batch(tp, b"late") for tp in tps])
                with within(60, "the abort"):
                    while (await peer.offsets({tps[0]: LATEST}, committed=True))[tps[0]] == 0:
                        await trio.sleep(0.05)
                monkeypatch.setattr(RemoteTransaction, "_answered", held)
                monkeypatch.setattr(RemoteProducer, "explained", noted)
                async with trio.open_nursery() as nursery:
                    for tp in tps:
                        nursery.start_soon(append, transaction, tp)
        monkeypatch.undo()
        async with producer.begin() as transaction:
            await transaction.append([new_batch(tps[0], b"next")])
    assert caught == [TransactionTimedOut] * 2
    assert explanations == [0], "once, with nothing under way"
    await sees(peer, topic, [b"next"])


async def test_the_end_of_the_block_waits_for_what_other_tasks_have_begun(peer: Peer, topic: str) -> None:
    tps = [TopicPartition(topic, number) for number in range(3)]
    async with trio.open_nursery() as nursery, peer.transaction(f"x-{topic}") as producer:
        async with producer.begin() as transaction:
            assert isinstance(transaction, RemoteTransaction)
            for tp in tps:
                nursery.start_soon(transaction.append, [new_batch(tp, b"begun")])
            while transaction._under_way < 3:
                await trio.lowlevel.checkpoint()
        assert not transaction._under_way
    await sees(peer, topic, *[[b"begun"]] * 3)


async def test_the_end_of_the_block_fails_with_what_other_tasks_have_begun(peer: Peer, topic: str) -> None:
    topic = await small_batches(peer, topic)
    tp, caught = TopicPartition(topic, 0), list[type]()

    async def append(transaction: OpenTransaction, value: bytes) -> None:
        try:
            await transaction.append([new_batch(tp, value)])
        except BrokerError as error:
            caught.append(type(error))

    async with trio.open_nursery() as nursery, peer.transaction(f"x-{topic}") as producer:
        with pytest.raises(TransactionAborted, match="a call failed"):
            async with producer.begin() as transaction:
                assert isinstance(transaction, RemoteTransaction)
                nursery.start_soon(append, transaction, b"b" * 2000)
                while not transaction._under_way:
                    await trio.lowlevel.checkpoint()
    assert caught == [MessageTooLarge]
    await sees(peer, topic, [])


async def test_all_calls_of_a_fenced_one_say_so(peer: Peer, topic: str) -> None:
    tps, name, caught = [TopicPartition(topic, number) for number in range(3)], f"x-{topic}", list[type]()

    async def append(transaction: OpenTransaction, tp: TopicPartition) -> None:
        try:
            await transaction.append([new_batch(tp, b"zombie")])
        except BrokerError as error:
            caught.append(type(error))

    async with peer.transaction(name) as first:
        with pytest.raises(TransactionAborted):
            async with first.begin() as transaction:
                await transaction.append([new_batch(tp, b"zombie") for tp in tps])
                async with peer.transaction(name), trio.open_nursery() as nursery:
                    for tp in tps:
                        nursery.start_soon(append, transaction, tp)
                        await trio.lowlevel.checkpoint()
    assert caught == [ProducerFenced] * 3
    await sees(peer, topic, [])


async def test_it_can_be_aborted_by_hand(peer: Peer, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with peer.transaction(f"x-{topic}") as producer, producer.begin() as transaction:
        await transaction.append([new_batch(tp, b"gone")])
        await transaction.abort()
        with pytest.raises(RuntimeError, match="has ended"):
            await transaction.append([new_batch(tp, b"more")])
    await sees(peer, topic, [])


async def test_records_are_made_into_batches(peer: Peer, topic: str) -> None:
    async with peer.transaction(f"x-{topic}") as producer, producer.begin() as transaction:
        records = [Record(b"a", None, (("h", b"1"),), 77), Record(b"b"), Record(b"c"), Record(None, b"key")]
        produced = await transaction.produce_batch(topic, records, partitions=[1, 2, 1, None])
        assert [(each.partition, each.offset) for each in produced[:3]] == [(1, 0), (2, 0), (1, 1)]
        assert produced[0].timestamp == 77
        assert produced[1].timestamp > 10**12

    async def there() -> bool:
        return (await visible(peer, topic))[1][:2] == [b"a", b"c"]

    await eventually(there, "the records")
    async with peer.transaction(f"x-{topic}") as producer:
        with pytest.raises(UnknownTopicOrPartition, match="there is no topic nowhere"):
            async with producer.begin() as transaction:
                await transaction.produce_batch("nowhere", [Record(b"a")])


async def test_offsets_of_a_group_are_committed_with_it(peer: Peer, topic: str) -> None:
    tp, group = TopicPartition(topic, 0), f"g-{topic}"
    async with peer.transaction(f"x-{topic}") as producer:
        async with producer.begin() as transaction:
            await transaction.append([new_batch(tp, b"a")])
            await transaction.commit_offsets(group, {tp: CommittedOffset(5, "m")})
            await transaction.commit_offsets(group, {})
        await committed(peer, group, {tp: CommittedOffset(5, "m")})
        with pytest.raises(KeyError):
            async with producer.begin() as transaction:
                await transaction.commit_offsets(group, {tp: CommittedOffset(6)})
                raise KeyError
        await committed(peer, group, {tp: CommittedOffset(5, "m")})
        async with producer.begin() as transaction:
            await transaction.commit_offsets(group, {tp: CommittedOffset(7)})
        await committed(peer, group, {tp: CommittedOffset(7)})
        with pytest.raises(ValueError, match="are to be named"):
            async with producer.begin() as transaction:
                await transaction.commit_offsets(group)


async def small_batches(peer: Peer, topic: str) -> str:
    """A topic of batches of 1000 bytes: a setting that is changed may come into force behind the answer."""
    await peer.create_topic(f"{topic}-small", partitions=3, configs={"max.message.bytes": "1000"})
    return f"{topic}-small"


async def test_what_fails_aborts_and_the_end_says_why(peer: Peer, topic: str) -> None:
    topic = await small_batches(peer, topic)
    tp = TopicPartition(topic, 0)
    async with peer.transaction(f"x-{topic}") as producer:
        with pytest.raises(TransactionAborted, match="can only be aborted: a call failed"):
            async with producer.begin() as transaction:
                await transaction.append([new_batch(tp, b"a")])
                with pytest.raises(MessageTooLarge):
                    await transaction.append([new_batch(tp, b"b" * 2000), new_batch(tp, b"c")])
                with pytest.raises(TransactionAborted):
                    await transaction.append([new_batch(tp, b"d")])
        async with producer.begin() as transaction:
            await transaction.append([new_batch(tp, b"e")])
    await sees(peer, topic, [b"e"])


async def test_a_later_producer_fences_the_one_before(peer: Peer, topic: str, open_peer: OpenPeer) -> None:
    tp, name = TopicPartition(topic, 0), f"x-{topic}"
    async with open_peer() as other, peer.transaction(name) as first:
        with pytest.raises(ProducerFenced, match=f"Another producer has taken the transactional id '{name}'"):
            async with first.begin() as transaction:
                await transaction.append([new_batch(tp, b"zombie")])
                async with other.transaction(name) as second, second.begin() as its:
                    await its.append([new_batch(tp, b"a")])
                await transaction.append([new_batch(tp, b"zombie")])
        with pytest.raises(ProducerFenced):
            async with first.begin():
                pass
    await sees(peer, topic, [b"a"])


async def test_the_commit_of_a_fenced_one_fails(peer: Peer, topic: str) -> None:
    tp, name = TopicPartition(topic, 0), f"x-{topic}"
    async with peer.transaction(name) as first:
        with pytest.raises(ProducerFenced):
            async with first.begin() as transaction:
                await transaction.append([new_batch(tp, b"zombie")])
                async with peer.transaction(name):
                    pass
    await sees(peer, topic, [])


async def test_one_that_takes_too_long_is_aborted_and_the_next_may_begin(
    peer: Peer, topic: str, request: pytest.FixtureRequest
) -> None:
    tp, name = TopicPartition(topic, 0), f"x-{topic}"
    async with peer.transaction(name, timeout_ms=100) as producer:
        with pytest.raises(TransactionTimedOut, match="took longer than 100 ms"):
            async with producer.begin() as transaction:
                await transaction.append([new_batch(tp, b"late")])
                with within(60, "the abort"):
                    while (await peer.offsets({tp: LATEST}, committed=True))[tp] == 0:
                        await trio.sleep(0.05)
        async with producer.begin() as transaction:
            await transaction.append([new_batch(tp, b"next")])
    await sees(peer, topic, [b"next"])


async def test_one_that_has_written_nothing_is_fenced_although_its_time_is_up(peer: Peer, topic: str) -> None:
    """It must not go on with the epoch of the one that has the id now."""
    tp, name = TopicPartition(topic, 0), f"x-{topic}"
    async with peer.transaction(name, timeout_ms=1) as first:
        with pytest.raises(TransactionAborted):
            async with first.begin() as transaction, peer.transaction(name) as second:
                await trio.sleep(0.01)
                with pytest.raises(ProducerFenced):
                    await transaction.append([new_batch(tp, b"zombie")])
                async with second.begin() as its:
                    await its.append([new_batch(tp, b"a")])
    await sees(peer, topic, [b"a"])


async def test_what_cannot_be_an_id_or_a_timeout(peer: Peer) -> None:
    for name in ("", "\ud800", "x" * 40_000):
        with pytest.raises(InvalidRequest):
            async with peer.transaction(name):
                pass
    for timeout in (0, 2**31 - 1):
        with pytest.raises(InvalidTransactionTimeout, match="is not from 1 ms"):
            async with peer.transaction("x", timeout_ms=timeout):
                pass


async def test_one_at_a_time_and_none_after_the_end(peer: Peer) -> None:
    async with peer.transaction("x") as producer, producer.begin():
        with pytest.raises(trio.BusyResourceError):
            async with producer.begin():
                pass
    with pytest.raises(RuntimeError, match="closed"):
        async with producer.begin():
            pass


async def test_without_the_newer_version_of_transactions(tmp_path: Path) -> None:
    """Partitions and groups are added first, and the epoch stays (KIP-98)."""
    with running_broker(tmp_path) as broker:
        await trio.to_thread.run_sync(lower_transaction_version, broker.address)
        async with peer_at(broker.address) as peer:
            await peer.create_topic("t", partitions=3)
            await test_one_after_the_other(peer, "t")
            for test in (
                test_what_the_block_raises_aborts_and_comes_out_as_it_is,
                test_offsets_of_a_group_are_committed_with_it,
                test_what_fails_aborts_and_the_end_says_why,
                test_the_commit_of_a_fenced_one_fails,
            ):
                await peer.create_topic(test.__name__, partitions=3)
                await test(peer, test.__name__)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12))])
async def test_connections_that_are_cut_anywhere(
    tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Each transaction is visible as a whole or not at all, and those that have ended well are, once."""
    import random

    caplog.set_level(logging.ERROR)
    chosen = random.Random(seed)
    cuts = [
        (None, chosen.choice([50, 200, 800]))
        if chosen.random() < 0.5
        else (chosen.choice([100, 500, 2000]), None)
        for _ in range(60)
    ]
    proxy = CuttingProxy()
    with running_broker(tmp_path, {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(proxy.serve, broker.port)
            async with peer_at(proxy.address) as peer:
                await peer.create_topic("t", partitions=3)
                tps = [TopicPartition("t", number) for number in range(3)]
                async with peer.transaction("x") as producer:
                    proxy.cuts = iter(cuts)
                    proxy.cut_all()
                    with within(120, "all transactions"):
                        for number in range(30):
                            async with producer.begin() as transaction:
                                await transaction.append([new_batch(tp, b"%d" % number) for tp in tps])
                                await transaction.append([new_batch(tps[0], b"again %d" % number)])
                    proxy.cuts = iter(())
                found = await visible(peer, "t")
                whole = [b"%d" % number for number in range(30)]
                assert found[1] == found[2] == whole
                assert found[0] == [value for each in whole for value in (each, b"again " + each)]
            assert proxy.cut > 10
            nursery.cancel_scope.cancel()

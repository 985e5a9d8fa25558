"""A plugin's transactions against the real coordinators, in the time of a clock that jumps when everybody sleeps."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr.client import transactional
from leafcuttr.errors import ErrorCode
from leafcuttr.log.append import commit
from leafcuttr.log.append.rules import LARGE
from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.runtime.writers import AT_ONCE
from leafcuttr.state.broker import Broker as Core
from leafcuttr.state.transactions import loader
from leafcuttr.state.transactions.machine import LAST_EPOCH, Transaction
from leafcuttr.state.transactions.states import TransactionState
from leafcuttr.state.transactions.store import TransactionLog
from leafcuttr_sdk import (
    Broker,
    BrokerError,
    CommittedOffset,
    NewBatch,
    Plugin,
    Record,
    TopicPartition,
    TransactionalProducer,
)
from leafcuttr_sdk.batches import Batch, BatchBuilder, batches_in
from leafcuttr_sdk.errors import (
    CorruptMessage,
    IllegalGeneration,
    InvalidGroupId,
    InvalidRecord,
    InvalidRequest,
    InvalidTopic,
    InvalidTransactionTimeout,
    MessageTooLarge,
    ProducerFenced,
    RecordError,
    StorageError,
    TransactionAborted,
    TransactionTimedOut,
    UnknownTopicOrPartition,
)
from support.trio_time import TrioTime

Open = Callable[..., Core]
Live = Callable[..., AbstractAsyncContextManager[Broker]]
T0, T1, SOURCE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("source", 0)
NAMES = ("t", "source")


@pytest.fixture
def clock() -> TrioTime:
    return TrioTime()


@pytest.fixture
def live(open_core: Open, autojump_clock: MockClock) -> Live:
    """A broker whose coordinators run, a topic `t` of two partitions and one `source` of one."""

    @asynccontextmanager
    async def run(**settings: str) -> AsyncIterator[Broker]:
        core = open_core(
            **{
                "group_initial_rebalance_delay_ms": "0",
                "offsets_topic_num_partitions": "2",
                "transaction_state_log_num_partitions": "2",
                **settings,
            }
        )
        async with trio.open_nursery() as nursery:
            await nursery.start(core.groups.run)
            await nursery.start(core.transactions.run)
            view = make_broker_view(core, Plugin("sample", 1, ""))
            for name in NAMES:
                if view.topics.get(name) is None:
                    await view.topics.create(name, partitions=2 if name == "t" else 1)
            yield view
            nursery.cancel_scope.cancel()

    return run


def core_of(view: Broker) -> Core:
    return view._core  # type: ignore[attr-defined,no-any-return]


async def read(view: Broker, *, committed: bool = True, topic: str = "t") -> list[bytes | None]:
    positions = {TopicPartition(topic, number): 0 for number in range(view.topics.partition_count(topic))}
    found: list[bytes | None] = []
    while True:
        fetched = await view.fetch(positions, committed=committed)
        if not fetched.records and fetched.positions == positions:
            return found
        found += [record.value for record in fetched.records]
        positions = fetched.positions


async def until_read(view: Broker, due: list[bytes | None]) -> None:
    """Markers are written by a worker where the disk is slow."""
    with trio.fail_after(30):
        while await read(view) != due:
            await wait_all_tasks_blocked(0.01)


async def stored(view: Broker, partition: TopicPartition = T0) -> list[Batch]:
    return list(batches_in((await view.read_batches(partition, 0)).data))


def state(view: Broker, name: str = "id") -> TransactionState:
    found = core_of(view).transactions.find(name)
    assert found is not None
    return found.now.state


def batch(*values: bytes) -> bytearray:
    builder = BatchBuilder()
    builder.extend(values, 1_700_000_000_000)
    return builder.finish()


# --- what becomes visible, and when -------------------------------------------------------------------------------


async def test_all_of_it_is_visible_at_the_end_of_the_block_and_nothing_before(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        assert producer.transactional_id == "id"
        async with producer.begin() as transaction:
            first = await transaction.produce_batch("t", [Record(b"a"), Record(b"b")], partitions=[0, 1])
            second = await transaction.append([NewBatch(T0, batch(b"c", b"d"))])
            assert [(each.topic, each.partition, each.offset) for each in first] == [("t", 0, 0), ("t", 1, 0)]
            assert [(each.base_offset, each.last_offset) for each in second] == [(1, 2)]
            assert await read(view) == []
            assert sorted(await read(view, committed=False)) == [b"a", b"b", b"c", b"d"]  # type: ignore[type-var]
            await view.produce("t", b"by another", partition=1)
            assert await read(view) == []  # it is behind the transaction
        assert sorted(await read(view)) == [b"a", b"b", b"by another", b"c", b"d"]  # type: ignore[type-var]
        assert core_of(view).transactions.committed == 1


async def test_batches_carry_the_producer_an_epoch_for_each_transaction_and_sequences(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        for values in ((b"a", b"b"), (b"c",)):
            async with producer.begin() as transaction:
                await transaction.produce_batch(
                    "t", [Record(each) for each in values], partitions=[0] * len(values)
                )
                await transaction.append([NewBatch(T0, batch(b"x")), NewBatch(T0, batch(b"y"))])
        headers = [each.header for each in await stored(view)]
        for each in await stored(view):
            each.check()
        producer_id, epoch = headers[0].producer_id, headers[0].producer_epoch
        assert all(each.is_transactional and each.producer_id == producer_id for each in headers)
        assert [(each.is_control, each.producer_epoch - epoch, each.base_sequence) for each in headers] == [
            (False, 0, 0),
            (False, 0, 2),
            (False, 0, 3),
            (True, 1, -1),
            (False, 1, 0),
            (False, 1, 1),
            (False, 1, 2),
            (True, 2, -1),
        ]


@pytest.mark.parametrize("level", [0, 1, 2])
async def test_each_transaction_has_an_epoch_of_its_own_whatever_the_feature_level(
    live: Live, level: int
) -> None:
    async with live() as view:
        core_of(view).features.publish({"transaction.version": level})
        async with view.transaction("id") as producer:
            for number in range(3):
                async with producer.begin() as transaction:
                    await transaction.append([NewBatch(T0, batch(b"%d" % number, b"x"))])
                    await transaction.commit_offsets("g", {SOURCE: CommittedOffset(number)})
            with pytest.raises(MessageTooLarge):
                async with producer.begin() as transaction:
                    await transaction.append([NewBatch(T0, batch(b"y"))])
                    await transaction.produce_batch("t", [Record(bytes(2_000_000))])
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(b"z"))])
        headers = [each.header for each in await stored(view) if not each.header.is_control]
        assert [each.base_sequence for each in headers] == [0] * 5
        epoch = headers[0].producer_epoch
        assert [each.producer_epoch - epoch for each in headers] == [0, 1, 2, 3, 4]
        assert await read(view) == [b"0", b"x", b"1", b"x", b"2", b"x", b"z"]
        assert view.groups.committed("g") == {SOURCE: CommittedOffset(2)}


async def test_what_the_block_raises_aborts_and_comes_out_as_it_is(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        with pytest.raises(KeyError, match="mine"):
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(b"a")), NewBatch(T1, batch(b"b"))])
                raise KeyError("mine")
        assert state(view) is TransactionState.COMPLETE_ABORT
        assert await read(view) == []
        async with producer.begin() as transaction:
            await transaction.append([NewBatch(T0, batch(b"c"))])
        assert await read(view) == [b"c"]


async def test_a_cancelled_block_is_aborted_at_once(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        with trio.CancelScope() as scope:
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(b"a"))])
                scope.cancel()
        assert scope.cancelled_caught
        assert state(view) is TransactionState.COMPLETE_ABORT
        assert await read(view) == []


async def test_a_transaction_can_be_aborted_by_hand(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        async with producer.begin() as transaction:
            await transaction.append([NewBatch(T0, batch(b"a"))])
            await transaction.abort()
            assert state(view) is TransactionState.COMPLETE_ABORT
            with pytest.raises(RuntimeError, match="ended"):
                await transaction.append([NewBatch(T0, batch(b"b"))])
            await transaction.abort()
        assert await read(view) == []
        assert core_of(view).transactions.aborted == 1


async def test_one_without_records_leaves_nothing_in_the_log(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        for _ in range(3):
            async with producer.begin():
                pass
        with pytest.raises(KeyError):
            async with producer.begin():
                raise KeyError
        assert state(view) is TransactionState.EMPTY
        assert await read(view, committed=False) == []


# --- what cannot be committed -------------------------------------------------------------------------------------


REFUSED: list[tuple[str, Record, type[BrokerError]]] = [
    ("t", Record(bytes(2_000_000)), MessageTooLarge),
    ("t", Record(b"", headers=(("\ud800", b""),)), InvalidRecord),
    ("__consumer_offsets", Record(b""), InvalidTopic),
    ("no such name!", Record(b""), InvalidTopic),
]


@pytest.mark.parametrize(
    ("topic", "record", "kind"), REFUSED, ids=[f"{r[0]}-{r[2].__name__}" for r in REFUSED]
)
async def test_what_is_refused_is_raised_by_its_type_and_aborts(
    live: Live, topic: str, record: Record, kind: type[BrokerError]
) -> None:
    async with live() as view, view.transaction("id") as producer:
        with pytest.raises(kind) as caught:
            async with producer.begin() as transaction:
                await transaction.produce_batch("t", [Record(b"good")])
                await transaction.produce_batch(topic, [Record(b"fine"), record])
        if topic == "t":
            assert [each.batch_index for each in caught.value.record_errors] == [1]
        assert state(view) is TransactionState.COMPLETE_ABORT
        assert await read(view) == []


async def test_the_record_that_is_at_fault_is_raised_and_not_those_beside_it(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        await view.topics.create("compacted", configs={"cleanup.policy": "compact"})
        core_of(view).topics.by_name["compacted"].partitions[0]
        with pytest.raises(InvalidRecord, match="compacted: a record without a key") as caught:
            async with producer.begin() as transaction:
                await transaction.produce_batch("compacted", [Record(b"a", b"k"), Record(b"b"), Record(b"c")])
        assert [each.batch_index for each in caught.value.record_errors] == [1, 2]
        assert isinstance(caught.value.record_errors[0], RecordError)


async def test_what_refuses_more_than_records_names_none(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        with pytest.raises(MessageTooLarge) as caught:
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(bytes(2_000_000)))])
        assert list(caught.value.record_errors) == []
        core_of(view).topics.partition(T0).log.take_offline("the test says so")
        with pytest.raises(StorageError, match="the test says so") as offline:
            async with producer.begin() as transaction:
                await transaction.produce_batch("t", [Record(b"a"), Record(b"b")], partitions=[1, 0])
        assert list(offline.value.record_errors) == []
        assert await core_of(view).transactions.settled("id") is not None
        async with producer.begin() as transaction:
            await transaction.produce_batch("t", [Record(b"c")], partitions=[1])
        assert (await view.fetch({T1: 0}, committed=True)).records[0].value == b"c"


async def test_a_partition_that_does_not_exist_is_refused(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        with pytest.raises(UnknownTopicOrPartition):
            async with producer.begin() as transaction:
                await transaction.append(
                    [NewBatch(T0, batch(b"a")), NewBatch(TopicPartition("t", 7), batch(b"b"))]
                )
        assert await read(view) == []


async def test_after_a_failed_call_the_end_says_why_it_was_aborted(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        with pytest.raises(TransactionAborted, match="a call failed: The record is larger") as caught:
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(b"a"))])
                with pytest.raises(MessageTooLarge):
                    await transaction.produce_batch("t", [Record(bytes(2_000_000))])
                with pytest.raises(TransactionAborted):
                    await transaction.append([NewBatch(T0, batch(b"b"))])
                with pytest.raises(TransactionAborted):
                    await transaction.commit_offsets("g", {SOURCE: CommittedOffset(1)})
        assert isinstance(caught.value.__cause__, MessageTooLarge)
        assert caught.value.code is ErrorCode.TRANSACTION_ABORTABLE
        assert await read(view) == []


async def test_after_a_cancelled_call_it_can_only_be_aborted(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        with pytest.raises(TransactionAborted, match="a call was cancelled"):
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(b"a"))])
                with trio.CancelScope() as scope:
                    scope.cancel()
                    await transaction.append([NewBatch(T0, batch(b"b"))])
                assert scope.cancelled_caught
        assert await read(view) == []
        async with producer.begin() as transaction:
            await transaction.append([NewBatch(T0, batch(b"c"))])
        assert await read(view) == [b"c"]


def with_byte(at: int, value: int) -> bytes:
    """A batch with another byte. The CRC covers none before its attributes, at 21."""
    data = batch(b"value")
    assert data[at] != value
    data[at] = value
    return bytes(data)


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        bytes(60),
        with_byte(-2, 0xFF),
        bytes(batch(b"a") + batch(b"b")),
        with_byte(11, 0),
        with_byte(16, 1),
    ],
    ids=["nothing", "short", "crc", "two", "length", "magic"],
)
async def test_what_is_no_batch_is_not_given_a_crc_that_is_right(live: Live, bad: bytes) -> None:
    async with live() as view, view.transaction("id") as producer:
        with pytest.raises(CorruptMessage):
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T0, bad)])
        assert await read(view, committed=False) == []


async def test_what_was_read_can_be_appended_whatever_its_producer_and_offset(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        for value in (b"a", b"b"):
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(value))])
        copies = [each.data for each in await stored(view) if not each.header.is_control]
        assert [each.header.base_offset for each in await stored(view)] == [0, 1, 2, 3]
        for _ in range(2):  # the bytes are the caller's again
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T1, each) for each in copies])
        assert [each.header.base_sequence for each in await stored(view, T1)] == [0, 1, -1] * 2


async def test_a_control_batch_is_refused(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        async with producer.begin() as transaction:
            await transaction.append([NewBatch(T0, batch(b"a"))])
        marker = (await stored(view))[1]
        assert marker.header.is_control
        with pytest.raises(InvalidRecord):
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T1, marker.data)])


async def test_outside_of_a_transaction_such_batches_are_still_refused(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        async with producer.begin() as transaction:
            await transaction.append([NewBatch(T0, batch(b"a"))])
        (answer,) = await view.append([NewBatch(T1, (await stored(view))[0].data)])
        assert isinstance(answer, InvalidRecord)
        assert "outside of a transaction" in str(answer)


# --- whose the id is ----------------------------------------------------------------------------------------------


async def test_a_later_producer_fences_the_one_before_and_aborts_what_it_has_open(live: Live) -> None:
    async with live() as view, view.transaction("id") as old:
        with pytest.raises(ProducerFenced, match="'id'"):
            async with old.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(b"old"))])
                async with view.transaction("id") as new:
                    assert state(view) is TransactionState.EMPTY
                    with pytest.raises(ProducerFenced):  # in a partition that it has
                        await transaction.append([NewBatch(T0, batch(b"zombie"))])
                    async with new.begin() as other:
                        await other.append([NewBatch(T0, batch(b"new"))])
                    raise_it = transaction.append([NewBatch(T0, batch(b"zombie"))])
                    with pytest.raises(TransactionAborted) as caught:
                        await raise_it
                    assert isinstance(caught.value.__cause__, ProducerFenced)
                    raise caught.value.__cause__
        with pytest.raises(ProducerFenced):
            async with old.begin():
                raise AssertionError("it is not begun")
        assert await read(view) == [b"new"]
        assert await read(view, committed=False) == [b"old", b"new"]


async def test_a_fenced_one_learns_it_at_its_commit_and_in_a_new_partition(live: Live) -> None:
    async with live() as view:
        for step in ("commit", "partition", "offsets"):
            async with view.transaction("id") as old:
                with pytest.raises(ProducerFenced):
                    async with old.begin() as transaction:
                        await transaction.append([NewBatch(T0, batch(b"old"))])
                        async with view.transaction("id"):
                            pass
                        if step == "partition":
                            await transaction.append([NewBatch(T1, batch(b"zombie"))])
                        elif step == "offsets":
                            await transaction.commit_offsets("g", {SOURCE: CommittedOffset(1)})
        assert await read(view) == []
        assert view.groups.committed("g") == {}


async def test_one_that_takes_too_long_is_aborted_and_the_producer_goes_on(
    live: Live, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with live() as view, view.transaction("id", timeout_ms=5000) as producer:
        for step in ("same partition", "new partition", "offsets", "commit"):
            with pytest.raises(TransactionTimedOut, match="longer than 5000 ms"):
                async with producer.begin() as transaction:
                    await transaction.append([NewBatch(T0, batch(b"late"))])
                    await trio.sleep(20)
                    assert state(view) is TransactionState.COMPLETE_ABORT
                    match step:
                        case "same partition":
                            await transaction.append([NewBatch(T0, batch(b"late"))])
                        case "new partition":
                            await transaction.append([NewBatch(T1, batch(b"late"))])
                        case "offsets":
                            await transaction.commit_offsets("g", {SOURCE: CommittedOffset(1)})
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(step.encode()))])
        assert await read(view) == [b"same partition", b"new partition", b"offsets", b"commit"]
        assert core_of(view).transactions.timed_out == 4
        assert not [each for each in caplog.records if each.name == "leafcuttr.plugin.sample"]


async def test_what_ends_it_while_a_batch_is_on_its_way_is_said_by_its_type(
    live: Live, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was in the transaction when that was looked at, and the partition has the marker when it is staged."""
    async with live() as view, view.transaction("id", timeout_ms=5000) as producer:
        for takes_over in (False, True):
            with pytest.raises(ProducerFenced if takes_over else TransactionTimedOut):
                async with producer.begin() as transaction:
                    await transaction.append([NewBatch(T0, batch(b"a"))])
                    if takes_over:
                        async with view.transaction("id"):
                            pass
                    else:
                        await trio.sleep(20)
                    monkeypatch.setattr(transaction, "_is_new", lambda log: False)
                    await transaction.append([NewBatch(T0, batch(b"late"))])
        assert await read(view, committed=False) == [b"a", b"a"]


@pytest.mark.parametrize("level", [0, 2])
async def test_one_that_timed_out_in_a_block_that_ended_otherwise_goes_on_too(
    live: Live, autojump_clock: MockClock, level: int
) -> None:
    async with live() as view:
        core_of(view).features.publish({"transaction.version": level})
        async with view.transaction("id", timeout_ms=5000) as producer:
            with pytest.raises(KeyError):
                async with producer.begin() as transaction:
                    await transaction.append([NewBatch(T0, batch(b"late"))])
                    await trio.sleep(20)
                    raise KeyError
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(b"next"))])
            assert await read(view) == [b"next"]


async def test_one_that_is_being_fenced_is_not_taken_for_one_that_took_too_long(live: Live) -> None:
    """Another producer has had its transaction aborted, and has not got its own epoch yet."""
    async with live() as view, view.transaction("id") as producer:
        with pytest.raises(ProducerFenced):
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(b"a"))])
                answer = await core_of(view).transactions.init("id", 60_000, None)
                assert answer.error is ErrorCode.CONCURRENT_TRANSACTIONS
                await transaction.append([NewBatch(T0, batch(b"late"))])
        assert await read(view, committed=False) == [b"a"]


async def test_who_was_fenced_after_its_time_was_up_is_fenced(live: Live, autojump_clock: MockClock) -> None:
    async with live() as view, view.transaction("id", timeout_ms=5000) as old:
        with pytest.raises(ProducerFenced):
            async with old.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(b"late"))])
                await trio.sleep(20)
                async with view.transaction("id"):
                    pass
        with pytest.raises(ProducerFenced):
            async with old.begin():
                pass


async def test_an_id_that_was_forgotten_is_taken_anew(live: Live, autojump_clock: MockClock) -> None:
    async with live(transactional_id_expiration_ms="60000") as view, view.transaction("id") as producer:
        async with producer.begin() as transaction:
            await transaction.append([NewBatch(T0, batch(b"a"))])
        await trio.sleep(100)
        await core_of(view).transactions.forget_expired()
        assert core_of(view).transactions.find("id") is None
        async with producer.begin() as transaction:
            await transaction.append([NewBatch(T0, batch(b"b"))])
        assert await read(view) == [b"a", b"b"]


async def test_when_the_epochs_are_used_up_it_goes_on_with_a_new_producer_id(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        found = core_of(view).transactions.find("id")
        assert found is not None
        found.now = found.now._replace(epoch=LAST_EPOCH - 1)
        producer.identity = producer.identity._replace(epoch=LAST_EPOCH - 1)  # type: ignore[attr-defined]
        for number in range(4):
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(b"%d" % number))])
        headers = [each.header for each in await stored(view) if not each.header.is_control]
        assert [each.producer_epoch for each in headers] == [LAST_EPOCH - 1, LAST_EPOCH, 0, 1]
        assert len({each.producer_id for each in headers}) == 2
        assert await read(view) == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
async def test_a_timeout_that_the_broker_does_not_allow(live: Live, timeout_ms: int) -> None:
    async with live() as view:
        with pytest.raises(InvalidTransactionTimeout, match="from 1 to 900000 ms"):
            async with view.transaction("id", timeout_ms=timeout_ms):
                raise AssertionError("it is not opened")


@pytest.mark.parametrize("transactional_id", ["x" * 32_768, "\u00e9" * 16_384, "\ud800"])
async def test_an_id_that_cannot_be_stored_is_refused(live: Live, transactional_id: str) -> None:
    async with live() as view:
        for _ in range(2):
            with pytest.raises(InvalidRequest, match="transactional id"):
                async with view.transaction(transactional_id):
                    raise AssertionError("it is not opened")
        assert core_of(view).transactions.find(transactional_id) is None
        async with view.transaction("x" * 32_767) as producer, producer.begin() as transaction:
            await transaction.produce_batch("t", [Record(b"v")])


async def test_an_empty_id_is_refused(live: Live) -> None:
    async with live() as view:
        with pytest.raises(InvalidRequest):
            async with view.transaction(""):
                raise AssertionError("it is not opened")


async def test_one_transaction_at_a_time_and_none_after_the_end(live: Live) -> None:
    async with live() as view:
        async with view.transaction("id") as producer:
            async with producer.begin():
                with pytest.raises(trio.BusyResourceError):
                    async with producer.begin():
                        raise AssertionError("it is not begun")
            async with producer.begin() as transaction:
                pass
            with pytest.raises(RuntimeError, match="ended"):
                await transaction.append([NewBatch(T0, batch(b"a"))])
        with pytest.raises(RuntimeError, match="closed"):
            async with producer.begin():
                raise AssertionError("it is not begun")


async def test_the_end_of_the_producer_aborts_what_another_task_has_open(live: Live) -> None:
    async with live() as view, trio.open_nursery() as nursery:
        begun, over = trio.Event(), trio.Event()
        async with view.transaction("id") as producer:

            async def work() -> None:
                with pytest.raises(RuntimeError, match="ended"):
                    async with producer.begin() as transaction:
                        await transaction.append([NewBatch(T0, batch(b"a"))])
                        begun.set()
                        await over.wait()
                        await transaction.append([NewBatch(T0, batch(b"b"))])

            nursery.start_soon(work)
            await begun.wait()
        assert state(view) is TransactionState.COMPLETE_ABORT
        over.set()


async def test_none_begins_that_has_waited_until_after_the_end_of_the_producer(live: Live) -> None:
    async with live() as view:
        for _ in range(4):  # trio runs the tasks of a turn in either order
            async with trio.open_nursery() as nursery, view.transaction("id") as producer:

                async def work(producer: TransactionalProducer = producer) -> None:
                    with pytest.raises(RuntimeError, match="closed"):
                        async with producer.begin():
                            raise AssertionError("it is not begun")

                nursery.start_soon(work)
                await trio.lowlevel.checkpoint()


# --- several tasks, slow disks, starts ----------------------------------------------------------------------------


async def test_many_tasks_write_to_one_transaction(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        async with producer.begin() as transaction, trio.open_nursery() as nursery:

            async def write(number: int) -> None:
                if number % 2:
                    await transaction.produce_batch(
                        "t", [Record(b"%d" % number)], partitions=[number % 4 // 2]
                    )
                else:
                    await transaction.append([NewBatch(T0, batch(b"%d" % number))])

            for number in range(50):
                nursery.start_soon(write, number)
        assert sorted(int(value or b"") for value in await read(view)) == list(range(50))


async def test_a_small_batch_does_not_overtake_one_that_a_worker_checks(live: Live) -> None:
    """Their sequence numbers are in the order of the calls."""
    async with live() as view, view.transaction("id") as producer:
        await view.topics.create("large", configs={"max.message.bytes": "20000000"})
        place = TopicPartition("large", 0)
        async with producer.begin() as transaction, trio.open_nursery() as nursery:
            for size in (LARGE + 1, 1):
                nursery.start_soon(transaction.append, [NewBatch(place, batch(bytes(size)))])
                await trio.lowlevel.checkpoint()
        read = await view.read_batches(place, 0, max_bytes=30_000_000)
        found = [each.header for each in batches_in(read.data)]
        assert [each.base_sequence for each in found] == [0, 1, -1]
        assert found[0].size > LARGE > found[1].size


async def test_what_waits_for_a_call_that_fails_is_not_written(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        raised: list[type[Exception]] = []
        with pytest.raises(TransactionAborted):
            async with producer.begin() as transaction:

                async def write(data: bytes) -> None:
                    try:
                        await transaction.append([NewBatch(T0, data)])
                    except BrokerError as error:
                        raised.append(type(error))

                lock = transaction._one_at_a_time  # type: ignore[attr-defined]
                async with trio.open_nursery() as nursery, lock:
                    for data in (b"no batch", bytes(batch(b"a"))):
                        nursery.start_soon(write, data)
                        await wait_all_tasks_blocked()
        assert raised == [CorruptMessage, TransactionAborted]
        assert await read(view, committed=False) == []


async def test_a_topic_that_is_made_anew_within_a_transaction(live: Live) -> None:
    """What was written to the one before is gone with it; the new one gets its own partition in the transaction, and
    its marker."""
    async with live() as view, view.transaction("id") as producer:
        async with producer.begin() as transaction:
            await transaction.append([NewBatch(T0, batch(b"a"))])
            await view.topics.delete("t")
            await view.topics.create("t", partitions=2)
            await transaction.append([NewBatch(T0, batch(b"b"))])
            assert await read(view) == []
        assert await read(view) == [b"b"]
        assert [each.header.base_sequence for each in await stored(view)] == [0, -1]


async def test_a_zombie_cannot_open_a_transaction_in_a_topic_that_was_made_anew(
    live: Live, autojump_clock: MockClock
) -> None:
    async with live() as view, view.transaction("id", timeout_ms=5000) as producer:
        with pytest.raises(TransactionTimedOut):
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(b"a"))])
                await trio.sleep(20)
                await view.topics.delete("t")
                await view.topics.create("t", partitions=2)
                await transaction.append([NewBatch(T0, batch(b"b"))])
        assert await read(view, committed=False) == []


@pytest.mark.parametrize("after_s", [0, 100], ids=["at once", "after its timeout"])
async def test_a_commit_that_cannot_be_stored_is_raised_and_the_next_begin_cleans_up(
    live: Live,
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    after_s: int,
) -> None:
    def full(fd: int, *rest: Any) -> None:
        if "__transaction_state" in str(Path(f"/proc/self/fd/{fd}").readlink()):
            raise OSError(errno.ENOSPC, "No space left on device")
        original(fd, *rest)

    original = commit.write_all
    async with live() as view, view.transaction("id") as producer:
        with pytest.raises(StorageError), monkeypatch.context() as disk:
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(b"a"))])
                disk.setattr(commit, "write_all", full)
        assert state(view) is TransactionState.ONGOING
        lines = [each.getMessage() for each in caplog.records if each.name == "leafcuttr.plugin.sample"]
        assert lines == [
            "the transaction of 'id' is left to its timeout, aborting it failed: "
            "The state of 'id' could not be stored."
        ]
        await trio.sleep(after_s)
        async with producer.begin() as transaction:
            assert state(view) in (TransactionState.COMPLETE_ABORT, TransactionState.EMPTY)
            await transaction.append([NewBatch(T0, batch(b"b"))])
        assert await read(view) == [b"b"]


async def test_begin_waits_until_the_last_one_is_completed(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with live() as view, view.transaction("id") as producer, trio.open_nursery() as nursery:
        endings = core_of(view).transactions._endings
        finish = endings.finish
        with monkeypatch.context() as patched:
            patched.setattr(endings, "finish", lambda transaction: None)
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(b"a"))])
        assert state(view) is TransactionState.PREPARE_COMMIT
        begun = trio.Event()

        async def go_on() -> None:
            async with producer.begin() as transaction:
                begun.set()
                await transaction.append([NewBatch(T0, batch(b"b"))])

        nursery.start_soon(go_on)
        await wait_all_tasks_blocked()
        assert not begun.is_set()
        found = core_of(view).transactions.find("id")
        assert found is not None
        finish(found)
        await begun.wait()
    # The nursery has seen the other end too.


@pytest.mark.parametrize("level", [0, 2])
async def test_a_commit_is_not_cancelled_while_it_is_written(live: Live, level: int) -> None:
    """Whether it has happened is known when the block ends."""
    async with live(lc_log_sync_always="true") as view:
        core_of(view).features.publish({"transaction.version": level})
        writers = core_of(view).runtime.writers
        async with view.transaction("id") as producer, trio.open_nursery() as nursery:
            committing, held, outcomes = trio.CancelScope(), trio.Event(), list[str]()

            async def work() -> None:
                with committing:
                    async with producer.begin() as transaction:
                        await transaction.append([NewBatch(T0, batch(b"a"))])
                        writers.limit(0)
                        held.set()
                    outcomes.append("committed")
                    await trio.lowlevel.checkpoint()
                    outcomes.append("not cancelled")

            nursery.start_soon(work)
            await held.wait()
            found = core_of(view).transactions.find("id")
            assert found is not None
            with trio.fail_after(30):
                while not found.busy:
                    await wait_all_tasks_blocked(0.01)
            committing.cancel()
            await wait_all_tasks_blocked(0.01)
            assert outcomes == []
            writers.limit(AT_ONCE)
        assert outcomes == ["committed"]
        await until_read(view, [b"a"])


@pytest.mark.parametrize("level", [0, 2])
async def test_an_abort_that_the_disk_holds_up_does_not_hold_up_a_cancelled_block_for_long(
    live: Live, level: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It goes on by itself, and the next transaction begins after it with the epoch that it has left."""
    monkeypatch.setattr(transactional, "PATIENCE_S", 0.05)
    async with live(lc_log_sync_always="true") as view:
        core_of(view).features.publish({"transaction.version": level})
        writers = core_of(view).runtime.writers
        async with view.transaction("id") as producer:
            with trio.CancelScope() as scope:
                async with producer.begin() as transaction:
                    await transaction.append([NewBatch(T0, batch(b"a"))])
                    writers.limit(0)
                    scope.cancel()
            (line,) = (each.getMessage() for each in caplog.records if each.name == "leafcuttr.plugin.sample")
            assert line.endswith("aborting it failed: it took longer than 0.05 s")
            writers.limit(AT_ONCE)
            for value in (b"b", b"c"):
                async with producer.begin() as transaction:
                    await transaction.append([NewBatch(T0, batch(value))])
        await until_read(view, [b"b", b"c"])


async def test_a_write_that_is_cancelled_on_a_slow_disk_is_aborted_with_the_rest(live: Live) -> None:
    async with live(lc_log_sync_always="true") as view:
        writers = core_of(view).runtime.writers
        async with view.transaction("id") as producer:
            for partition in (T0, T1):  # its first batch, and one that is not
                with pytest.raises(TransactionAborted):
                    async with producer.begin() as transaction:
                        await transaction.append([NewBatch(T1, batch(b"a"))])
                        async with trio.open_nursery() as nursery:
                            with trio.CancelScope() as scope:
                                writers.limit(0)
                                nursery.start_soon(let_go_when_blocked, scope, lambda: writers.limit(AT_ONCE))
                                await transaction.produce_batch(
                                    "t", [Record(b"b")], partitions=[partition[1]]
                                )
                            assert scope.cancelled_caught
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(b"c"))])
        await until_read(view, [b"c"])


async def let_go_when_blocked(scope: trio.CancelScope, release: Callable[[], None]) -> None:
    await wait_all_tasks_blocked(0.01)
    scope.cancel()
    release()


async def test_a_producer_that_is_opened_during_the_start_waits_until_its_id_is_loaded(
    live: Live, open_core: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with live() as view, view.transaction("id"):
        pass
    go_on, load_partition = trio.Event(), loader._load_partition

    async def load_slowly(log: TransactionLog, partition: int) -> list[Transaction]:
        await go_on.wait()
        return await load_partition(log, partition)

    monkeypatch.setattr(loader, "_load_partition", load_slowly)
    async with live() as view, trio.open_nursery() as nursery:
        opened = trio.Event()

        async def open_it() -> None:
            async with view.transaction("id"):
                opened.set()

        nursery.start_soon(open_it)
        await wait_all_tasks_blocked()
        assert not opened.is_set()
        go_on.set()
        with trio.fail_after(30):
            await opened.wait()


async def test_after_a_restart_the_next_producer_aborts_what_was_open(live: Live) -> None:
    async with live() as view:
        core = core_of(view)
        async with view.transaction("id") as producer:
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(b"committed"))])
            producer_id, epoch = producer.identity  # type: ignore[attr-defined]
            assert not core.transactions.add("id", producer_id, epoch, [T0], 2)
    async with live() as view:
        async with view.transaction("id") as producer:
            assert producer.identity.epoch > epoch  # type: ignore[attr-defined]
            async with producer.begin() as transaction:
                await transaction.append([NewBatch(T0, batch(b"after"))])
        assert await read(view) == [b"committed", b"after"]


# --- offsets ------------------------------------------------------------------------------------------------------


async def test_offsets_are_committed_with_the_transaction_or_not_at_all(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        async with producer.begin() as transaction:
            await transaction.commit_offsets("g", {SOURCE: CommittedOffset(3, "note")})
            assert view.groups.committed("g") == {}
        assert view.groups.committed("g") == {SOURCE: CommittedOffset(3, "note")}
        with pytest.raises(KeyError):
            async with producer.begin() as transaction:
                await transaction.commit_offsets("g", {SOURCE: CommittedOffset(5)})
                raise KeyError
        assert view.groups.committed("g") == {SOURCE: CommittedOffset(3, "note")}


@pytest.mark.long
async def test_many_offsets_are_committed_in_several_batches(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        await view.topics.create("wide", partitions=1200)
        due = {TopicPartition("wide", number): CommittedOffset(number) for number in range(1200)}
        async with producer.begin() as transaction:
            await transaction.commit_offsets("g", due)
        assert view.groups.committed("g") == due


async def test_offsets_that_are_refused(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        nowhere = {TopicPartition("nowhere", 0): CommittedOffset(1)}
        with pytest.raises(UnknownTopicOrPartition, match="nowhere-0"):
            async with producer.begin() as transaction:
                await transaction.commit_offsets("g", nowhere)
        with pytest.raises(InvalidGroupId):
            async with producer.begin() as transaction:
                await transaction.commit_offsets("", {SOURCE: CommittedOffset(1)})
        with pytest.raises(ValueError, match="to be named"):
            async with producer.begin() as transaction:
                await transaction.commit_offsets("g")
        assert view.groups.committed("g") == {}


async def move(view: Broker, count: int, *, fail_at: int = -1) -> None:
    """Consume, transform, produce: `count` records, some at a time; at one of them the first try fails."""
    moved, failed = 0, False
    async with (
        view.consumer("mover", ["source"], auto_offset_reset="earliest", committed=True) as consumer,
        view.transaction("mover") as producer,
    ):
        while moved < count:
            records = await consumer.poll(max_records=3)
            if not records:
                continue
            try:
                async with producer.begin() as transaction:
                    await transaction.produce_batch(
                        "t", [Record(b"> " + (each.value or b"")) for each in records]
                    )
                    await transaction.commit_offsets(consumer)
                    if moved >= fail_at >= 0 and not failed:
                        failed = True
                        raise KeyError("once")
            except KeyError:
                consumer.seek_to_committed()
            else:
                moved += len(records)


async def test_what_is_moved_comes_over_once_and_in_order(live: Live) -> None:
    async with live() as view:
        await view.produce_batch("source", [Record(b"%d" % number) for number in range(10)])
        await move(view, 10, fail_at=3)
        assert await read(view) == [b"> %d" % number for number in range(10)]
        assert len(await read(view, committed=False)) > 10  # the try that failed is there, aborted
        assert view.groups.committed("mover") == {SOURCE: CommittedOffset(10)}


async def test_a_consumer_that_is_a_member_no_more_cannot_commit(live: Live) -> None:
    async with live() as view, view.transaction("id") as producer:
        await view.produce("source", b"a")
        async with view.consumer("g", ["source"], auto_offset_reset="earliest") as consumer:
            assert await consumer.poll()
            metadata = consumer.group_metadata()
            assert metadata.group == "g"
            assert metadata.generation >= 0
            assert metadata.member_id

            class Stale:
                """As if the group had gone on without it, and it did not know."""

                def group_metadata(self) -> object:
                    return metadata._replace(generation=metadata.generation - 1)

            with pytest.raises(IllegalGeneration):
                async with producer.begin() as transaction:
                    await transaction.commit_offsets(Stale(), {SOURCE: CommittedOffset(1)})  # type: ignore[arg-type]
            async with producer.begin() as transaction:
                await transaction.commit_offsets(consumer, {SOURCE: CommittedOffset(1)})
            assert view.groups.committed("g") == {SOURCE: CommittedOffset(1)}

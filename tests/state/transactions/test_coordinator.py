"""The coordinator over a real log: restarts, timeouts, expiry, offsets that wait, and what Kafka's own tool reads."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
import trio
import trio.testing

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.committing import Committer, NewOffset
from leafcuttr.state.internal_log import Producer
from leafcuttr.state.transactions.states import State
from leafcuttr_sdk import TopicPartition
from support import jars

Start = Callable[..., Broker]
ONE = {"transaction_state_log_num_partitions": "1", "offsets_topic_num_partitions": "1"}
P0 = TopicPartition("t", 0)


async def begin(broker: Broker, name: str = "id") -> tuple[int, int]:
    if broker.topics.find("t") is None:
        await broker.topics.create("t", 1, {})
    given = await broker.transactions.init(name, 60_000, None)
    assert not given.error
    assert not broker.transactions.add(name, given.producer_id, given.epoch, [P0], 2)
    return given.producer_id, given.epoch


def state(broker: Broker, name: str = "id") -> State:
    found = broker.transactions.find(name)
    assert found is not None
    return found.now.state


async def run(broker: Broker, nursery: trio.Nursery) -> None:
    await nursery.start(broker.groups.run)
    await nursery.start(broker.transactions.run)
    await trio.testing.wait_all_tasks_blocked()


async def test_what_was_prepared_is_completed_by_the_next_start(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = start(**ONE)
    producer_id, epoch = await begin(broker)
    # Dies between the decision and the first marker.
    monkeypatch.setattr(broker.transactions, "_finish", lambda transaction: None)
    answer = await broker.transactions.end("id", producer_id, epoch, commit=True, version=2)
    assert answer == (ErrorCode.NONE, producer_id, epoch + 1)
    assert state(broker) is State.PREPARE_COMMIT
    broker = start(**ONE)
    log = broker.topics.partition(P0).log
    assert log.log_end_offset == 0
    async with trio.open_nursery() as nursery:
        await run(broker, nursery)
        with trio.fail_after(5):
            while broker.transactions.loading or state(broker) is not State.COMPLETE_COMMIT:
                await trio.testing.wait_all_tasks_blocked(0.01)
        assert log.log_end_offset == 1
        nursery.cancel_scope.cancel()


async def test_a_transaction_that_takes_too_long_is_aborted(
    start: Start, autojump_clock: trio.testing.MockClock
) -> None:
    broker = start(**ONE)
    async with trio.open_nursery() as nursery:
        await run(broker, nursery)
        producer_id, epoch = await begin(broker)
        await trio.sleep(59)
        assert state(broker) is State.ONGOING
        await trio.sleep(12)
        assert state(broker) is State.COMPLETE_ABORT
        answer = await broker.transactions.end("id", producer_id, epoch, commit=True, version=0)
        assert answer.error is ErrorCode.PRODUCER_FENCED
        nursery.cancel_scope.cancel()


async def test_an_id_that_nobody_uses_is_forgotten(
    start: Start, autojump_clock: trio.testing.MockClock
) -> None:
    settings = {**ONE, "transactional_id_expiration_ms": "10000"}
    broker = start(**settings)
    async with trio.open_nursery() as nursery:
        await run(broker, nursery)
        assert not (await broker.transactions.init("idle", 60_000, None)).error
        await trio.sleep(3595)
        await begin(broker)
        await trio.sleep(6)
        assert broker.transactions.find("idle") is None
        nursery.cancel_scope.cancel()
    broker = start(**settings)
    async with trio.open_nursery() as nursery:
        await run(broker, nursery)
        while broker.transactions.loading:
            await trio.sleep(0.01)
        assert [each.transactional_id for each in broker.transactions.all()] == ["id"]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("restarts", [True, False])
async def test_offsets_wait_for_their_transaction(start: Start, commit: bool, restarts: bool) -> None:
    broker = start(**ONE)
    await broker.groups.ready()
    producer_id, epoch = await begin(broker)
    topic = broker.topics.by_name["t"]
    partition = broker.groups.partition_of("g")
    assert not broker.transactions.add("id", producer_id, epoch, [partition], 2)
    broker.groups.offsets.commit("g", Committer(), [NewOffset("t", topic.id, 0, 1, -1, "")])
    new = NewOffset("t", topic.id, 0, 9, -1, "")
    codes = broker.groups.offsets.commit_in_transaction("g", Committer(), Producer(producer_id, epoch), [new])
    assert codes == [ErrorCode.NONE]

    async def loaded() -> None:
        nonlocal broker
        if restarts:
            broker = start(**ONE)
        async with trio.open_nursery() as nursery:
            await run(broker, nursery)
            while broker.transactions.loading or broker.groups.loading:
                await trio.testing.wait_all_tasks_blocked(0.01)
            nursery.cancel_scope.cancel()

    await loaded()
    assert broker.groups.offsets.fetch("g")["t"][0].offset == 1
    assert broker.groups.offsets.unstable("g") == {P0}
    assert not (await broker.transactions.end("id", producer_id, epoch, commit=commit, version=2)).error
    for _ in range(2):
        assert broker.groups.offsets.fetch("g")["t"][0].offset == (9 if commit else 1)
        assert not broker.groups.offsets.unstable("g")
        await loaded()


async def test_kafkas_own_tool_reads_what_we_write(start: Start) -> None:
    if reason := jars.missing():
        pytest.skip(reason)
    broker = start(**ONE)
    producer_id, epoch = await begin(broker)
    assert not (await broker.transactions.end("id", producer_id, epoch, commit=True, version=2)).error
    log = broker.topics.by_name["__transaction_state"].partitions[0].log
    (file,) = log.directory.glob("*.log")
    tool = jars.java(
        "4.3.1", "org.apache.kafka.tools.DumpLogSegments", "--transaction-log-decoder", "--files", str(file)
    )
    done = await trio.run_process(tool, capture_stdout=True, stderr=subprocess.STDOUT)
    text = done.stdout.decode()
    assert text.count('"transactionalId":"id"') == 4
    assert f'"producerId":{producer_id}' in text
    assert '"transactionPartitions":[{"topic":"t","partitionIds":[0]}]' in text
    assert '"clientTransactionVersion":2' in text

"""The coordinator over a real log: restarts, timeouts, expiry, offsets that wait, and what Kafka's own tool reads."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr.errors import ErrorCode
from leafcuttr.log.append import commit
from leafcuttr.runtime.writers import AT_ONCE
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.committing import Committer, NewOffset
from leafcuttr.state.internal_log import ProducerIdAndEpoch
from leafcuttr.state.transactions import loader
from leafcuttr.state.transactions.machine import Transaction
from leafcuttr.state.transactions.states import TransactionState
from leafcuttr.state.transactions.store import TransactionLog
from leafcuttr_sdk import TopicPartition
from support import jars
from support.waiting import eventually, next_look

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


def state(broker: Broker, name: str = "id") -> TransactionState:
    found = broker.transactions.find(name)
    assert found is not None
    return found.now.state


async def run(broker: Broker, nursery: trio.Nursery) -> None:
    await nursery.start(broker.groups.run)
    await nursery.start(broker.transactions.run)
    await trio.testing.wait_all_tasks_blocked()


@asynccontextmanager
async def running(broker: Broker) -> AsyncIterator[None]:
    """Its coordinators run, and have loaded what there is."""
    async with trio.open_nursery() as nursery:
        await run(broker, nursery)
        with trio.fail_after(30):
            while broker.transactions.loading or broker.groups.loading:
                await trio.testing.wait_all_tasks_blocked(0.01)
        yield
        nursery.cancel_scope.cancel()


async def until_state(broker: Broker, due: TransactionState, name: str = "id") -> None:
    with trio.fail_after(30):
        while state(broker, name) is not due:
            await trio.testing.wait_all_tasks_blocked(0.01)


async def test_what_was_prepared_is_completed_by_the_next_start(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = start(**ONE)
    producer_id, epoch = await begin(broker)
    # Dies between the decision and the first marker.
    monkeypatch.setattr(broker.transactions._endings, "finish", lambda transaction: None)
    answer = await broker.transactions.end("id", producer_id, epoch, commit=True, version=2)
    assert answer == (ErrorCode.NONE, producer_id, epoch + 1)
    assert state(broker) is TransactionState.PREPARE_COMMIT
    broker = start(**ONE)
    log = broker.topics.partition(P0).log
    assert log.log_end_offset == 0
    async with running(broker):
        await until_state(broker, TransactionState.COMPLETE_COMMIT)
        assert log.log_end_offset == 1


async def test_who_waits_until_an_id_is_settled_sees_it_then(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = start(**ONE)
    seen: list[TransactionState | None] = []

    async def wait() -> None:
        found = await broker.transactions.settled("id")
        seen.append(None if found is None else found.now.state)

    async def settles(count: int) -> bool:
        with trio.move_on_after(30):
            while len(seen) < count:
                await trio.testing.wait_all_tasks_blocked(0.01)
        return len(seen) == count

    async with running(broker), trio.open_nursery() as nursery:
        await wait()
        assert seen.pop() is None  # there is no such id
        producer_id, epoch = await begin(broker)
        await wait()
        assert seen.pop() is TransactionState.ONGOING
        # Decided, and not completed.
        finish = broker.transactions._endings.finish
        with monkeypatch.context() as patched:
            patched.setattr(broker.transactions._endings, "finish", lambda transaction: None)
            await broker.transactions.end("id", producer_id, epoch, commit=True, version=2)
        for _ in range(2):
            nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert seen == []
        finish(broker.transactions.find("id"))  # type: ignore[arg-type]
        assert await settles(2)
        assert seen == [TransactionState.COMPLETE_COMMIT] * 2
        nursery.cancel_scope.cancel()


async def test_an_id_that_is_being_written_settles_when_the_disk_has_it(start: Start) -> None:
    broker = start(lc_log_sync_always="true", **ONE)
    async with running(broker), trio.open_nursery() as nursery:
        producer_id, epoch = (await broker.transactions.init("id", 60_000, None))[1:]
        await broker.topics.create("t", 1, {})
        broker.runtime.writers.limit(0)
        coming = broker.transactions.add("id", producer_id, epoch, [P0], 2)
        assert not isinstance(coming, ErrorCode)
        settled = trio.Event()

        async def wait() -> None:
            found = await broker.transactions.settled("id")
            assert found is not None and not found.busy
            settled.set()

        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert not settled.is_set()
        broker.runtime.writers.limit(AT_ONCE)
        with trio.fail_after(30):
            await settled.wait()
        assert not await coming
        nursery.cancel_scope.cancel()


async def test_a_transaction_that_takes_too_long_is_aborted(
    start: Start, autojump_clock: trio.testing.MockClock
) -> None:
    broker = start(**ONE)
    async with trio.open_nursery() as nursery:
        await run(broker, nursery)
        producer_id, epoch = await begin(broker)
        await trio.sleep(59)
        assert state(broker) is TransactionState.ONGOING
        found = broker.transactions.find("id")
        assert found is not None and found.overdue_epoch == -1
        await trio.sleep(12)
        assert state(broker) is TransactionState.COMPLETE_ABORT
        assert (found.overdue_epoch, found.now.epoch) == (epoch, epoch + 1)
        answer = await broker.transactions.end("id", producer_id, epoch, commit=True, version=0)
        assert answer.error is ErrorCode.PRODUCER_FENCED
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("restarts", "set_by_ms"), [(False, 0), (False, 3_600_000), (False, -3_600_000), (True, 0)]
)
async def test_its_time_counts_from_its_begin_and_not_from_the_last_partition(
    start: Start, autojump_clock: trio.testing.MockClock, restarts: bool, set_by_ms: int
) -> None:
    broker = start(**ONE)
    async with running(broker):
        producer_id, epoch = await begin(broker)
        began = trio.current_time()
        broker.clock.set_by_ms = set_by_ms  # type: ignore[attr-defined]
        for number in range(1, 6):
            await trio.sleep(9)
            added = broker.transactions.add("id", producer_id, epoch, [TopicPartition("t", number)], 2)
            assert added is ErrorCode.NONE
        if not restarts:
            await trio.sleep_until(began + 59)
            assert state(broker) is TransactionState.ONGOING
            await trio.sleep_until(began + 71)
            assert state(broker) is TransactionState.COMPLETE_ABORT
            return
    broker = start(**ONE)
    async with running(broker):
        found = broker.transactions.find("id")
        assert found is not None and found.now.started_ms == broker.clock.now_ms() - 1000 * round(
            trio.current_time() - began
        ), "the log says when it began"
        await trio.sleep_until(max(began + 71, trio.current_time() + 11))
        assert state(broker) is not TransactionState.ONGOING


@pytest.mark.parametrize("set_by_ms", [3_600_000, -3_600_000])
@pytest.mark.parametrize("restarts", [False, True])
async def test_its_time_goes_on_though_the_clock_is_set(
    start: Start, autojump_clock: trio.testing.MockClock, set_by_ms: int, restarts: bool
) -> None:
    broker = start(**ONE)
    async with trio.open_nursery() as nursery:
        await run(broker, nursery)
        await begin(broker)
        if restarts:
            nursery.cancel_scope.cancel()
        else:
            broker.clock.set_by_ms = set_by_ms  # type: ignore[attr-defined]
            await trio.sleep(59)
            assert state(broker) is TransactionState.ONGOING
            await trio.sleep(12)
            assert state(broker) is TransactionState.COMPLETE_ABORT
            nursery.cancel_scope.cancel()
    if restarts:  # nobody can say how long it has been; it takes no longer than from the start on
        broker = start(**ONE)
        broker.clock.set_by_ms = set_by_ms  # type: ignore[attr-defined]
        async with trio.open_nursery() as nursery:
            await run(broker, nursery)
            await eventually(lambda: not broker.transactions.loading, "the transactions to be loaded")
            await trio.sleep(80)
            assert state(broker) is TransactionState.COMPLETE_ABORT
            nursery.cancel_scope.cancel()


@pytest.mark.setting("transaction.abort.timed.out.transaction.cleanup.interval.ms")
async def test_how_often_transactions_that_take_too_long_are_aborted(
    start: Start, autojump_clock: trio.testing.MockClock
) -> None:
    settings = {**ONE, "transaction_abort_timed_out_transaction_cleanup_interval_ms": "100000"}
    broker = start(**settings)
    async with trio.open_nursery() as nursery:
        await run(broker, nursery)
        began = trio.current_time()
        while True:
            await begin(broker)
            over = trio.current_time() + 60
            due = next_look(began, 100, over)
            if due - over > 12:  # else one who looks every ten seconds, as by default, would come no earlier
                break
            await trio.sleep_until(due + 1)
        await trio.sleep_until(due - 1)
        assert state(broker) is TransactionState.ONGOING
        await trio.sleep_until(due + 1)
        assert state(broker) is TransactionState.COMPLETE_ABORT
        nursery.cancel_scope.cancel()


@pytest.mark.setting("transaction.remove.expired.transaction.cleanup.interval.ms")
async def test_how_often_expired_ids_are_deleted(
    start: Start, autojump_clock: trio.testing.MockClock
) -> None:
    settings = {"transaction_remove_expired_transaction_cleanup_interval_ms": "30000"}
    broker = start(**ONE, **settings, transactional_id_expiration_ms="10000")
    async with trio.open_nursery() as nursery:
        await run(broker, nursery)
        began = trio.current_time()
        assert not (await broker.transactions.init("idle", 60_000, None)).error
        due = next_look(began, 30, trio.current_time() + 10)
        await trio.sleep_until(due - 1)
        assert broker.transactions.find("idle") is not None
        await trio.sleep_until(due + 1)
        assert broker.transactions.find("idle") is None
        nursery.cancel_scope.cancel()


@pytest.mark.setting("transactional.id.expiration.ms")
async def test_an_unused_id_is_forgotten(start: Start, autojump_clock: trio.testing.MockClock) -> None:
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
        await eventually(lambda: not broker.transactions.loading, "the transactions to be loaded")
        assert [each.transactional_id for each in broker.transactions.all()] == ["id"]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("restarts", [True, False])
async def test_offsets_wait_for_their_transaction(start: Start, commits: bool, restarts: bool) -> None:
    broker = start(**ONE)
    await broker.groups.ready()
    producer_id, epoch = await begin(broker)
    topic = broker.topics.by_name["t"]
    partition = broker.groups.partition_of("g")
    assert not broker.transactions.add("id", producer_id, epoch, [partition], 2)
    broker.groups.offsets.commit("g", Committer(), [NewOffset("t", topic.id, 0, 1, -1, "")])
    new = NewOffset("t", topic.id, 0, 9, -1, "")
    codes = broker.groups.offsets.commit_in_transaction(
        "g", Committer(), ProducerIdAndEpoch(producer_id, epoch), [new]
    )
    assert codes == [ErrorCode.NONE]

    async def loaded() -> None:
        nonlocal broker
        if restarts:
            broker = start(**ONE)
        async with running(broker):
            pass

    await loaded()
    assert broker.groups.offsets.fetch("g")["t"][0].offset == 1
    assert broker.groups.offsets.unstable("g") == {P0}
    async with running(broker):
        assert not (await broker.transactions.end("id", producer_id, epoch, commit=commits, version=2)).error
    for _ in range(2):
        assert broker.groups.offsets.fetch("g")["t"][0].offset == (9 if commits else 1)
        assert not broker.groups.offsets.unstable("g")
        await loaded()


async def test_what_a_client_ends_while_others_are_loaded_is_completed_once(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"transaction_state_log_num_partitions": "2", "offsets_topic_num_partitions": "1"}
    broker = start(**settings)
    names: dict[int, str] = {}
    for number in range(20):
        names.setdefault(broker.transactions._log.partition_of(f"id {number}"), f"id {number}")
    await broker.topics.create("t", 1, {"lc.log.sync.always": "true"})
    given = [await begin(broker, names[number]) for number in (0, 1)]
    broker = start(**settings)
    loaded, go_on, writers = trio.Event(), trio.Event(), broker.runtime.writers
    load_partition = loader._load_partition

    async def load_slowly(log: TransactionLog, partition: int) -> list[Transaction]:
        if partition == 1:
            loaded.set()
            await go_on.wait()
        return await load_partition(log, partition)

    monkeypatch.setattr(loader, "_load_partition", load_slowly)
    async with trio.open_nursery() as nursery:
        await run(broker, nursery)
        await loaded.wait()
        writers.limit(0)  # no marker gets to the disk for now
        ended = await broker.transactions.end(names[0], *given[0], commit=True, version=0)
        assert not ended.error
        assert state(broker, names[0]) is TransactionState.PREPARE_COMMIT
        go_on.set()
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert not broker.transactions.loading
        writers.limit(AT_ONCE)
        await until_state(broker, TransactionState.COMPLETE_COMMIT, names[0])
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert broker.topics.partition(P0).log.log_end_offset == 1
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("partitions", [3, 120], ids=["few", "many"])
async def test_in_sync_mode_nothing_is_written_on_the_loop(
    start: Start, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    """Each write waits for the disk, so a worker has to do it: markers too."""
    on_the_loop: list[str] = []
    loop = threading.current_thread()

    def write_all(fd: int, *rest: Any) -> None:
        if threading.current_thread() is loop:
            on_the_loop.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        original(fd, *rest)

    original = commit.write_all
    monkeypatch.setattr(commit, "write_all", write_all)
    broker = start(lc_log_sync_always="true", **ONE)
    await broker.topics.create("many", partitions, {})
    await broker.groups.ready()
    for commits in (True, False):
        async with running(broker):
            given = await broker.transactions.init("id", 60_000, None)
            added = [TopicPartition("many", number) for number in range(partitions)]
            coming = broker.transactions.add(
                "id", given.producer_id, given.epoch, [*added, broker.groups.partition_of("g")], 2
            )
            assert not isinstance(coming, ErrorCode) and not await coming
            ended = await broker.transactions.end(
                "id", given.producer_id, given.epoch, commit=commits, version=2
            )
            assert not ended.error
            await until_state(
                broker, TransactionState.COMPLETE_COMMIT if commits else TransactionState.COMPLETE_ABORT
            )
        assert {each.log.log_end_offset for each in broker.topics.by_name["many"].partitions} == {2 - commits}
    assert on_the_loop == []


def told_by_kafka(broker: Broker) -> list[tuple[str, dict[str, Any] | None]]:
    """Id and value of each record of `__transaction_state` as Kafka's own decoder reads them; None for a tombstone."""
    log = broker.topics.by_name["__transaction_state"].partitions[0].log
    files = ",".join(str(file) for file in log.directory.glob("*.log"))
    name = "org.apache.kafka.tools.DumpLogSegments"
    tool = jars.java("4.3.1", name, "--transaction-log-decoder", "--files", files)
    done = subprocess.run(tool, capture_output=True, text=True, check=True)
    assert done.stdout.count("isvalid: true") == log.log_end_offset, done.stdout
    found = []
    for line in done.stdout.splitlines():
        if line.startswith("| offset"):
            key, payload = line.partition(" key: ")[2].split(" payload: ")
            value = None if payload == "<DELETE>" else json.loads(payload)["data"]
            found.append((json.loads(key)["data"]["transactionalId"], value))
    return found


@pytest.mark.long
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
async def test_kafkas_own_tool_reads_every_state(start: Start) -> None:
    broker = start(**ONE, transactional_id_expiration_ms="1")
    async with running(broker):
        producer_id, epoch = await begin(broker)
        for commits, due in (
            (True, TransactionState.COMPLETE_COMMIT),
            (False, TransactionState.COMPLETE_ABORT),
        ):
            answer = await broker.transactions.end("id", producer_id, epoch, commit=commits, version=2)
            epoch += 1
            assert answer == (ErrorCode.NONE, producer_id, epoch)
            await until_state(broker, due)
            assert not broker.transactions.add("id", producer_id, epoch, [P0], 2)
        # Fenced by one who has taken its place, while its transaction goes on.
        assert (await broker.transactions.init("id", 60_000, None)).error is ErrorCode.CONCURRENT_TRANSACTIONS
        await until_state(broker, TransactionState.COMPLETE_ABORT)
        with trio.fail_after(60):
            while broker.transactions.find("id") is not None:
                await broker.transactions.forget_expired()
    told = told_by_kafka(broker)
    assert {name for name, _ in told} == {"id"}
    values = [value for _, value in told]
    states = [None if value is None else TransactionState(value["transactionStatus"]) for value in values]
    aborted = [TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT]
    committed = [TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT]
    assert states == [
        TransactionState.EMPTY,
        TransactionState.ONGOING,
        *committed,
        TransactionState.ONGOING,
        *aborted,
        TransactionState.ONGOING,
        *aborted,
        None,
    ]
    partitions = [{"topic": "t", "partitionIds": [0]}]
    for state, value in zip(states, values, strict=True):
        if value is not None:
            assert value["producerId"] == producer_id
            assert value["transactionTimeoutMs"] == 60_000
            assert value["transactionPartitions"] == {
                TransactionState.EMPTY: None, TransactionState.COMPLETE_COMMIT: [], TransactionState.COMPLETE_ABORT: [],
            }.get(state, partitions)  # fmt: skip
    # By a client of transaction version 2 each end raises the epoch, which the tool shows with the decision.
    assert [value["clientTransactionVersion"] for value in values[1:4] if value is not None] == [2, 2, 2]
    assert values[3] is not None and values[3]["producerEpoch"] == 1

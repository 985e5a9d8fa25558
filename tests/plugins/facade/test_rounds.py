"""Appends of many tasks: written together, answered after the write, and cancelled at any point without harm."""

import errno
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
import trio.testing

import leafcuttr.log.append.commit as commit_module
from leafcuttr.log.append.background_write import BackgroundWrite
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.log import Log
from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.state.broker import Broker as Core
from leafcuttr.wire.records import Record as WireRecord
from leafcuttr.wire.records import encode_batch
from leafcuttr_sdk import Broker, BrokerError, ErrorCode, NewBatch, Produced, Record, TopicPartition
from leafcuttr_sdk.errors import StorageError, UnknownTopicOrPartition
from plugins.facade.conftest import PLUGIN, Open
from support.logs import batch, write_now
from support.waiting import eventually

AT = TopicPartition("t", 0)
SYNC = {"lc.log.sync.always": "true"}


async def values(view: Broker) -> list[bytes | None]:
    found: list[bytes | None] = []
    positions = {AT: 0}
    while (fetched := await view.fetch(positions)).records:
        found += [record.value for record in fetched.records]
        positions = fetched.positions
    return found


class _NoPause:
    """A `Pace` by which no call ever gives up its turn, however slow the machine is."""

    async def turn(self) -> None:
        return


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many buffers each write had, of callers who all come in the turn in which they are started."""
    monkeypatch.setattr("leafcuttr.plugins.facade.producing.Pace", _NoPause)
    made: list[int] = []
    real = commit_module.write_all

    def write(fd: int, views: list[memoryview], position: int, size: int) -> None:
        made.append(len(views))
        real(fd, views, position, size)

    monkeypatch.setattr(commit_module, "write_all", write)
    return made


@pytest.mark.parametrize("configs", [{}, SYNC], ids=["buffered", "synced"])
async def test_those_of_one_turn_share_a_write(
    view: Broker, writes: list[int], configs: dict[str, str]
) -> None:
    await view.topics.create("t", configs=configs)
    answers: list[Produced] = []

    async def produce(number: int) -> None:
        answers.append(await view.produce("t", b"%d" % number))

    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(produce, number)
    assert writes == [50]
    assert sorted(answer.offset for answer in answers) == list(range(50))
    assert len(set(await values(view))) == 50


async def test_many_more_than_one_turn_takes(view: Broker, writes: list[int]) -> None:
    await view.topics.create("t")
    async with trio.open_nursery() as nursery:
        for number in range(1050):
            nursery.start_soon(view.produce, "t", b"%d" % number)
    assert sum(writes) == 1050 and len(writes) <= 12
    assert sorted(await values(view)) == sorted(b"%d" % number for number in range(1050))
    writes.clear()
    answers = await view.append([NewBatch(AT, bytes(batch(1)))] * 350)
    assert not [each for each in answers if isinstance(each, BrokerError)]
    assert sum(writes) == 350 and len(writes) <= 5


async def test_a_synced_record_is_on_the_disk_before_its_answer(
    view: Broker, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    await view.topics.create("t", configs=SYNC)
    published_at: list[int] = []
    real = BackgroundWrite._written

    def written(self: BackgroundWrite, result: object, error: BaseException | None) -> None:
        published_at.append(len(answered))
        real(self, result, error)

    monkeypatch.setattr(BackgroundWrite, "_written", written)
    answered = []
    for number in range(3):
        answered.append(await view.produce("t", b"%d" % number))
        assert core.logs.logs[AT].unflushed == 0
    assert published_at == [0, 1, 2]


@pytest.mark.parametrize("configs", [{}, SYNC], ids=["buffered", "synced"])
async def test_a_write_that_fails_is_everybodys_error(
    view: Broker, monkeypatch: pytest.MonkeyPatch, configs: dict[str, str]
) -> None:
    await view.topics.create("t", configs=configs)
    await view.produce("t", b"before")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk:
        disk.setattr(commit_module, "write_all", full)
        seen: list[BrokerError] = []

        async def produce() -> None:
            try:
                await view.produce("t", b"lost")
            except BrokerError as error:
                seen.append(error)

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(produce)
        assert [error.code for error in seen] == [ErrorCode.KAFKA_STORAGE_ERROR] * 5
        assert "No space left" in str(seen[0])
    assert (await view.produce("t", b"after")).offset == 1
    assert await values(view) == [b"before", b"after"]


async def test_a_topic_that_is_deleted_in_between(view: Broker, core: Core) -> None:
    await view.topics.create("t")
    seen: list[BrokerError] = []

    async def produce() -> None:
        try:
            await view.produce("t", b"v")
        except BrokerError as error:
            seen.append(error)

    async with trio.open_nursery() as nursery:
        topic = core.topics.by_name["t"]
        real = core.appender._write

        def write() -> None:
            core.topics._withdraw(topic)
            core.logs.delete(AT)
            real()

        core.appender._write = write  # type: ignore[method-assign]
        nursery.start_soon(produce)
    assert isinstance(seen[0], UnknownTopicOrPartition) and "deleted" in str(seen[0])


class CancelAtStep(trio.abc.Instrument):
    """Cancels a scope as its task is about to take its n-th step."""

    def __init__(self, scope: trio.CancelScope, left: int) -> None:
        self._scope = scope
        self._left = left
        self.task: trio.lowlevel.Task | None = None

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self.task:
            self._left -= 1
            if self._left == 0:
                self._scope.cancel()


async def cancelled_at(step: int, call: Callable[[], Awaitable[object]]) -> bool:
    """Call it, cancelled as it takes this step; whether that was before its end."""
    with trio.CancelScope() as scope:
        instrument = CancelAtStep(scope, step)
        instrument.task = trio.lowlevel.current_task()
        trio.lowlevel.add_instrument(instrument)
        try:
            await call()
        finally:
            trio.lowlevel.remove_instrument(instrument)
    return scope.cancel_called


@pytest.mark.parametrize("how", ["buffered", "synced", "converted"])
@pytest.mark.parametrize("first", [True, False], ids=["leading", "following"])
async def test_cancelled_at_any_step_the_log_stays_whole(
    view: Broker, core: Core, how: str, first: bool
) -> None:
    configs = {
        "buffered": {},
        "synced": SYNC,
        "converted": {"compression.type": "zstd", "max.message.bytes": "20000000"},
    }
    await view.topics.create("t", configs=configs[how])
    # What is converted takes several steps: worker threads.
    mine = [Record(b"mine" * 5000)] * 8 if how == "converted" else [Record(b"mine")] * 3
    prebuilt = bytearray(encode_batch([WireRecord(n, 1, None, each.value) for n, each in enumerate(mine)]))
    again = bytes(prebuilt)
    for produce in (
        lambda: view.produce_batch("t", mine),
        lambda: view.append([NewBatch(AT, prebuilt)]),
    ):
        step, going = 0, True
        while going:
            step += 1
            before = len(await values(view))
            reached = False

            async def one(call: Callable[[], Awaitable[object]] = produce, step: int = step) -> None:
                nonlocal reached
                reached = await cancelled_at(step, call)

            async with trio.open_nursery() as nursery:
                order = [one, lambda: view.produce("t", b"other")]
                for task in order if first else reversed(order):
                    nursery.start_soon(task)
            prebuilt[:] = again  # the caller's own again, whatever happened
            stored = (await values(view))[before:]
            assert stored.count(b"other") == 1
            assert len(stored) in (1, 1 + len(mine))
            assert not core.appender._queue and not core.appender._led
            log = core.logs.logs[AT]
            await eventually(lambda log=log: not log.busy, "the write", pause=0.001)
            going = reached
        assert step > 1
    folder = core.logs.logs[AT].directory
    check_intact(folder)


def check_intact(folder: Path) -> None:
    from crc32c import crc32c

    from support.live_broker import batches_of

    for path in folder.glob("*.log"):
        data, at = path.read_bytes(), 0
        for header in batches_of(path):
            assert crc32c(data[at + 21 : at + header.size]) == header.crc
            at += header.size


async def test_the_leader_is_cancelled_with_others_behind_it(view: Broker) -> None:
    await view.topics.create("t")
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            for number in range(300):  # three turns: leadership is handed on among those who are cancelled
                nursery.start_soon(view.produce, "t", b"%d" % number)
            nursery.start_soon(_cancel_soon, scope)
    assert scope.cancelled_caught
    with trio.fail_after(30):
        answer = await view.produce("t", b"still alive")
    assert len(await values(view)) == answer.offset + 1


async def _cancel_soon(scope: trio.CancelScope) -> None:
    await trio.lowlevel.checkpoint()
    scope.cancel()


async def test_cancelled_before_anything_began(view: Broker) -> None:
    await view.topics.create("t")
    with trio.CancelScope() as scope:
        scope.cancel()
        await view.produce("t", b"v")
    assert scope.cancelled_caught and await values(view) == []


async def test_plain_and_in_process_producers_in_one_turn(open_core: Open) -> None:
    """What a connection stages is written by it, what tasks ask for by their round."""
    core = open_core()
    view = make_broker_view(core, PLUGIN)
    await view.topics.create("t")
    log: Log = core.logs.logs[AT]

    async def connection() -> None:
        for _ in range(20):
            log.stage(memoryview(batch(1)), Origin.CLIENT, now_ms=core.clock.now_ms())
            write_now(log)
            await trio.lowlevel.checkpoint()

    async def task() -> None:
        for _ in range(20):
            await view.produce("t", b"v")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection)
        nursery.start_soon(task)
        nursery.start_soon(task)
    assert len(await values(view)) == 60 and log.log_end_offset == 60


async def test_a_bug_in_the_append_is_one_batchs_error(
    view: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await view.topics.create("t")

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as bug:
        bug.setattr(Log, "stage", broken)
        with pytest.raises(BrokerError, match="log says") as caught:
            await view.produce("t", b"v")
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR and not isinstance(caught.value, StorageError)
    assert "ZeroDivisionError" in caplog.text
    assert (await view.produce("t", b"v")).offset == 0

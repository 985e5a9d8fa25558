"""Writes off the loop, step by step: what a pending write says and when, what a log is like until it is done."""

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr.log.append import background_write
from leafcuttr.log.append.background_write import BackgroundWrite
from leafcuttr.log.append.pending_write import PendingWrite
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.append.staged import WriteError
from leafcuttr.log.log import Log
from leafcuttr_sdk.filters import DeadLetter
from leafcuttr_sdk.records import Record
from support.chains import TestChain
from support.logs import (
    NOW,
    append_and_wait,
    batch,
    begin_write,
    make_log,
    read_all,
    stage_here,
    would_wait,
    write_by_worker,
    write_now,
)


def stage(log: Log, data: bytearray | None = None) -> int:
    return log.stage(memoryview(data or batch()), Origin.CLIENT, now_ms=NOW).base_offset


class Held:
    """A function that a worker thread calls and that does not go on until it may."""

    def __init__(self, real: Callable[..., Any], error: BaseException | None = None) -> None:
        self.entered, self.may_go_on = threading.Event(), threading.Event()
        self._real = real
        self._error = error

    def __call__(self, *arguments: Any) -> Any:
        self.entered.set()
        assert self.may_go_on.wait(60)
        if self._error is not None:
            raise self._error
        return self._real(*arguments)

    async def wait_entered(self) -> None:
        await trio.to_thread.run_sync(self.entered.wait)


@contextmanager
def held(name: str, error: BaseException | None = None) -> Iterator[Held]:
    with pytest.MonkeyPatch.context() as patch:
        function = Held(getattr(background_write, name), error)
        patch.setattr(background_write, name, function)
        try:
            yield function
        finally:
            function.may_go_on.set()


# Pending writes


def test_a_ticket_is_finished_once_and_tells_everybody() -> None:
    pending, heard = PendingWrite(), []
    assert (pending.published, pending.done, pending.failure) == (False, False, None)
    pending.when_done(lambda: heard.append("one"))
    pending.when_done(lambda: heard.append("two"))
    pending.publish()
    assert (pending.published, pending.done, heard) == (True, False, [])
    pending.finish()
    assert (pending.done, heard) == (True, ["one", "two"])


@pytest.mark.parametrize("landed_before", [True, False])
def test_what_failed_is_known_from_the_landing_on(landed_before: bool) -> None:
    pending, failure = PendingWrite(), WriteError("no space", 7)
    if landed_before:
        pending.publish(failure)
        pending.finish()
    else:
        pending.finish(failure)
    assert (pending.published, pending.done, pending.failure) == (True, True, failure)


@pytest.mark.parametrize("cancelled", [True, False])
async def test_a_caller_that_waits_for_the_publication_does_not_wait_for_dead_letters(
    cancelled: bool,
) -> None:
    """Nor is the wait cut short: the views of what is written are in use."""
    pending, done = PendingWrite(), []

    async def wait(until: str) -> None:
        await (pending.wait() if until == "finished" else pending.wait_until_published())
        done.append(until)

    async with trio.open_nursery() as nursery:
        for until in ("published", "finished"):
            nursery.start_soon(wait, until)
        await trio.testing.wait_all_tasks_blocked()
        if cancelled:
            nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await trio.testing.wait_all_tasks_blocked()
            assert done == []
            pending.publish()
            await trio.testing.wait_all_tasks_blocked()
            assert done == ["published"]
            pending.finish()
    assert done == ["published", "finished"]
    await pending.wait()
    await pending.wait_until_published()


# Logs in flight


async def test_while_the_next_segment_is_made_nobody_writes_index_entries(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_bytes=1000, index_interval_bytes=1)
    await append_and_wait(log, batch(size=800))
    stage(log, batch(size=800))
    with held("new_segment") as making:
        committed = write_by_worker(log)
        await making.wait_entered()
        assert (log.sealing, would_wait(log), log.flush_indexes()) == (True, True, False)
    await committed
    assert (log.sealing, log.writing, log.flush_indexes()) == (False, None, True)
    assert [segment.base_offset for segment in log.segments] == [0, 1]


async def test_while_a_write_is_in_flight_nothing_is_written_on_the_loop(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    stage(log)
    with held("write_there") as writing:
        committed = write_by_worker(log)
        await writing.wait_entered()
        write_now(log)  # of nothing
        stage(log)
        with pytest.raises(RuntimeError, match="t-0: a worker writes"):
            write_now(log)
        assert (log.log_end_offset, len(log.groups)) == (0, 1)
    await committed
    await write_by_worker(log)
    assert log.log_end_offset == 2


async def test_a_segment_that_cannot_be_made_fails_its_write_only(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_bytes=1000)
    await append_and_wait(log, batch(size=800))
    stage(log, batch(size=800))
    with held("new_segment", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) as making:
        committed = write_by_worker(log)
        making.may_go_on.set()
        with pytest.raises(WriteError, match="No space left on device") as failed:
            await committed
    assert failed.value.written_to == log.log_end_offset == log.next_offset == 1
    assert failed.value.disk_full
    assert (log.sealing, log.writing, log.next_write, log.offline) == (False, None, None, None)
    assert await append_and_wait(log, batch(size=800)) == 1


@pytest.mark.parametrize("fails", [True, False])
async def test_what_is_staged_meanwhile_makes_the_next_write(tmp_path: Path, fails: bool) -> None:
    """If the first fails, what was staged behind it has lost its offsets, and fails with it."""
    log = make_log(tmp_path)
    stage(log)
    error = OSError(errno.EIO, os.strerror(errno.EIO)) if fails else None
    with held("write_there", error) as writing:
        first = begin_write(log)
        assert first is not None
        await writing.wait_entered()
        assert (begin_write(log), log.log_end_offset) == (first, 0)
        stage(log)
        stage(log)
        second = begin_write(log)
        assert second is not None
        assert second is not first
        assert begin_write(log) is second
        assert (first.published, second.published) == (False, False)
        writing.may_go_on.set()
        await first.wait()
        await second.wait()
    assert (log.writing, log.next_write, log.busy) == (None, None, False)
    if fails:
        assert first.failure is second.failure is not None
        assert (log.log_end_offset, log.next_offset) == (0, 0)
        assert await append_and_wait(log, batch()) == 0
    else:
        assert (first.failure, second.failure, log.log_end_offset) == (None, None, 3)
        assert len(read_all(log)) == log.size


@pytest.mark.parametrize("flush_messages", [1, 3, 10])
async def test_a_write_that_synced_leaves_nothing_to_flush(tmp_path: Path, flush_messages: int) -> None:
    log = make_log(tmp_path, flush_messages=flush_messages)
    unflushed = []
    for _ in range(6):
        stage(log)
        await write_by_worker(log)
        unflushed.append(log.unflushed)
    assert unflushed == [(number + 1) % flush_messages for number in range(6)]


async def test_a_mistake_of_ours_fails_the_write_and_is_logged_with_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = make_log(tmp_path)
    stage(log)

    def publish(*_: object, **__: object) -> None:
        raise KeyError("a mistake")

    with monkeypatch.context() as patch:
        patch.setattr(background_write, "publish", publish)
        with pytest.raises(WriteError, match="a mistake"):
            await write_by_worker(log)
    said = [record for record in caplog.records if record.name == "leafcuttr.log.append.background_write"]
    assert [(record.getMessage(), bool(record.exc_info)) for record in said] == [
        ("writing to t-0 failed", True)
    ]
    assert (log.writing, log.log_end_offset, log.next_offset) == (None, 0, 0)
    assert await append_and_wait(log, batch()) == 0


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt(), SystemExit()]
)
def test_a_step_that_fails_ends_the_flight_and_passes_on_what_is_no_failure(
    tmp_path: Path, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    log = make_log(tmp_path)
    stage(log)
    write = BackgroundWrite(log, PendingWrite())
    log.writing = write.pending

    def step() -> None:
        raise error

    if isinstance(error, Exception):
        write._step(step)
        assert not [
            record for record in caplog.records if record.name == "leafcuttr.log.append.background_write"
        ]
    else:
        with pytest.raises(type(error)):
            write._step(step)
    assert write.pending.done
    assert write.pending.failure is not None
    assert (log.writing, log.groups, log.next_offset) == (None, [], 0)


async def test_a_log_in_doubt_writes_nothing_more(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    stage(log)
    log.sync_failed, log.offline = True, "its disk is failing"
    with pytest.raises(WriteError, match="its disk is failing"):
        await write_by_worker(log)
    assert (log.writing, log.log_end_offset, log.next_offset) == (None, 0, 0)


async def test_groups_land_one_behind_the_other(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_bytes=1000)
    for _ in range(5):
        stage(log, batch(size=600))
    assert len(log.groups) == 5
    pending = begin_write(log)
    assert pending is not None
    await pending.wait_until_published()
    assert (log.writing, log.log_end_offset, [s.base_offset for s in log.segments]) == (
        None,
        5,
        [0, 1, 2, 3, 4],
    )
    assert pending.done
    assert len(read_all(log)) == log.size


async def test_the_next_write_has_begun_when_the_end_of_one_is_told(tmp_path: Path) -> None:
    """A caller that hears of the end may stage more, which is for the write after that."""
    log = make_log(tmp_path)
    stage(log)
    seen: list[tuple[PendingWrite | None, PendingWrite | None, int]] = []
    with held("write_there") as writing:
        first = begin_write(log)
        await writing.wait_entered()
        stage(log)
        second = begin_write(log)
        first.when_done(lambda: seen.append((log.writing, log.next_write, len(log.groups))))
        writing.may_go_on.set()
        await first.wait()
        await second.wait()
    assert seen == [(second, None, 0)]


async def test_a_write_that_fails_waits_for_the_dead_letters_of_what_it_has_published(tmp_path: Path) -> None:
    """Those of its other batches are never posted: a wait for them would not end."""

    def judge(record: Record) -> Record | DeadLetter:
        return DeadLetter("bad") if record.value and record.value.startswith(b"b") else record

    chain = TestChain(judge)
    log = make_log(tmp_path, segment_bytes=1000)
    log.use_chain(chain.chain)
    for _ in range(3):
        stage_here(log, batch(2, size=600))
    assert [len(group.letters or ()) for group in log.groups] == [1, 1, 1]
    with held("new_segment", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) as making:
        pending = begin_write(log)
        making.may_go_on.set()
        await pending.wait_until_published()
    assert pending.failure is not None
    assert (pending.failure.written_to, log.log_end_offset, pending.done) == (2, 2, False)
    (posted,) = chain.posted
    assert posted.base_offset == 0
    posted.finish()
    assert pending.done

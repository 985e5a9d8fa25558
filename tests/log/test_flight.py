"""Writes off the loop, step by step: what a ticket says and when, what a log is like until its write has landed."""

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

from leafcuttr.log.append import background_write as flights
from leafcuttr.log.append.background_write import Flight
from leafcuttr.log.append.pending_write import Ticket
from leafcuttr.log.append.staged import WriteError
from leafcuttr.log.log import Log
from support.logs import NOW, append_and_wait, batch, make_log, read_all


def stage(log: Log, data: bytearray | None = None) -> int:
    return log.stage(memoryview(data or batch()), now_ms=NOW).base_offset


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
        function = Held(getattr(flights, name), error)
        patch.setattr(flights, name, function)
        try:
            yield function
        finally:
            function.may_go_on.set()


# Tickets


def test_a_ticket_is_finished_once_and_tells_everybody() -> None:
    ticket, heard = Ticket(), []
    assert (ticket.landed, ticket.finished, ticket.failure) == (False, False, None)
    ticket.when_finished(lambda: heard.append("one"))
    ticket.when_finished(lambda: heard.append("two"))
    ticket.land()
    assert (ticket.landed, ticket.finished, heard) == (True, False, [])
    ticket.finish()
    assert (ticket.finished, heard) == (True, ["one", "two"])


@pytest.mark.parametrize("landed_before", [True, False])
def test_what_failed_is_known_from_the_landing_on(landed_before: bool) -> None:
    ticket, failure = Ticket(), WriteError("no room", 7)
    if landed_before:
        ticket.land(failure)
        ticket.finish()
    else:
        ticket.finish(failure)
    assert (ticket.landed, ticket.finished, ticket.failure) == (True, True, failure)


@pytest.mark.parametrize("cancelled", [True, False])
async def test_who_waits_for_the_landing_does_not_wait_for_dead_letters(cancelled: bool) -> None:
    """Nor is the wait cut short: the views of what is written are in use."""
    ticket, done = Ticket(), []

    async def wait(until: str) -> None:
        await (ticket.wait() if until == "finished" else ticket.wait_for_landing())
        done.append(until)

    async with trio.open_nursery() as nursery:
        for until in ("landed", "finished"):
            nursery.start_soon(wait, until)
        await trio.testing.wait_all_tasks_blocked()
        if cancelled:
            nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await trio.testing.wait_all_tasks_blocked()
            assert done == []
            ticket.land()
            await trio.testing.wait_all_tasks_blocked()
            assert done == ["landed"]
            ticket.finish()
    assert done == ["landed", "finished"]
    await ticket.wait()
    await ticket.wait_for_landing()


# Logs in flight


async def test_while_the_next_segment_is_made_nobody_writes_index_entries(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_bytes=1000, index_interval_bytes=1)
    await append_and_wait(log, batch(size=800))
    stage(log, batch(size=800))
    with held("new_segment") as making:
        committed = log.commit_off_loop()
        await making.wait_entered()
        assert (log.sealing, log.must_wait, log.flush_indexes()) == (True, True, False)
    await committed
    assert (log.sealing, log.flight, log.flush_indexes()) == (False, None, True)
    assert [segment.base_offset for segment in log.segments] == [0, 1]


async def test_while_a_write_is_in_flight_nothing_is_written_on_the_loop(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    stage(log)
    with held("write_there") as writing:
        committed = log.commit_off_loop()
        await writing.wait_entered()
        log.commit()  # of nothing
        stage(log)
        with pytest.raises(RuntimeError, match="t-0: a write is in flight"):
            log.commit()
        assert (log.log_end_offset, len(log.groups)) == (0, 1)
    await committed
    await log.commit_off_loop()
    assert log.log_end_offset == 2


async def test_a_segment_that_cannot_be_made_fails_its_write_only(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_bytes=1000)
    await append_and_wait(log, batch(size=800))
    stage(log, batch(size=800))
    with held("new_segment", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) as making:
        committed = log.commit_off_loop()
        making.may_go_on.set()
        with pytest.raises(WriteError, match="No space left on device") as failed:
            await committed
    assert failed.value.written_to == log.log_end_offset == log.next_offset == 1
    assert (log.sealing, log.flight, log.ticket, log.offline) == (False, None, None, None)
    assert await append_and_wait(log, batch(size=800)) == 1


@pytest.mark.parametrize("fails", [True, False])
async def test_what_is_staged_meanwhile_makes_the_next_write(tmp_path: Path, fails: bool) -> None:
    """If the first fails, what was staged behind it has lost its offsets, and fails with it."""
    log = make_log(tmp_path)
    stage(log)
    error = OSError(errno.EIO, os.strerror(errno.EIO)) if fails else None
    with held("write_there", error) as writing:
        first = log.write_off_loop()
        assert first is not None
        await writing.wait_entered()
        assert (log.write_off_loop(), log.log_end_offset) == (first, 0)
        stage(log)
        stage(log)
        second = log.write_off_loop()
        assert second is not None
        assert second is not first
        assert log.write_off_loop() is second
        assert (first.landed, second.landed) == (False, False)
        writing.may_go_on.set()
        await first.wait()
        await second.wait()
    assert (log.flight, log.ticket, log.busy) == (None, None, False)
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
        await log.commit_off_loop()
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
        patch.setattr(flights, "publish", publish)
        with pytest.raises(WriteError, match="a mistake"):
            await log.commit_off_loop()
    said = [record for record in caplog.records if record.name == "leafcuttr.log.append.background_write"]
    assert [(record.getMessage(), bool(record.exc_info)) for record in said] == [
        ("writing to t-0 failed", True)
    ]
    assert (log.flight, log.log_end_offset, log.next_offset) == (None, 0, 0)
    assert await append_and_wait(log, batch()) == 0


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt(), SystemExit()]
)
def test_a_step_that_fails_ends_the_flight_and_passes_on_what_is_no_failure(
    tmp_path: Path, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    log = make_log(tmp_path)
    stage(log)
    flight = Flight(log, Ticket())
    log.flight = flight.ticket

    def step() -> None:
        raise error

    if isinstance(error, Exception):
        flight._step(step)
        assert not [
            record for record in caplog.records if record.name == "leafcuttr.log.append.background_write"
        ]
    else:
        with pytest.raises(type(error)):
            flight._step(step)
    assert flight.ticket.finished
    assert flight.ticket.failure is not None
    assert (log.flight, log.groups, log.next_offset) == (None, [], 0)


async def test_a_log_in_doubt_writes_nothing_more(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    stage(log)
    log.suspect, log.offline = True, "its disk is failing"
    with pytest.raises(WriteError, match="its disk is failing"):
        await log.commit_off_loop()
    assert (log.flight, log.log_end_offset, log.next_offset) == (None, 0, 0)


async def test_groups_land_one_behind_the_other(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_bytes=1000)
    for _ in range(5):
        stage(log, batch(size=600))
    assert len(log.groups) == 5
    ticket = log.write_off_loop()
    assert ticket is not None
    await ticket.wait_for_landing()
    assert (log.flight, log.log_end_offset, [s.base_offset for s in log.segments]) == (
        None,
        5,
        [0, 1, 2, 3, 4],
    )
    assert ticket.finished
    assert len(read_all(log)) == log.size

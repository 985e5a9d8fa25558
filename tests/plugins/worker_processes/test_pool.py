"""Calls in worker processes: what comes back, what ends a process, and what the next call finds."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr.plugins.worker_processes import child
from leafcuttr.plugins.worker_processes import pool as pools
from leafcuttr.plugins.worker_processes.pool import WorkerPool
from leafcuttr_sdk import (
    WorkerDeadlineError,
    WorkerDiedError,
    WorkerError,
    WorkerMemoryError,
    WorkerRaisedError,
    WorkerTransferError,
)
from plugins.worker_processes.conftest import MB, Run, is_gone, run_in
from support import worker_functions as functions
from support.waiting import eventually

OURS = "support.worker_functions"


async def test_a_result_comes_back(run: Run, pool: WorkerPool) -> None:
    assert pool.pids == []
    assert await run(functions.add, 1, 2) == 3
    assert await run(functions.add, 3, 4) == 7
    things = [None, {"a": [1.5, b"b"]}, "\ud800", functions.SampleError("x")]
    assert [repr(await run(functions.echo, thing)) for thing in things] == [repr(thing) for thing in things]
    assert pool.pids == [await run(functions.pid)] != [os.getpid()]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("size", [65_000, 65_536, 70_000, 5_000_000])
async def test_large_arguments_and_results(run: Run, size: int) -> None:
    for thing in (b"x" * size, list(range(size // 10)), ["y" * (size // 100)] * 100):
        assert await run(functions.echo, thing) == thing


async def test_a_process_has_nothing_of_the_broker(run: Run) -> None:
    there = await run(functions.modules)
    assert OURS in there
    ours = {name for name in there if name.partition(".")[0] in ("leafcuttr", "leafcuttr_sdk", "trio")}
    assert ours == set()


@pytest.mark.parametrize("function", [functions.spin, functions.hold_the_interpreter])
async def test_over_its_deadline(run: Run, pool: WorkerPool, function: Callable[[], None]) -> None:
    before = await run(functions.pid)
    with pytest.raises(WorkerDeadlineError, match=rf"^{OURS}.{function.__name__} took longer than 0.05 s"):
        await run(function, deadline_s=0.05)
    assert is_gone(before)
    assert await run(functions.pid) != before


async def test_the_import_does_not_count(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slowly_imported.py").write_text("import time\ntime.sleep(0.5)\ndef one(): return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import slowly_imported  # type: ignore[import-not-found]

    assert await run(slowly_imported.one, deadline_s=0.4) == 1


async def test_what_a_process_starts_ends_with_it(run: Run, tmp_path: Path) -> None:
    started = tmp_path / "pid"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, functions.start_another_and_spin, str(started))
        await eventually(lambda: (started.exists() and started.read_text()) or None, "the process of its")
        nursery.cancel_scope.cancel()
    assert await eventually(lambda: is_gone(int(started.read_text())), "its end")


async def test_over_its_memory(run: Run) -> None:
    before = await run(functions.pid)
    # As large as what is free, or not at all: the kernel gives address space, and the limit refuses it.
    with pytest.raises(WorkerMemoryError, match=rf"^{OURS}.allocate needed more than {32 * MB} bytes"):
        await run(functions.allocate, 1024 * MB, memory_bytes=32 * MB)
    assert is_gone(before)
    assert await run(functions.allocate, 16 * MB, memory_bytes=32 * MB) == 16 * MB
    same = await run(functions.pid)
    # The next call may have more than the one before.
    assert await run(functions.allocate, 300 * MB, memory_bytes=400 * MB) == 300 * MB
    # The limit goes with its call: one that catches the error has gone on within it.
    assert await run(functions.allocate_and_go_on, 300 * MB, memory_bytes=32 * MB) == "went on"
    assert await run(functions.pid) == same


async def test_arguments_and_results_are_within_its_memory(run: Run, pool: WorkerPool) -> None:
    assert len(await run(functions.large, 5 * MB, memory_bytes=64 * MB)) == 5 * MB
    for size in (100, 5 * MB):
        with pytest.raises(
            WorkerMemoryError, match=rf"arguments of {OURS}.echo are larger than {size} bytes"
        ):
            await run(functions.echo, b"x" * size, memory_bytes=size)
    # It is not even read: what has to do with it beside its bytes is more.
    with pytest.raises(WorkerMemoryError, match=rf"^{OURS}.echo needed more than {5 * MB + 100} bytes"):
        await run(functions.echo, b"x" * (5 * MB), memory_bytes=5 * MB + 100)
    assert await run(functions.add, 1, 1) == 2
    before = pool.pids
    # Of the two limits the one that it meets first: what the process has free already does not count as needed.
    either = rf"result of {OURS}.large is larger than|^{OURS}.large needed more than"
    with pytest.raises(WorkerMemoryError, match=rf"({either}) 50000 bytes"):
        await run(functions.large, 60_000, memory_bytes=50_000)
    assert await run(functions.add, 1, 1) == 2 and pool.pids != before


async def test_an_import_is_not_within_the_memory_of_the_call_before(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "large_module.py").write_text(
        f"table = bytearray({100 * MB})\ndef size(): return len(table)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import large_module  # type: ignore[import-not-found]

    first = await run(functions.pid, memory_bytes=MB)
    assert await run(large_module.size, memory_bytes=MB) == 100 * MB
    assert await run(functions.pid) == first


async def test_a_length_that_is_only_claimed(run: Run) -> None:
    """A function that writes where only the process itself should."""
    with pytest.raises(WorkerMemoryError, match=r"result of .*claim is larger than"):
        await run(functions.claim, child.ANSWER.pack(child.RETURNED, False, 1 << 40), deadline_s=60)
    assert await run(functions.add, 1, 2) == 3


async def test_what_calls_leave_behind_is_not_kept_for_ever(run: Run) -> None:
    first = await run(functions.keep, 40 * MB, memory_bytes=64 * MB)
    assert await run(functions.keep, 40 * MB, memory_bytes=64 * MB) == first
    assert await eventually(lambda: is_gone(first), "its end")
    assert await run(functions.pid) != first


@pytest.mark.parametrize(
    ("function", "argument", "how"),
    [
        (functions.exit_at_once, (0,), "has ended with status 0"),
        (functions.exit_at_once, (3,), "has ended with status 3"),
        (functions.kill_itself, (), "was ended by SIGKILL"),
    ],
)
async def test_a_process_that_dies(run: Run, function: Any, argument: tuple[Any, ...], how: str) -> None:
    with pytest.raises(WorkerDiedError, match=rf"^{OURS}.{function.__name__}: its process {how}$"):
        await run(function, *argument)
    assert await run(functions.add, 1, 2) == 3


@pytest.mark.parametrize("how", ["returns", "exits", "fails"])
async def test_a_process_that_a_function_forks_does_not_answer(run: Run, pool: WorkerPool, how: str) -> None:
    assert await run(functions.fork, how) == "parent"
    (pid,) = pool.pids
    for number in range(3):
        assert await run(functions.echo, number) == number
    assert await run(functions.pid) == pid


async def test_one_that_has_died_idle_is_not_taken(run: Run, pool: WorkerPool) -> None:
    pid = await run(functions.pid)
    os.kill(pid, signal.SIGKILL)
    # Its end, before the loop has noticed it; its status is left to be read.
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert pool.pids == [pid]
    assert await run(functions.add, 1, 2) == 3


async def test_what_a_function_raises(run: Run) -> None:
    with pytest.raises(functions.SampleError) as raised:
        await run(functions.fail, "sample")
    assert raised.value.args == ("a", 1) and type(raised.value) is functions.SampleError
    (note,) = raised.value.__notes__
    assert note.startswith("In a worker process:\nTraceback") and "worker_functions.py" in note
    assert "in fail" in note and "child.py" not in note
    for which, text in (
        ("demanding", "DemandingError: 1 and 2"),
        ("locked", "LockedError: holds a lock"),
        ("interrupt", "KeyboardInterrupt"),
    ):
        with pytest.raises(WorkerRaisedError, match=rf"^{OURS}.fail raised {text}$"):
            await run(functions.fail, which)
    with pytest.raises(WorkerRaisedError, match="SystemExit: 3"):
        await run(functions.exit_as_python_does, 3)
    assert await run(functions.add, 1, 2) == 3


async def test_what_cannot_be_sent(run: Run, pool: WorkerPool) -> None:
    assert await run(functions.add, 1, 2) == 3
    before = pool.pids
    for function, argument, why in (
        (functions.unpicklable, (), "its result cannot be pickled: TypeError: cannot pickle"),
        (functions.unreadable, (), "its result cannot be read: ValueError: invalid literal"),
        (
            functions.echo,
            (functions.Unreadable(),),
            "an argument cannot be read in a worker process: ValueError",
        ),
        (functions.echo, (lambda: None,), "an argument cannot be pickled: "),
    ):
        with pytest.raises(WorkerTransferError, match=why) as raised:
            await run(function, *argument)
        assert str(raised.value).startswith(f"{OURS}.{function.__name__}: ")  # type: ignore[attr-defined]
        assert "\n" not in str(raised.value)
    assert pool.pids == before


async def test_a_module_that_cannot_be_imported(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "once_there.py"
    file.write_text("def one(): return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import once_there  # type: ignore[import-not-found]

    file.write_text("raise OSError('no such sensor')")
    with pytest.raises(
        WorkerTransferError, match=r"once_there\.one cannot be imported .* OSError: no such sensor"
    ):
        await run(once_there.one)
    file.write_text("def one(): return 1\n")
    assert await run(once_there.one) == 1


@pytest.mark.parametrize(
    "limits",
    [{"deadline_s": 0}, {"deadline_s": -1}, {"deadline_s": float("nan")}, {"memory_bytes": 0}],
    ids=str,
)
async def test_limits_that_are_none(run: Run, pool: WorkerPool, limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(limits))}=.*has to be a number of"):
        await run(functions.add, 1, 2, **limits)
    assert pool.pids == []


async def test_without_an_end_of_the_deadline(run: Run) -> None:
    assert await run(functions.add, 1, 2, deadline_s=float("inf"), memory_bytes=1 << 70) == 3


async def test_calls_wait_in_order() -> None:
    order: list[int] = []
    async with trio.open_nursery() as nursery:
        pool = WorkerPool(nursery, most=1)

        async def call(number: int) -> None:
            assert await run_in(pool, functions.add, number, 0) == number
            order.append(number)

        async with trio.open_nursery() as calls:
            for number in range(10):
                calls.start_soon(call, number)
                await trio.lowlevel.checkpoint()
        assert order == list(range(10)) and len(pool.pids) == 1
        nursery.cancel_scope.cancel()


async def test_there_are_a_few_processes(run: Run, pool: WorkerPool) -> None:
    most = pools.most_processes()
    assert 2 <= most <= 4
    async with trio.open_nursery() as nursery:
        for _ in range(3 * most):
            nursery.start_soon(run, functions.sleep, 0.05)
    assert len(pool.pids) == most


async def test_a_caller_that_is_cancelled(run: Run, pool: WorkerPool) -> None:
    before = await run(functions.pid)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, functions.spin)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    assert scope.cancelled_caught and is_gone(before)
    # Those that were cancelled while they waited have taken no process with them.
    async with trio.open_nursery() as nursery:
        for _ in range(pools.most_processes() + 2):
            nursery.start_soon(run, functions.sleep, 1000)
        await eventually(lambda: len(pool.pids) == pools.most_processes(), "all processes")
        nursery.cancel_scope.cancel()
    assert await run(functions.add, 1, 2) == 3


async def test_an_idle_process_ends(run: Run, pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "IDLE_S", 0.01)
    pid = await run(functions.pid)
    await eventually(lambda: pool.pids == [], "the end of the idle process")
    assert is_gone(pid)
    assert await run(functions.add, 1, 2) == 3


async def test_the_end_of_the_nursery_ends_all() -> None:
    async def hold(*, task_status: trio.TaskStatus[trio.Nursery]) -> None:
        async with trio.open_nursery() as nursery:
            task_status.started(nursery)
            await trio.sleep_forever()

    failures: list[WorkerError] = []

    async def call(pool: WorkerPool) -> None:
        try:
            await run_in(pool, functions.spin)
        except WorkerError as error:
            failures.append(error)

    async with trio.open_nursery() as outer:
        background: trio.Nursery = await outer.start(hold)
        pool = WorkerPool(background)
        pid = await run_in(pool, functions.pid)
        outer.start_soon(call, pool)
        await trio.testing.wait_all_tasks_blocked()
        background.cancel_scope.cancel()
    assert is_gone(pid) and pool.pids == []
    assert [str(error) for error in failures] == [f"{OURS}.spin: its process was ended by SIGKILL"]
    with pytest.raises(WorkerDiedError, match="cannot be started: the broker has stopped"):
        await run_in(pool, functions.add, 1, 2)


async def test_what_functions_print_is_logged(
    pool: WorkerPool, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert await run(functions.say, 3) is None
    # Another plugin's call is not blamed for it, however late the lines are read.
    call = partial(pool.run, "other", functions.say, deadline_s=60, memory_bytes=256 * MB)
    assert await call((1000,)) is None
    assert await call((0,)) is None
    assert await run(functions.add, 1, 2) == 3

    def printed(name: str) -> list[str]:
        said = [record.getMessage() for record in caplog.records if record.name == f"leafcuttr.plugin.{name}"]
        return [each.removeprefix("a worker process ") for each in said]

    assert printed("sample") == [f"prints: {line}" for line in ("line 0", "line 1", "line 2", "and an error")]
    lines = [f"prints: line {number}" for number in range(20)]
    assert printed("other") == [*lines, "prints more, which is left out", "prints: and an error"]


async def test_no_more_processes_can_be_started(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(WorkerDiedError, match="cannot be started: Too many open files"):
            await run(functions.add, 1, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert await run(functions.add, 1, 2) == 3


async def test_no_descriptor_is_left(run: Run, pool: WorkerPool) -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    await run(functions.add, 1, 2)
    before = count()
    for _ in range(3):
        with pytest.raises(WorkerDiedError):
            await run(functions.exit_at_once, 1)
    await run(functions.add, 1, 2)
    await eventually(lambda: len(pool.pids) == 1 and count() == before, "as many descriptors as before")


def test_a_partial_has_no_name() -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            with pytest.raises(WorkerTransferError, match="has no name in a module"):
                await run_in(WorkerPool(nursery), partial(functions.add, 1), 2)

    trio.run(main)

"""`Broker.run_in_worker`, of plugins and of programs; worker processes end with their broker, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import trio

import leafcuttr
from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr_sdk import (
    Broker,
    Plugin,
    ProduceValidatorSpec,
    Record,
    RecordFilterSpec,
    TopicPartition,
    WorkerDeadlineError,
    WorkerTransferError,
)
from plugins.worker_processes.conftest import MB, is_gone
from support import worker_functions as functions
from support.broker_process import running_broker
from support.live_broker import opening
from support.logs import HandClock
from support.waiting import eventually, until

# A file of `lc.plugins.path`: its module cannot be imported by its name.
_PLUGIN = """
import os, re, time
from pathlib import Path
from types import ModuleType
from typing import Any
from leafcuttr_sdk import Plugin, ServiceSpec

PLUGIN = Plugin(name="busy", api_version=1, summary="Has two worker processes that do not end")

def leafcuttr_register_services():
    yield ServiceSpec("busy", Busy)

def spin():
    Path("spin.pid").write_text(str(os.getpid()))
    while True:
        pass

def hold():
    Path("hold.pid").write_text(str(os.getpid()))
    re.match(r"(a+)+$", "a" * 60 + "b")

class Busy:
    def __init__(self, broker):
        self.broker = broker

    async def run(self, *, task_status):
        import trio

        async def call(function):
            await self.broker.run_in_worker(function, deadline_s=3600, memory_bytes=1 << 28)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, spin)
            nursery.start_soon(call, hold)
            task_status.started()
"""


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str | int]:
    return {"listeners": "PLAINTEXT://localhost:0", "log.dirs": str(tmp_path / "data"), "lc.metrics.port": 0}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT], ids=lambda how: how.name)
def test_they_end_with_the_broker(tmp_path: Path, how: signal.Signals) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "busy.py").write_text(_PLUGIN)
    folder = tmp_path / "broker"

    def pid_in(name: str) -> int | None:
        file = folder / name
        return int(file.read_text() or 0) or None if file.exists() else None

    with running_broker(folder, {"lc.plugins.path": str(plugins)}) as broker:
        pids = [until(lambda name=name: pid_in(name), name) for name in ("spin.pid", "hold.pid")]  # type: ignore[misc]
        assert not any(is_gone(pid) for pid in pids) and len(set(pids)) == 2
        status = broker.stop(how)
        assert status == (0 if how is signal.SIGTERM else -how)
    for pid in pids:
        assert until(lambda pid=pid: is_gone(pid), f"the end of {pid}")  # type: ignore[misc]


async def test_of_a_program_in_trio(settings: dict[str, str | int]) -> None:
    async with leafcuttr.open_broker(settings) as broker:
        assert await broker.run_in_worker(functions.add, 1, 2, deadline_s=60, memory_bytes=64 * MB) == 3
        pid = await broker.run_in_worker(functions.pid, deadline_s=60, memory_bytes=64 * MB)
        # The broker works while a function holds the interpreter of its process.
        ended = trio.Event()

        async def hold() -> None:
            with pytest.raises(WorkerDeadlineError):
                await broker.run_in_worker(
                    functions.hold_the_interpreter, deadline_s=0.5, memory_bytes=64 * MB
                )
            ended.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(hold)
            await broker.produce("t", b"v")
            assert len((await broker.fetch({TopicPartition("t", 0): 0})).records) == 1
            assert not ended.is_set()
        left = await broker.run_in_worker(functions.pid, deadline_s=60, memory_bytes=64 * MB)
        assert is_gone(pid) and not is_gone(left)
    assert is_gone(left)


def test_of_a_program_in_threads(settings: dict[str, str | int]) -> None:
    async def call(broker: Broker) -> int:
        return await broker.run_in_worker(functions.pid, deadline_s=60, memory_bytes=64 * MB)

    with leafcuttr.run_broker(settings) as broker:
        pid = broker.call(call)
        assert broker.call(call) == pid != os.getpid()
    assert is_gone(pid)


@pytest.mark.long
def test_a_function_of_the_program_itself_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
        import leafcuttr, trio

        def double(number):
            return 2 * number

        async def main():
            settings = {"listeners": "PLAINTEXT://localhost:0", "log.dirs": "data", "lc.metrics.port": 0}
            async with leafcuttr.open_broker(settings) as broker:
                try:
                    await broker.run_in_worker(double, 1, deadline_s=60, memory_bytes=1 << 26)
                except leafcuttr_sdk.WorkerTransferError as error:
                    print(error)
                import other
                print(await broker.run_in_worker(other.triple, 2, deadline_s=60, memory_bytes=1 << 26))

        import leafcuttr_sdk
        trio.run(main)
        """)
    )
    (tmp_path / "other.py").write_text("def triple(number):\n    return 3 * number\n")
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.splitlines() == [
        "double is defined in __main__, which a worker process cannot import: move it to a module",
        "6",
    ], done.stderr


async def test_two_plugins_share_the_processes(settings: dict[str, str | int]) -> None:
    async with leafcuttr.open_broker(settings) as broker:
        other = make_broker_view(broker._core, Plugin("other", 1, "another"))
        pid = await broker.run_in_worker(functions.pid, deadline_s=60, memory_bytes=64 * MB)
        assert await other.run_in_worker(functions.pid, deadline_s=60, memory_bytes=64 * MB) == pid
        with pytest.raises(WorkerTransferError):
            await other.run_in_worker(lambda: None, deadline_s=60, memory_bytes=64 * MB)
        workers = broker._core.plugged.workers
        assert workers is not None and await eventually(lambda: workers.pids, "it") == [pid]


async def test_without_a_broker_that_runs(tmp_path: Path) -> None:
    with opening(tmp_path / "data", HandClock()) as start:
        view = make_broker_view(start(), Plugin("sample", 1, "one for tests"))
        with pytest.raises(RuntimeError, match="worker processes are there while the broker runs"):
            await view.run_in_worker(functions.pid, deadline_s=60, memory_bytes=MB)


async def test_no_filter_and_no_validator_is_moved_into_one(settings: dict[str, str | int]) -> None:
    """However long they take: what they keep for themselves is in the broker's process."""
    seen: dict[str, set[int]] = {"filter": set(), "validator": set()}

    def take(name: str) -> None:
        seen[name].add(os.getpid())
        time.sleep(0.01)  # for each record: far above what a turn of the loop may take

    class Slow:
        def filter(self, record: Record) -> Record:
            take("filter")
            return record

        def validate(self, record: Record) -> None:
            take("validator")

    slow = Slow()
    module: Any = ModuleType("slow_plugin")
    module.PLUGIN = Plugin(name="slow", api_version=1, summary="Takes its time")
    module.leafcuttr_register_record_filters = lambda: [RecordFilterSpec("slow", "slow", lambda _: slow)]
    module.leafcuttr_register_produce_validators = lambda: [
        ProduceValidatorSpec("slow", "slow", lambda _: slow)
    ]
    async with leafcuttr.open_broker(settings, plugins=[module]) as broker:
        await broker.topics.create("t", configs={"lc.filters": "slow", "lc.validators": "slow"})
        for _ in range(5):
            await broker.produce_batch("t", [Record(b"v")] * 20)
        assert len((await broker.fetch({TopicPartition("t", 0): 0})).records) == 100
        assert broker._core.plugged.workers is None
    assert seen == {"filter": {os.getpid()}, "validator": {os.getpid()}}

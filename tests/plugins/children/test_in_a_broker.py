"""`Broker.child` of plugins and programs: what operators see of it; and that it ends with the broker, in any case."""

from __future__ import annotations

import json
import signal
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import leafcuttr
from leafcuttr.plugins.services import service
from leafcuttr_sdk import Broker, Plugin, Restart, ServiceSpec
from leafcuttr_sdk.testing import ContractError, check_service
from plugins.children.conftest import FAMILY, is_gone, pids_in, python
from support.broker_process import running_broker
from support.waiting import until

# A file of `lc.plugins.path`.
_PLUGIN = """
import os, sys
from leafcuttr_sdk import Plugin, ServiceSpec

PLUGIN = Plugin(name="family", api_version=1, api_minor=2, summary="Has a program with a child and a daemon")

def leafcuttr_register_services():
    yield ServiceSpec("family", Family)

class Family:
    def __init__(self, broker):
        self.broker = broker

    async def run(self, *, task_status):
        command = [sys.executable, "-I", "-S", "-u", "-c", FAMILY, os.environ["FAMILY_FOLDER"]]
        async with self.broker.child("one", command, stop_s=3) as child:
            task_status.started()
            await child.ended()
"""


def family_plugin(folder: Path) -> Path:
    folder.mkdir()
    (folder / "family.py").write_text(f"{_PLUGIN}\nFAMILY = {FAMILY!r}\n")
    return folder


def fetched(address: str, path: str) -> str:
    with urllib.request.urlopen(f"http://{address}{path}", timeout=20) as answer:
        text: str = answer.read().decode()
        return text


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT], ids=lambda how: how.name)
def test_all_of_it_ends_with_the_broker(tmp_path: Path, how: signal.Signals) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    settings = {"lc.plugins.path": str(family_plugin(tmp_path / "plugins"))}
    with running_broker(tmp_path / "broker", settings, environ={"FAMILY_FOLDER": str(notes)}) as broker:
        pids = until(lambda: pids_in(notes), "the family", seconds=30)
        if how is signal.SIGTERM:
            admin = broker.about["metrics"]
            found = json.loads(fetched(admin, "/health"))["checks"]["child:family:one"]
            assert found["ok"] is True
            metrics = fetched(admin, "/metrics")
            for line in (
                'leafcuttr_plugin_child_up{child="one",plugin="family"} 1.0',
                'leafcuttr_plugin_child_restarts_total{child="one",plugin="family"} 0.0',
            ):
                assert line in metrics
        assert broker.stop(how) == (0 if how is signal.SIGTERM else -how)
        until(lambda: all(map(is_gone, pids)), "the end of all", seconds=20)
        if how is signal.SIGTERM:
            assert "left behind" not in broker.log


SLOW = """
import signal, sys, time
def end(*_):
    time.sleep(1)
    open(sys.argv[1], "w").close()
    raise SystemExit
signal.signal(signal.SIGTERM, end)
open(sys.argv[2], "w").close()
time.sleep(600)
"""


def test_a_stop_waits_for_it_beyond_what_a_service_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(service, "STOP_S", 0.05)
    started, ended = tmp_path / "started", tmp_path / "ended"

    class Slow:
        def __init__(self, broker: Broker) -> None:
            self.broker = broker

        async def run(self, *, task_status: Any) -> None:
            async with self.broker.child("slow", python(SLOW, ended, started), stop_s=30) as child:
                task_status.started()
                await child.ended()

    class Slowly:
        PLUGIN = Plugin("slowly", 1, "a program that takes its time", api_minor=2)

        @staticmethod
        def leafcuttr_register_services() -> list[ServiceSpec]:
            return [ServiceSpec("slow", Slow)]

    settings = {
        "listeners": "PLAINTEXT://localhost:0",
        "log.dirs": str(tmp_path / "data"),
        "lc.metrics.port": 0,
    }
    with leafcuttr.run_broker(settings, plugins=[Slowly]):
        until(started.exists, "its start", seconds=20)
    assert ended.exists()
    assert "left behind" not in caplog.text


def test_a_program_uses_it_too(tmp_path: Path) -> None:
    settings = {
        "listeners": "PLAINTEXT://localhost:0",
        "log.dirs": str(tmp_path / "data"),
        "lc.metrics.port": 0,
    }

    async def status(broker: Broker) -> int:
        async with broker.child("seven", python("raise SystemExit(7)"), restart=Restart.NEVER) as child:
            return await child.ended()

    with leafcuttr.run_broker(settings) as running:
        assert running.call(status) == 7


class LeavesOne:
    """It runs in a task of its own, which nobody ends."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    async def run(self, *, task_status: Any) -> None:
        import trio

        async def run_on() -> None:
            name = f"left-{len(self.broker._core.plugged.children)}"  # type: ignore[attr-defined]
            command = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
            async with self.broker.child(name, command, stop_s=0.1):
                await trio.sleep_forever()

        trio.lowlevel.spawn_system_task(run_on)
        task_status.started()
        await trio.sleep_forever()


@pytest.mark.long
def test_one_that_is_left_behind_is_found() -> None:
    with pytest.raises(ContractError, match=r"leaves nothing: each time .* 1 more process was left"):
        check_service(LeavesOne)

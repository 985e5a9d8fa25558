"""SIGTERM and SIGINT in each state of a broker whose plugins hang, or hold the event loop; what they leave behind."""

from __future__ import annotations

import http.client
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import pytest

from support.broker_process import BrokerProcess, clean_environ, running_broker, start_broker
from support.driven_plugins import Driven
from support.librdkafka import create, read, send
from support.waiting import until
from support.wire_client import WireClient

HEAD = """
import time
from pathlib import Path

import trio
from leafcuttr_sdk import *

PLUGIN = Plugin("acme", 1, "Hangs, or holds the loop.")
FOLDER = Path(__file__).parent

def hang():
    (FOLDER / "hangs").touch()
    time.sleep(3600)

def leafcuttr_register_services():
    return [ServiceSpec("acme", Acme)]
"""
HOLDS = """
class Acme:
    def __init__(self, broker):
        pass

    async def run(self, *, task_status):
        task_status.started()
        while not (FOLDER / "hold").exists():
            await trio.sleep(0.02)
        hang()
"""


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    folder = tmp_path / "plugins"
    folder.mkdir()
    return folder


def plugin(folder: Path, body: str) -> dict[str, str]:
    """The setting for a folder with this plugin."""
    (folder / "acme.py").write_text(HEAD + body)
    return {"lc.plugins.path": str(folder)}


def hangs(folder: Path) -> None:
    until((folder / "hangs").exists, "the plugin to hang")


@contextmanager
def starting(folder: Path, settings: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """One that is not ready yet."""
    given = {"listeners": "PLAINTEXT://127.0.0.1:0", **settings}
    words = [word for name, value in given.items() for word in ("-o", f"{name}={value}")]
    with subprocess.Popen(
        [sys.executable, "-m", "leafcuttr", "serve", *words],
        cwd=folder,
        env=clean_environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("body", ["hang()", "def leafcuttr_register_settings(): hang()"])
def test_while_a_plugin_is_imported_and_its_first_hooks_are_called(
    tmp_path: Path, plugins: Path, how: signal.Signals, body: str
) -> None:
    with starting(tmp_path, plugin(plugins, body)) as process:
        hangs(plugins)
        process.send_signal(how)
        said, _ = process.communicate(timeout=60)
    assert (process.returncode, said) == (-how, "")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_while_a_hook_has_the_broker(tmp_path: Path, plugins: Path, how: signal.Signals) -> None:
    """Its data is open: it is closed, as at any stop."""
    settings = plugin(plugins, "def leafcuttr_register_metrics(broker): hang()\nAcme = print")
    with starting(tmp_path, settings) as process:
        hangs(plugins)
        process.send_signal(how)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "has taken longer" not in said and "failed" not in said
    assert (tmp_path / "leafcuttr-data" / ".kafka_cleanshutdown").exists()


class Producing:
    """A producer that sends one record after the other, up to 50 at a time, until it is left. `acknowledged` has the
    value of each record that was, by its offset."""

    def __init__(self, address: str) -> None:
        from confluent_kafka import Producer

        settings = {"bootstrap.servers": address, "acks": "all", "linger.ms": 0, "max.in.flight": 5}
        self.acknowledged: dict[int, bytes] = {}
        self._producer = Producer({**settings, "enable.idempotence": False, "batch.num.messages": 5})
        self._under_way = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.purge()
        self._producer.flush(60)

    def _send(self) -> None:
        number = 0
        while not self._stop.is_set():
            if self._under_way < 50:
                self._producer.produce("kept", b"%d" % number, on_delivery=self._delivered)
                self._under_way += 1
                number += 1
            self._producer.poll(0 if self._under_way < 50 else 0.05)

    def _delivered(self, error: object, message: Any) -> None:
        self._under_way -= 1
        if error is None:
            self.acknowledged[message.offset()] = message.value()


def test_while_a_plugin_holds_the_loop_and_what_was_acknowledged_is_on_the_log(
    tmp_path: Path, plugins: Path
) -> None:
    """With a producer that sends all the while."""
    broker = start_broker(tmp_path / "broker", plugin(plugins, HOLDS))
    create(broker.address, "kept")
    with Producing(broker.address) as producing:
        until(lambda: len(producing.acknowledged) >= 500, "some to be acknowledged")
        (plugins / "hold").touch()
        hangs(plugins)
        assert broker.stop(signal.SIGTERM, 60) == 143
    line = broker.log.splitlines()[-1]
    assert (
        "SIGTERM ends the process with status 143, because the service acme of plugin acme holds the event"
        in line
    )
    assert f"should: {plugins / 'acme.py'}:" in line and " in hang < " in line
    kept = producing.acknowledged
    with running_broker(tmp_path / "broker") as broker:
        found = {each.offset(): each.value() for each in read(broker.address, "kept", max(kept) + 1)}
    assert {offset: found.get(offset) for offset in kept} == kept


STOPS_BADLY = """
class Acme:
    def __init__(self, broker):
        pass

    async def run(self, *, task_status):
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            hang()
"""


def test_while_it_stops_and_a_plugin_holds_the_loop(tmp_path: Path, plugins: Path) -> None:
    broker = start_broker(tmp_path / "broker", plugin(plugins, STOPS_BADLY))
    broker.process.send_signal(signal.SIGTERM)
    hangs(plugins)
    for how in (signal.SIGINT, signal.SIGINT):
        broker.process.send_signal(how)
    assert broker.stop(signal.SIGINT, 60) == 130
    assert "because the service acme of plugin acme holds the event loop" in broker.log.splitlines()[-1]


LEAVES = """
import subprocess, threading

class Acme:
    def __init__(self, broker):
        pass

    async def run(self, *, task_status):
        threading.Thread(target=hang, name="of acme").start()
        subprocess.Popen(["sleep", "60"])
        task_status.started()
        await trio.sleep_forever()
"""


def test_a_thread_and_a_child_that_are_left_behind(tmp_path: Path, plugins: Path) -> None:
    with running_broker(tmp_path / "broker", plugin(plugins, LEAVES)) as broker:
        pass
    line = broker.log.splitlines()[-1]
    assert "without waiting for threads that were left behind (of acme)" in line


REFUSES = """
import threading

async def shielded():
    (FOLDER / "hangs").touch()
    with trio.CancelScope(shield=True):
        await trio.sleep_forever()

async def body():
    try:
        yield b"x"
    finally:
        await shielded()

KEPT = []

async def route(request):
    await globals()[request.query["what"][0]]()
    return Response(b"{}")

async def thread():
    await trio.to_thread.run_sync(hang)

async def spawned():
    trio.lowlevel.spawn_system_task(shielded, name="watcher")

async def generator():
    KEPT.append(body())
    await KEPT[0].__anext__()
    (FOLDER / "hangs").touch()

class Filter:
    def __init__(self, context):
        hang()

def leafcuttr_register_record_filters():
    return [RecordFilterSpec("hangs", "hangs", Filter)]

def leafcuttr_register_admin_routes(broker):
    return [AdminRoute("/do", route, "does")]

class Acme:
    def __init__(self, broker):
        pass

    async def run(self, *, task_status):
        task_status.started()
        await trio.sleep_forever()
"""
ROUTE_LEFT = (
    "the route /plugins/acme/do of plugin acme has not ended when the broker stopped: it is left behind"
)
LEFT = "the process ends without waiting for "
REFUSALS: dict[str, str] = {
    "shielded": ROUTE_LEFT,
    "thread": ROUTE_LEFT,
    "spawned": f"{LEFT}tasks that were left behind (system task watcher of plugin acme): ",
    "generator": f"{LEFT}what was left behind: ",
    "filter": "",
}
"""Tasks of plugins that do not end when they are cancelled, and the line."""


@pytest.mark.one_in(3)
@pytest.mark.parametrize("what", REFUSALS)
def test_a_task_that_refuses_to_end(tmp_path: Path, plugins: Path, what: str) -> None:
    """The loop runs, so the stop is a clean one."""
    broker = start_broker(tmp_path / "broker", plugin(plugins, REFUSES))
    values = [b"%d" % number for number in range(50)]
    assert send(broker.address, "kept", values, timestamp=1) == list(range(50))
    driving = threading.Thread(target=drive, args=(broker, what))
    driving.start()
    hangs(plugins)
    assert broker.stop(signal.SIGTERM) == 0
    driving.join()
    assert (broker.data / ".kafka_cleanshutdown").exists()
    ready, *lines = broker.log.splitlines()
    assert "is ready" in ready
    assert len(lines) == bool(REFUSALS[what]) and all(REFUSALS[what] in line for line in lines)
    with running_broker(tmp_path / "broker") as broker:
        assert [message.value() for message in read(broker.address, "kept", 50)] == values


def drive(broker: BrokerProcess, what: str) -> None:
    with suppress(OSError, http.client.HTTPException):
        if what == "filter":
            with WireClient(broker.address) as wire:
                Driven(broker, wire).create("filtered", lc_filters="hangs")
        else:
            urllib.request.urlopen(f"http://{broker.about['metrics']}/plugins/acme/do?what={what}").close()


def test_a_thread_of_a_plugin_does_not_keep_a_start_that_fails(tmp_path: Path, plugins: Path) -> None:
    settings = plugin(plugins, "import threading; threading.Thread(target=hang).start(); Acme = print")
    with starting(tmp_path, {**settings, "num.partitions": "none"}) as process:
        process.communicate(timeout=60)
    assert process.returncode == 2

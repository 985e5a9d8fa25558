"""Kafka Connect's file source and sink: standalone, and distributed over two workers of which one is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.wire.messages.list_groups import ListGroupsRequest
from support import jars
from support.broker_process import Restarting
from support.librdkafka import PATIENCE_S, admin, create, read, watermarks
from support.waiting import free_port, until
from support.wire_client import WireClient

pytestmark = [
    pytest.mark.long,
    pytest.mark.client("Kafka Connect"),
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
    pytest.mark.timeout(900),
]
both = pytest.mark.parametrize("version", ["4.3.1", "3.9.1"])
SECONDS = 180.0
TOPIC = "connected"
STORES = ("configs", "offsets", "status")
WORKER = """bootstrap.servers={address}
listeners=http://127.0.0.1:{port}
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
offset.flush.interval.ms=500
plugin.discovery=only_scan
"""
STANDALONE = "offset.storage.file.filename={folder}/source.offsets\n"
DISTRIBUTED = """group.id=workers
config.storage.topic=connect-configs
config.storage.replication.factor=1
offset.storage.topic=connect-offsets
offset.storage.replication.factor=1
offset.storage.partitions=5
status.storage.topic=connect-status
status.storage.replication.factor=1
status.storage.partitions=3
session.timeout.ms=6000
heartbeat.interval.ms=1000
scheduled.rebalance.max.delay.ms=1000
exactly.once.source.support=enabled
consumer.isolation.level=read_committed
"""


class Worker:
    """A Connect process. It is started again with the same settings by another of the same name."""

    def __init__(self, folder: Path, version: str, address: str, name: str, mode: str, *files: Path) -> None:
        self._out = folder / f"{name}.out"
        self._port = free_port()
        self.where = f"127.0.0.1:{self._port}"
        settings = folder / f"{name}.properties"
        more = STANDALONE if mode == "Standalone" else DISTRIBUTED
        settings.write_text(WORKER.format(address=address, port=self._port) + more.format(folder=folder))
        home = jars.connect(version)
        java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        logging = [f"-Dlog4j2.configurationFile={home}/log4j2.yaml"]
        main = f"org.apache.kafka.connect.cli.Connect{mode}"
        with self._out.open("ab") as out:
            self.process = subprocess.Popen(
                [*java, *logging, "-cp", f"{home}/libs/*", main, str(settings), *map(str, files)],
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=folder,
            )

    def alive(self) -> bool:
        assert self.process.poll() is None, self._out.read_text()[-3000:]
        return True

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.alive()
        self.process.send_signal(how)
        self.process.wait(SECONDS)

    def ask(self, path: str, body: Any = None, *, method: str | None = None) -> Any:
        """What its REST interface answers; None while it cannot."""
        self.alive()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                content = answer.read()
                return json.loads(content) if content else {}
        except urllib.error.HTTPError as error:
            if error.code in (404, 409, 500, 503):  # unknown yet, or a rebalance is under way
                return None
            raise
        except OSError:
            return None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def workers() -> Iterator[list[Worker]]:
    """Those that a test has started; killed at its end."""
    found: list[Worker] = []
    yield found
    for worker in found:
        worker.kill()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Restarting]:
    one = Restarting(tmp_path / "broker", {"group.initial.rebalance.delay.ms": "0"})
    yield one
    one.end()


def add(file: Path, lines: Sequence[str]) -> None:
    with file.open("a") as out:
        out.writelines(f"{line}\n" for line in lines)


def numbered(first: int, end: int) -> list[str]:
    return [f"line {number}" for number in range(first, end)]


def source(folder: Path) -> dict[str, str]:
    return {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "tasks.max": "1",
        "file": str(folder / "in.txt"),
        "topic": TOPIC,
    }


def sink(folder: Path) -> dict[str, str]:
    return {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "tasks.max": "2",
        "file": str(folder / "out.txt"),
        "topics": TOPIC,
    }


def lines(folder: Path) -> list[str]:
    file = folder / "out.txt"
    return file.read_text().splitlines() if file.exists() else []


@both
def test_standalone(broker: Restarting, tmp_path: Path, workers: list[Worker], version: str) -> None:
    """From a file through a topic into a file; after a clean stop each goes on where it was."""
    files = []
    for name, settings in (("source", source(tmp_path)), ("sink", sink(tmp_path))):
        files.append(tmp_path / f"{name}.properties")
        files[-1].write_text("".join(f"{key}={value}\n" for key, value in {"name": name, **settings}.items()))
    for end in (500, 1000):
        add(tmp_path / "in.txt", numbered(end - 500, end))
        worker = Worker(tmp_path, version, broker.address, "worker", "Standalone", *files)
        workers.append(worker)
        until(lambda: worker.alive() and len(lines(tmp_path)) >= end, f"{end} lines", seconds=SECONDS)  # noqa: B023
        worker.stop()
        assert lines(tmp_path) == numbered(0, end)
    assert [one.value().decode() for one in read(broker.address, TOPIC, 1000)] == numbered(0, 1000)
    assert watermarks(broker.address, TOPIC) == (0, 1000)


@both
def test_distributed(broker: Restarting, tmp_path: Path, workers: list[Worker], version: str) -> None:
    """Two workers share the connectors. One is killed, then the broker, then all of Connect is started anew from its
    topics: the source, exactly once, loses and repeats nothing; the sink, at least once, loses nothing."""
    create(broker.address, TOPIC)
    for name in ("one", "two"):
        workers.append(Worker(tmp_path, version, broker.address, name, "Distributed"))
    one, two = workers
    for name, settings in (
        ("source", {**source(tmp_path), "exactly.once.support": "required"}),
        ("sink", sink(tmp_path)),
    ):
        made = {"name": name, "config": settings}
        until(lambda: one.ask("/connectors", made), f"the connector {name}", seconds=SECONDS)  # noqa: B023

    def running(worker: Worker, tasks: int) -> bool:
        told = [worker.ask(f"/connectors/{name}/status") for name in ("source", "sink")]
        if not all(told):
            return False
        found = [task["state"] for each in told for task in (each["connector"], *each["tasks"])]
        assert "FAILED" not in found, told
        return found == ["RUNNING"] * (2 + tasks)

    def pass_through(worker: Worker, first: int, end: int) -> None:
        add(tmp_path / "in.txt", numbered(first, end))
        wanted = set(numbered(0, end))
        until(lambda: worker.alive() and wanted <= set(lines(tmp_path)), f"{end} lines", seconds=SECONDS)
        committed = read(broker.address, TOPIC, end, isolation_level="read_committed")
        assert [one.value().decode() for one in committed] == numbered(0, end)

    until(lambda: running(one, 3), "the connectors and their tasks", seconds=SECONDS)
    pass_through(one, 0, 500)
    assert {worker_of(one, name) for name in ("source", "sink")} <= {one.where, two.where}
    with WireClient(broker.address) as wire:
        groups = {each.group_id: each.protocol_type for each in wire.ask(ListGroupsRequest(), 4).groups}
    assert groups["workers"] == "connect"
    assert groups["connect-sink"] == "consumer"
    assert policies(broker.address) == ["compact"] * 3

    two.kill()
    until(lambda: running(one, 3), "all tasks on the worker that is left", seconds=SECONDS)
    pass_through(one, 500, 1000)
    broker.restart(signal.SIGKILL)
    pass_through(one, 1000, 1500)
    assert one.ask("/connectors/sink/pause", method="PUT") == {}
    until(lambda: states(one, "sink") == {"PAUSED"}, "a paused sink", seconds=SECONDS)
    add(tmp_path / "in.txt", ["while it sleeps"])
    one.stop()

    three = Worker(tmp_path, version, broker.address, "three", "Distributed")
    workers.append(three)
    until(lambda: states(three, "sink") == {"PAUSED"}, "what was asked before", seconds=SECONDS)
    assert three.ask("/connectors/sink/resume", method="PUT") == {}
    until(lambda: "while it sleeps" in lines(tmp_path), "the line of that time", seconds=SECONDS)
    offsets = until(lambda: three.ask("/connectors/source/offsets"), "the source's offsets", seconds=SECONDS)
    assert offsets["offsets"][0]["offset"]["position"] == (tmp_path / "in.txt").stat().st_size
    for name in ("source", "sink"):
        until(lambda: three.ask(f"/connectors/{name}", method="DELETE") == {}, "its end", seconds=SECONDS)  # noqa: B023
    until(lambda: three.ask("/connectors") == [], "no connectors", seconds=SECONDS)
    three.stop()


def worker_of(worker: Worker, name: str) -> str:
    return str(worker.ask(f"/connectors/{name}/status")["connector"]["worker_id"])


def states(worker: Worker, name: str) -> set[str]:
    told = worker.ask(f"/connectors/{name}/status")
    return {each["state"] for each in (told["connector"], *told["tasks"])} if told else set()


def policies(address: str) -> list[str]:
    """The cleanup policies of Connect's own topics."""
    from confluent_kafka.admin import ConfigResource

    client = admin(address)
    asked = client.describe_configs([ConfigResource("topic", f"connect-{name}") for name in STORES])
    return [future.result(PATIENCE_S)["cleanup.policy"].value for future in asked.values()]

"""Kafka Connect's file source and sink: standalone, and distributed over two workers of which one is killed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from leafcuttr.wire.messages.list_groups import ListGroupsRequest
from support import jars
from support.broker_process import Restarting
from support.connect_worker import (
    SECONDS,
    STORES,
    Worker,
    add,
    connector_file,
    distributed,
    numbered,
    sink,
    source,
    written,
)
from support.librdkafka import PATIENCE_S, admin, create, read, watermarks
from support.waiting import until
from support.wire_client import WireClient

pytestmark = [
    pytest.mark.long,
    pytest.mark.client("Kafka Connect"),
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
    pytest.mark.timeout(900),
]
both = pytest.mark.parametrize("version", ["4.3.1", "3.9.1"])
TOPIC = "connected"


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


@both
def test_standalone(broker: Restarting, tmp_path: Path, workers: list[Worker], version: str) -> None:
    """From a file through a topic into a file; after a clean stop each goes on where it was."""
    given = {"source": source(tmp_path, TOPIC), "sink": sink(tmp_path, TOPIC)}
    files = [connector_file(tmp_path, name, settings) for name, settings in given.items()]
    for end in (500, 1000):
        add(tmp_path, numbered(end - 500, end))
        worker = Worker(
            tmp_path, version, "worker", "Standalone", {"bootstrap.servers": broker.address}, *files
        )
        workers.append(worker)
        until(lambda: worker.alive() and len(written(tmp_path)) >= end, f"{end} lines", seconds=SECONDS)  # noqa: B023
        worker.stop()
        assert written(tmp_path) == numbered(0, end)
    assert [one.value().decode() for one in read(broker.address, TOPIC, 1000)] == numbered(0, 1000)
    assert watermarks(broker.address, TOPIC) == (0, 1000)


@both
def test_distributed(broker: Restarting, tmp_path: Path, workers: list[Worker], version: str) -> None:
    """Two workers share the connectors. One is killed, then the broker, then all of Connect is started anew from its
    topics: the source, exactly once, loses and repeats nothing; the sink, at least once, loses nothing."""
    create(broker.address, TOPIC)
    settings = {"bootstrap.servers": broker.address, **distributed()}
    for name in ("one", "two"):
        workers.append(Worker(tmp_path, version, name, "Distributed", settings))
    one, two = workers
    exactly = {**source(tmp_path, TOPIC), "exactly.once.support": "required"}
    for name, config in (("source", exactly), ("sink", sink(tmp_path, TOPIC))):
        made = {"name": name, "config": config}
        until(lambda: one.ask("/connectors", made), f"the connector {name}", seconds=SECONDS)  # noqa: B023

    def running(worker: Worker, tasks: int) -> bool:
        told = [worker.ask(f"/connectors/{name}/status") for name in ("source", "sink")]
        if not all(told):
            return False
        found = [task["state"] for each in told for task in (each["connector"], *each["tasks"])]
        assert "FAILED" not in found, told
        return found == ["RUNNING"] * (2 + tasks)

    def pass_through(worker: Worker, first: int, end: int) -> None:
        add(tmp_path, numbered(first, end))
        wanted = set(numbered(0, end))
        until(lambda: worker.alive() and wanted <= set(written(tmp_path)), f"{end} lines", seconds=SECONDS)
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
    add(tmp_path, ["while it sleeps"])
    one.stop()

    three = Worker(tmp_path, version, "three", "Distributed", settings)
    workers.append(three)
    until(lambda: states(three, "sink") == {"PAUSED"}, "what was asked before", seconds=SECONDS)
    assert three.ask("/connectors/sink/resume", method="PUT") == {}
    until(lambda: "while it sleeps" in written(tmp_path), "the line of that time", seconds=SECONDS)
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

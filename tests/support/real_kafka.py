"""Starts a real Apache Kafka (KRaft, one node) as the peer that LeafCuttr's answers are compared with."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from leafcuttr.wire.messages.metadata import MetadataRequest
from support import jars
from support.waiting import free_port, until
from support.wire_client import WireClient

VERSION = "4.3.1"
CLUSTER_ID = "5qsgYJNzQq2g6b7w3ocy8A"
# LeafCuttr is started with the same file, so that what the two say of their settings can be compared. The times of the
# scenarios lie in the past: nothing may be deleted for its age.
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=3
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.max.size=5
log.retention.ms=-1
log.retention.check.interval.ms=500
log.initial.task.delay.ms=500
"""


@dataclass(frozen=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def properties(folder: Path, port: int, controller: int) -> Path:
    """Writes the settings of a one-node broker below `folder` and returns the file."""
    file = folder / "server.properties"
    file.write_text(PROPERTIES.format(port=port, controller=controller, data=folder / "data"))
    return file


def _serves(address: Address) -> bool:
    """Whether topics can be created: a broker listens before the controller counts on it."""
    with WireClient(str(address)) as client:
        answer = client.ask(MetadataRequest(topics=()), 12)
    return bool(answer.brokers) and answer.controller_id >= 0


@contextmanager
def real_kafka(
    folder: Path, *more: str, formatted: Iterable[str] = (), version: str = VERSION
) -> Iterator[Address]:
    """A running Kafka with its data below `folder`; killed at the end (its data is thrown away anyway).

    `more` are lines for its settings, which win; {port} and {controller} in them stand for its own two ports.
    `formatted` are words for the command that formats the data directory: users, for one. `version` is 3.3 or later.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port, controller = free_port(), free_port()
    file = properties(folder, port, controller)
    with file.open("a") as settings:
        for line in more:
            line = line.replace("{port}", str(port)).replace("{controller}", str(controller))
            settings.write(f"{line}\n")
    form = jars.java(
        version, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(file), *formatted
    )
    subprocess.run(form, check=True, capture_output=True, timeout=90)
    with listening(jars.java(version, "kafka.Kafka", str(file), heap="512m"), port, folder / "kafka.log"):
        address = Address("127.0.0.1", port)
        until(lambda: _serves(address), "Apache Kafka's controller to let its broker in", seconds=60)
        yield address


@contextmanager
def listening(command: Sequence[str], port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process, once something listens at the port; killed at the end. Raises RuntimeError with what it said where it
    ends by itself."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:

        def listens() -> bool:
            if process.poll() is not None:
                raise RuntimeError(f"{log.stem} ended with {process.returncode}: {log.read_text()[-2000:]}")
            try:
                socket.create_connection(("127.0.0.1", port), 0.5).close()
            except OSError:
                return False
            return True

        until(listens, f"the listener of {log.stem}", seconds=180)
        yield process
    finally:
        process.kill()
        process.wait()

"""Starts an Apache Kafka of an earlier version: before 3.3 with a ZooKeeper of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import jars, librdkafka
from support.real_kafka import listening, real_kafka
from support.waiting import free_port, until

ZOOKEEPER_OF, ZOOKEEPER = "2.8.2", "3.5.9"
PROPERTIES = """broker.id=1
zookeeper.connect=127.0.0.1:{zookeeper}
listeners=PLAINTEXT://127.0.0.1:{port}
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=3
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=3
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
"""


@contextmanager
def old_kafka(folder: Path, version: str) -> Iterator[str]:
    """Its address; killed at the end. Raises RuntimeError where its jars cannot be fetched."""
    jars.home(version)
    if tuple(map(int, version.split("."))) >= (3, 3):
        with real_kafka(folder, version=version) as newer:
            yield str(newer)
        return
    folder.mkdir(parents=True, exist_ok=True)
    port, zookeeper = free_port(), free_port()
    file = folder / "server.properties"
    file.write_text(PROPERTIES.format(port=port, zookeeper=zookeeper, data=folder / "data"))
    keeper = _with_a_newer_zookeeper(
        jars.java(
            version,
            "-Dzookeeper.admin.enableServer=false",
            "org.apache.zookeeper.server.ZooKeeperServerMain",
            str(zookeeper),
            str(folder / "zookeeper"),
            heap="96m",
        )
    )
    kafka = _with_a_newer_zookeeper(jars.java(version, "kafka.Kafka", str(file), heap="384m"))
    with (
        listening(keeper, zookeeper, folder / "zookeeper.log"),
        listening(kafka, port, folder / "kafka.log"),
    ):
        address = f"127.0.0.1:{port}"
        until(lambda: _serves(address), f"the controller of Kafka {version}", seconds=60)
        yield address


def _with_a_newer_zookeeper(command: list[str]) -> list[str]:
    """Clients of ZooKeeper before 3.5.8 find no server with Java 14 or later (ZOOKEEPER-3779)."""
    libs = jars.home(ZOOKEEPER_OF) / "libs"
    newer = ":".join(str(libs / f"{name}-{ZOOKEEPER}.jar") for name in ("zookeeper", "zookeeper-jute"))
    at = command.index("-cp") + 1
    return [*command[:at], f"{newer}:{command[at]}", *command[at + 1 :]]


def _serves(address: str) -> bool:
    found = librdkafka.admin(address).list_topics(timeout=10)
    return bool(found.brokers) and found.controller_id >= 0

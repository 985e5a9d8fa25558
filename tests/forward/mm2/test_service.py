"""A broker that forwards what a file of MirrorMaker says, to and from other brokers over TCP."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from leafcuttr_forward.mm2.records import Heartbeat, OffsetSync
from support import librdkafka
from support.broker_process import BrokerProcess, running_broker
from support.waiting import free_port, until

SAMPLE = Path(__file__).with_name("edge-to-hub.properties")


@contextmanager
def forwarding(
    folder: Path, text: str, *, topics: dict[str, int], **addresses: str
) -> Iterator[BrokerProcess]:
    """A broker with this file and these topics, of so many partitions, with records. `{here}` in the file is the
    broker's address, other names in braces are those given."""
    here = f"127.0.0.1:{free_port()}"
    file = folder / "mirror.properties"
    if topics:
        # Before it forwards, so that no refresh has to be waited for.
        with running_broker(folder) as broker:
            for topic, partitions in topics.items():
                fill(broker.address, topic, partitions)
    for name, address in {"here": here, **addresses}.items():
        text = text.replace(f"{{{name}}}", address)
    file.write_text(text)
    settings = {"listeners": f"PLAINTEXT://{here}", "lc.topic.forward.config": str(file)}
    with running_broker(folder, settings) as broker:
        yield broker


COUNT = 50
VALUES = [str(number) for number in range(COUNT)]


def fill(address: str, topic: str, partitions: int) -> None:
    """Create the topic, and write `VALUES` to each of its partitions."""
    librdkafka.create(address, topic, partitions)
    for partition in range(partitions):
        sent = [value.encode() for value in VALUES]
        librdkafka.send(address, topic, sent, timestamp=1_700_000_000_000, key=b"key", partition=partition)


def health(broker: BrokerProcess) -> Any:
    where = broker.about["metrics"] if "metrics" in broker.about else broker.about
    try:
        with urllib.request.urlopen(f"http://{where}/health", timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)


def values(address: str, topic: str, count: int, partition: int = 0) -> list[str]:
    until(lambda: topic in librdkafka.admin(address).list_topics(timeout=10).topics, f"{topic} at {address}")
    return [
        (one.value() or b"").decode() for one in librdkafka.read(address, topic, count, partition=partition)
    ]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("hub")) as broker:
        yield broker


def test_the_sample_works_as_it_stands(tmp_path: Path, hub: BrokerProcess) -> None:
    text = SAMPLE.read_text().replace("localhost:9092", "{here}").replace("localhost:19092", "{hub}")
    with forwarding(tmp_path, text, topics={"perfTest": 2}, hub=hub.address) as edge:
        for partition in (0, 1):
            assert values(hub.address, "source-cluster.perfTest", COUNT, partition) == VALUES
        # Heartbeats of both pairs, each at its target, and those of the edge copied to the hub.
        beat = librdkafka.read(edge.address, "heartbeats", 1)[0]
        read = Heartbeat.parse(beat.key(), beat.value())
        assert (read.source, read.target) == ("target-cluster", "source-cluster")
        assert beat.timestamp()[1] == read.timestamp
        copied = librdkafka.read(hub.address, "source-cluster.heartbeats", 1)[0]
        assert Heartbeat.parse(copied.key(), copied.value()) == read
        there = librdkafka.read(hub.address, "heartbeats", 1)[0]
        assert Heartbeat.parse(there.key(), there.value())[:2] == ("source-cluster", "target-cluster")
        syncs = librdkafka.read(edge.address, "mm2-offset-syncs.target-cluster.internal", 1)
        assert OffsetSync.parse(syncs[0].key(), syncs[0].value()).partition.topic in (
            "perfTest",
            "heartbeats",
        )

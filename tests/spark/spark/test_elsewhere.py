"""A standalone cluster of two workers, and Spark Connect: reading with a format, and writing."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from leafcuttr_sdk.blocking_peers import open_peer
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.options import Query
from leafcuttr_spark.source.cluster import ClusterView
from leafcuttr_spark.source.losses import Span
from leafcuttr_spark.source.options import source_options
from leafcuttr_spark.source.reading import read_span
from support import librdkafka
from support.broker_process import BrokerProcess
from support.spark_daemons import running_connect, spark_environ, standalone
from support.waiting import until

PROGRAM = Path(__file__).with_name("elsewhere.py")
COUNT = 400
pytestmark = pytest.mark.timeout(600)


def fill(address: str, topic: str) -> None:
    librdkafka.create(address, topic, 2)
    producer = Producer({"bootstrap.servers": address})
    for number in range(COUNT):
        value = b"none" if number % 100 == 99 else b'{"n": %d}' % number
        producer.produce(topic, value, b"%d" % number, partition=number % 2)
    assert producer.flush(30) == 0


def ran(where: str, address: str, topic: str, to: str, folder: Path) -> Any:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), where, address, topic, to, str(folder / "checkpoint")],
        capture_output=True,
        text=True,
        timeout=400,
        env=spark_environ(folder),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def numbers(address: str, topic: str) -> list[int]:
    """What readers of committed records see; a commit is decided when it returns, and seen a moment later."""
    options = source_options({"kafka.bootstrap.servers": address, "subscribe": topic}, Query.BATCH)
    partitions = [TopicPartition(topic, number) for number in range(2)]
    with open_peer({"bootstrap.servers": address}) as peer:
        view, all_records = ClusterView(peer, committed=True), ClusterView(peer, committed=False)
        until(lambda: view.ends(partitions) == all_records.ends(partitions), "the commit")
        found = [
            value
            for partition, end in view.ends(partitions).items()
            for columns in read_span(peer, Span(partition, 0, end), options)
            for value in columns.values.to_pylist()
        ]
    return sorted(json.loads(value)["n"] for value in found)


NO_CONNECTOR = "via is kafka, and Spark's own Kafka connector is not there: start Spark with --packages org."
"""Neither session has its jar."""
GOOD = [number for number in range(COUNT) if number % 100 != 99]


def test_a_cluster_of_two_workers(live: BrokerProcess, tmp_path: Path) -> None:
    topic, to = "cluster-from", "cluster-to"
    fill(live.address, topic)
    librdkafka.create(live.address, to, 2)
    with standalone(tmp_path) as cluster:
        told = ran(cluster.master, live.address, topic, to, tmp_path)
        assert cluster.both_work
    assert told.pop("without the connector").startswith(NO_CONNECTOR)
    assert told == {"total": sum(GOOD), "bad": COUNT // 100}
    assert numbers(live.address, to) == [2 * number for number in GOOD]


@pytest.mark.skipif(
    importlib.util.find_spec("grpc_status") is None,
    reason="grpcio-status, which Spark Connect needs, is not here",
)
def test_spark_connect(live: BrokerProcess, tmp_path: Path) -> None:
    topic, to = "connect-from", "connect-to"
    fill(live.address, topic)
    librdkafka.create(live.address, to, 2)
    with running_connect(tmp_path) as url:
        told = ran(url, live.address, topic, to, tmp_path)
    assert told.pop("without the connector").startswith(NO_CONNECTOR)
    assert told.pop("refused").startswith("Spark Connect does not say which query and stages a batch has")
    assert told == {"total": sum(GOOD), "bad": COUNT // 100, "batch": {to: len(GOOD)}}
    assert numbers(live.address, to) == sorted(2 * number for number in (*GOOD, *GOOD))

"""A standalone cluster of two workers, and Spark Connect: reading with a format, and writing."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
from support.waiting import free_port, until

PROGRAM = Path(__file__).with_name("elsewhere.py")
COUNT = 400
pytestmark = pytest.mark.timeout(600)


def environ(folder: Path, memory: str = "256m") -> dict[str, str]:
    """`memory` is that of daemons; the server of Spark Connect is one, whatever `--driver-memory` says."""
    import pyspark

    return os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOG_DIR": str(folder),
        "SPARK_DAEMON_MEMORY": memory,
    }


@contextmanager
def running(folder: Path, name: str, said: str, *words: str, memory: str = "256m") -> Iterator[Path]:
    """A daemon of Spark, once its log has these words; the log."""
    import pyspark

    log = folder / f"{name}.log"
    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    with log.open("w") as out:
        process = subprocess.Popen(
            [str(spark_class), *words], stdout=out, stderr=out, cwd=folder, env=environ(folder, memory)
        )
    try:

        def is_up() -> bool:
            assert process.poll() is None, log.read_text()[-3000:]
            return said in log.read_text()

        until(is_up, f"{name}: {said}", seconds=180)
        yield log
    finally:
        process.terminate()
        process.wait(60)


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
        env=environ(folder),
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


GOOD = [number for number in range(COUNT) if number % 100 != 99]


def test_a_cluster_of_two_workers(live: BrokerProcess, tmp_path: Path) -> None:
    topic, to = "cluster-from", "cluster-to"
    fill(live.address, topic)
    librdkafka.create(live.address, to, 2)
    port = free_port()
    deploy = "org.apache.spark.deploy"
    master = f"spark://127.0.0.1:{port}"
    with running(
        tmp_path, "master", "I have been elected leader", f"{deploy}.master.Master", "--host", "127.0.0.1",
        "--port", str(port), "--webui-port", "0",
    ):  # fmt: skip
        work = ("--work-dir", str(tmp_path / "work"))
        more = (*work, "--cores", "1", "--memory", "600m", "--webui-port", "0", "--host", "127.0.0.1", master)
        worker = f"{deploy}.worker.Worker"
        with (
            running(tmp_path, "one", "Successfully registered", worker, *more) as one,
            running(tmp_path, "two", "Successfully registered", worker, *more) as two,
        ):
            told = ran(master, live.address, topic, to, tmp_path)
            assert all("Executor" in log.read_text() for log in (one, two))
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
    port = free_port()
    with running(
        tmp_path, "connect", "Spark Connect server started at", "org.apache.spark.deploy.SparkSubmit",
        "--master", "local[2]", "--conf", "spark.ui.enabled=false",
        "--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.sql.shuffle.partitions=2",
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal",
        memory="600m",
    ):  # fmt: skip
        told = ran(f"sc://127.0.0.1:{port}", live.address, topic, to, tmp_path)
    assert told.pop("refused").startswith("Spark Connect does not say which query and stages a batch has")
    assert told == {"total": sum(GOOD), "bad": COUNT // 100, "batch": {to: len(GOOD)}}
    assert numbers(live.address, to) == sorted(2 * number for number in (*GOOD, *GOOD))

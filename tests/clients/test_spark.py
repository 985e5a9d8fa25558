"""Spark's Kafka connector: topics written and read as batches, and a stream that goes on from its checkpoint after it,
and then the broker, was killed."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from support import jars
from support.broker_process import Restarting
from support.client_programs import PROGRAMS
from support.librdkafka import create, send
from support.waiting import until

Fresh = Callable[[str], str]
PRESENT = importlib.util.find_spec("pyspark") is not None
MISSING = jars.missing() or ("" if PRESENT else "pyspark is not installed (the dependency group `spark`)")
VERSION = version("pyspark") if PRESENT else "-"
KAFKA = "3.9.0"
"""The clients that this version of the connector is built with."""
LACKS = {
    "create": "topics come into being when it writes",
    "rebalance": "its driver divides the partitions, without a group",
    "commit": "its offsets are in its own checkpoints",
    "alter": "it has no administration",
    "delete": "it has no administration",
}
pytestmark = [
    pytest.mark.long,
    pytest.mark.client("Spark", version=VERSION, lacks=LACKS),
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
    pytest.mark.timeout(900),
]
SECONDS = 240.0
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def command(*words: str) -> list[str]:
    found = ",".join(map(str, jars.spark(VERSION, KAFKA)))
    return [sys.executable, str(PROGRAMS / "spark" / "main.py"), found, *words]


def environ() -> dict[str, str]:
    """Both ends of Spark run this interpreter, and what is not Spark's stays out."""
    return os.environ | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}


def spark(*words: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        command(*words), capture_output=True, text=True, timeout=SECONDS, env=environ(), check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.mark.duty("produce", "read")
def test_batches(bootstrap: str, fresh: Fresh, record_property: Callable[[str, object], None]) -> None:
    topic = fresh("topic")
    create(bootstrap, topic, 3)
    spark("write", bootstrap, topic)
    got = spark("read", bootstrap, topic, "{}")
    for partition in range(3):
        mine = sorted((row for row in got if row["partition"] == partition), key=lambda row: row["offset"])
        assert [row["offset"] for row in mine] == list(range(100 * len(CODECS)))
        for numbers in (mine[at : at + 100] for at in range(0, len(mine), 100)):  # a codec each
            found = {row["key"]: row for row in numbers}
            assert sorted(found) == sorted(f"key-{number}" for number in range(partition, 300, 3))
            assert all(row["value"] == f"{key[4:]} {'x' * 100}" for key, row in found.items())
            assert all(row["headers"][0]["key"] == "n" for row in numbers)
    record_property("codecs", " ".join(CODECS))


@pytest.mark.duty("seek by time")
def test_by_time_and_offset(bootstrap: str, fresh: Fresh) -> None:
    topic = fresh("topic")
    create(bootstrap, topic, retention_ms="-1")
    for number in range(20):
        send(bootstrap, topic, [b"%d" % number], timestamp=1_760_000_000_000 + number * 1000)
    within = {
        "startingOffsetsByTimestamp": json.dumps({topic: {"0": 1_760_000_004_500}}),
        "endingOffsetsByTimestamp": json.dumps({topic: {"0": 1_760_000_012_000}}),
    }
    assert numbers(spark("read", bootstrap, topic, json.dumps(within))) == list(range(5, 12))
    between = {"startingOffsets": {topic: {"0": 7}}, "endingOffsets": {topic: {"0": -1}}}
    given = {name: json.dumps(value) for name, value in between.items()}
    found = spark("read", bootstrap, topic, json.dumps(given | {"minPartitions": "3"}))
    assert numbers(found) == list(range(7, 20))


@pytest.mark.duty("read committed")
def test_read_committed(bootstrap: str, fresh: Fresh) -> None:
    from confluent_kafka import Producer

    topic = fresh("topic")
    create(bootstrap, topic)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": fresh("transactional")})
    producer.init_transactions(60)
    for part in range(4):
        producer.begin_transaction()
        for number in range(5):
            producer.produce(topic, str(part * 5 + number).encode(), partition=0)
        producer.flush(60)
        if part % 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    for level, expected in (
        ("read_committed", [*range(5), *range(10, 15)]),
        ("read_uncommitted", list(range(20))),
    ):
        assert (
            numbers(spark("read", bootstrap, topic, json.dumps({"kafka.isolation.level": level}))) == expected
        )


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(int(row["value"]) for row in rows)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Restarting]:
    one = Restarting(tmp_path / "broker")
    yield one
    one.end()


def test_stream_through_kills(broker: Restarting, tmp_path: Path) -> None:
    """Into files, exactly once: Spark is killed, then the broker below it. Then from topic to topic, in two runs."""
    create(broker.address, "numbers", 3, retention_ms="-1")
    running: list[subprocess.Popen[bytes]] = []

    def add(first: int, end: int) -> None:
        for partition in range(3):
            mine = [b"%d" % number for number in range(first + partition, end, 3)]
            send(broker.address, "numbers", mine, timestamp=0, partition=partition)

    def start() -> None:
        with (tmp_path / "stream.out").open("ab") as out:
            words = command("stream", broker.address, "numbers", str(tmp_path))
            running.append(
                subprocess.Popen(words, stdout=out, stderr=out, env=environ(), start_new_session=True)
            )

    def kill() -> None:
        """It and its JVM."""
        os.killpg(running[-1].pid, signal.SIGKILL)
        running[-1].wait()

    def committed(total: int) -> bool:
        """Whether so many numbers lie before the end of a batch that is committed."""
        assert running[-1].poll() is None, (tmp_path / "stream.out").read_text()[-3000:]
        done = [int(file.name) for file in (tmp_path / "checkpoint" / "commits").glob("[0-9]*")]
        if not done:
            return False
        offsets = (tmp_path / "checkpoint" / "offsets" / str(max(done))).read_text().splitlines()[-1]
        return sum(json.loads(offsets)["numbers"].values()) >= total

    try:
        add(0, 1500)
        start()
        until(lambda: committed(300), "the first batches of the stream", seconds=SECONDS)
        kill()
        start()
        until(lambda: committed(1500), "all of the first numbers", seconds=SECONDS)
        broker.restart(signal.SIGKILL)
        add(1500, 2100)
        until(lambda: committed(2100), "the numbers behind the broker's kill", seconds=SECONDS)
        kill()
    finally:
        for process in running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    assert numbers(spark("result", str(tmp_path))) == list(range(2100))

    create(broker.address, "numbers-copy", 1)
    spark("copy", broker.address, "numbers", str(tmp_path))
    add(2100, 2400)
    spark("copy", broker.address, "numbers", str(tmp_path))
    assert numbers(spark("read", broker.address, "numbers-copy", "{}")) == list(range(2400))

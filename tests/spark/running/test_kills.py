"""A pipeline of two topics, files and dead letters is killed at each named point of a batch: each record is there once,
and those of a key in their order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from crash.copies import committed_records
from leafcuttr_spark.points import DRIVER, VARIABLE
from support import librdkafka
from support.broker_process import Restarting

PROGRAM = Path(__file__).parent / "killed.py"
RECORDS, PARTITIONS = 600, 3
SECONDS = 900.0


@pytest.mark.usefixtures("spark")
@pytest.mark.timeout(3600)
def test_each_record_is_in_each_sink_once(tmp_path: Path) -> None:
    broker = Restarting(tmp_path / "broker")

    def run(point: str | None) -> int:
        environ = {**os.environ, "PYSPARK_PYTHON": sys.executable, **({VARIABLE: point} if point else {})}
        with (tmp_path / "out").open("ab") as out:
            one = subprocess.Popen(
                [sys.executable, str(PROGRAM), broker.address, str(tmp_path)],
                stdout=out, stderr=out, env=environ, start_new_session=True,
            )  # fmt: skip
            try:
                return one.wait(SECONDS)
            finally:
                # The JVM outlives its driver.
                with suppress(ProcessLookupError):
                    os.killpg(one.pid, signal.SIGKILL)
                one.wait()

    try:
        for topic, partitions in (("numbers", PARTITIONS), ("odd", 2), ("even", 1), ("dead", 1)):
            librdkafka.create(broker.address, topic, partitions, retention_ms="-1")
        for partition in range(PARTITIONS):
            values = [b"%d" % n if n % 50 else b"x%d" % n for n in range(partition, RECORDS, PARTITIONS)]
            key = b"key-%d" % partition
            librdkafka.send(broker.address, "numbers", values, timestamp=1, partition=partition, key=key)
        for point in DRIVER:
            assert run(point) == -signal.SIGKILL, (point, (tmp_path / "out").read_text()[-3000:])
        assert run(None) == 0, (tmp_path / "out").read_text()[-3000:]
        good = [n for n in range(RECORDS) if n % 50]
        odd = committed_records(broker.address, "odd", 2)
        assert sorted(int(value) for some in odd for value in some) == [n for n in good if n % 2]
        for some in odd:
            for partition in range(PARTITIONS):
                mine = [int(value) for value in some if int(value) % PARTITIONS == partition]
                assert mine == sorted(mine), "the order of a key"
        (even,) = committed_records(broker.address, "even", 1)
        assert sorted(map(int, even)) == [n for n in good if n % 2 == 0]
        (dead,) = committed_records(broker.address, "dead", 1)
        assert sorted(dead) == sorted(b"x%d" % n for n in range(0, RECORDS, 50))
        lines = [
            line for file in (tmp_path / "files").rglob("*.json") for line in file.read_text().splitlines()
        ]
        assert sorted(json.loads(line)["number"] for line in lines) == [n for n in good if n % 2]
    finally:
        broker.end()

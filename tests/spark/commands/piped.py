"""A pipeline's file, its topics and the command that runs it, on a real Spark: for tests of `leafcuttr spark`."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from leafcuttr_sdk.blocking_peers import open_peer
from leafcuttr_spark.operating.status import RunStatus, read_status
from support import librdkafka
from support.broker_process import BrokerProcess, clean_environ, running_broker
from support.spark_patience import TOO_SLOW, TRIES
from support.waiting import free_port, until

NEEDS_SPARK = [
    pytest.mark.long,
    pytest.mark.skipif(
        importlib.util.find_spec("pyspark") is None or shutil.which("java") is None,
        reason="Spark is not here",
    ),
    pytest.mark.timeout(3600),
]
"""What a module of such tests is marked with."""
PATIENCE_S = 1800.0
"""Where others want the processor too, Spark takes minutes to start."""
_NUMBERS = count()
TEXT = """
pipeline: NAME
cluster: {bootstrap.servers: "ADDRESS"}
session:
  master: "local[2]"
  config:
    spark.driver.memory: 512m
    spark.sql.shuffle.partitions: 2
    # No JVM lives so long that what C2 compiles is worth its time.
    spark.driver.extraJavaOptions: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
checkpoint: ./checkpoint
limits: {records-per-batch: 40}
sources:
  orders: {topic: NAME, key: text, value: {format: json, columns: {id: string, amount: int}}}
steps:
  - name: large
    from: orders
    filter: amount >= 10
sinks:
  large: {from: large, topic: NAME-large}
dead-letters: {topic: NAME-dead}
"""


class Pipe:
    """A pipeline's file, its topics, and the command."""

    def __init__(self, address: str, folder: Path, text: str = TEXT) -> None:
        self.address = address
        self.name = f"orders-{next(_NUMBERS)}"
        self.file = folder / f"{self.name}.yaml"
        self.file.write_text(text.replace("NAME", self.name).replace("ADDRESS", address))
        self.checkpoint = folder / "checkpoint"
        for suffix, partitions in {"": 2, "-large": 2, "-dead": 1}.items():
            librdkafka.create(address, f"{self.name}{suffix}", partitions)

    def send(self, amounts: range, partition: int = 0) -> None:
        values = [json.dumps({"id": str(number), "amount": number}).encode() for number in amounts]
        librdkafka.send(self.address, self.name, values, timestamp=1_700_000_000_000, partition=partition)

    def send_bad(self) -> None:
        librdkafka.send(self.address, self.name, [b"no JSON"], timestamp=1_700_000_000_000)

    def amounts(self) -> list[int]:
        """What the committed records of the target say."""
        from leafcuttr_spark.operating.letters import read_letters

        with open_peer({"bootstrap.servers": self.address}) as peer:
            found = read_letters(peer, f"{self.name}-large")
            return sorted(json.loads(one.value or b"null")["amount"] for one in found)

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, "-m", "leafcuttr", "spark", "run", str(self.file), *words]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=clean_environ(),
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def ran(self, *words: str) -> tuple[int, list[str], list[str]]:
        """The exit status, and the lines of both outputs; again where a worker of Python was too slow for Spark."""
        for left in reversed(range(TRIES)):
            done = subprocess.run(
                [sys.executable, "-m", "leafcuttr", "spark", *words],
                capture_output=True, text=True, env=clean_environ(), timeout=PATIENCE_S,
            )  # fmt: skip
            if left == 0 or TOO_SLOW not in done.stderr:
                return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()
        raise AssertionError("never reached")


def reached(path: Path, look: Any, what: str) -> RunStatus:
    def found() -> RunStatus | None:
        status = read_status(path)
        return status if status is not None and look(status) else None

    return until(found, what, seconds=PATIENCE_S, pause=0.1)


class Served(NamedTuple):
    """A broker with a folder of pipelines, which it runs."""

    broker: BrokerProcess
    folder: Path
    address: str

    @property
    def admin(self) -> str:
        return str(self.broker.about["metrics"])

    @property
    def log(self) -> str:
        return self.broker.log

    def take(self, pipe: Pipe) -> Path:
        """Let the broker run it; where its file is then."""
        return pipe.file.rename(self.folder / pipe.file.name)

    def asked(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://{self.admin}{path}", timeout=60) as answer:
            return json.load(answer)

    def row(self, look: Callable[[dict[str, Any]], Any], what: str) -> dict[str, Any]:
        """What the broker says of its only pipeline, once it says this."""

        def found() -> dict[str, Any] | None:
            rows: list[dict[str, Any]] = self.asked("/plugins/spark/pipelines")
            return rows[0] if rows and look(rows[0]) else None

        return until(found, what, seconds=PATIENCE_S, pause=0.2)


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Served]:
    pipelines = folder / "pipelines"
    pipelines.mkdir()
    address = f"127.0.0.1:{free_port()}"
    settings = {
        "listeners": f"PLAINTEXT://{address}",
        "lc.spark.pipelines": str(pipelines),
        "lc.spark.scan.interval.ms": "200",
        # Records of tests are of 2023.
        "log.retention.ms": "-1",
    }
    with running_broker(folder / "broker", settings, options=options) as broker:
        yield Served(broker, pipelines, address)

"""`leafcuttr spark run` on a real Spark: by hand, by a broker, begun anew; and the commands of the page."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from leafcuttr_sdk.blocking_peers import open_peer
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.operating.history import read_history
from leafcuttr_spark.operating.status import RunState, RunStatus, read_status
from support import librdkafka
from support.broker_process import BrokerProcess, clean_environ, running_broker
from support.pages import run_page
from support.waiting import free_port, until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        importlib.util.find_spec("pyspark") is None or shutil.which("java") is None,
        reason="Spark is not here",
    ),
    pytest.mark.timeout(900),
]

PATIENCE_S = 600.0
_NUMBERS = count()
TEXT = """
pipeline: NAME
cluster: {bootstrap.servers: "ADDRESS"}
session: {master: "local[2]", config: {spark.driver.memory: 512m, spark.sql.shuffle.partitions: 2}}
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
        """The exit status, and the lines of both outputs."""
        done = subprocess.run(
            [sys.executable, "-m", "leafcuttr", "spark", *words],
            capture_output=True, text=True, env=clean_environ(), timeout=PATIENCE_S,
        )  # fmt: skip
        return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()


def reached(path: Path, look: Any, what: str) -> RunStatus:
    def found() -> RunStatus | None:
        status = read_status(path)
        return status if status is not None and look(status) else None

    return until(found, what, seconds=PATIENCE_S, pause=0.1)


def test_it_runs_until_it_is_told_to_stop(live: BrokerProcess, tmp_path: Path) -> None:
    pipe = Pipe(live.address, tmp_path)
    pipe.send(range(60))
    pipe.send_bad()
    told = tmp_path / "told.json"
    with pipe.running("--json", "--status-file", str(told)) as process:
        reached(told, lambda status: status.rows == 61, "all rows")
        pipe.send(range(60, 100), partition=1)
        status = reached(told, lambda status: status.rows == 101, "the rows that came later")
        assert (status.state, status.pid, status.trouble) == (RunState.RUNNING, process.pid, "")
        assert (status.lag_records, status.lag_s) == (0, 0.0)
        reached(told, lambda status: status.dead_letters == 1, "the dead letter")
        assert pipe.ran("status", str(pipe.file), "--json")[0] == 0
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, err
    last = read_status(pipe.checkpoint / "leafcuttr" / "status.json")
    assert last == read_status(told)
    assert last is not None and last.state is RunState.STOPPED
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert sum(line.get("batch_rows", 0) for line in lines) == 101
    assert max(line.get("batch_rows", 0) for line in lines) <= 40  # the first batch is bounded too
    assert sum(point.rows for point in read_history(pipe.checkpoint / "leafcuttr" / "history.jsonl")) == 101
    assert pipe.amounts() == list(range(10, 100))
    assert [message.value() for message in librdkafka.read(live.address, f"{pipe.name}-dead", 1)] == [
        b"no JSON"
    ]
    with open_peer({"bootstrap.servers": live.address}) as peer:
        committed = {one: offset.offset for one, offset in peer.committed(pipe.name).items()}
    assert committed == {TopicPartition(pipe.name, 0): 61, TopicPartition(pipe.name, 1): 40}


def test_what_fails_is_one_line_with_its_step(live: BrokerProcess, tmp_path: Path) -> None:
    text = TEXT.replace("amount >= 10", "CAST(id AS INT) > 0").partition("dead-letters")[0]
    pipe = Pipe(live.address, tmp_path, text)
    librdkafka.send(live.address, pipe.name, [b'{"id": "x", "amount": 1}'], timestamp=1)
    status, _, err = pipe.ran("run", str(pipe.file), "--once")
    assert status == 1
    assert err[-1].startswith(f"leafcuttr: {pipe.file}:"), err
    assert "steps[0] (large)" in err[-1] and "'x'" in err[-1]
    assert not [line for line in err if line.startswith(("\tat ", "Traceback", "Caused by"))]
    last = read_status(pipe.checkpoint / "leafcuttr" / "status.json")
    assert last is not None
    assert (last.state, f"leafcuttr: {last.trouble}") == (RunState.FAILED, err[-1])


def test_it_begins_anew_at_an_earlier_place(live: BrokerProcess, tmp_path: Path) -> None:
    pipe = Pipe(live.address, tmp_path)
    pipe.send(range(10, 30))
    status, _, err = pipe.ran("run", str(pipe.file), "--once")
    assert status == 0, err
    status, _, err = pipe.ran("replay", str(pipe.file), "--from", f"{pipe.name}:0:15", "--once")
    assert status == 0, err
    assert any("which has written up to its batch 0 and is fenced now" in line for line in err), err
    assert pipe.amounts() == sorted([*range(10, 30), *range(25, 30)])


def test_a_broker_runs_it(tmp_path: Path) -> None:
    """With the real program: it reads and writes topics of the broker whose child it is."""
    folder = tmp_path / "pipelines"
    folder.mkdir()
    address = f"127.0.0.1:{free_port()}"
    settings = {
        "listeners": f"PLAINTEXT://{address}",
        "lc.spark.pipelines": str(folder),
        "lc.spark.scan.interval.ms": "200",
        # The records are of 2023.
        "log.retention.ms": "-1",
    }
    with running_broker(tmp_path / "broker", settings) as broker:
        admin = f"http://{broker.about['metrics']}"
        pipe = Pipe(address, tmp_path)
        pipe.send(range(10, 50))
        pipe.file.rename(folder / pipe.file.name)

        def rows() -> Any:
            with urllib.request.urlopen(f"{admin}/plugins/spark/pipelines", timeout=30) as answer:
                found = json.load(answer)
            assert not found or not found[0]["trouble"], broker.log[-3000:]
            return found if found and found[0]["rows"] == 40 else None

        (row,) = until(rows, "all rows", seconds=PATIENCE_S, pause=0.2)
        assert (row["pipeline"], row["state"], row["restarts"]) == (pipe.name, "running", 0)
        assert row["memory_bytes"] > 100 << 20
        assert "libjvm" not in Path(f"/proc/{broker.process.pid}/maps").read_text()
        assert pipe.amounts() == list(range(10, 50))
    # The clean stop of the broker has let it finish.
    last = read_status(folder / "checkpoint" / "leafcuttr" / "status.json")
    assert last is not None and last.state is RunState.STOPPED


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("page", ["how-to/spark-pipelines.md", "tutorial/spark.md"])
def test_a_page_runs(page: str, tmp_path: Path) -> None:
    assert run_page(page, tmp_path) >= 8

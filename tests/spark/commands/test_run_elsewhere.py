"""A pipeline's file on a standalone cluster of two workers and with Spark Connect; clusters that do not answer."""

from __future__ import annotations

import importlib.util
import json
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from leafcuttr_sdk.blocking_peers import open_peer
from leafcuttr_spark.operating.letters import read_letters
from leafcuttr_spark.operating.status import RunState
from spark.commands.piped import NEEDS_SPARK, PATIENCE_S, Pipe, reached
from support import librdkafka
from support.broker_process import BrokerProcess
from support.spark_daemons import running_connect, running_master, running_worker, standalone

pytestmark = NEEDS_SPARK

TEXT = """
pipeline: NAME
variables: {master: "local[2]"}
cluster: {bootstrap.servers: "ADDRESS"}
session:
  master: ${master}
  config:
    spark.driver.memory: 512m
    spark.driver.host: 127.0.0.1
    spark.driver.bindAddress: 127.0.0.1
    spark.executor.memory: 512m
    spark.executor.cores: 1
    spark.sql.shuffle.partitions: 2
    spark.driver.extraJavaOptions: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    spark.executor.extraJavaOptions: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
checkpoint: ./checkpoint
sources:
  orders: {topic: NAME, key: text, value: {format: json, columns: {id: string, amount: int}}}
steps:
  - name: large
    from: orders
    filter: amount >= 10
  - name: totals
    from: large
    aggregate: {by: [id], orders: count(*), total: sum(amount)}
sinks:
  large: {from: large, topic: NAME-large}
  totals: {from: totals, topic: NAME-totals, key: id, value: {format: json, columns: [id, orders, total]}}
"""

NEEDS_CONNECT = pytest.mark.skipif(
    importlib.util.find_spec("grpc_status") is None,
    reason="grpcio-status, which Spark Connect needs, is not here",
)


def made(live: BrokerProcess, folder: Path) -> Pipe:
    pipe = Pipe(live.address, folder, TEXT)
    librdkafka.create(live.address, f"{pipe.name}-totals", 1)
    return pipe


def totals(pipe: Pipe) -> dict[str, tuple[int, int]]:
    """The last ones of each id."""
    with open_peer({"bootstrap.servers": pipe.address}) as peer:
        rows = [json.loads(one.value or b"null") for one in read_letters(peer, f"{pipe.name}-totals")]
    return {row["id"]: (row["orders"], row["total"]) for row in rows}


def test_a_file_goes_on_on_a_cluster_of_two_workers(live: BrokerProcess, tmp_path: Path) -> None:
    """Its state and offsets are those of the run before, on one machine; what fails in a task there is one line with
    its step, which says what the first attempt failed with."""
    pipe = made(live, tmp_path)
    pipe.send(range(30))
    status, _, err = pipe.ran("run", str(pipe.file), "--once")
    assert status == 0, err
    wanted = {str(number): (1, number) for number in range(10, 30)}
    assert (pipe.amounts(), totals(pipe)) == (list(range(10, 30)), wanted)
    with standalone(tmp_path) as cluster:
        elsewhere = ("run", str(pipe.file), "--once", "--set", f"master={cluster.master}")
        pipe.send(range(20, 60))
        pipe.send(range(60, 80), partition=1)
        status, _, err = pipe.ran(*elsewhere)
        assert status == 0, err
        assert cluster.both_work
        wanted |= {str(number): (1, number) for number in range(30, 80)}
        wanted |= {str(number): (2, 2 * number) for number in range(20, 30)}
        assert pipe.amounts() == sorted([*range(10, 30), *range(20, 80)])
        assert totals(pipe) == wanted

        # A filter has no state, so it may be edited; this one fails for a row.
        pipe.file.write_text(pipe.file.read_text().replace("amount >= 10", "CAST(id AS INT) >= 10"))
        librdkafka.send(live.address, pipe.name, [b'{"id": "many", "amount": 1}'], timestamp=1)
        status, _, err = pipe.ran(*elsewhere)
        assert status == 1, err
        assert err[-1].startswith(f"leafcuttr: {pipe.file}:"), err
        assert "steps[0] (large): " in err[-1] and "'many'" in err[-1]
        assert not [line for line in err if line.startswith(("\tat ", "Traceback", "Caused by"))]
        assert totals(pipe) == wanted


def test_a_cluster_without_a_worker_is_said_until_one_comes(live: BrokerProcess, tmp_path: Path) -> None:
    pipe = made(live, tmp_path)
    pipe.send(range(30))
    told = tmp_path / "told.json"
    with (
        running_master(tmp_path) as master,
        pipe.running("--status-file", str(told), "--set", f"master={master}") as process,
    ):
        status = reached(
            told, lambda status: status.trouble and status.state is RunState.RUNNING, "no worker"
        )
        assert status.trouble == (
            f"the batch waits for an executor, and none has come for 30 s: {master} needs a worker with"
            " spark.executor.memory=512m and spark.executor.cores=1 free"
        )
        with running_worker(tmp_path, "one", master):
            status = reached(told, lambda status: status.rows == 30, "all rows")
            assert status.trouble == ""
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0, err
    assert "the batch goes on" in err
    assert pipe.amounts() == list(range(10, 30))


@NEEDS_CONNECT
def test_a_file_runs_with_spark_connect(live: BrokerProcess, tmp_path: Path) -> None:
    """At least once, which it has to say itself."""
    pipe = made(live, tmp_path)
    pipe.send(range(30))
    with running_connect(tmp_path) as url:
        remotely(pipe, url)
        status, _, err = pipe.ran("run", str(pipe.file), "--once")
        assert status == 2, err
        assert "choose delivery=at-least-once, or a session that is not remote" in err[-1]
        at_least_once(pipe)
        status, out, err = pipe.ran("run", str(pipe.file), "--once")
        assert status == 0, err
        assert "30 rows" in out[-1]
        assert pipe.amounts() == list(range(10, 30))
        assert totals(pipe) == {str(number): (1, number) for number in range(10, 30)}


@NEEDS_CONNECT
def test_a_server_of_spark_connect_that_ends_is_a_line(live: BrokerProcess, tmp_path: Path) -> None:
    """After a minute the run fails, to be started again."""
    pipe = made(live, tmp_path)
    pipe.send(range(30))
    told = tmp_path / "told.json"
    with ExitStack() as server:
        remotely(pipe, server.enter_context(running_connect(tmp_path)))
        at_least_once(pipe)
        with pipe.running("--status-file", str(told)) as process:
            reached(told, lambda status: status.batches > 0, "what is there")
            server.close()
            _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1, err
    *before, last = err.splitlines()
    assert before == []
    assert last.startswith(f"leafcuttr: {pipe.file}: failed to connect to all addresses"), err
    status = reached(told, lambda status: status.state is RunState.FAILED, "its end")
    assert status.trouble == last.removeprefix("leafcuttr: ")


def remotely(pipe: Pipe, url: str) -> None:
    """Its session is one of Spark Connect."""
    before, _, rest = pipe.file.read_text().partition("session:")
    session = f"session: {{remote: '{url}'}}\ncheckpoint:"
    pipe.file.write_text(f"{before}{session}{rest.partition('checkpoint:')[2]}".replace("variables:", "# "))


def at_least_once(pipe: Pipe) -> None:
    text = pipe.file.read_text()
    for sink in ("{from: large,", "{from: totals,"):
        text = text.replace(sink, f"{sink} delivery: at-least-once,")
    pipe.file.write_text(text)


PYTHON = """#!/bin/sh
# Workers of the cluster have the standard library, and what Spark sends them.
exec {python} ${{ON_THE_DRIVER:--S}} "$@"
"""
SHOP = """
def doubled(row):
    return {"id": row["id"], "amount": 2 * row["amount"]}
"""
DOUBLED = """  - name: doubled
    from: large
    python: {function: "shop:doubled", per: record, columns: {id: string, amount: int}}
"""


def test_executors_without_any_package_take_the_archive(
    live: BrokerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = made(live, tmp_path)
    pipe.send(range(30))
    (tmp_path / "shop.py").write_text(SHOP)
    python = tmp_path / "python"
    python.write_text(PYTHON.format(python=sys.executable))
    python.chmod(0o755)
    archive = tmp_path / "leafcuttr.tar.gz"
    text = pipe.file.read_text().replace("  - name: totals\n", f"{DOUBLED}  - name: totals\n")
    text = text.replace("    from: large\n    aggregate", "    from: doubled\n    aggregate")
    text = text.replace("{from: large, ", "{from: doubled, ")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    status, _, err = pipe.ran("package", str(archive), "--module", "shop")
    assert status == 0, err
    monkeypatch.delenv("PYTHONPATH")
    with standalone(tmp_path, str(python)) as cluster:
        monkeypatch.setenv("PYSPARK_PYTHON", str(python))
        monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        monkeypatch.setenv("ON_THE_DRIVER", "-B")
        words = ("run", str(pipe.file), "--once", "--set", f"master={cluster.master}")
        pipe.file.write_text(text)
        status, _, err = pipe.ran(*words)
        assert status == 1 and "No module named" in err[-1], err
        config = (
            f"config:\n    spark.archives: {archive}#leafcuttr\n    spark.executorEnv.PYTHONPATH: leafcuttr\n"
        )
        pipe.file.write_text(text.replace("config:\n", config))
        status, _, err = pipe.ran(*words)
        assert status == 0, err
        assert pipe.amounts() == [2 * number for number in range(10, 30)]
        assert totals(pipe) == {str(number): (1, 2 * number) for number in range(10, 30)}

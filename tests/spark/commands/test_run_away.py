"""Clusters that do not answer, and one whose configuration is missing: `leafcuttr spark run` says so in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark.commands.piped import NEEDS_SPARK, Pipe
from support.broker_process import BrokerProcess
from support.waiting import free_port

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
checkpoint: ./checkpoint
sources:
  orders: {topic: NAME, key: text, value: text}
sinks:
  large: {from: orders, topic: NAME-large}
"""


def test_a_master_that_is_away_is_a_line(live: BrokerProcess, tmp_path: Path) -> None:
    """Spark asks three times for it, twenty seconds apart."""
    pipe = Pipe(live.address, tmp_path, TEXT)
    away = f"spark://127.0.0.1:{free_port()}"
    status, _, err = pipe.ran("run", str(pipe.file), "--once", "--set", f"master={away}")
    assert status == 1
    said = f"no master of Spark answers at {away}, or it has refused the application"
    assert err[-1] == f"leafcuttr: session: Spark did not start: {said}"


def test_yarn_without_its_configuration_is_a_line(
    live: BrokerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    pipe = Pipe(live.address, tmp_path, TEXT)
    status, _, err = pipe.ran("run", str(pipe.file), "--once", "--set", "master=yarn")
    assert status == 1
    assert err[-1] == (
        "leafcuttr: session: Spark did not start: When running with master 'yarn' either HADOOP_CONF_DIR or"
        " YARN_CONF_DIR must be set in the environment."
    )
    assert not [line for line in err if line.startswith(("\tat ", "Exception"))]


def test_kubernetes_that_is_away_is_a_line(live: BrokerProcess, tmp_path: Path) -> None:
    pipe = Pipe(live.address, tmp_path, TEXT)
    away = f"127.0.0.1:{free_port()}"
    status, _, err = pipe.ran("run", str(pipe.file), "--once", "--set", f"master=k8s://http://{away}")
    assert status == 1
    assert err[-1].startswith("leafcuttr: session: Spark did not start: "), err
    assert away in err[-1] and "refused" in err[-1]

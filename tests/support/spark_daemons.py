"""Daemons of Spark for tests: the master and the two workers of a standalone cluster, a server of Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from support.waiting import free_port, until


class Standalone(NamedTuple):
    """A cluster of two workers of one core each."""

    master: str
    logs: tuple[Path, Path]
    """Of the workers."""

    @property
    def both_work(self) -> bool:
        """Whether each has started an executor."""
        return all("Executor" in log.read_text() for log in self.logs)


@contextmanager
def standalone(folder: Path, python: str = sys.executable) -> Iterator[Standalone]:
    """`python` is what tasks run by on the workers, where nothing else says so."""
    with (
        running_master(folder) as master,
        running_worker(folder, "one", master, python) as one,
        running_worker(folder, "two", master, python) as two,
    ):
        yield Standalone(master, (one, two))


@contextmanager
def running_master(folder: Path) -> Iterator[str]:
    """The master of a cluster that has no workers yet; its URL."""
    port = free_port()
    with running_daemon(
        folder, "master", "I have been elected leader", "org.apache.spark.deploy.master.Master",
        "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0",
    ):  # fmt: skip
        yield f"spark://127.0.0.1:{port}"


@contextmanager
def running_worker(folder: Path, name: str, master: str, python: str = sys.executable) -> Iterator[Path]:
    """One core, and memory for one executor; the log."""
    with running_daemon(
        folder, name, "Successfully registered", "org.apache.spark.deploy.worker.Worker",
        "--work-dir", str(folder / "work"), "--cores", "1", "--memory", "600m", "--webui-port", "0",
        "--host", "127.0.0.1", master, python=python,
    ) as log:  # fmt: skip
        yield log


@contextmanager
def running_connect(folder: Path) -> Iterator[str]:
    """A server of Spark Connect on two cores; its URL."""
    port = free_port()
    with running_daemon(
        folder, "connect", "Spark Connect server started at", "org.apache.spark.deploy.SparkSubmit",
        "--master", "local[2]", "--conf", "spark.ui.enabled=false",
        "--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.sql.shuffle.partitions=2",
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal",
        memory="600m",
    ):  # fmt: skip
        yield f"sc://127.0.0.1:{port}"


def spark_environ(folder: Path, memory: str = "256m", python: str = sys.executable) -> dict[str, str]:
    """`memory` is that of daemons; the server of Spark Connect is one, whatever `--driver-memory` says."""
    import pyspark

    return os.environ | {
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOG_DIR": str(folder),
        "SPARK_DAEMON_MEMORY": memory,
    }


@contextmanager
def running_daemon(
    folder: Path, name: str, said: str, *words: str, memory: str = "256m", python: str = sys.executable
) -> Iterator[Path]:
    """A daemon of Spark, once its log has these words; the log."""
    import pyspark

    log = folder / f"{name}.log"
    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    with log.open("w") as out:
        process = subprocess.Popen(
            [str(spark_class), *words],
            stdout=out,
            stderr=out,
            cwd=folder,
            env=spark_environ(folder, memory, python),
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

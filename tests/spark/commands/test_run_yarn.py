"""A pipeline's file on YARN, in client mode: a real one with one node, whose executors have no package but those of the
archive."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spark.commands.piped import NEEDS_SPARK, Pipe
from spark.commands.test_run_elsewhere import PYTHON
from support import jars
from support.broker_process import BrokerProcess
from support.waiting import until

pytestmark = NEEDS_SPARK

HADOOP = "3.5.0"
"""That of the jars within pyspark 4.2."""
PROGRAM = Path(__file__).parents[2] / "clients" / "programs" / "spark" / "MiniYarn.java"
TEXT = """
pipeline: NAME
cluster: {bootstrap.servers: "ADDRESS"}
session:
  master: yarn
  config:
    spark.driver.memory: 512m
    spark.driver.host: 127.0.0.1
    spark.driver.bindAddress: 127.0.0.1
    spark.executor.memory: 512m
    spark.executor.instances: 1
    spark.executor.cores: 1
    spark.sql.shuffle.partitions: 2
    spark.yarn.am.memory: 256m
    spark.yarn.jars: "local:JARS/*"
    spark.yarn.stagingDir: "file://FOLDER/staging"
    spark.archives: FOLDER/leafcuttr.tar.gz#leafcuttr
    spark.executorEnv.PYTHONPATH: leafcuttr
checkpoint: ./checkpoint
sources:
  orders: {topic: NAME, key: text, value: {format: json, columns: {id: string, amount: int}}}
steps:
  - name: large
    from: orders
    filter: amount >= 10
sinks:
  large: {from: large, topic: NAME-large}
"""


@contextmanager
def running_yarn(folder: Path) -> Iterator[Path]:
    """The folder of its configuration."""
    conf = folder / "conf"
    conf.mkdir()
    log = folder / "yarn.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            jars.mini_yarn(HADOOP, str(PROGRAM), str(conf)),
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            cwd=folder,
        )
    try:

        def is_up() -> bool:
            assert process.poll() is None, log.read_text()[-3000:]
            return "YARN is up" in log.read_text()

        until(is_up, "YARN", seconds=180)
        yield conf
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(60)
        finally:
            process.kill()


def test_executors_on_yarn_take_the_archive(
    live: BrokerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why := jars.missing():
        pytest.skip(why)
    import pyspark

    python = tmp_path / "python"
    python.write_text(PYTHON.format(python=sys.executable))
    python.chmod(0o755)
    text = TEXT.replace("JARS", str(Path(pyspark.__file__).parent / "jars"))
    pipe = Pipe(live.address, tmp_path, text.replace("FOLDER", str(tmp_path)))
    pipe.send(range(30))
    status, _, err = pipe.ran("package", str(tmp_path / "leafcuttr.tar.gz"))
    assert status == 0, err
    with running_yarn(tmp_path) as conf:
        monkeypatch.setenv("HADOOP_CONF_DIR", str(conf))
        monkeypatch.setenv("PYSPARK_PYTHON", str(python))
        monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        monkeypatch.setenv("ON_THE_DRIVER", "-B")
        status, out, err = pipe.ran("run", str(pipe.file), "--once")
        assert status == 0, err
        assert out[-1].startswith("finished: batch 0 | 30 rows"), out
        ran = list(tmp_path.glob("target/**/application_*/container_*_000002"))
        assert ran, "no container of an executor"
    assert pipe.amounts() == list(range(10, 30))

"""What Spark is started with for each kind of cluster, and why it did not start: a program stands in the place of
`spark-submit`, which is what PySpark starts its JVM by."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from support.broker_process import clean_environ

pytest.importorskip("pyspark")
pytestmark = pytest.mark.long

SUBMIT = """#!/bin/sh
printf '%s\\n' "$@" > "$SPARK_HOME/words"
echo 'Exception in thread "main" org.apache.spark.SparkException: hunter22 is no room for it' >&2
printf '\\tat org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)\\n' >&2
exit 1
"""
PROGRAM = """
import json, sys
from leafcuttr_spark.running import session
from leafcuttr_spark.pipelines.errors import PipelineError
from leafcuttr_spark.pipelines.model import Pipeline, Secrets, SessionSettings

session.java_trouble = lambda: None
settings = SessionSettings(master=sys.argv[1] or None, config=json.loads(sys.argv[2]))
try:
    session.session_of(Pipeline("orders", {}, (), {}, session=settings, secrets=Secrets(frozenset({"hunter22"}))))
except PipelineError as error:
    print(error)
"""
PACKAGE = {"spark.archives": "leafcuttr.tar.gz#leafcuttr", "spark.executorEnv.PYTHONPATH": "leafcuttr"}
IMAGE = {"spark.kubernetes.container.image": "spark:4.2.0", "spark.kubernetes.namespace": "shop"}
OURS = {"spark.app.name": "orders", "spark.speculation": "false", "spark.sql.session.timeZone": "UTC"}


def started(folder: Path, master: str, config: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """The words that are no settings, and the settings."""
    (folder / "bin").mkdir()
    submit = folder / "bin" / "spark-submit"
    submit.write_text(SUBMIT)
    submit.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, master, json.dumps(config)],
        env=clean_environ({"SPARK_HOME": str(folder)}),
        capture_output=True,
        text=True,
    )
    assert done.stdout == "session: Spark did not start: *** is no room for it\n", done.stderr
    assert done.stderr == ""
    words = (folder / "words").read_text().splitlines()
    settings: dict[str, str] = {}
    for word, value in pairwise(words):
        if word == "--conf":
            name, _, setting = value.partition("=")
            settings[name] = setting
    others = [
        word
        for number, word in enumerate(words)
        if word != "--conf" and (number == 0 or words[number - 1] != "--conf")
    ]
    return others, settings


@pytest.mark.parametrize(
    ("master", "config"),
    [
        ("yarn", {**PACKAGE, "spark.yarn.queue": "shop"}),
        ("k8s://https://127.0.0.1:6443", {**PACKAGE, **IMAGE}),
        ("spark://127.0.0.1:7077", {**PACKAGE, "spark.executor.cores": "1"}),
    ],
    ids=["yarn", "k8s", "standalone"],
)
def test_a_cluster_gets_the_file_s_settings_and_ours(
    master: str, config: dict[str, str], tmp_path: Path
) -> None:
    words, settings = started(tmp_path, master, config)
    # The driver is this process.
    assert words == ["pyspark-shell"]
    assert settings == settings | {**OURS, **config, "spark.master": master}
    # These are for one machine.
    assert (
        not {"spark.driver.host", "spark.driver.bindAddress", "spark.sql.shuffle.partitions"}
        & settings.keys()
    )


@pytest.mark.parametrize(("master", "cores"), [("local[3]", "3"), ("local", "1")])
def test_one_machine_has_few_partitions_and_is_reached_by_itself_alone(
    master: str, cores: str, tmp_path: Path
) -> None:
    _, settings = started(tmp_path, master, {"spark.speculation": "true"})
    assert settings["spark.master"] == master
    assert settings["spark.sql.shuffle.partitions"] == cores
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.speculation"] == "true", "the sink refuses it"

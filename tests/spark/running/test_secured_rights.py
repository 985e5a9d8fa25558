"""A pipeline over SASL_SSL with all of its rights but one names that one, and goes on once it is given; each record is
there once. The command: `commands/test_run_spark_secured.py`."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leafcuttr_spark.pipelines.errors import PipelineError
from leafcuttr_spark.pipelines.model import Trigger
from spark.commands.secured_pipe import PASSWORD_VARIABLE, Pipe
from support.needed_rights import PIPELINE, Need, authorized_broker
from support.secured_broker import PASSWORD, SecuredBroker
from support.spark_patience import patiently


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with authorized_broker(tmp_path_factory.mktemp("spark")) as broker:
        yield broker


def failure(pipe: Pipe, spark: Any) -> str:
    """What it says, if it fails before the end of what is there."""
    try:
        patiently(lambda: run(pipe, spark))
    except PipelineError as error:
        return str(error)
    return ""


def run(pipe: Pipe, spark: Any) -> None:
    from leafcuttr_spark.pipelines.checking.whole import load_pipeline
    from leafcuttr_spark.running.run import start

    pipeline, _, _ = load_pipeline(str(pipe.file), {})
    pipeline = replace(pipeline, trigger=Trigger(available_now=True))
    running = start(pipeline, spark)
    try:
        assert running.wait(900), running.query.status
    finally:
        running.stop()


@pytest.mark.parametrize("missing", PIPELINE, ids=str)
def test_a_right_is_missing(
    spark: Any,
    secured: SecuredBroker,
    tmp_path: Path,
    missing: Need,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A batch is marked at the first topic that it writes, by name: those of dead letters are needed where there are
    some."""
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    pipe = Pipe(secured, tmp_path)
    dead = ["no JSON"] if missing.name == "{app}-dead" else []
    pipe.rights.give([one for one in PIPELINE if one != missing], pipe.app)
    pipe.send(*range(30))
    pipe.rights.send(pipe.app, dead)
    line = missing.says.format(app=pipe.app)
    with caplog.at_level(logging.INFO, "leafcuttr.spark"):
        said = failure(pipe, spark)
        if missing.without == "the query fails":
            assert re.search(line, said), said
            assert pipe.amounts() == []
        else:
            assert said == ""
            pipe.rights.wait_for(missing, pipe.app, lambda: caplog.text)
            assert pipe.amounts() == list(range(10, 30))
    pipe.rights.give([missing], pipe.app)
    pipe.send(30)
    assert failure(pipe, spark) == ""
    assert pipe.amounts() == list(range(10, 31))
    assert pipe.rights.read(f"{pipe.app}-dead") == dead
    pipe.rights.wait_for_offset(pipe.app, pipe.app, 31 + len(dead))

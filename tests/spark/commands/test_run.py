"""`leafcuttr spark run` up to where Spark begins. With Spark: test_run_spark.py."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from leafcuttr.cli.root import cli
from leafcuttr_spark.commands.run import conduct as module
from leafcuttr_spark.commands.run.showing import Shown, as_line, bytes_text, time_text
from leafcuttr_spark.commands.run.stopping import StopRequest, stop_by_signal
from leafcuttr_spark.operating.exits import FINAL, Exit
from leafcuttr_spark.operating.fingerprint import fingerprint_of
from leafcuttr_spark.operating.history import History, Point
from leafcuttr_spark.operating.monitor import RunMonitor
from leafcuttr_spark.operating.places import own_folder
from leafcuttr_spark.operating.progress import BatchProgress
from leafcuttr_spark.operating.starting import locked
from leafcuttr_spark.operating.status import RunState, read_status
from leafcuttr_spark.options import OptionError
from leafcuttr_spark.pipelines.errors import (
    DeadLetterLimitError,
    PipelineError,
    PipelineFaultsError,
    PipelineRefusedError,
)
from leafcuttr_spark.pipelines.model import Pipeline, Secrets
from support.spark_runs import STATUS, TEXT
from support.waiting import free_port

pytest.importorskip("yaml")
pytest.importorskip("sqlglot")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pipeline, and a machine that seems to have Spark and Java."""
    monkeypatch.setattr(module, "find_spec", lambda name: object())
    monkeypatch.setattr(module, "java_trouble", lambda: None)
    path = tmp_path / "orders.yaml"
    path.write_text(TEXT)
    return path


def ran(*words: object) -> Result:
    return CliRunner().invoke(cli, ["spark", "run", *map(str, words)])


def test_a_file_that_is_wrong(file: Path) -> None:
    file.write_text(TEXT.replace("topic: out", "topick: out"))
    done = ran(file)
    assert done.exit_code == Exit.WRONG
    assert done.stderr.startswith("leafcuttr: ") or "\nleafcuttr: " in done.stderr
    assert f"{file}:" in done.stderr and "topick" in done.stderr
    assert ran(file.with_name("none.yaml")).exit_code == Exit.WRONG
    assert ran(file, "--set", "x").exit_code == 2


def test_without_java(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "java_trouble", lambda: "Spark needs Java 17 or later, and there is none")
    done = ran(file)
    assert (done.exit_code, done.stderr) == (
        2,
        "leafcuttr: Spark needs Java 17 or later, and there is none\n",
    )


def test_without_spark(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    done = ran(file)
    assert (done.exit_code, done.stderr) == (
        2,
        "leafcuttr: Spark is not installed: pip install 'leafcuttr[spark]'\n",
    )
    file.write_text(f"{TEXT}session: {{remote: 'sc://host:15002'}}\n")
    assert "leafcuttr[spark-connect]" in ran(file).stderr


def test_while_another_run_has_the_checkpoint(file: Path) -> None:
    with locked(file.parent / "checkpoint" / "leafcuttr"):
        done = ran(file)
    assert done.exit_code == Exit.FAILED
    assert f"another run has the checkpoint {file.parent}/checkpoint" in done.stderr


def test_an_edit_that_the_checkpoint_does_not_allow(file: Path) -> None:
    own = file.parent / "checkpoint" / "leafcuttr"
    (own.parent / "offsets").mkdir(parents=True)
    (own.parent / "offsets" / "0").write_text("v1\n{}\n-")
    own.mkdir()
    other = Pipeline("orders", {}, state_store="memory")
    (own / "pipeline.json").write_text(fingerprint_of(other).as_json())
    done = ran(file)
    assert done.exit_code == Exit.REFUSED
    assert "the store was memory and is rocksdb; source orders: is new. Undo the edit" in done.stderr


def test_an_edit_where_the_checkpoint_is_elsewhere(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(file.parent))
    address = "s3a://bucket/orders"
    file.write_text(TEXT.replace("./checkpoint", address))
    own = own_folder(address, "orders")
    own.mkdir(parents=True)
    (own / "pipeline.json").write_text(fingerprint_of(Pipeline("orders", {}, state_store="memory")).as_json())
    History(own / "history.jsonl").add(Point(1, 0, 1, 1.0))
    done = ran(file)
    assert done.exit_code == Exit.REFUSED
    assert (
        f"checkpoint {address}: state: the store was memory and is rocksdb; source orders: is new"
        in done.stderr
    )


def test_which_end_has_which_status() -> None:
    assert FINAL == (2, 3)
    for error, status in {
        PipelineError("x"): Exit.FAILED,
        PipelineRefusedError("x"): Exit.WRONG,
        DeadLetterLimitError("x"): Exit.REFUSED,
        OptionError("x"): Exit.WRONG,
        PipelineFaultsError("x", []): Exit.WRONG,
        OSError("x"): Exit.FAILED,
    }.items():
        assert module._exit_of(error) is status


class OfAJvmThatIsGone(Exception):
    """As py4j's: its text is in the JVM."""

    def __str__(self) -> str:
        raise ConnectionRefusedError(111, "refused")


def stopping(error: Exception, signals: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run raises this once it was told to stop."""

    def run(*given: object) -> None:
        for _ in range(signals):
            signal.raise_signal(signal.SIGTERM)
        raise error

    monkeypatch.setattr(module, "_run", run)
    monkeypatch.setattr(module, "_say_which_are_away", lambda *given: None)
    monkeypatch.setattr(module, "_jvm", lambda: None)


@pytest.mark.parametrize(
    ("error", "signals", "status", "state"),
    [
        (PipelineError("the last batch failed"), 1, Exit.FAILED, RunState.FAILED),
        (PipelineError("the last batch failed"), 2, Exit.DONE, RunState.STOPPED),
        (DeadLetterLimitError("too many"), 1, Exit.REFUSED, RunState.FAILED),
        (DeadLetterLimitError("too many"), 2, Exit.REFUSED, RunState.FAILED),
        (ConnectionRefusedError(111, "refused"), 1, Exit.DONE, RunState.STOPPED),
        (ConnectionRefusedError(111, "refused"), 0, Exit.FAILED, RunState.FAILED),
    ],
)
def test_what_fails_while_it_stops_is_a_failure(
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    signals: int,
    status: Exit,
    state: RunState,
) -> None:
    stopping(error, signals, monkeypatch)
    assert ran(file).exit_code == status
    last = read_status(file.parent / "checkpoint" / "leafcuttr" / "status.json")
    assert last is not None and last.state is state


def test_what_fails_because_the_jvm_ends_is_none(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopping(PipelineError("Job 7 cancelled"), 1, monkeypatch)
    monkeypatch.setattr(module, "_JVM_END_S", 0.05)
    with subprocess.Popen(["sleep", "600"]) as jvm:
        monkeypatch.setattr(module, "_jvm", lambda: jvm)
        assert ran(file).exit_code == Exit.FAILED
        jvm.terminate()
        jvm.wait()
        assert ran(file).exit_code == Exit.DONE


def test_a_batch_that_waits_for_what_does_not_come_is_said_and_does_not_hold_a_stop(
    file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stop = StopRequest()
    said: list[str] = ["", "none has come", "none has come", "", "none again", "none again"]
    troubles: list[str] = []
    stopped: list[bool] = []

    def wait(seconds: float) -> bool:
        troubles.append(monitor.status.trouble)
        if len(said) == 1:
            stop.count = 1
        return not said

    query = SimpleNamespace(status={"isTriggerActive": True})
    running = SimpleNamespace(wait=wait, dead_letters=0, query=query, stop=lambda: stopped.append(True))
    monitor = RunMonitor(STATUS, (), None, lambda: 0, lambda positions: None)
    shown = Shown(print, as_json=False, pause_ms=0)
    waiting: Any = SimpleNamespace(trouble=lambda: said.pop(0))
    module._watch(running, monitor, shown, stop, (waiting,))
    assert troubles == ["", "", "none has come", "none has come", "", "none again"]
    assert stopped == [True] and monitor.status.state is RunState.STOPPING
    warned = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert warned == ["none has come", "the batch goes on", "none again"]


def test_what_the_run_before_has_failed_with_is_told_until_this_one_waits_for_records(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def run(pipeline: Pipeline, monitor: RunMonitor, *given: object) -> None:
        told.append(monitor.status.last_failure)
        if len(told) == 1:
            raise PipelineError("it said why")
        for message in ("Initializing sources", "Processing new data", "Waiting for data to arrive"):
            query = SimpleNamespace(status={"message": message, "isTriggerActive": False})
            ends = iter([False, True])
            running = SimpleNamespace(wait=lambda _, ends=ends: next(ends), dead_letters=0, query=query)
            shown = Shown(print, as_json=False, pause_ms=0)
            module._watch(running, monitor, shown, StopRequest(), ())
            told.append(monitor.status.last_failure)

    monkeypatch.setattr(module, "_say_which_are_away", lambda *given: None)
    monkeypatch.setattr(module, "_run", run)
    assert ran(file).exit_code == Exit.FAILED
    assert ran(file).exit_code == Exit.DONE
    assert told == ["", "it said why", "it said why", "it said why", ""]


def test_a_signal_is_heard_once_the_checkpoint_is_taken(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def taken(own: Path) -> Iterator[None]:
        with locked(own):
            signal.raise_signal(signal.SIGTERM)
            yield

    told: list[bool] = []
    monkeypatch.setattr(module, "locked", taken)
    monkeypatch.setattr(module, "_say_which_are_away", lambda *given: None)
    monkeypatch.setattr(module, "_run", lambda pipeline, monitor, shown, stop: told.append(stop.is_made))
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert ran(file).exit_code == Exit.DONE
    finally:
        signal.signal(signal.SIGTERM, before)
    assert told == [True]


ECHOES = """
import sys
from leafcuttr_spark.commands.run.command import echo_while_read
echo_while_read("one")
sys.stdin.readline()
for _ in range(3):
    echo_while_read("more")
print("went on", file=sys.stderr)
"""


def test_it_goes_on_without_a_reader() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", ECHOES], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"one\n"
        process.stdout.close()
        process.stdin.write(b"\n")
        process.stdin.close()
        assert process.stderr.read() == b"went on\n"
        assert process.wait() == 0


def test_what_fails_is_one_line_without_secrets() -> None:
    pipeline = Pipeline("p", {}, secrets=Secrets(frozenset({"hush"})))
    assert module._line(OptionError("a hush\n  b"), pipeline) == "a *** b"
    assert module._line(OptionError(), pipeline) == "OptionError"
    page = "An error occurred while calling o1.stop.\n: java.lang.IllegalStateException: hush\n\tat a.B.c(D.java:1)\n"
    line = module._line(RuntimeError(page), pipeline)
    assert "IllegalStateException" in line and "D.java" not in line and "hush" not in line
    assert module._line(ConnectionRefusedError(111, "refused"), pipeline) == "the JVM of Spark has ended"
    assert module._line(OfAJvmThatIsGone(), pipeline) == "the JVM of Spark has ended"
    # A part of one is none either, where the line is cut, nor one of several lines.
    assert module._line(RuntimeError("x" * 495 + "hush"), pipeline) == "x" * 495 + "***"
    key = Pipeline("p", {}, secrets=Secrets(frozenset({"a long\nkey"})))
    assert module._line(OptionError("no a long\nkey"), key) == "no ***"
    for error in (OptionError("no hush"), RuntimeError("no\nhush")):
        with pytest.raises(module.RunFailure, match=r"^no \*\*\*$"), module._failures(pipeline):
            raise error


def test_a_cluster_that_is_away_is_a_line_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_SHORT", {"request.timeout.ms": "200", "default.api.timeout.ms": "200"})
    address = f"127.0.0.1:{free_port()}"
    pipeline = Pipeline("p", {}, clusters={"main": {"bootstrap.servers": address}})
    monitor = RunMonitor(STATUS, (tmp_path / "status.json",), None, lambda: 1, lambda _: None)
    module._say_which_are_away(pipeline, monitor)
    assert caplog.messages[-1].startswith("cluster main is away, and is tried again: ")
    assert address in monitor.status.trouble
    assert monitor.status.state is RunState.STARTING


def test_signals_are_requests() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_by_signal() as stop:
        assert not stop.is_made
        signal.raise_signal(signal.SIGTERM)
        assert stop.is_made and not stop.is_urgent
        signal.raise_signal(signal.SIGINT)
        assert stop.is_urgent
    assert signal.getsignal(signal.SIGTERM) is before


# What is shown

FULL = replace(
    STATUS, batch=17, rows=12_000, rows_per_s=5210.4, lag_records=42, lag_s=1.26, watermark_ms=1_700_000_000_000,
    state_rows=3, state_bytes=5_000_000, late_rows=2, dead_letters=1,
)  # fmt: skip


def test_a_line_has_all_that_there_is() -> None:
    assert as_line(FULL) == (
        "batch 17 | 12,000 rows, 5,210/s | lag 42 records, 1.3 s | watermark 2023-11-14T22:13:20Z | "
        "state 3 rows, 4.8 MiB | late 2 | dead letters 1"
    )
    assert as_line(STATUS) == "no batch | 0 rows, 0/s | lag unknown"
    assert as_line(replace(STATUS, lag_records=0)) == "no batch | 0 rows, 0/s | lag 0 records"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1,023 B"), (1024, "1.0 KiB"), (5 << 40, "5.0 TiB")]
)  # fmt: skip
def test_bytes(count: int, text: str) -> None:
    assert bytes_text(count) == text


def test_a_time_that_is_none() -> None:
    assert time_text(1 << 62) == f"{1 << 62} ms"


def test_lines_come_in_their_time() -> None:
    lines: list[str] = []
    shown = Shown(lines.append, as_json=False, pause_ms=1000)
    batch = BatchProgress(1, 5, 1.0, 1.0)
    shown.batches([batch], replace(STATUS, written_ms=5000))
    shown.batches([batch], replace(STATUS, written_ms=5999, rows=7))
    shown.batches([], replace(STATUS, written_ms=5999, rows=8))
    assert len(lines) == 1
    shown.batches([], replace(STATUS, written_ms=6000, rows=9))
    shown.batches([], replace(STATUS, written_ms=60_000, rows=10))
    assert lines[1:] == ["no batch | 9 rows, 0/s | lag unknown"]
    shown.end(replace(STATUS, state=RunState.STOPPED))
    assert lines[2:] == ["stopped: no batch | 0 rows, 0/s | lag unknown"]


def test_as_json_each_batch_is_a_line() -> None:
    lines: list[str] = []
    shown = Shown(lines.append, as_json=True, pause_ms=1000)
    shown.batches([BatchProgress(1, 5, 1.0, 0.5), BatchProgress(2, 6, 1.0, 0.25)], FULL)
    shown.end(replace(FULL, state=RunState.FINISHED))
    found = [json.loads(line) for line in lines]
    assert [(one["batch"], one.get("batch_rows"), one.get("batch_s")) for one in found] == [
        (1, 5, 0.5),
        (2, 6, 0.25),
        (17, None, None),
    ]
    assert found[2]["state"] == "finished"

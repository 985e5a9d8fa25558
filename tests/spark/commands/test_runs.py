"""`leafcuttr spark status`, `stop` and `replay`, where no Spark runs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from leafcuttr.cli.root import cli
from leafcuttr_spark.commands.run import conduct
from leafcuttr_spark.operating.history import History, Point
from leafcuttr_spark.operating.starting import read_start
from leafcuttr_spark.operating.status import RunState, RunStatus, write_status
from leafcuttr_spark.pipelines.model import Start
from support.http_registry import scripted_registry
from support.spark_runs import STATUS, TEXT

pytest.importorskip("yaml")
pytest.importorskip("sqlglot")

POSITIONS = {"version": 1, "offsets": {"orders": {"0": 42, "1": 17}}, "topics": {}}
SEEN = replace(
    STATUS, pid=1 << 22, host="elsewhere", began_ms=1_700_000_000_000, written_ms=1_700_000_100_000,
    batch=17, batches=3, rows=1200, rows_per_s=52.4, lag_records=42, lag_s=1.25,
)  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "orders.yaml"
    path.write_text(TEXT)
    yield path


def ran(*words: object) -> Result:
    return CliRunner().invoke(cli, ["spark", *map(str, words)])


def checkpoint(file: Path, done: int = 17) -> Path:
    folder = file.parent / "checkpoint"
    for name in ("offsets", "commits", "leafcuttr"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "metadata").write_text('{"id": "b0a3"}')
    about = {"batchWatermarkMs": 0, "batchTimestampMs": 1_700_000_000_000}
    (folder / "offsets" / str(done + 1)).write_text(f"v1\n{json.dumps(about)}\n{json.dumps(POSITIONS)}")
    (folder / "offsets" / str(done)).write_text(f"v1\n{json.dumps(about)}\n{json.dumps(POSITIONS)}")
    (folder / "commits" / str(done)).write_text("v1\n{}")
    return folder


def test_one_that_has_never_run(file: Path) -> None:
    done = ran("status", file)
    assert done.exit_code == 1
    assert done.stderr == f"leafcuttr: orders has never run: there is nothing in {file.parent}/checkpoint\n"


def test_what_the_checkpoint_says_is_enough(file: Path) -> None:
    checkpoint(file)
    done = ran("status", file)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "pipeline    orders",
        "state       unknown",
        f"checkpoint  {file.parent}/checkpoint",
        "done        batch 17; batch 18 has begun",
        "offsets     orders: 0: 42, 1: 17",
    ]


def test_what_the_last_run_has_said(file: Path) -> None:
    own = checkpoint(file) / "leafcuttr"
    write_status(own / "status.json", SEEN)
    lines = ran("status", file).stdout.splitlines()
    assert lines[1] == "state       running"  # elsewhere, so nobody knows better
    assert lines[2] == f"process     {1 << 22} on elsewhere, begun 2023-11-14T22:13:20Z"
    assert lines[3] == "run         batch 17 | 1,200 rows, 52/s | lag 42 records, 1.2 s"
    found = json.loads(ran("status", file, "--json").stdout)
    assert (found["runs"], found["batch_done"], found["run"]["lag_records"]) == (True, 17, 42)
    assert found["offsets"] == {"orders": {"0": 42, "1": 17}}


@pytest.mark.parametrize(
    ("status", "state", "trouble"),
    [
        (replace(SEEN, state=RunState.FAILED, trouble="it said why"), "failed", "it said why"),
        (replace(SEEN, state=RunState.STOPPED), "stopped", None),
    ],
)
def test_a_run_that_is_over(file: Path, status: RunStatus, state: str, trouble: str | None) -> None:
    write_status(checkpoint(file) / "leafcuttr" / "status.json", status)
    lines = ran("status", file).stdout.splitlines()
    assert lines[1] == f"state       {state}"
    assert (f"trouble     {trouble}" in lines) is (trouble is not None)


def test_the_run_before_has_failed(file: Path) -> None:
    write_status(checkpoint(file) / "leafcuttr" / "status.json", replace(SEEN, last_failure="it said why"))
    lines = ran("status", file).stdout.splitlines()
    assert lines[1:3] == ["state       running", "trouble     the run before has failed: it said why"]


def test_a_run_that_was_killed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as over:
        over.wait()
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
    write_status(checkpoint(file) / "leafcuttr" / "status.json", replace(SEEN, pid=over.pid))
    assert ran("status", file).stdout.splitlines()[1] == "state       killed"


def test_plots(file: Path, tmp_path: Path) -> None:
    own = checkpoint(file) / "leafcuttr"
    History(own / "history.jsonl").add(Point(1000, 1, 2, 0.5))
    done = ran("status", file, "--svg", tmp_path / "plots.svg")
    assert done.exit_code == 0
    assert "orders: 1 batch, " in (tmp_path / "plots.svg").read_text()
    assert ran("status", "--svg", "x").exit_code == 2
    nowhere = tmp_path / "none" / "plots.svg"
    done = ran("status", file, "--svg", nowhere)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"leafcuttr: {nowhere} cannot be written: No such file or directory\n"


def test_a_file_that_is_wrong(file: Path) -> None:
    file.write_text(TEXT.replace("topic: out", "topick: out"))
    for command in (
        ["status"],
        ["stop"],
        ["replay", "--from", "earliest"],
        ["dlq", "list"],
        ["dlq", "replay"],
    ):
        done = ran(*command, file)
        assert done.exit_code == 1
        assert "topick" in done.stderr


# Stop

HOLDS = """
import sys, time
from pathlib import Path
from leafcuttr_spark.operating.starting import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(600)
"""


def test_stop(file: Path) -> None:
    done = ran("stop", file)
    assert (done.exit_code, done.stderr) == (
        1,
        "leafcuttr: orders: no run of the pipeline has its checkpoint on this machine\n",
    )
    own = file.parent / "checkpoint" / "leafcuttr"
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(own)], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"locked\n"
            done = ran("replay", file, "--from", "earliest", "--prepare")
            assert done.exit_code == 1
            assert (
                f"another run has the checkpoint {file.parent}/checkpoint (process {process.pid})"
                in done.stderr
            )
            done = ran("stop", file)
            assert (done.exit_code, done.stdout) == (0, f"orders has stopped (process {process.pid})\n")
        finally:
            process.kill()


# Replay


def prepared(file: Path, place: str) -> tuple[Result, Start | None]:
    done = ran("replay", file, "--from", place, "--prepare")
    return done, read_start(file.parent / "checkpoint" / "leafcuttr" / "start.json")


def test_a_new_checkpoint_begins_elsewhere(file: Path) -> None:
    checkpoint(file)
    done, start = prepared(file, "earliest")
    assert done.exit_code == 0, done.output
    assert start == Start("earliest")
    assert done.stdout == "orders begins at earliest\n"
    kept = [path for path in file.parent.iterdir() if path.name.startswith("checkpoint.before-")]
    assert len(kept) == 1
    assert (kept[0] / "metadata").exists()
    assert done.stderr == f"the checkpoint of before is kept: {kept[0]}\n"
    assert [path.name for path in (file.parent / "checkpoint").iterdir()] == ["leafcuttr"]
    # Again, before anything has run: there is nothing to keep.
    done, start = prepared(file, "latest")
    assert (done.stderr, start) == ("", Start("latest"))


@pytest.mark.parametrize(
    ("place", "start"),
    [
        ("1970-01-01T00:00:05", Start("timestamp", 5000)),
        ("1970-01-01T01:00:05+01:00", Start("timestamp", 5000)),
        ("orders:0:7", Start("offsets", offsets={"orders": {0: 7, 1: 17}})),
        ("orders:0:7, orders:3:9", Start("offsets", offsets={"orders": {0: 7, 1: 17, 3: 9}})),
    ],
)
def test_places(file: Path, place: str, start: Start) -> None:
    checkpoint(file)
    assert prepared(file, place)[1] == start


def test_a_while_ago(file: Path) -> None:
    now = time.time() * 1000
    start = prepared(file, "2h")[1]
    assert start is not None and start.timestamp_ms is not None
    assert 0 <= start.timestamp_ms - (now - 2 * 3600 * 1000) < 60_000


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (
            "soon",
            "--from 'soon': allowed are earliest, latest, a time as 2026-11-20T10:00:00, a duration as 2h",
        ),
        ("other:0:1", "no source of orders reads the topic other"),
        ("orders:0:1,orders", "'orders' is not TOPIC:PARTITION:OFFSET"),
        ("orders:0:9223372036854775808", "is not TOPIC:PARTITION:OFFSET"),
        ("1969-01-01", "is before 1970"),
        ("99999999999d", "99999999999d ago is before all time"),
    ],
)
def test_places_that_are_none(file: Path, place: str, line: str) -> None:
    checkpoint(file)
    done, start = prepared(file, place)
    assert (done.exit_code, start) == (2, None)
    assert line in " ".join(done.stderr.split())


def test_a_source_whose_place_is_not_known(file: Path) -> None:
    sink = "  more: {from: more, topic: out, value: {format: text, columns: [value]}}\n"
    file.write_text(
        TEXT.replace("sinks:", "  more: {topic: more, key: none, value: text, via: kafka}\nsinks:") + sink
    )
    # It has none before anything has run.
    assert prepared(file, "orders:0:1")[1] == Start("offsets", offsets={"orders": {0: 1}})
    folder = checkpoint(file)
    (folder / "leafcuttr" / "start.json").unlink()
    done, start = prepared(file, "orders:0:1")
    assert (done.exit_code, start) == (2, None)
    assert "the checkpoint does not say where the source more is" in " ".join(done.stderr.split())
    start = prepared(file, "orders:0:1,more:0:2")[1]
    assert start == Start("offsets", offsets={"orders": {0: 1, 1: 17}, "more": {0: 2}})


def test_a_table_begins_where_the_file_says(file: Path) -> None:
    file.write_text(
        TEXT.replace("sinks:", "  rates: {topic: rates, key: text, value: text, table: {key: key}}\nsinks:")
    )
    checkpoint(file)
    done, start = prepared(file, "rates:0:1")
    assert (done.exit_code, start) == (2, None), done.output
    assert "no source of orders reads the topic rates; tables begin" in " ".join(done.stderr.split())


def test_a_checkpoint_that_is_elsewhere(file: Path) -> None:
    file.write_text(TEXT.replace("./checkpoint", "s3a://bucket/checkpoint"))
    done = ran("replay", file, "--from", "earliest")
    assert done.exit_code == 1
    assert "the checkpoint s3a://bucket/checkpoint is not on this machine" in done.stderr


# Of a broker


def test_pipelines_of_a_broker(tmp_path: Path) -> None:
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    rows = [{"pipeline": "orders", "state": "running", "rows": 7, "trouble": ""}]

    class Admin(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_there = self.path == "/plugins/spark/pipelines" and rows
            self.send_response(200 if is_there else 404)
            self.end_headers()
            self.wfile.write(json.dumps(rows).encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Admin) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"127.0.0.1:{server.server_port}"
        try:
            done = ran("status", "--admin-server", address)
            assert done.exit_code == 0, done.output
            assert done.stdout.split()[:2] == ["pipeline", "state"]
            assert "orders" in done.stdout
            assert json.loads(ran("status", "--admin-server", address, "--json").stdout) == rows
            rows.clear()
            done = ran("status", "--admin-server", address)
            assert (done.exit_code, done.stderr) == (
                1,
                f"leafcuttr: the broker at {address} runs no pipelines (lc.spark.pipelines)\n",
            )
        finally:
            server.shutdown()
            thread.join()
    done = ran("status", "--admin-server", address)
    assert done.exit_code == 1
    assert f"no broker answers at {address}: " in done.stderr


# The registry


@pytest.mark.parametrize(
    ("words", "requests", "said"),
    [
        (("check", "FILE"), 1, "1 source, 1 step, 1 sink: nothing is wrong"),
        (("plan", "FILE"), 1, "(value string)"),
        (("status", "FILE"), 0, "orders has never run"),
        (("stop", "FILE"), 0, "no run of the pipeline has its checkpoint"),
        (("state", "FILE", "totals"), 0, "orders has never run"),
        (("replay", "FILE", "--from", "earliest", "--prepare"), 0, "orders begins at earliest"),
        (("dlq", "list", "FILE"), 0, "orders has no dead letters"),
    ],
    ids=["check", "plan", "status", "stop", "state", "replay", "dlq"],
)
def test_how_often_the_registry_is_requested(
    with_step: Path, words: tuple[str, ...], requests: int, said: str
) -> None:
    """Once for the columns, where these matter."""
    schema = {"type": "record", "name": "Order", "fields": [{"name": "value", "type": "string"}]}
    latest = {"subject": "orders-value", "version": 1, "id": 1, "schema": json.dumps(schema)}
    with scripted_registry(lambda _: (200, latest)) as registry:
        text = with_step.read_text().replace("value: text", "value: avro")
        with_step.write_text(f"{text}registry: {registry.url}\n")
        done = ran(*(with_step if word == "FILE" else word for word in words))
        assert registry.paths() == ["/subjects/orders-value/versions/latest"] * requests
    assert said in done.output


# State


def test_the_state_of_a_step_that_is_not_there(file: Path) -> None:
    done = ran("state", file, "totals")
    assert done.exit_code == 2
    assert "orders has no step totals; it has none" in " ".join(done.stderr.split())
    assert ran("state", file, "totals", "--key", "x").exit_code == 2


@pytest.fixture
def with_step(file: Path) -> Path:
    file.write_text(TEXT.replace("sinks:", "steps:\n  - {filter: 'TRUE', name: totals}\nsinks:"))
    return file


def test_the_state_of_one_that_has_never_run(with_step: Path) -> None:
    done = ran("state", with_step, "totals")
    assert (done.exit_code, done.stderr) == (
        1,
        f"leafcuttr: orders has never run: there is nothing in {with_step.parent}/checkpoint\n",
    )


def test_the_state_without_spark(with_step: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint(with_step)
    monkeypatch.setattr(conduct, "find_spec", lambda name: None)
    done = ran("state", with_step, "totals")
    assert (done.exit_code, done.stderr) == (
        1,
        "leafcuttr: Spark is not installed: pip install 'leafcuttr[spark]'\n",
    )


def test_the_state_needs_secrets(with_step: Path) -> None:
    text = with_step.read_text()
    with_step.write_text(
        text + "session: {config: {spark.hadoop.fs.s3a.secret.key: '${env:LEAFCUTTR_NOT_SET}'}}\n"
    )
    done = ran("state", with_step, "totals")
    assert done.exit_code == 1 and "LEAFCUTTR_NOT_SET" in done.stderr
    assert "has never run" in ran("status", with_step).stderr


def test_keys_and_values_of_state() -> None:
    from leafcuttr_spark.commands.states import _key, _value

    assert [_key(text) for text in ("a=north", "a=7", 'a="7"', "a=x=y")] == [
        ("a", "north"),
        ("a", "7"),
        ("a", '"7"'),
        ("a", "x=y"),
    ]
    assert _value({"key": {}, "value": {"n": 1}}) == {"n": 1}
    assert _value({"key": {}, "value": {"n": 1}, "side": "left"}) == {"side": "left", "n": 1}

"""`leafcuttr spark run` on a real Spark: by hand, by a broker, begun anew; and the commands of the page."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from leafcuttr_sdk.blocking_peers import open_peer
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.operating.history import read_history
from leafcuttr_spark.operating.status import RunState, read_status
from spark.commands.piped import NEEDS_SPARK, PATIENCE_S, TEXT, Pipe, reached, serving
from support import librdkafka
from support.broker_process import BrokerProcess
from support.pages import run_page

pytestmark = NEEDS_SPARK


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
    with serving(tmp_path) as served:
        pipe = Pipe(served.address, tmp_path)
        pipe.send(range(10, 50))
        served.take(pipe)
        row = served.row(lambda row: row["rows"] == 40, "all rows")
        assert (row["pipeline"], row["state"], row["trouble"]) == (pipe.name, "running", "")
        assert row["memory_bytes"] > 100 << 20
        assert "libjvm" not in Path(f"/proc/{served.broker.process.pid}/maps").read_text()
        assert pipe.amounts() == list(range(10, 50))
    # The clean stop of the broker has let it finish. Its listeners end before it does: a run that asks for new records
    # in that moment says so.
    last = read_status(served.folder / "checkpoint" / "leafcuttr" / "status.json")
    assert last is not None and (
        last.state is RunState.STOPPED
        or (last.state is RunState.FAILED and last.trouble.endswith(f"no broker answers at {served.address}"))
    )


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("page", ["how-to/spark-pipelines.md", "tutorial/spark.md"])
def test_a_page_runs(page: str, tmp_path: Path) -> None:
    assert run_page(page, tmp_path) >= 8

"""Pipelines of a broker: files of a folder that come, change and go, and a small program in the place of Spark."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from leafcuttr.embedded import EmbeddedBroker, open_broker
from leafcuttr.errors import StartError
from leafcuttr_spark.service import pipelines, reports
from leafcuttr_spark.service.reports import PipelineReport, RunningPipelines
from support.waiting import eventually

PROGRAM = """
# It does what its file says, and is told of as a run is: PROGRAM FILE --status-file STATUS
import json, os, signal, sys, time
file, _, status = sys.argv[1:]
does = json.load(open(file))
run = {
    "pipeline": "any", "file": file, "checkpoint": "/checkpoint", "run": str(os.getpid()), "pid": os.getpid(),
    "host": "here", "began_ms": 1, "written_ms": 2, "state": "running", "batch": 7, "batches": 3, "rows": 40,
    "lag_records": 5, "lag_s": 1.5, "dead_letters": 2, "late_rows": 1,
}
def tell(**more):
    with open(status + ".new", "w") as new:
        json.dump(run | more, new)
    os.rename(status + ".new", status)
def stop(*_):
    open(file + ".stopped", "w").close()
    if does.get("stubborn"):
        return
    tell(state="stopped")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
tell(**does.get("tells", {}))
if "prints" in does:
    print(does["prints"], flush=True)
if "needs" in does:
    ballast = bytearray(does["needs"])
if "ends" in does:
    if does["ends"] == 1 and not os.path.exists(file + ".once"):
        open(file + ".once", "w").close()
        sys.exit(1)
    if does["ends"] != 1:
        tell(**{"state": "finished" if does["ends"] == 0 else "failed"} | does.get("tells", {}))
        sys.exit(does["ends"])
open(file + ".runs", "a").write(str(os.getpid()) + "\\n")
while True:
    time.sleep(600)
"""


class Served(NamedTuple):
    """A broker with a folder of pipelines."""

    broker: EmbeddedBroker
    folder: Path

    def write(self, name: str, **does: Any) -> Path:
        path = self.folder / name
        new = self.folder / f".{name}"
        new.write_text(json.dumps(does))
        new.rename(path)
        return path

    @property
    def running(self) -> RunningPipelines:
        (found,) = [
            running
            for view, running in reports._RUNNING.items()
            if view._core is self.broker._core  # type: ignore[attr-defined]
        ]
        return found

    @property
    def reports(self) -> dict[str, PipelineReport]:
        return self.running.reports

    async def state(self, name: str, state: str) -> PipelineReport:
        """Once the pipeline is in this state."""

        def look() -> PipelineReport | None:
            found = self.reports.get(name)
            return found if found is not None and found.state == state else None

        return await eventually(look, f"{name} {state}")

    async def get(self, path: str) -> httpx.Response:
        async with httpx.AsyncClient() as client:
            return await client.get(f"http://{self.broker.metrics_address}{path}")

    async def metric(self, sample: str) -> float | None:
        for line in (await self.get("/metrics")).text.splitlines():
            if line.startswith(f"{sample} "):
                return float(line.rpartition(" ")[2])
        return None


@asynccontextmanager
async def serving(tmp_path: Path, settings: dict[str, str] | None = None) -> AsyncIterator[Served]:
    program, folder = tmp_path / "program.py", tmp_path / "pipelines"
    program.write_text(textwrap.dedent(PROGRAM))
    folder.mkdir(exist_ok=True)
    given = {
        "log.dirs": str(tmp_path / "data"),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "lc.metrics.port": 0,
        "lc.spark.pipelines": str(folder),
        "lc.spark.program": f"{sys.executable},-I,-S,{program}",
        "lc.spark.scan.interval.ms": 20,
        **(settings or {}),
    }
    async with open_broker(given) as broker:
        yield Served(broker, folder)


@pytest.mark.long
@pytest.mark.setting("lc.spark.pipelines", "lc.spark.program", "lc.spark.scan.interval.ms")
async def test_each_file_has_a_process_and_what_it_says_is_shown(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        served.write("orders.yaml")
        served.write("sums.yml", tells={"batches": 10, "lag_s": None})
        (served.folder / "notes.txt").write_text("no pipeline")
        orders = await served.state("orders", "running")
        await served.state("sums", "running")
        assert sorted(served.reports) == ["orders", "sums"]
        assert orders.child is not None and orders.child.pid is not None
        assert orders.status is not None and orders.status.run == str(orders.child.pid)
        health = (await served.get("/health")).json()["checks"]
        check = health["spark:pipelines"]
        assert (check["ok"], check["detail"], check["required"]) == (True, "2 pipelines", False)
        assert health["child:spark:orders"]["ok"] is True
        rows = (await served.get("/plugins/spark/pipelines")).json()
        assert [row["pipeline"] for row in rows] == ["orders", "sums"]
        assert rows[0]["state"] == "running"
        assert (rows[0]["batches"], rows[0]["rows"], rows[0]["lag_records"], rows[0]["batch"]) == (
            3,
            40,
            5,
            7,
        )
        for sample, value in {
            'leafcuttr_spark_pipeline_up{pipeline="orders"}': 1,
            'leafcuttr_spark_batches_total{pipeline="sums"}': 10,
            'leafcuttr_spark_rows_total{pipeline="orders"}': 40,
            'leafcuttr_spark_dead_letters_total{pipeline="orders"}': 2,
            'leafcuttr_spark_late_rows_total{pipeline="orders"}': 1,
            'leafcuttr_spark_lag_records{pipeline="orders"}': 5,
            'leafcuttr_spark_lag_seconds{pipeline="orders"}': 1.5,
            'leafcuttr_spark_lag_seconds{pipeline="sums"}': None,
            'leafcuttr_spark_restarts_total{pipeline="orders"}': 0,
            'leafcuttr_spark_state{pipeline="orders",state="running"}': 1,
            'leafcuttr_spark_state{pipeline="orders",state="failed"}': 0,
        }.items():
            assert await served.metric(sample) == value, sample


async def test_a_changed_file_is_run_again_and_one_that_is_gone_is_stopped(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        path = served.write("orders.yaml")
        first = await served.state("orders", "running")
        served.write("orders.yaml", tells={"rows": 99})
        await eventually(
            lambda: (
                (now := served.reports.get("orders")) is not None
                and now is not first
                and now.totals.rows == 99
            ),
            "the changed one",
        )
        assert Path(f"{path}.stopped").exists()
        Path(f"{path}.stopped").unlink()
        path.unlink()
        await eventually(lambda: not served.reports, "its end")
        assert Path(f"{path}.stopped").exists()


async def test_a_file_whose_text_is_the_same_is_left_alone(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        path = served.write("orders.yaml")
        report = await served.state("orders", "running")
        os.utime(path, (1, 1))
        served.write("orders.yaml")
        served.write("other.yaml")
        await served.state("other", "running")
        assert served.reports["orders"] is report
        assert not Path(f"{path}.stopped").exists()


@pytest.mark.long
async def test_bad_files_are_a_line_and_others_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(tmp_path) as served:
        line = "bad.yaml:3: steps[0]: there is no operation filtre; did you mean filter?"
        served.write("bad.yaml", prints=line, ends=2)
        served.write(
            "refused.yaml", ends=3, tells={"state": "failed", "trouble": "there are 101 dead letters"}
        )
        served.write("good.yaml")
        served.write("two words.yaml")
        (served.folder / "large.yaml").write_bytes(b" " * ((1 << 20) + 1))
        await served.state("good", "running")
        bad = await served.state("bad", "failed")
        assert bad.trouble == f"it ended with status 2 ({line})"
        assert bad.restarts == 0
        refused = await served.state("refused", "failed")
        await eventually(lambda: refused.trouble == "there are 101 dead letters", "what its status says")
        await served.state("large", "refused")
        await served.state("'two words.yaml'", "refused")
        health = (await served.get("/health")).json()
        assert health["status"] == "degraded"
        check = health["checks"]["spark:pipelines"]
        assert check["ok"] is False
        assert check["detail"].startswith("'two words.yaml': its name has to be of letters")
        assert check["detail"].endswith("; 1 more")
        assert await served.metric('leafcuttr_spark_pipeline_up{pipeline="bad"}') == 0
        assert await served.metric('leafcuttr_spark_pipeline_up{pipeline="good"}') == 1
        assert len([one for one in caplog.messages if line in one and "not started again" in one]) == 1
        # Once it is mended, it runs.
        served.write("bad.yaml")
        await served.state("bad", "running")


async def test_one_that_fails_is_started_again_and_its_counts_go_on(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        served.write("orders.yaml", ends=1)
        report = await eventually(
            lambda: (
                (one := served.reports.get("orders")) is not None
                and one.restarts == 1
                and one.totals.rows >= 40
                and one
            ),
            "the second start",
        )
        await served.state("orders", "running")
        assert report.trouble == ""
        assert await served.metric('leafcuttr_spark_restarts_total{pipeline="orders"}') == 1


async def test_one_that_is_done_is_not_started_again(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        served.write("once.yaml", ends=0)
        report = await served.state("once", "finished")
        await eventually(lambda: report.is_over, "its end")
        assert (report.trouble, report.restarts) == ("", 0)
        assert (await served.get("/health")).json()["checks"]["spark:pipelines"]["ok"] is True


async def test_a_folder_that_is_gone_stops_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        served.write("orders.yaml")
        report = await served.state("orders", "running")
        served.folder.rename(tmp_path / "away")
        check: Any = await eventually(lambda: served.running.trouble or None, "the trouble")
        assert check == f"{served.folder} cannot be read: No such file or directory"
        assert served.reports["orders"] is report
        (tmp_path / "away").rename(served.folder)
        await eventually(lambda: not served.running.trouble, "no trouble")
        assert served.reports["orders"] is report


@pytest.mark.setting("lc.spark.stop.timeout.ms")
async def test_one_that_does_not_stop_in_time_is_killed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, {"lc.spark.stop.timeout.ms": "2000"}) as served:
        path = served.write("orders.yaml", stubborn=True)
        await eventually(lambda: Path(f"{path}.runs").exists(), "its loop")
        path.unlink()
        await eventually(lambda: not served.reports, "its end")
        assert Path(f"{path}.stopped").exists()
        assert (
            "the child orders of plugin spark has not ended 2 s after SIGTERM: it is killed"
            in caplog.messages
        )


@pytest.mark.setting("lc.spark.memory.max.bytes")
async def test_one_with_too_much_memory_is_killed(tmp_path: Path) -> None:
    async with serving(tmp_path, {"lc.spark.memory.max.bytes": str(64 << 20)}) as served:
        served.write("orders.yaml", needs=128 << 20)
        report = await served.state("orders", "restarting")
        assert "bytes of memory, more than 67108864, and were killed" in report.trouble


async def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    async with serving(tmp_path, {"lc.spark.program": "/nowhere/leafcuttr,spark,run"}) as served:
        served.write("orders.yaml")
        report = await served.state("orders", "refused")
        assert "it cannot be started: " in report.trouble


async def test_without_its_folder_the_start_ends_with_a_line(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"lc.spark.pipelines=/nowhere is no folder"):
        async with serving(tmp_path, {"lc.spark.pipelines": "/nowhere"}):
            pass


async def test_without_spark_the_start_ends_with_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipelines, "find_spec", lambda name: None)
    with pytest.raises(StartError, match=r"pip install 'leafcuttr\[spark\]'"):
        async with serving(tmp_path, {"lc.spark.program": ""}):
            pass


def test_the_program_is_that_of_this_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "find_spec", lambda name: object())
    assert pipelines._own_program() == (sys.executable, "-m", "leafcuttr", "spark", "run")

"""`leafcuttr spark status` and `stop`."""

import json
import time
import urllib.error
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from leafcuttr_sdk.cli import admin_server_option, bootstrap_server_options, command_context, json_option
from leafcuttr_spark.commands.common import set_option
from leafcuttr_spark.commands.common_runs import PipelinePlace, place_of

if TYPE_CHECKING:
    from leafcuttr_spark.operating.checkpoint import Checkpoint
    from leafcuttr_spark.operating.status import RunStatus

_MOST: Final = 16 << 20


@click.command("status", short_help="Show how pipelines go, or how far they have come.")
@bootstrap_server_options
@admin_server_option
@set_option
@json_option
@click.option(
    "--svg", type=click.Path(path_type=Path), metavar="PATH", help="Write plots of the last batches."
)
@click.argument("file", required=False, type=click.Path())
def status(file: str | None, variables: dict[str, str], svg: Path | None) -> None:
    """Show how a pipeline goes: its batches, its lag, what is wrong; or how far it has come, if nothing runs.

    It reads the pipeline's checkpoint on this machine, without Spark. Without FILE it lists the pipelines that a broker
    runs, which it finds as --admin-server and --bootstrap-server say.

    \b
    Examples:
      leafcuttr spark status orders.yaml
      leafcuttr spark status orders.yaml --svg orders.svg
      leafcuttr spark status --admin-server localhost:9404

    Exit status: 0 if it was shown; 1 if the pipeline has never run, or no broker answers; 2 for wrong usage.
    """
    context = command_context()
    if file is None:
        if svg is not None:
            raise click.UsageError("--svg needs the FILE of a pipeline")
        _show_broker()
        return
    place = place_of(file, variables)
    found = _found(place)
    if found is None:
        context.fail(f"{place.pipeline.name} has never run: there is nothing in {place.checkpoint}")
    if svg is not None:
        from leafcuttr_spark.operating.history import HISTORY, read_history
        from leafcuttr_spark.operating.plots import svg_of

        points = read_history(place.own / HISTORY)
        try:
            svg.write_text(svg_of(place.pipeline.name, points), encoding="utf-8")
        except OSError as error:
            context.fail(f"{svg} cannot be written: {error.strerror or error}")
    if context.as_json:
        context.print_json(found)
    else:
        for line in _lines(found):
            context.print_line(line)


def _show_broker() -> None:
    context = command_context()
    address = context.admin_address
    try:
        with context.open_admin("/plugins/spark/pipelines") as answer:
            rows: list[dict[str, Any]] = json.loads(answer.read(_MOST))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 403:
            context.fail(f"the broker at {address} shows its pipelines to those who may DESCRIBE the cluster")
        context.fail(f"the broker at {address} runs no pipelines (lc.spark.pipelines)")
    except (OSError, ValueError) as error:
        context.fail(f"no broker answers at {address}: {getattr(error, 'reason', error)}")
    if context.as_json:
        context.print_json(rows)
        return
    columns = (
        "pipeline",
        "state",
        "restarts",
        "batches",
        "rows",
        "lag_records",
        "lag_s",
        "dead_letters",
        "trouble",
    )
    context.print_table(columns, [[row.get(column) for column in columns] for row in rows])


def _found(place: PipelinePlace) -> dict[str, Any] | None:
    """What is known of the pipeline; None where it has never run."""
    import socket

    from leafcuttr_spark.operating.checkpoint import Checkpoint, read_checkpoint
    from leafcuttr_spark.operating.status import STATUS, is_alive, read_status

    last = read_status(place.own / STATUS)
    there = read_checkpoint(place.local) if place.local is not None else Checkpoint("")
    if last is None and not there.has_begun:
        return None
    runs = last is not None and is_alive(last, socket.gethostname())
    return {
        "pipeline": place.pipeline.name,
        "state": _state(last, runs),
        "runs": runs,
        "trouble": last.all_trouble if last is not None else "",
        "checkpoint": place.checkpoint,
        **_of_checkpoint(there),
        "run": None if last is None else asdict(last) | {"state": last.state.value},
    }


def _state(last: "RunStatus | None", runs: bool) -> str:
    if last is None:
        return "unknown"
    return last.state.value if runs or last.state.is_over else "killed"


def _of_checkpoint(there: "Checkpoint") -> dict[str, Any]:
    offsets: dict[str, dict[str, int]] = {}
    for partition, offset in sorted(there.offsets.items()):
        offsets.setdefault(partition.topic, {})[str(partition.partition)] = offset
    return {
        "query": there.query or None,
        "batch_begun": there.planned,
        "batch_done": there.done,
        "batch_done_at_ms": there.at_ms,
        "watermark_ms": there.watermark_ms,
        "offsets": offsets,
    }


def _lines(found: dict[str, Any]) -> "list[str]":
    from leafcuttr_spark.commands.run.showing import as_line, time_text
    from leafcuttr_spark.operating.status import RunState, RunStatus

    lines = [f"pipeline    {found['pipeline']}", f"state       {found['state']}"]
    if found["trouble"]:
        lines.append(f"trouble     {found['trouble']}")
    run = found["run"]
    if run is not None:
        last = RunStatus(**{**run, "state": RunState(run["state"])})
        lines.append(f"process     {last.pid} on {last.host}, begun {time_text(last.began_ms)}")
        lines.append(f"run         {as_line(last)}")
        lines.append(f"written     {time_text(last.written_ms)}, {_age(last.written_ms)}")
    lines.append(f"checkpoint  {found['checkpoint']}")
    if found["batch_begun"] is not None:
        done = "none" if found["batch_done"] is None else str(found["batch_done"])
        open_ = (
            "" if found["batch_begun"] == found["batch_done"] else f"; batch {found['batch_begun']} has begun"
        )
        lines.append(f"done        batch {done}{open_}")
    for topic, offsets in found["offsets"].items():
        lines.append(
            f"offsets     {topic}: {', '.join(f'{number}: {one}' for number, one in offsets.items())}"
        )
    return lines


def _age(ms: int) -> str:
    return f"{max(0.0, time.time() - ms / 1000):,.0f} s ago"


@click.command("stop", short_help="Let a run finish its batch, and end.")
@set_option
@click.option(
    "--timeout", "wait_s", type=float, default=60.0, show_default=True, help="How long to wait, in seconds."
)
@click.argument("file", type=click.Path())
def stop(file: str, variables: dict[str, str], wait_s: float) -> None:
    """Let a run of a pipeline on this machine finish its batch, and end; and wait for that.

    One that a broker runs is started again once its file changes, or with the broker.

    \b
    Examples:
      leafcuttr spark stop orders.yaml

    Exit status: 0 if it has ended; 1 if nothing runs, or it has not ended in time; 2 for wrong usage.
    """
    from leafcuttr_sdk.errors import PluginError
    from leafcuttr_spark.operating.stopping import stop_run

    context = command_context()
    place = place_of(file, variables)
    try:
        pid = stop_run(place.own, wait_s)
    except (PluginError, TimeoutError) as error:
        context.fail(f"{place.pipeline.name}: {error}")
    context.print_line(f"{place.pipeline.name} has stopped (process {pid})")

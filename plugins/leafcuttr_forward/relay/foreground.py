"""What `leafcuttr relay` and `leafcuttr mirror` do once they know what to copy: run it, or say what would be copied;
what they log and print."""

import logging
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import trio

from leafcuttr_forward.people.rows import flow_details
from leafcuttr_forward.relay.dry_run import COLUMNS, DryRun, dry_run
from leafcuttr_forward.relay.filters import FilterPlans, filters_of, names_of
from leafcuttr_forward.relay.running import CommandClock, Run, RunPlan, first_error
from leafcuttr_sdk.cli import command_context
from leafcuttr_sdk.errors import BrokerError, PluginError

if TYPE_CHECKING:
    from leafcuttr_forward.flows.report import FlowReport

MakeRun: TypeAlias = Callable[[tuple[str, ...]], RunPlan]
"""The run, with filters of these names."""
_NAMES: Final = [
    "topic",
    "partition",
    "target_topic",
    "read",
    "written",
    "dropped",
    "dead_letters",
    "position",
    "lag_records",
]
_SUMMARY: Final = (
    "SOURCE",
    "PARTITION",
    "TARGET",
    "READ",
    "WRITTEN",
    "DROPPED",
    "DEAD LETTERS",
    "POSITION",
    "LAG",
)


def logger_for(level: int) -> logging.Logger:
    """What a run logs, on standard error: with the time where nobody is there to see when a line came."""
    logger = logging.getLogger("leafcuttr.plugin.forward")
    handler = logging.StreamHandler(sys.stderr)
    plain = "%(levelname)s %(message)s"
    handler.setFormatter(logging.Formatter(plain if sys.stderr.isatty() else f"%(asctime)s {plain}"))
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(level)
    return logger


def carry_out(make: MakeRun, filters: FilterPlans, logger: logging.Logger, *, dry: bool) -> None:
    """Run what `make` makes, print the summary, and end the command with the status."""
    context = command_context()
    chains = filters_of(context, filters)
    plan = make(names_of(filters))
    if dry:
        _say(_in_loop(lambda: dry_run(plan, context.peer)))
        return
    run = Run(plan, context.peer, logger, chains)
    _in_loop(run.run)
    _summarize(run.report, run.status, run.why)
    if run.why is not None:
        context.fail(run.why, run.status)


def _in_loop(main: Callable[[], Any]) -> Any:
    """Raises PluginError, with its line, for what a cluster or a setting is to blame for."""
    try:
        return trio.run(main)
    except BrokerError as error:
        raise PluginError(str(error) or type(error).__name__) from None
    except BaseExceptionGroup as group:
        first = first_error(group)
        if isinstance(first, PluginError | KeyboardInterrupt):
            raise first from None
        if isinstance(first, BrokerError):
            raise PluginError(str(first) or type(first).__name__) from None
        raise


def _say(found: DryRun) -> None:
    context = command_context()
    if context.as_json:
        context.print_json(
            {"source": found.source, "partitions": [row.json() for row in found.rows], "notes": found.notes}
        )
        return
    context.print_table(COLUMNS, [row.cells() for row in found.rows])
    context.print_line(f"{sum(row.records for row in found.rows)} records to copy from {found.source}")
    for note in found.notes:
        context.print_line(note)


def _summarize(report: "FlowReport", status: int, why: str | None) -> None:
    context = command_context()
    details = flow_details(report, CommandClock().now_ms())
    if context.as_json:
        context.print_json({**details, "status": status, "why": why})
        return
    if not details["topics"] and status:
        return
    context.print_table(_SUMMARY, [_cells(row) for row in details["topics"]])
    dropped = f", {details['dropped']} dropped by filters" if details["dropped"] else ""
    context.print_line(
        f"{details['read']} records read, {details['written']} written{dropped}; lag {details['lag_records']}"
    )


def _cells(row: dict[str, Any]) -> Sequence[object]:
    return [row[name] for name in _NAMES]

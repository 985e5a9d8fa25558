"""`leafcuttr flows list`, `describe` and `lag`."""

from typing import Any, Final

import click

from leafcuttr_forward.people.command.asking import all_flows, complete_flows, one_flow, shows
from leafcuttr_forward.relay.durations import show_duration
from leafcuttr_sdk.cli import command_context

Row = dict[str, Any]
_LIST: Final = (
    "FLOW",
    "STATE",
    "SOURCE",
    "TARGET",
    "GUARANTEE",
    "PARTITIONS",
    "WRITTEN",
    "LAG",
    "BEHIND",
    "TROUBLE",
)
_LAG: Final = (
    "FLOW",
    "TOPIC",
    "PARTITION",
    "POSITION",
    "END",
    "LAG",
    "BEHIND",
    "TARGET",
    "TARGET OFFSET",
    "TROUBLE",
)
_LINES: Final = (
    "state",
    "source",
    "target",
    "guarantee",
    "trouble",
    "read",
    "written",
    "dropped",
    "dead_letters",
    "lost",
    "lag_records",
    "restarts",
    "switches",
    "transactions",
    "buffered_bytes",
)


@click.command("list")
@shows
def list_flows() -> None:
    """List flows with what they do, and how far they lag.

    LAG is in records, BEHIND how old the last copied record is where there is a lag.

    \b
    Examples:
      leafcuttr flows list
      leafcuttr flows list --admin-server localhost:7081
    """
    context = command_context()
    rows = all_flows()
    if context.as_json:
        context.print_json(rows)
        return
    context.print_table(_LIST, [_list_cells(row) for row in rows])


@click.command("describe")
@shows
@click.argument("flow", shell_complete=complete_flows)
def describe(flow: str) -> None:
    """Show all that is known of a flow, with the offsets of each partition on both sides.

    \b
    Examples:
      leafcuttr flows describe relay-edge --admin-server localhost:7081
    """
    context = command_context()
    found = one_flow(flow)
    if context.as_json:
        context.print_json(found)
        return
    context.print_line(f"flow: {found['flow']}")
    for name in _LINES:
        value = found[name]
        context.print_line(f"{name.replace('_', ' ')}: {'-' if value is None else value}")
    for note in found["notes"].values():
        context.print_line(f"note: {note}")
    for change, count in found["events"].items():
        context.print_line(f"source {change}: {count}")
    context.print_line("")
    context.print_table(_LAG[1:], [_lag_cells(found["flow"], row)[1:] for row in found["topics"]])


@click.command("lag")
@shows
@click.argument("flow", required=False, shell_complete=complete_flows)
def lag(flow: str | None) -> None:
    """Show how far a flow, or every flow, lags in each partition: in records and in time.

    POSITION and END are offsets of the source; the target's offset is that behind the last record there.

    \b
    Examples:
      leafcuttr flows lag --admin-server localhost:7081
    """
    context = command_context()
    names = [row["flow"] for row in all_flows()] if flow is None else [flow]
    found = [one_flow(name) for name in names]
    if context.as_json:
        context.print_json([{"flow": each["flow"], **row} for each in found for row in each["topics"]])
        return
    context.print_table(_LAG, [_lag_cells(each["flow"], row) for each in found for row in each["topics"]])


def _list_cells(row: Row) -> tuple[object, ...]:
    return (
        row["flow"],
        row["state"],
        row["source"] or None,
        row["target"] or None,
        row["guarantee"],
        row["partitions"],
        row["written"],
        row["lag_records"],
        show_duration(round(row["lag_seconds"], 3)),
        row["trouble"],
    )


def _lag_cells(flow: str, row: Row) -> tuple[object, ...]:
    return (
        flow,
        row["topic"],
        row["partition"],
        row["position"],
        row["end"],
        row["lag_records"],
        show_duration(round(row["lag_seconds"], 3)),
        row["target_topic"],
        row["target_offset"],
        row["trouble"],
    )

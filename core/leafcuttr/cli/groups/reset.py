"""`groups reset-offsets`: its options. What they do is in `reset_run`."""

from collections.abc import Callable
from typing import Any, Final

import click

from leafcuttr.cli.common.completion import complete_groups, complete_topics
from leafcuttr.cli.common.librdkafka.admin import Admin
from leafcuttr.cli.common.options.moments import duration, moment
from leafcuttr.cli.common.options.partitions import Selection, selection
from leafcuttr.cli.common.options.target import target_options
from leafcuttr.cli.common.output import json_option
from leafcuttr.cli.common.target import Target
from leafcuttr.cli.groups import find
from leafcuttr.cli.groups.new_offsets import Mode
from leafcuttr.cli.groups.reset_run import ResetRun

_MODES: Final = (
    "to-earliest",
    "to-latest",
    "to-current",
    "to-offset",
    "shift-by",
    "to-datetime",
    "by-duration",
    "from-file",
)


def _mode_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(
        (
            click.option("--to-earliest", is_flag=True, help="To the first offset of each partition."),
            click.option("--to-latest", is_flag=True, help="To the end."),
            click.option(
                "--to-current", is_flag=True, help="To the committed offset; the end, if there is none."
            ),
            click.option("--to-offset", type=click.IntRange(0), help="To this offset."),
            click.option(
                "--shift-by",
                type=int,
                metavar="NUMBER",
                help="Forward by so many offsets; backward if negative.",
            ),
            click.option(
                "--to-datetime",
                type=moment,
                metavar="MOMENT",
                help="To the first record that is not older, e.g. 2026-11-20T10:00:00 (UTC).",
            ),
            click.option(
                "--by-duration",
                type=duration,
                metavar="DURATION",
                help="To the first record that is not older than e.g. 2h, 7d or P1DT2H.",
            ),
            click.option(
                "--from-file",
                type=click.File("r", encoding="utf-8"),
                metavar="FILE",
                help="To the offsets of a CSV file: topic,partition,offset or group,topic,partition,offset.",
            ),
        )
    ):
        function = option(function)
    return function


@click.command("reset-offsets", short_help="Set committed offsets; a plan without --execute.")
@target_options
@json_option
@click.argument("groups", nargs=-1, shell_complete=complete_groups)
@click.option(
    "--all-groups", is_flag=True, help="Every group; those with members are not changed, and named."
)
@click.option(
    "--topic",
    "-t",
    "topics",
    multiple=True,
    type=selection,
    metavar="TOPIC[:P,P]",
    shell_complete=complete_topics,
    help="Partitions to reset; may be repeated.",
)
@click.option("--all-topics", is_flag=True, help="Every partition for which the group has an offset.")
@_mode_options
@click.option("--execute", is_flag=True, help="Carry the plan out; without this it is only printed.")
@click.option("--dry-run", is_flag=True, help="Only print the plan, as without --execute.")
@click.option("--export", is_flag=True, help="Print the plan as CSV, for --from-file.")
def reset_offsets(
    target: Target,
    as_json: bool,
    groups: tuple[str, ...],
    all_groups: bool,
    topics: tuple[Selection, ...],
    all_topics: bool,
    execute: bool,
    dry_run: bool,
    export: bool,
    **modes: Any,
) -> None:
    """Set the committed offsets of groups that have no members. Prints what it would do; does it with --execute.

    An offset outside of what a partition holds is moved to its first offset or its end.

    \b
    Examples:
      leafcuttr groups reset-offsets billing --topic orders --to-earliest
      leafcuttr groups reset-offsets billing --topic orders:0,1 --shift-by -100 --execute
      leafcuttr groups reset-offsets billing --all-topics --by-duration 2h --execute
      leafcuttr groups reset-offsets --all-groups --all-topics --to-current --export > offsets.csv
      leafcuttr groups reset-offsets --all-groups --from-file offsets.csv --execute
    """
    mode = _mode(modes)
    if bool(groups) == all_groups:
        raise click.UsageError("expected the names of groups, or --all-groups")
    if execute and dry_run:
        raise click.UsageError("--execute and --dry-run exclude each other")
    if export and as_json:
        raise click.UsageError("--export prints CSV: not with --json")
    if bool(topics) + all_topics + (mode.name == "from-file") != 1:
        raise click.UsageError("expected --topic, --all-topics or --from-file")
    admin = Admin(target)
    run = ResetRun(admin, list(find.all_groups(admin)) if all_groups else list(dict.fromkeys(groups)))
    run.plan(mode, topics)
    if execute:
        run.execute()
    run.show(as_json, export, several=all_groups or len(groups) > 1, executed=execute)


def _mode(modes: dict[str, Any]) -> Mode:
    values = {name: modes[name.replace("-", "_")] for name in _MODES}
    # An offset of 0 is a value.
    given = [Mode(name, value) for name, value in values.items() if value is not None and value is not False]
    if len(given) != 1:
        raise click.UsageError(f"expected one of --{', --'.join(_MODES)}")
    return given[0]

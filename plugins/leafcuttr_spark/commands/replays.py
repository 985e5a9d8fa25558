"""`leafcuttr spark replay`."""

from datetime import UTC, datetime
from pathlib import Path

import click

from leafcuttr_sdk.cli import command_context, json_option
from leafcuttr_spark.commands.common import set_option
from leafcuttr_spark.commands.common_runs import place_of


@click.command("replay", short_help="Begin anew at an earlier place.")
@set_option
@click.option(
    "--from",
    "place",
    required=True,
    metavar="PLACE",
    help="earliest; a time, as 2026-11-20T10:00:00 (UTC) or 2h (ago); or TOPIC:PARTITION:OFFSET,... and the partitions "
    "that are not named stay where they are.",
)
@click.option("--prepare", is_flag=True, help="Do not run it: the next `run`, or the broker, begins there.")
@click.option("--once", is_flag=True, help="Read what there is now, then end.")
@json_option
@click.argument("file", type=click.Path())
def replay(file: str, variables: dict[str, str], place: str, prepare: bool, once: bool) -> None:
    """Read the topics of a pipeline again from an earlier place on, with a new checkpoint and new state, and run it.
    Sources that are tables begin where the file says.

    The checkpoint of before is kept beside it, with the time in its name. What is written is written again: it begins
    behind all that was written before, none of which is taken back.

    \b
    Examples:
      leafcuttr spark replay orders.yaml --from earliest
      leafcuttr spark replay orders.yaml --from 2h --once
      leafcuttr spark replay orders.yaml --from orders:0:1200,orders:1:900 --prepare

    Exit status: as of `leafcuttr spark run`; 1 if a run has the checkpoint.
    """
    from leafcuttr_sdk.errors import PluginError
    from leafcuttr_spark.commands.run.command import run_file
    from leafcuttr_spark.operating.replaying import PlaceError, begin_anew, start_at

    context = command_context()
    found = place_of(file, variables)
    if found.local is None:
        context.fail(
            f"the checkpoint {found.checkpoint} is not on this machine: name another one in the file, and say in its"
            " sources where they start"
        )
    try:
        start = start_at(place, found.local, found.pipeline, datetime.now(UTC))
        kept = begin_anew(found.local, start)
    except PlaceError as error:
        raise click.UsageError(str(error)) from None
    except (PluginError, OSError) as error:
        context.fail(f"{found.pipeline.name}: {error}")
    if kept is not None:
        click.echo(f"the checkpoint of before is kept: {kept}", err=True)
    if prepare:
        context.print_line(f"{found.pipeline.name} begins at {place}")
        return
    run_file(Path(file), variables, once=once, status_file=None)

"""`leafcuttr spark state`."""

import json
from typing import Any

import click

from leafcuttr_sdk.cli import command_context, json_option
from leafcuttr_spark.commands.common import set_option
from leafcuttr_spark.commands.common_runs import place_of


@click.command("state", short_help="Read what a step keeps.")
@set_option
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Only rows with this value in this column of the key, as JSON or as text; may be repeated.",
)
@click.option(
    "--limit", type=click.IntRange(1), default=100, show_default=True, help="How many rows are read."
)
@json_option
@click.argument("file", type=click.Path())
@click.argument("step")
def state(file: str, step: str, variables: dict[str, str], keys: tuple[str, ...], limit: int) -> None:
    """Read the state of a step out of the checkpoint, as interactive queries of Kafka Streams do: the sums of an
    aggregate, the rows that a join waits with, the last rows of a table.

    It is the state after the last batch that is done. The pipeline may run meanwhile. Spark is started for it.

    \b
    Examples:
      leafcuttr spark state orders.yaml totals
      leafcuttr spark state orders.yaml totals --key region=north --json

    Exit status: 0 if it was read; 1 if there is none, or Spark does not start; 2 for wrong usage.
    """
    context = command_context()
    wanted = dict(map(_key, keys))
    place = place_of(file, variables, needs_secrets=True)
    known = {one.name: one.operation for one in place.pipeline.steps}
    if step not in known:
        raise click.UsageError(
            f"{place.pipeline.name} has no step {step}; it has {', '.join(sorted(known)) or 'none'}"
        )
    operation = known[step]
    from leafcuttr_spark.commands.run.conduct import RunFailure, check_spark, quieten_java
    from leafcuttr_spark.operating.checkpoint import read_checkpoint
    from leafcuttr_spark.pipelines.errors import PipelineError

    if place.local is not None and not read_checkpoint(place.local).has_begun:
        context.fail(f"{place.pipeline.name} has never run: there is nothing in {place.checkpoint}")
    try:
        check_spark(place.pipeline)
    except RunFailure as failure:
        context.fail(str(failure))
    from leafcuttr_spark.running.failures import translated
    from leafcuttr_spark.running.session import session_of
    from leafcuttr_spark.running.stateful.stores import UnknownKeyError, read_state

    quieten_java()
    try:
        spark = session_of(place.pipeline)
        try:
            with translated(place.pipeline):
                rows = read_state(spark, place.checkpoint, step, wanted, limit, operation)
        finally:
            spark.stop()
    except UnknownKeyError as error:
        raise click.UsageError(str(error)) from None
    except PipelineError as error:
        context.fail(place.pipeline.secrets.hide(str(error)))
    if context.as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, default=str))
        return
    context.print_table(("key", "value"), [[_text(row.get("key")), _text(_value(row))] for row in rows])


def _key(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.UsageError(f"--key {text}: allowed is COLUMN=VALUE")
    return name, value


def _value(row: dict[str, Any]) -> Any:
    """With the side that a row of a join waits on."""
    return {"side": row["side"], **row["value"]} if "side" in row else row.get("value")


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)

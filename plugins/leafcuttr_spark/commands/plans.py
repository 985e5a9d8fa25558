"""`leafcuttr spark plan`."""

import click

from leafcuttr_sdk.cli import command_context, json_option
from leafcuttr_spark.commands.common import load, set_option


@click.command("plan", short_help="Draw the graph of a file, without Spark.")
@set_option
@click.option("--mermaid", is_flag=True, help="As a diagram for Mermaid, which pages in Markdown show.")
@json_option
@click.argument("file", type=click.Path())
def plan(file: str, variables: dict[str, str], mermaid: bool) -> None:
    """Draw what a pipeline does: sources, steps and sinks in order, what each reads, and the columns that it has.

    Neither Spark nor a broker is needed. A type that is not known before it runs is shown as `?`. Secrets are not
    shown.

    \b
    Examples:
      leafcuttr spark plan orders.yaml
      leafcuttr spark plan --mermaid orders.yaml > orders.mmd
      leafcuttr spark plan --json orders.yaml

    Exit status: 0 if drawn; 1 if something is wrong with the file; 2 for wrong usage.
    """
    context = command_context()
    if mermaid and context.as_json:
        raise click.UsageError("--json and --mermaid exclude each other")
    loaded = load(file, variables, needs_secrets=False)
    from leafcuttr_spark.pipelines import drawing

    drawn = drawing.graph_of(loaded.pipeline, loaded.frames)
    if context.as_json:
        context.print_json(drawing.as_json(drawn))
        return
    for line in drawing.as_mermaid(drawn) if mermaid else drawing.as_text(drawn):
        context.print_line(line)

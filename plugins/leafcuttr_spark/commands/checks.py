"""`leafcuttr spark check`."""

from typing import TYPE_CHECKING, Any

import click

from leafcuttr_sdk.cli import command_context, json_option
from leafcuttr_spark.commands.common import need_packages, set_option

if TYPE_CHECKING:
    from leafcuttr_spark.pipelines.errors import Fault


class _Files(click.Argument):
    """Needed, but not with `--schema`."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        return () if ctx.params.get("schema") else super().process_value(ctx, value)


@click.command("check", short_help="Find what is wrong with files, without Spark.")
@set_option
@click.option(
    "--schema", is_flag=True, is_eager=True, help="Print the JSON Schema of files, for editors, and end."
)
@json_option
@click.argument("files", cls=_Files, nargs=-1, required=True, type=click.Path(), metavar="FILE...")
def check(files: tuple[str, ...], variables: dict[str, str], schema: bool) -> None:
    """Find what is wrong with files of pipelines: keys and values, the graph of frames, columns and types.

    Neither Spark nor a broker is needed. Where a source has a schema in a registry, the registry is read if it answers.
    Secrets that are not there are noted. A line for each fault: the file, its line, what is wrong, what is allowed.

    \b
    Examples:
      leafcuttr spark check orders.yaml
      leafcuttr spark check --set region=eu pipelines/*.yaml
      leafcuttr spark check --schema > leafcuttr-pipeline.schema.json

    Exit status: 0 if nothing is wrong; 1 if something is; 2 for wrong usage.
    """
    context = command_context()
    need_packages()
    if schema:
        from leafcuttr_spark.pipelines.json_schema import json_schema

        context.print_json(json_schema())
        return
    found = [_checked(file, variables) for file in files]
    if context.as_json:
        context.print_json([{key: value for key, value in one.items() if key != "lines"} for one in found])
    else:
        for one in found:
            for line in one["lines"]:
                context.print_line(line)
    if not all(one["ok"] for one in found):
        click.get_current_context().exit(1)


def _checked(file: str, variables: dict[str, str]) -> dict[str, Any]:
    from leafcuttr_spark.pipelines.checking.whole import load_pipeline
    from leafcuttr_spark.pipelines.errors import PipelineFaultsError

    try:
        pipeline, notes, _ = load_pipeline(file, variables, needs_secrets=False)
    except PipelineFaultsError as error:
        return {
            "file": file,
            "ok": False,
            "faults": [_plain(fault) for fault in error.faults],
            "notes": [],
            "lines": [fault.text(file) for fault in error.faults],
        }
    counts = (len(pipeline.sources), len(pipeline.steps), len(pipeline.sinks))
    words = ("source", "step", "sink")
    parts = ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for n, word in zip(counts, words, strict=True))
    return {
        "file": file,
        "ok": True,
        "faults": [],
        "notes": [_plain(note) for note in notes],
        "lines": [*(f"{note.text(file)} (note)" for note in notes), f"{file}: {parts}: nothing is wrong"],
    }


def _plain(fault: "Fault") -> dict[str, Any]:
    return {"line": fault.line, "part": fault.part, "what": fault.what}

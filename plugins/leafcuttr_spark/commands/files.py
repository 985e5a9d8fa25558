"""`leafcuttr spark init`."""

import json
from pathlib import Path
from typing import Final

import click

from leafcuttr_sdk.cli import command_context
from leafcuttr_spark.commands.common import need_packages

TEMPLATES: Final = {
    "filter": "some records of a topic go to another one",
    "window": "counts and sums of each minute",
    "lookup": "orders with their customers, by Avro and a registry; windows; dead letters",
    "python": "functions of your own",
}
SCHEMA_FILE: Final = "leafcuttr-pipeline.schema.json"
"""Beside the file: its first line names it to editors."""

_FOLDER: Final = Path(__file__).parent / "templates"


def template(name: str) -> str:
    """The text of one."""
    return (_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


@click.command("init", short_help="Write a file to begin with.")
@click.option(
    "--template",
    "name",
    type=click.Choice([*TEMPLATES]),
    default="filter",
    show_default=True,
    help="; ".join(f"{name}: {what}" for name, what in TEMPLATES.items()) + ".",
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.argument("file", type=click.Path(path_type=Path))
def init(file: Path, name: str, force: bool) -> None:
    """Write a pipeline to begin with, and beside it the JSON Schema by which editors complete and check it.

    \b
    Examples:
      leafcuttr spark init orders.yaml
      leafcuttr spark init --template window totals.yaml

    Exit status: 0 if written; 1 if the file is there, or cannot be written; 2 for wrong usage.
    """
    context = command_context()
    need_packages()
    from leafcuttr_spark.pipelines.json_schema import json_schema

    if file.exists() and not force:
        context.fail(f"{file} is there; --force writes over it")
    schema = file.parent / SCHEMA_FILE
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# yaml-language-server: $schema={SCHEMA_FILE}\n{template(name)}", encoding="utf-8")
        schema.write_text(json.dumps(json_schema(), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        context.fail(f"{error.filename}: {error.strerror}")
    context.print_line(f"wrote {file}, and {schema} for editors")
    context.print_line(f"next: leafcuttr spark check {file}")

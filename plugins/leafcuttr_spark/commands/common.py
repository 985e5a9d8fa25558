"""What commands have in common: `--set`, and files that cannot be read."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from leafcuttr_sdk.cli import command_context

if TYPE_CHECKING:
    from leafcuttr_spark.pipelines.checking.whole import Loaded

F = TypeVar("F", bound=Callable[..., Any])

INSTALL: Final = "pip install 'leafcuttr[spark]'"


def _pairs(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{value!r} is not NAME=VALUE")
        found[name] = text
    return found


def set_option(function: F) -> F:
    """`--set NAME=VALUE`: the command gets `variables`."""
    return click.option(
        "--set",
        "variables",
        multiple=True,
        metavar="NAME=VALUE",
        callback=_pairs,
        help="A variable of the file; wins over its own value. May be repeated.",
    )(function)


def need_packages(status: int = 1) -> None:
    """End the command with one line, and this status, where what reads pipelines is not installed."""
    try:
        import sqlglot
        import yaml  # noqa: F401
    except ImportError as error:
        del error
        command_context().fail(f"it needs PyYAML and sqlglot, which are not installed: {INSTALL}", status)
    del sqlglot


def load(
    file: str, variables: dict[str, str], *, needs_secrets: bool = True, with_registry: bool = True
) -> "Loaded":
    """The pipeline of a file, checked; without the registry, columns that only it knows are not. A file that is wrong
    ends the command with status 1 and a line for each fault on standard error."""
    need_packages()
    from leafcuttr_spark.pipelines.checking.source_columns import columns_without_registry, source_columns
    from leafcuttr_spark.pipelines.checking.whole import load_pipeline
    from leafcuttr_spark.pipelines.errors import PipelineFaultsError

    try:
        sources = source_columns if with_registry else columns_without_registry
        return load_pipeline(file, variables, needs_secrets=needs_secrets, sources=sources)
    except PipelineFaultsError as error:
        *others, last = [fault.text(error.file) for fault in error.faults]
        for line in others:
            click.echo(f"leafcuttr: {line}", err=True)
        command_context().fail(last)

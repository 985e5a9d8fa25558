"""`leafcuttr spark run FILE`."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from leafcuttr_sdk.cli import command_context, json_option
from leafcuttr_spark.commands.common import set_option
from leafcuttr_spark.commands.run.showing import LOG_MS, TERMINAL_MS


@click.command("run")
@click.argument("file", type=click.Path(path_type=Path))
@set_option
@click.option("--once", is_flag=True, help="Read what there is now, then end.")
@json_option
@click.option(
    "--status-file",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Write the status to this file too, after each batch.",
)
def run(file: Path, variables: dict[str, str], once: bool, status_file: Path | None) -> None:
    """Run a pipeline on Spark, until it is stopped.

    It goes on where its checkpoint is. SIGTERM and Ctrl-C let it finish the batch under way; a second one does not
    wait for that. With --json each batch is a line.

    \b
    Examples:
      leafcuttr spark run orders.yaml
      leafcuttr spark run orders.yaml --set region=us --once

    Exit status: 0 if it was stopped, or is done; 1 if a batch failed; 2 if the file or the call is wrong, or Java or
    Spark is missing; 3 if a person has to decide: the file was changed in a way that its checkpoint does not allow, or
    there are more dead letters than it allows.
    """
    run_file(file, variables, once=once, status_file=status_file)


def run_file(file: Path, variables: dict[str, str], *, once: bool, status_file: Path | None) -> None:
    """What fails ends the command, with the line and the status of the failure."""
    from leafcuttr_spark.commands.run.conduct import RunFailure, RunOptions, conduct

    pause_ms = TERMINAL_MS if sys.stdout.isatty() else LOG_MS
    context = command_context()
    options = RunOptions(file, variables, once, context.as_json, status_file, pause_ms)
    try:
        with _log_to_standard_error():
            conduct(options, echo_while_read)
    except RunFailure as failure:
        *before, last = str(failure).splitlines()
        for line in before:
            click.echo(line, err=True)
        context.fail(last, failure.status)


def echo_while_read(line: str) -> None:
    """Print it. Once the reader of standard output has gone, as `head` does, nothing more is printed: the pipeline goes
    on, and has its status file."""
    try:
        click.echo(line)
    except BrokenPipeError:
        # What is still in the buffer is written at the exit.
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), sys.stdout.fileno())


@contextmanager
def _log_to_standard_error() -> Iterator[None]:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("leafcuttr")
    level, propagates = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagates

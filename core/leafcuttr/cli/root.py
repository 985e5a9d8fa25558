"""The `leafcuttr` command itself. Each subcommand is a folder beside this module with a `command`, imported when it is
called. Plugins add commands; they are looked for only if a name is not one of ours or all names are wanted.

Nothing heavy is imported for `leafcuttr serve`: no rich, no confluent-kafka.
"""

import errno
import importlib
import os
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from leafcuttr.cli.common.commands import COMMANDS
from leafcuttr.runtime.described import words_of
from leafcuttr.runtime.standard_streams import open_closed_streams, open_missing_streams
from leafcuttr.version import __version__
from leafcuttr_sdk.errors import PluginError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from leafcuttr.plugins.loaded import Loaded
    from leafcuttr_sdk.cli import CliCommand

_COLOURLESS: Final[dict[str, Any]] = {"color": False}
"""Passed to click if NO_COLOR is set (no-color.org): rich follows that variable, click does not."""


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *_of_plugins()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            command = importlib.import_module(f"leafcuttr.cli.{cmd_name}.command").command
            assert isinstance(command, click.Command)
            return command
        found = _of_plugins().get(cmd_name)
        if found is None:
            return None
        from leafcuttr.cli.common.installed import loaded_command
        from leafcuttr.cli.common.plugin_commands import prepare

        prepare(ctx)
        return loaded_command(*found)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from leafcuttr.cli.common.installed import installed

            # It may be the command of one that could not be imported.
            for plugin in installed().failed:
                click.echo(f"leafcuttr: {plugin.line}", err=True)
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Ctrl-C ends a command that does not handle it with status 130, as a shell reports it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("leafcuttr: interrupted", err=True)
            ctx.exit(130)
        except (click.Abort, click.exceptions.Exit, SystemExit):
            raise
        except BaseException as error:
            if isinstance(error, click.ClickException) and type(error) is not click.ClickException:
                raise
            end = _end_of(ctx, error)
            if end is error:
                raise
            raise end from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Names and helps from the table, so that no module of a command is imported."""
        from click.shell_completion import CompletionItem

        if incomplete and not incomplete[0].isalnum():
            return super().shell_complete(ctx, incomplete)
        names = {**COMMANDS, **{name: command.summary for name, (_, command) in _of_plugins().items()}}
        return [
            CompletionItem(name, help=text) for name, text in names.items() if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        added = _of_plugins()
        if added:
            with formatter.section("Commands of plugins"):
                formatter.write_dl([(name, command.summary) for name, (_, command) in added.items()])


def _of_plugins() -> "dict[str, tuple[Loaded, CliCommand]]":
    from leafcuttr.cli.common.installed import commands_of, installed

    return commands_of(installed(), COMMANDS)


def _end_of(context: click.Context, error: BaseException) -> BaseException:
    """What ends the command after this: for the command of a plugin a line, for one of ours the error itself."""
    command = context.invoked_subcommand
    found = None if command is None or command in COMMANDS else _of_plugins().get(command)
    if found is not None:
        from leafcuttr.cli.common.installed import part_of
        from leafcuttr.cli.common.plugin_commands import end_of

        return end_of(part_of(*found), context, error)
    if isinstance(error, PluginError):
        from leafcuttr.cli.common.failures import Failure

        return Failure(words_of(error))
    return error


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="leafcuttr")
def cli() -> None:
    """LeafCuttr: a Kafka-compatible event broker in one process."""


def main() -> None:
    """Entry point of the console script and of `python -m leafcuttr`."""
    open_missing_streams()
    try:
        try:
            cli(prog_name="leafcuttr", **_COLOURLESS if os.environ.get("NO_COLOR") else {})
        finally:
            open_closed_streams()
            sys.stdout.flush()
    except OSError as error:
        # If the disk of a broker fails where that is not expected, the traceback says where.
        from leafcuttr.cli.common.failures import is_of_output

        if not is_of_output(error) or sys.argv[1:2] == ["serve"]:
            raise
        # What is still buffered cannot be written either: without this the interpreter says so, with a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if error.errno != errno.EPIPE:
            click.echo(f"leafcuttr: cannot write the output: {error.strerror}", err=True)
        sys.exit(1)

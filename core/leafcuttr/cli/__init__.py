"""The `leafcuttr` command. Each subcommand is a module here with a `command`, imported when it is called; plugins add
theirs, and are looked for only when a name is not one of ours or all names are wanted.

Nothing heavy is imported for `leafcuttr serve`: no rich, no confluent-kafka.
"""

import errno
import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from leafcuttr import __version__
from leafcuttr_sdk.errors import PluginError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from leafcuttr.plugins.loaded import Loaded
    from leafcuttr_sdk.cli import CliCommand

_COMMANDS: Final = {
    "serve": "start the broker",
    "demo": "start a broker, send 200,000 records through it, compare every byte",
    "topics": "list, create, describe, alter and delete topics; offsets; delete records",
    "produce": "send records from standard input or a file",
    "consume": "print records",
    "groups": "list, describe and delete consumer groups; reset their offsets",
    "configs": "describe and change settings and quotas in a running cluster",
    "logdirs": "what the log directories of brokers hold, and how much room is left",
    "cluster": "the id, brokers, features and API versions of a cluster",
    "transactions": "list, describe, find hanging and abort transactions",
    "perf": "measure how fast a broker takes and gives records",
    "config": "describe settings, check a file of them, show what differs from the defaults",
    "verify": "check every file of a data directory (offline)",
    "dump": "print what a log, index, snapshot or checkpoint file holds",
    "doctor": "find what usually goes wrong with a broker or a configuration",
    "repair": "mend a data directory or adopt topic folders (offline)",
    "plugins": "list and describe the plugins that are installed; check and write one",
    "completion": "print the script that lets a shell complete our command line",
}

_CANNOT_WRITE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE})
"""What a full or broken place for the output answers; of an error of a file its name is known."""


_COLOURLESS: Final[dict[str, Any]] = {"color": False}
"""What click is told for NO_COLOR (no-color.org), which rich knows and click does not."""


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_COMMANDS, *_of_plugins()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _COMMANDS:
            command = importlib.import_module(f"leafcuttr.cli.{cmd_name}").command
            assert isinstance(command, click.Command)
            return command
        found = _of_plugins().get(cmd_name)
        if found is None:
            return None
        from leafcuttr.cli.installed import loaded_command

        return loaded_command(*found)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from leafcuttr.cli.installed import installed

            # It may be the command of one that could not be imported.
            for plugin in installed().failed:
                click.echo(f"leafcuttr: {plugin.line}", err=True)
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Ctrl-C that a command does not take for its own end is status 130, as of whatever a shell interrupts."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("leafcuttr: interrupted", err=True)
            ctx.exit(130)
        except PluginError as error:
            from leafcuttr.cli.failures import Failure

            raise Failure(str(error)) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Names and helps from the table: whoever presses a key does not wait for every module to be imported."""
        from click.shell_completion import CompletionItem

        if incomplete and not incomplete[0].isalnum():
            return super().shell_complete(ctx, incomplete)
        names = {**_COMMANDS, **{name: command.summary for name, (_, command) in _of_plugins().items()}}
        return [
            CompletionItem(name, help=text) for name, text in names.items() if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))
        added = _of_plugins()
        if added:
            with formatter.section("Commands of plugins"):
                formatter.write_dl([(name, command.summary) for name, (_, command) in added.items()])


def _of_plugins() -> "dict[str, tuple[Loaded, CliCommand]]":
    from leafcuttr.cli.installed import commands_of, installed

    return commands_of(installed(), own_commands())


def own_commands() -> frozenset[str]:
    """The names that no plugin's command can have."""
    return frozenset(_COMMANDS)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="leafcuttr")
def cli() -> None:
    """LeafCuttr: a Kafka-compatible event broker in one process."""


def main() -> None:
    """Entry point of the console script and of `python -m leafcuttr`."""
    _open_what_is_closed()
    try:
        try:
            cli(prog_name="leafcuttr", **_COLOURLESS if os.environ.get("NO_COLOR") else {})
        finally:
            sys.stdout.flush()
    except OSError as error:
        # A broker whose disk fails in a place that does not expect it has to say where.
        if error.errno not in _CANNOT_WRITE or error.filename is not None or sys.argv[1:2] == ["serve"]:
            raise
        # What is still buffered cannot be written either: without this the interpreter says so, with a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if error.errno != errno.EPIPE:
            click.echo(f"leafcuttr: cannot write the output: {error.strerror}", err=True)
        sys.exit(1)


def _open_what_is_closed() -> None:
    """Give /dev/null the place of standard streams that whoever started us has closed, before a socket gets it."""
    for number, mode in enumerate("rww"):
        name = ("stdin", "stdout", "stderr")[number]
        if getattr(sys, name) is None:
            stream = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 - open as long as the process
            if stream.fileno() != number:
                os.dup2(stream.fileno(), number)
            setattr(sys, name, stream)

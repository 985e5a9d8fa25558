"""The reference page of the command line, made from the commands: `python -m leafcuttr.cli.reference` prints it.

A test compares the page in the documentation with it, and another runs its examples (`examples`).
"""

import inspect
import sys
from collections.abc import Iterator
from typing import Final

import click

from leafcuttr.cli.root import cli

_HEAD: Final = """\
# Command line

<!-- Written by `python -m leafcuttr.cli.reference`; a test fails when this page and the code differ. -->

`leafcuttr` is installed with the package; `python -m leafcuttr` is the same. Every command and every group of commands
has `--help`. Commands that use a broker work against any Kafka and find it by `--bootstrap-server` or by the variable
`LEAFCUTTR_BOOTSTRAP_SERVER`. Errors are one line on standard error. Unless a command says otherwise its exit status is
0 when it is done, 1 when it was refused, cannot be done or something is wrong, 2 for wrong usage, and 130 after Ctrl-C.
Commands of plugins have the same options and the same exit status. What one of them leaves unhandled is a line that
names the plugin; with the variable `LEAFCUTTR_DEBUG=1` the traceback comes before it.

"""
_DEEPEST: Final = 6


def page() -> str:
    """The whole page, in Markdown."""
    commands = [(context, command) for context, command in walk() if context.parent is not None]
    table = "| command | what it does |\n|---|---|\n" + "".join(
        f"| [`{context.command_path}`](#{_anchor(context)}) | {_cell(_first_sentence(command))} |\n"
        for context, command in commands
        if not isinstance(command, click.Group)
    )
    return _HEAD + table + "".join(_section(command, context) for context, command in commands)


def walk() -> Iterator[tuple[click.Context, click.Command]]:
    """Every command and group with a context that knows its path, groups before what is in them."""
    yield from _below(cli, click.Context(cli, info_name="leafcuttr"))


def examples() -> Iterator[tuple[str, str]]:
    """(path of the command, line) for each example of a help text; a line that ends in \\ continues in the next."""
    for context, command in walk():
        for text in inspect.cleandoc(command.help or "").split("\n\n"):
            if text.startswith("\b"):
                _, lines = _example_lines(text)
                for line in lines.replace("\\\n", " ").splitlines():
                    yield context.command_path, line.strip()


def _below(command: click.Command, context: click.Context) -> Iterator[tuple[click.Context, click.Command]]:
    yield context, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            if not found.hidden:
                yield from _below(found, click.Context(found, info_name=name, parent=context))


def _section(command: click.Command, context: click.Context) -> str:
    depth = len(context.command_path.split())
    parts = [f"\n{'#' * min(depth, _DEEPEST)} {context.command_path}\n"]
    if not isinstance(command, click.Group):
        usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        parts.append(f"\n```text\n{usage}\n```\n")
    parts += [_paragraph(text) for text in inspect.cleandoc(command.help or "").split("\n\n")]
    if isinstance(command, click.Group):
        names = [
            f"[`{name}`](#{_anchor(click.Context(command, info_name=name, parent=context))})"
            for name in command.list_commands(context)
        ]
        parts.append(f"\nCommands: {', '.join(names)}.\n")
    rows = [_row(option, context) for option in command.params if _shown(option)]
    parts.append("\n| option | what it does |\n|---|---|\n" + "".join(rows) if rows else "")
    return "".join(parts)


def _anchor(context: click.Context) -> str:
    return context.command_path.replace(" ", "-").lower()


def _first_sentence(command: click.Command) -> str:
    return command.get_short_help_str(limit=200)


def _paragraph(text: str) -> str:
    if not text.startswith("\b"):
        return f"\n{text}\n"
    title, lines = _example_lines(text)
    return f"\n{title}\n\n```sh\n{lines}\n```\n"


def _example_lines(text: str) -> tuple[str, str]:
    title, *lines = text.removeprefix("\b").strip("\n").split("\n")
    return title, inspect.cleandoc("\n".join(lines))


def _shown(option: click.Parameter) -> bool:
    return isinstance(option, click.Option) and not option.hidden


def _row(option: click.Parameter, context: click.Context) -> str:
    names, text = option.get_help_record(context) or ("", "")
    if option.envvar:
        text += f" Variable: `{option.envvar}`."
    return f"| {_cell(f'`{names}`')} | {_cell(text)} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    sys.stdout.write(page())

"""The reference page of the command line, made from the commands: `python -m leafcuttr.cli.reference` prints it.

A test compares the page in the documentation with it.
"""

import inspect
import sys
from collections.abc import Iterator

import click

from leafcuttr.cli import cli

_HEAD = """\
# Command line

<!-- Written by `python -m leafcuttr.cli.reference`; a test fails when this page and the code differ. -->

`leafcuttr` is installed with the package; `python -m leafcuttr` is the same. Every command has `--help`. The commands
that talk to a broker work against any Kafka; they find it by `--bootstrap-server` or by the variable
`LEAFCUTTR_BOOTSTRAP_SERVER`. Errors are one line on standard error.
"""


def page() -> str:
    """The whole page, in Markdown."""
    return _HEAD + "".join(_sections(cli, click.Context(cli, info_name="leafcuttr")))


def _sections(group: click.Group, context: click.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        below = click.Context(command, info_name=name, parent=context)
        yield _section(command, below)
        if isinstance(command, click.Group):
            yield from _sections(command, below)


def _section(command: click.Command, context: click.Context) -> str:
    level = "##" if context.parent and context.parent.parent is None else "###"
    parts = [f"\n{level} {context.command_path}\n"]
    parts += [_paragraph(text) for text in inspect.cleandoc(command.help or "").split("\n\n")]
    if not isinstance(command, click.Group):
        usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        parts.insert(1, f"\n```text\n{usage}\n```\n")
        rows = [_row(option, context) for option in command.params if isinstance(option, click.Option)]
        parts.append("\n| option | what it does |\n|---|---|\n" + "".join(rows) if rows else "")
    return "".join(parts)


def _paragraph(text: str) -> str:
    if not text.startswith("\b"):
        return f"\n{text}\n"
    title, *examples = text.removeprefix("\b").strip("\n").split("\n")
    lines = inspect.cleandoc("\n".join(examples))
    return f"\n{title}\n\n```sh\n{lines}\n```\n"


def _row(option: click.Option, context: click.Context) -> str:
    names, text = option.get_help_record(context) or ("", "")
    cells = (cell.replace("|", "\\|") for cell in (f"`{names}`", text))
    return "| " + " | ".join(cells) + " |\n"


if __name__ == "__main__":
    sys.stdout.write(page())

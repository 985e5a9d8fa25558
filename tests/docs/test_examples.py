"""The examples in the help texts are lines that the commands take: every option exists, every value is allowed."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from leafcuttr.cli.root import cli

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "administer.md"


def commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        below = click.Context(command, info_name=name, parent=context)
        yield below.command_path, command
        if isinstance(command, click.Group):
            yield from commands(command, below)


def examples(text: str) -> Iterator[list[str]]:
    """The words of each call of leafcuttr in lines of a shell, without what is piped into it or comes out of it."""
    for line in text.replace("\\\n", " ").splitlines():
        words: list[str] = []
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        for word in [*lexer, ";"]:
            if word and set(word) <= set("();<>|&"):
                if words[:1] == ["leafcuttr"]:
                    yield words
                words = []
            else:
                words.append(word)


def _help_examples() -> list[list[str]]:
    found = []
    for _, command in commands(cli, click.Context(cli, info_name="leafcuttr")):
        for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
            if paragraph.startswith("\b"):
                found += list(examples(paragraph))
    return found


def _how_to_examples() -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", HOW_TO.read_text(), re.DOTALL)
    rows = re.findall(r"`(leafcuttr [^`]*)`", HOW_TO.read_text())
    return [call for text in (*blocks, *rows) for call in examples(text.replace("\\|", "|"))]


def check(line: list[str]) -> None:
    """Parse the line as the command would, without running it. Raises click.UsageError."""
    words = line[1:]
    command: click.Command = cli
    context = click.Context(cli, info_name="leafcuttr")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        if found is None:
            raise click.UsageError(f"no command {words[0]}")
        context = click.Context(found, info_name=words.pop(0), parent=context)
        command = found
    if isinstance(command, click.Group) and not words:
        return
    with command.make_context(context.info_name, words, parent=context.parent):
        pass


@pytest.fixture(autouse=True)
def every_file_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (click.Path, click.File):
        monkeypatch.setattr(kind, "convert", lambda self, value, param, ctx: value)


def test_there_are_examples_everywhere() -> None:
    """Every command that is no group shows at least one."""
    for path, command in commands(cli, click.Context(cli, info_name="leafcuttr")):
        if not isinstance(command, click.Group):
            assert "Examples:" in (command.help or ""), path


@pytest.mark.parametrize("line", _help_examples(), ids=" ".join)
def test_an_example_of_a_help_text(line: list[str]) -> None:
    check(line)


@pytest.mark.parametrize("line", _how_to_examples(), ids=" ".join)
def test_an_example_of_the_page_for_operators(line: list[str]) -> None:
    check(line)


def test_a_wrong_line_is_noticed() -> None:
    for line in ("leafcuttr topics describes orders", "leafcuttr topics create orders --partition 3"):
        with pytest.raises(click.UsageError):
            check(line.split())

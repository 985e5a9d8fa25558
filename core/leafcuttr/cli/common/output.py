"""What commands print: tables for people, JSON for programs, progress on standard error, the result of each item.

This module uses no broker. rich is imported only where the output is a terminal.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from leafcuttr_sdk import _cli_options as shared

F = TypeVar("F", bound=Callable[..., Any])
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def json_option(function: F) -> F:
    """`--json`."""
    return shared.as_json("as_json")(function)


def print_json(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        # Lone surrogates, which stand for bytes that are no UTF-8: JSON has escapes for them.
        text = json.dumps(value)
    click.echo(text)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table for people; plain aligned text where the output is not a terminal. None is shown as `-`."""
    texts = [["-" if cell is None else printable(str(cell)) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(box=None, header_style="bold", pad_edge=False)
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in texts:
            table.add_row(*row)
        # What a broker names is data: no markup, no emoji, no colours in it.
        Console(markup=False, emoji=False, highlight=False).print(table)
        return
    widths = [max(len(cells[at]) for cells in [list(columns), *texts]) for at in range(len(columns))]
    for cells in [list(columns), *texts]:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())


def printable(text: str) -> str:
    """The text with escapes for what would move the cursor of a terminal: names come from any client."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def count(number: int, what: str) -> str:
    """`1 partition`, `2 partitions`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def size(number: int) -> str:
    """Bytes for people: `512 B`, `1.5 MiB`."""
    value = float(number)
    for unit in _UNITS[:-1]:
        if value < 1024:
            return f"{value:.1f} {unit}" if unit != "B" else f"{number} B"
        value /= 1024
    return f"{value:.1f} {_UNITS[-1]}"


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error if that is a terminal; call what is yielded with how many more are done."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


class ItemResults:
    """The result of each item of a command that changes several: a line or a JSON object for each.

    Failures are printed to standard error as they come. `finish` ends the command with status 1 if there was one.
    """

    def __init__(self, kind: str, as_json: bool) -> None:
        self._kind = kind
        self._as_json = as_json
        self._objects: list[dict[str, object]] = []
        self._failed = False

    def done(self, name: object, text: str, **more: object) -> None:
        """The item is done; `text` says so to people, `more` goes into the JSON."""
        self._objects.append({self._kind: name, **more, "error": None})
        if not self._as_json:
            click.echo(printable(text))

    def failed(self, name: object, why: str, **more: object) -> None:
        """The item failed, for this reason."""
        self._failed = True
        self._objects.append({self._kind: name, **more, "error": why})
        if not self._as_json:
            click.echo(printable(f"leafcuttr: {name}: {why}"), err=True)

    def finish(self) -> None:
        """Print the JSON; raises SystemExit(1) if anything failed."""
        if self._as_json:
            print_json(self._objects)
        if self._failed:
            sys.exit(1)

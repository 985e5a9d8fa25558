"""What is checked of a plugin's command. All checks, through the command line, are in test_check.py."""

from __future__ import annotations

import click
import pytest

from leafcuttr.cli.plugins.checked import _command
from leafcuttr_sdk import CliCommand


@pytest.mark.parametrize(
    ("made", "problems"),
    [
        (click.Command("count", help="Count."), []),
        (click.Command("count"), ["it has no help: write a docstring; --help shows it"]),
        (None, ["load() returned None, not a click.Command"]),
        (5, ["load() returned an int, not a click.Command"]),
        (click.Command, ["load() returned a type, not a click.Command"]),
    ],
    ids=repr,
)
def test_what_load_returns(made: object, problems: list[str]) -> None:
    assert _command(CliCommand("count", "counts", lambda: made)).problems == problems  # type: ignore[arg-type,return-value]

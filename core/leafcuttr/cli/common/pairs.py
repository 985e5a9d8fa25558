"""Settings as a person gives them: `KEY=VALUE` words and `.properties` files. What they mean is not its subject."""

import re
from collections.abc import Iterable
from pathlib import Path

import click

from leafcuttr_sdk.properties import parse_properties


def pairs(option: str, words: Iterable[str]) -> dict[str, str]:
    """`KEY=VALUE` each. Raises click.UsageError that names the option."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise click.UsageError(f"{option} {word}: expected KEY=VALUE")
        found[name] = value
    return found


def read_properties(path: Path) -> dict[str, str]:
    """The settings of a `.properties` file. Raises ValueError for a line that gives none, OSError."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: {error}") from None
    lines = re.split(r"\r\n|\n|\r", text)
    found = {}
    for name, value, number in parse_properties(text):
        # Java takes a name alone for one with an empty value; we take it for a mistake.
        if not name or not re.search("[=:]", lines[number - 1]):
            raise ValueError(f"{path} line {number}: expected NAME=VALUE")
        found[name] = value
    return found

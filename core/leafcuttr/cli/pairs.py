"""`KEY=VALUE` words and files of settings."""

from collections.abc import Iterable

import click


def pairs(option: str, words: Iterable[str]) -> dict[str, str]:
    """`KEY=VALUE` each. Raises click.UsageError that names the option."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise click.UsageError(f"{option} {word}: expected KEY=VALUE")
        found[name] = value
    return found

"""Commands that a plugin adds to `leafcuttr`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from leafcuttr_sdk._described import described

if TYPE_CHECKING:
    import click


@described
class CliCommand(NamedTuple):
    """One command: what `leafcuttr_register_cli_commands` returns. It is there once the plugin is installed, whether or
    not a broker has it enabled."""

    name: str
    summary: str
    """A line for `leafcuttr --help`, in lower case and without a full stop."""
    load: "Callable[[], click.Command]"
    """Makes the command when it is called, and imports what it needs."""

"""Plugins as the command line has them: all that are installed, whatever a broker has switched on.

Of settings only `lc.plugins.disabled` and `lc.plugins.path` count, from the environment (`KAFKA_LC_PLUGINS_DISABLED`,
`KAFKA_LC_PLUGINS_PATH`), because only `serve`, `config`, `doctor` and `plugins` read a file of settings. `leafcuttr
serve` never imports this module, and our own commands look for plugins only if a name is not one of ours.
"""

import os
import re
from collections.abc import Container, Iterable
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import click

if TYPE_CHECKING:
    from leafcuttr.plugins.loaded import Loaded
    from leafcuttr.plugins.table import Plugins
    from leafcuttr.runtime.plugin_parts import Part
    from leafcuttr_sdk.cli import CliCommand

_COMMAND: Final = re.compile(r"[a-z][a-z0-9-]*\Z")


@cache
def installed() -> "Plugins":
    """Passed for once. What would stop a broker's start, such as a missing folder, is one line on standard error."""
    from leafcuttr.config.load import read_given
    from leafcuttr.config.settings import Settings
    from leafcuttr.errors import ConfigError, StartError
    from leafcuttr.plugins.finding import Choice, find_plugins

    about = {name: given for name, given in read_given(None, os.environ) if name.startswith("lc.plugins.")}
    try:
        return find_plugins(Choice.of(Settings(about)))
    except (ConfigError, StartError) as error:
        if "_LEAFCUTTR_COMPLETE" not in os.environ:  # a shell that completes shows no errors
            click.echo(f"leafcuttr: {error}", err=True)
        return find_plugins(Choice())


def commands_of(plugins: "Plugins", ours: Container[str]) -> "dict[str, tuple[Loaded, CliCommand]]":
    """By name, in the order of names. One with a name of ours, or of another plugin's command, is left out."""
    found = offered("command", plugins.cli_commands(), ours, _COMMAND, "lower-case letters, digits and -")
    return dict(sorted(found.items()))


def loaded_command(plugin: "Loaded", command: "CliCommand") -> click.Command:
    """Raises Failure, one line, for every failure of the plugin."""
    from leafcuttr.cli.common.failures import Failure, show_traceback
    from leafcuttr.runtime.plugin_parts import PartError, call
    from leafcuttr_sdk._described import kind_of

    try:
        made: object = call(part_of(plugin, command), command.load)
    except PartError as failed:
        show_traceback(failed.cause or failed)
        why = plugin.lacks if plugin.missing else failed.why
        raise Failure(f"the command {command.name} of plugin {plugin.name} cannot be loaded: {why}") from None
    if not isinstance(made, click.Command):
        raise Failure(
            f"the command {command.name} of plugin {plugin.name} cannot be loaded: "
            f"its load() returned {kind_of(made)}; it has to return a click.Command"
        )
    return made


def part_of(plugin: "Loaded", command: "CliCommand") -> "Part":
    from leafcuttr.runtime.plugin_parts import Part

    return Part(plugin.name, f"command {command.name}")


class _Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Named)


def offered(
    kind: str,
    brought: "Iterable[tuple[Loaded, T]]",
    ours: Container[str],
    allowed: re.Pattern[str],
    letters: str,
) -> "dict[str, tuple[Loaded, T]]":
    """What plugins bring, by name; the plugin of one that is left out gets a remark. `letters` says in words what names
    are `allowed`."""
    found: dict[str, tuple[Loaded, T]] = {}
    for plugin, one in brought:
        if not allowed.match(one.name):
            plugin.remarks.append(f"{one.name!r} cannot name a {kind}: {letters}")
        elif one.name in ours:
            plugin.remarks.append(f"its {kind} {one.name} is left out: LeafCuttr has one of that name")
        elif one.name in found:
            other = found[one.name][0]
            plugin.remarks.append(
                f"its {kind} {one.name} is left out: plugin {other.name} has one of that name"
            )
        else:
            found[one.name] = plugin, one
    return found

"""Plugins as the command line has them: all that are installed, whatever a broker has switched on.

Of settings only `lc.plugins.disabled` and `lc.plugins.path` count, from the environment (`KAFKA_LC_PLUGINS_DISABLED`,
`KAFKA_LC_PLUGINS_PATH`), because no command but `serve` and its kin reads a file of settings. `leafcuttr serve` never
comes here, and a command that is ours looks for plugins only if a name is not one of ours.
"""

import os
import re
from functools import cache
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from leafcuttr.plugins.loaded import Loaded
    from leafcuttr.plugins.table import Plugins
    from leafcuttr_sdk.cli import CliCommand
    from leafcuttr_sdk.formats import RecordFormat

_COMMAND: Final = re.compile(r"[a-z][a-z0-9-]*\Z")


@cache
def installed() -> "Plugins":
    """Looked for once. What would stop a broker's start, such as a folder that is not there, is one line here."""
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


def look_at_names(plugins: "Plugins") -> None:
    """Add to the plugins' remarks what of theirs cannot be offered here, because its name is taken."""
    from leafcuttr.cli import own_commands
    from leafcuttr.cli.formats import own_names

    commands_of(plugins, own_commands())
    formats_of(plugins, own_names())


def commands_of(plugins: "Plugins", ours: frozenset[str]) -> "dict[str, tuple[Loaded, CliCommand]]":
    """By name, in the order of names. One with a name of ours, or of another plugin's command, is left out."""
    found: dict[str, tuple[Loaded, CliCommand]] = {}
    for plugin, command in plugins.cli_commands():
        if not _COMMAND.match(command.name):
            plugin.remarks.append(f"{command.name!r} cannot name a command: lower-case letters, digits and -")
        elif command.name in ours:
            plugin.remarks.append(f"its command {command.name} is left out: LeafCuttr has one of that name")
        elif command.name in found:
            other = found[command.name][0]
            plugin.remarks.append(
                f"its command {command.name} is left out: plugin {other.name} has one of that name"
            )
        else:
            found[command.name] = plugin, command
    return dict(sorted(found.items()))


def loaded_command(plugin: "Loaded", command: "CliCommand") -> click.Command:
    """Raises Failure, one line, for whatever goes wrong: a plugin's own trouble is no traceback of ours."""
    from leafcuttr.cli.failures import Failure
    from leafcuttr.plugins.importing import described

    try:
        made: object = command.load()
    except (Exception, SystemExit) as error:
        why = (
            plugin.lacks if plugin.missing else described(error, plugin.hooks.file if plugin.hooks else None)
        )
        raise Failure(f"the command {command.name} of plugin {plugin.name} cannot be had: {why}") from None
    if not isinstance(made, click.Command):
        raise Failure(
            f"the command {command.name} of plugin {plugin.name} cannot be had: "
            f"its load() returned a {type(made).__name__}; it has to return a click.Command"
        )
    return made


def formats_of(plugins: "Plugins", ours: frozenset[str]) -> "dict[str, tuple[Loaded, RecordFormat]]":
    """By name, in the order of the plugins. One with a name of ours, or of another plugin's format, is left out."""
    from leafcuttr.cli.formats import NAME

    found: dict[str, tuple[Loaded, RecordFormat]] = {}
    for plugin, one in plugins.record_formats():
        if not NAME.match(one.name):
            plugin.remarks.append(f"{one.name!r} cannot name a format: lower-case letters, digits, - and _")
        elif one.name in ours:
            plugin.remarks.append(f"its format {one.name} is left out: LeafCuttr has one of that name")
        elif one.name in found:
            other = found[one.name][0]
            plugin.remarks.append(
                f"its format {one.name} is left out: plugin {other.name} has one of that name"
            )
        else:
            found[one.name] = plugin, one
    return found

"""The settings by which the commands of `leafcuttr plugins` see plugins: those that `serve` would have."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from leafcuttr.cli.common.commands import COMMANDS
from leafcuttr.cli.common.installed import commands_of
from leafcuttr.cli.common.records.formats import formats_of

if TYPE_CHECKING:
    from leafcuttr.config.settings import Settings
    from leafcuttr.plugins.table import Plugins

F = TypeVar("F", bound=Callable[..., Any])


def settings_options(function: F) -> F:
    """`--config` and `--override`, as of `serve`."""
    for option in (
        click.option(
            "--override",
            "-o",
            "overrides",
            multiple=True,
            metavar="KEY=VALUE",
            help="A setting as `serve -o` takes it; may be repeated.",
        ),
        click.option(
            "--config",
            "-c",
            "file",
            type=click.Path(dir_okay=False, path_type=Path),
            help="The server.properties file that switches plugins on.",
        ),
    ):
        function = option(function)
    return function


def plugins_here(file: Path | None, overrides: tuple[str, ...]) -> "Plugins":
    """All plugins, each in the state that it would have in a broker with these settings. Raises as `settings_here`."""
    return settings_here(file, overrides)[1]


def settings_here(file: Path | None, overrides: tuple[str, ...]) -> "tuple[Settings, Plugins]":
    """The settings of a broker, those that are right, and all plugins, each in the state that it would have there.

    Other settings that are wrong do not matter. Raises click.UsageError for a file or a folder that cannot be read.
    """
    from leafcuttr.errors import ConfigError, StartError
    from leafcuttr.plugins.catalogue import examine_all

    try:
        settings, _, plugins = examine_all(file, os.environ, overrides)
    except (ConfigError, StartError) as error:
        raise click.UsageError(str(error)) from None
    # Both remark on a name that is taken already.
    commands_of(plugins, COMMANDS)
    formats_of(plugins)
    return settings, plugins

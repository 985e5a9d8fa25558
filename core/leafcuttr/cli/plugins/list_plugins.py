"""`leafcuttr plugins list`: a line for each plugin that was found, with its state."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leafcuttr.cli.common.output import json_option, print_json, print_table, printable
from leafcuttr.cli.plugins.options import plugins_here, settings_options

if TYPE_CHECKING:
    from leafcuttr.plugins.loaded import Loaded


@click.command("list", short_help="Print the plugins that are installed.")
@settings_options
@json_option
def list_plugins(file: Path | None, overrides: tuple[str, ...], as_json: bool) -> None:
    """Print the plugins that are installed: state, origin, what they are for.

    The state is what `serve` would make of it with the same settings: enabled; off (not switched on);
    disabled (by lc.plugins.disabled); unavailable (packages are missing, and the line below says which command installs
    them); failed (and why).

    \b
    Examples:
      leafcuttr plugins list
      leafcuttr plugins list -c server.properties
      leafcuttr plugins list -o lc.plugins.disabled=http --json
    """
    plugins = plugins_here(file, overrides)
    if as_json:
        print_json([plain(one) for one in plugins.all])
        return
    if not plugins.all:
        click.echo("no plugins are installed")
        return
    rows = [
        (one.name, one.state.value, str(one.origin), one.plugin.summary if one.plugin else "")
        for one in plugins.all
    ]
    print_table(("NAME", "STATE", "FROM", "SUMMARY"), rows)
    for one in plugins.all:
        for line in [*([one.why] if one.state.value in ("unavailable", "failed") else []), *one.remarks]:
            click.echo(printable(f"{one.name}: {line}"))


def plain(one: "Loaded") -> dict[str, Any]:
    """What the list says of a plugin, for programs."""
    plugin = one.plugin
    return {
        "name": one.name,
        "state": one.state.value,
        "why": one.why or None,
        "remarks": one.remarks,
        "summary": plugin.summary if plugin else None,
        "distribution": one.origin.distribution,
        "version": one.origin.version,
        "bundled": one.origin.bundled,
        "place": one.origin.place,
        "module": one.module,
        "api_version": plugin.api_version if plugin else None,
        "enabled_by": plugin.enabled_by if plugin else None,
        "extra": plugin.extra if plugin else None,
        "missing": list(one.missing),
        "mend": one.remedy if one.missing else None,
    }

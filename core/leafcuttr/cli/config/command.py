"""`leafcuttr config`: what settings there are, whether a file is right, what differs from the defaults.

`describe` and `check` need no broker; `diff` connects to one if an option names it. Exit status: 0 done and
nothing wrong, 1 a setting would stop the start or the broker refused or cannot be reached, 2 wrong usage.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from leafcuttr.cli.common.options.target import property_option
from leafcuttr.cli.common.output import count, json_option, print_json, print_table

if TYPE_CHECKING:
    from leafcuttr.cli.config.rows import SettingRow
    from leafcuttr.config.catalog import Catalog
    from leafcuttr.config.findings import ConfigFinding
    from leafcuttr.config.settings import Settings
    from leafcuttr.plugins.table import Plugins

_FILE = click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
_OVERRIDES = click.option(
    "--override",
    "-o",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting as `serve -o` takes it; may be repeated.",
)


@click.group()
def command() -> None:
    """Describe settings, check a file of them, show what differs from the defaults.

    Exit status: 0 done and nothing wrong, 1 a setting would stop the start, or the broker refused or cannot be reached,
    2 wrong usage.
    """


@command.command(short_help="Print settings: value, default, and where each comes from.")
@click.argument("names", nargs=-1)
@click.option(
    "--config",
    "-c",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Show the values that this server.properties file gives.",
)
@_OVERRIDES
@click.option("--topic", "of", flag_value="topic", help="The settings of topics.")
@click.option("--group", "of", flag_value="group", help="The settings of groups.")
@click.option("--dynamic", is_flag=True, help="Only those that change while running.")
@click.option("--honoured", is_flag=True, help="Only those that have an effect in LeafCuttr.")
@json_option
def describe(
    names: tuple[str, ...],
    file: Path | None,
    overrides: tuple[str, ...],
    of: str | None,
    dynamic: bool,
    honoured: bool,
    as_json: bool,
) -> None:
    """Print settings: type, default, value and where it comes from, whether they change while running, what they do.

    Values come from the file, from KAFKA_* variables of the environment and from -o, as for `serve`. NAMES may have
    wildcards; one name that is exact, or several, are printed with all that is known of them.

    \b
    Examples:
      leafcuttr config describe
      leafcuttr config describe 'log.retention.*' -c server.properties
      leafcuttr config describe --topic retention.ms
      leafcuttr config describe --dynamic --json
    """
    from leafcuttr.cli.config.rows import select

    settings, findings, plugins = _examine(file, overrides)
    rows = select(settings, names, of or "broker", dynamic=dynamic, honoured=honoured)
    if not rows:
        _nothing(names, settings.catalog)
    _print_rows(rows, plugins, as_json=as_json, one_by_one=_are_exact(names))
    wrong = [finding for finding in findings if finding.level.value == "error"]
    for finding in wrong:
        click.echo(f"leafcuttr: {finding.line}", err=True)
    if wrong:
        sys.exit(1)


@command.command(short_help="Check a file, the environment and -o, as serve would.")
@_FILE
@_OVERRIDES
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@json_option
def check(file: Path | None, overrides: tuple[str, ...], strict: bool, as_json: bool) -> None:
    """Check a server.properties file, the KAFKA_* variables and -o together, as `serve` would take them.

    Says everything at once: errors (the broker would not start), warnings (it starts and warns), notes (accepted, but
    without effect in LeafCuttr). Nothing is started, no directory and no port is opened: see `leafcuttr doctor`.
    Exit status: 0 without errors, 1 with errors (or with warnings, if --strict), 2 wrong usage.

    \b
    Examples:
      leafcuttr config check server.properties
      leafcuttr config check server.properties -o log.retention.hours=24 --strict
      KAFKA_LOG_DIRS=/data leafcuttr config check --json
    """
    settings, findings, _ = _examine(file, overrides)
    numbers = {
        level: sum(finding.level.value == level for finding in findings)
        for level in ("error", "warning", "note")
    }
    if as_json:
        print_json(
            {**{f"{level}s": number for level, number in numbers.items()}, "findings": _plain(findings)}
        )
    else:
        for finding in findings:
            click.echo(f"{finding.level.value + ':':<9}{finding.line}")
        wrong = {finding.key for finding in findings if finding.level.value == "error"}
        given = len(wrong.union(settings.given_names, settings.extra))
        said = [count(number, level) for level, number in numbers.items() if number]
        click.echo(f"{count(given, 'setting')} given; {', '.join(said) or 'nothing to say'}")
    if numbers["error"] or (strict and numbers["warning"]):
        sys.exit(1)


@command.command(short_help="Print the settings that differ from the defaults.")
@_FILE
@_OVERRIDES
@click.option(
    "--bootstrap-server",
    "-b",
    "address",
    metavar="HOST:PORT",
    help="Take the settings of this broker, of LeafCuttr or of Kafka, instead of a file.",
)
@click.option(
    "--broker", type=int, help="The id of the broker whose settings are compared; the first if left out."
)
@click.option("--topic", help="Compare this topic's settings instead of the broker's.")
@property_option
@json_option
def diff(
    file: Path | None,
    overrides: tuple[str, ...],
    address: str | None,
    broker: int | None,
    topic: str | None,
    properties: tuple[str, ...],
    as_json: bool,
) -> None:
    """Print the settings whose value differs from LeafCuttr's default or from Kafka's.

    Of a file (with KAFKA_* variables and -o, as for `serve`), or of a running broker. Without a file it shows where
    LeafCuttr's own defaults are not Kafka's.

    \b
    Examples:
      leafcuttr config diff
      leafcuttr config diff server.properties
      leafcuttr config diff -b localhost:9092
      leafcuttr config diff -b localhost:9092 --topic orders --json
    """
    from leafcuttr.cli.config.rows import differences, of_broker, of_settings

    if address is None:
        if broker is not None or topic is not None:
            raise click.UsageError("--broker and --topic need --bootstrap-server")
        settings, findings, _ = _examine(file, overrides)
        catalog = settings.catalog
        for finding in findings:
            if finding.level.value == "error":
                click.echo(f"leafcuttr: {finding.line}", err=True)
        values = of_settings(settings)
        wrong = any(finding.level.value == "error" for finding in findings)
    else:
        if file is not None or overrides:
            raise click.UsageError("a file and -o are of no use with --bootstrap-server")
        values, wrong = of_broker(address, properties, broker, topic), False
        catalog = _examine(None, ())[0].catalog
    rows = list(differences(catalog, values, of_topic=topic is not None))
    if as_json:
        print_json([row._asdict() for row in rows])
    elif rows:
        cells = [[_shown(cell) for cell in row] for row in rows]
        print_table(("SETTING", "VALUE", "SOURCE", "LEAFCUTTR'S DEFAULT", "KAFKA'S DEFAULT"), cells)
    else:
        click.echo("nothing differs from the defaults")
    if wrong:
        sys.exit(1)


def _shown(cell: str | None) -> str:
    return "(none)" if cell is None else cell or '""'


def _examine(
    file: Path | None, overrides: tuple[str, ...]
) -> "tuple[Settings, list[ConfigFinding], Plugins]":
    """What `serve` would have: the settings, the findings about them and about plugins, and the plugins."""
    from leafcuttr.errors import ConfigError, StartError
    from leafcuttr.plugins.catalogue import examine_all

    try:
        return examine_all(file, os.environ, overrides)
    except (ConfigError, StartError) as error:
        raise click.UsageError(str(error)) from None


def _are_exact(names: tuple[str, ...]) -> bool:
    return bool(names) and not any(set(name) & set("*?[") for name in names)


def _print_rows(rows: "list[SettingRow]", plugins: "Plugins", *, as_json: bool, one_by_one: bool) -> None:
    """Our own settings, then those of each plugin under a line with its state."""
    from itertools import groupby

    from leafcuttr.cli.config.rows import details, settings_table

    states = {one.name: one.state.value + (f": {one.why}" if one.why else "") for one in plugins.all}
    if as_json:
        state_of = {one.name: one.state.value for one in plugins.all}
        print_json([{**row.json, "plugin_state": state_of.get(row.plugin or "")} for row in rows])
    elif one_by_one:
        said = [(row, f"{row.plugin} ({states[row.plugin]})" if row.plugin else "") for row in rows]
        click.echo("\n\n".join(details(row, plugin) for row, plugin in said))
    else:
        for number, (plugin, own) in enumerate(groupby(rows, lambda row: row.plugin)):
            if plugin is not None:
                click.echo("\n" * (number > 0) + f"plugin {plugin} ({states[plugin]})")
            print_table(*settings_table(list(own)))


def _plain(findings: "list[ConfigFinding]") -> list[dict[str, str | None]]:
    return [
        {
            "level": finding.level.value,
            "setting": finding.key,
            "value": finding.value,
            "source": finding.source,
            "message": finding.line,
        }
        for finding in findings
    ]


def _nothing(names: tuple[str, ...], catalog: "Catalog") -> NoReturn:
    from leafcuttr.config.findings import nearest

    meant = nearest(names[0], catalog) if len(names) == 1 else None
    hint = f"; did you mean {meant}?" if meant else ""
    raise click.UsageError(f"no setting is called {' or '.join(names)}{hint}" if names else "no such setting")

"""`leafcuttr plugins describe`: one plugin with everything that it brings."""

import difflib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.output import json_option, print_json, print_table, printable
from leafcuttr.cli.plugins.list_plugins import plain
from leafcuttr.cli.plugins.options import settings_here, settings_options
from leafcuttr.plugins.switch import how_to

if TYPE_CHECKING:
    from leafcuttr.config.settings import Settings
    from leafcuttr.plugins.loaded import Loaded
    from leafcuttr.plugins.table import Plugins
    from leafcuttr_sdk.settings import Setting

_PROVIDER: Final = {"attribute": "Broker.schemas", "summary": "where plugins of this broker find schemas"}
"""The provider itself is made with a broker."""


@click.command(short_help="Print one plugin: its state, settings and parts.")
@click.argument("name")
@settings_options
@json_option
def describe(name: str, file: Path | None, overrides: tuple[str, ...], as_json: bool) -> None:
    """Print one plugin: where it comes from, what switches it on, and everything that it brings.

    Its hooks say what it brings, whether or not it is switched on; nothing is started. Exit status: 0 done,
    1 the plugin has failed or is not there, 2 wrong usage.

    \b
    Examples:
      leafcuttr plugins describe http
      leafcuttr plugins describe http --json
    """
    settings, plugins = settings_here(file, overrides)
    one = plugins.get(name)
    if one is None:
        raise Failure(_unknown(name, plugins))
    brought = brings(one, settings)
    if as_json:
        print_json({**plain(one), "hooks": list(one.hooks.names) if one.hooks else [], **brought})
    else:
        _print(one, brought)
    if one.state.value == "failed":
        sys.exit(1)


def brings(one: "Loaded", settings: "Settings") -> dict[str, list[dict[str, Any]]]:
    """By kind, what those of its hooks return that do not need a broker. One that fails makes it a failed plugin."""
    from leafcuttr.errors import PluginError
    from leafcuttr.plugins.loaded import PluginState

    try:
        return {
            kind: [thing if isinstance(thing, dict) else _plain(thing) for thing in things]
            for kind, things in _brought(one, settings)
        }
    except PluginError as error:
        one.state, one.why = PluginState.FAILED, str(error)
        return {}


def _brought(one: "Loaded", settings: "Settings") -> "Iterator[tuple[str, Sequence[Any]]]":
    from leafcuttr.plugins import registration
    from leafcuttr.plugins.implied import record_filters_of

    yield "settings", one.settings
    yield "topic_settings", one.topic_settings
    if one.hooks is not None:
        yield "services", one.hooks.call(registration.SERVICES)
        yield "record_filters", record_filters_of(one, settings)
        yield "produce_validators", one.hooks.call(registration.PRODUCE_VALIDATORS)
        yield "authorizers", one.hooks.call(registration.AUTHORIZERS)
        yield "record_formats", one.hooks.call(registration.RECORD_FORMATS)
        yield "schema_formats", one.hooks.call(registration.SCHEMA_FORMATS)
        if registration.SCHEMA_PROVIDER in one.hooks.names:
            yield "schema_provider", [_PROVIDER]
        yield "cli_commands", one.hooks.call(registration.CLI_COMMANDS)


def _plain(thing: Any) -> dict[str, Any]:
    from leafcuttr_sdk.filters import ProduceValidatorSpec, RecordFilterSpec
    from leafcuttr_sdk.peek import words_of
    from leafcuttr_sdk.services import ServiceSpec
    from leafcuttr_sdk.settings import Setting

    if isinstance(thing, Setting):
        return _setting(thing)
    if isinstance(thing, ServiceSpec):
        return {"name": thing.name, "needs": list(thing.needs)}
    if callable(getattr(thing, "open", None)):  # a record format, which is a protocol
        makes = callable(getattr(thing, "make_records", None))
        return {"name": thing.name, "summary": thing.summary, "makes_records": makes}
    if isinstance(thing, RecordFilterSpec | ProduceValidatorSpec):
        plain = {"name": thing.name, "summary": thing.summary, "implied_by": list(thing.implied_by)}
        if isinstance(thing, ProduceValidatorSpec):
            plain["needs"] = "whole records" if thing.peek is None else words_of(thing.peek)
        return plain
    return {"name": thing.name, "summary": thing.summary}


def _setting(setting: "Setting") -> dict[str, Any]:
    return {
        "name": setting.name,
        "type": setting.type.value,
        "default": None if setting.type.value == "password" else setting.default,
        "unit": setting.unit or None,
        "dynamic": setting.dynamic,
        "help": setting.help,
    }


def _print(one: "Loaded", brought: dict[str, list[dict[str, Any]]]) -> None:
    plugin = one.plugin
    facts = {
        "summary": plugin.summary if plugin else None,
        "state": one.state.value + (f": {one.why}" if one.why else ""),
        "from": f"{one.origin} in {one.origin.place}" if one.origin.distribution else str(one.origin),
        "module": one.module,
        "switched on by": (
            how_to(plugin.enabled_by, one.settings) if plugin.enabled_by else "nothing: it is on"
        )
        if plugin
        else None,
        "extra": plugin.extra if plugin else None,
        "hooks": ", ".join(one.hooks.names) if one.hooks else None,
        "remarks": "; ".join(one.remarks),
    }
    click.echo(one.name)
    for label, text in facts.items():
        if text:
            click.echo(printable(f"  {label + ':':<16}{text}"))
    for kind, things in brought.items():
        if things:
            click.echo(f"\n{kind.replace('_', ' ')}")
            columns = [column for column in things[0] if column not in ("unit", "dynamic")]
            if not any(thing.get("implied_by") for thing in things):
                columns = [column for column in columns if column != "implied_by"]
            print_table(
                [column.upper().replace("_", " ") for column in columns],
                [[_cell(thing[column]) for column in columns] for thing in things],
            )


def _cell(value: object) -> object:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or None
    return str(value).lower() if isinstance(value, bool) else value


def _unknown(name: str, plugins: "Plugins") -> str:
    names = [one.name for one in plugins.all]
    near = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names) or 'none'}"
    return f"no plugin {name} is installed: {hint}"

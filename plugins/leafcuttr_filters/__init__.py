"""Record filters and transforms that a person names by settings: `lc.record.filter.<name>=<type> <option>=<value> ...`.

This module is imported at every start, also where no filter is named: it says what there is and imports nothing heavy.

    settings        what can be set
    `definitions`   the language of that setting: types, options, and the table of both
    specs           what the broker gets of it
    making          an instance of a definition for one topic: conditions, what becomes of errors
    `documents`     keys and values as JSON, by schemas too, and fields in them
    `selecting`     filters that keep, drop or set aside
    `transforms`    filters that change records
    functions       filters that are Python functions
    `people`        the command `filters`
    reference       the page of the reference, made from the table
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from leafcuttr_sdk.plugin import Plugin

if TYPE_CHECKING:
    import click

    from leafcuttr_sdk.cli import CliCommand
    from leafcuttr_sdk.filters import RecordFilterSpec
    from leafcuttr_sdk.settings import Setting, Settings

PLUGIN: Final = Plugin(
    name="filters",
    api_version=1,
    summary="Record filters and transforms by settings: allow, mask, cast, route, de-duplicate and more",
    enabled_by="lc.record.filter.<name>",
)


def leafcuttr_register_settings() -> "Iterable[Setting]":
    from leafcuttr_filters.settings import settings

    return settings()


def leafcuttr_register_record_filters(settings: "Settings") -> "Iterable[RecordFilterSpec]":
    from leafcuttr_filters.specs import filters

    return filters(settings)


def leafcuttr_register_cli_commands() -> "Iterable[CliCommand]":
    from leafcuttr_sdk.cli import CliCommand

    return [CliCommand("filters", "list types of record filters, and try some on a sample", _filters)]


def _filters() -> "click.Command":
    from leafcuttr_filters.people.command import filters

    return filters

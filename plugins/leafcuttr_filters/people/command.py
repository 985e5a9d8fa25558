"""`leafcuttr filters`: types of filters, and what filters make of the records of a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from leafcuttr_filters.definitions.table import COMMON, TYPES, FilterType
from leafcuttr_filters.people.samples import records_of
from leafcuttr_filters.settings import FILTER
from leafcuttr_sdk.cli import command_context, json_option
from leafcuttr_sdk.filters import DeadLetter, Drop, FilterFailure, NotReady, Outcome, Routed
from leafcuttr_sdk.properties import parse_properties
from leafcuttr_sdk.records import Record

_PREFIX = FILTER.partition("<")[0]


@click.group("filters", short_help="List types of record filters; try some on a sample.")
def filters() -> None:
    """List the types of record filters that settings can name, and try filters on the records of a file.

    \b
    Examples:
      leafcuttr filters list
      leafcuttr filters test --filter 'mask patterns=card keep=4' --sample records.jsonl
    """


@filters.command("list", short_help="List the types of filters.")
@json_option
def list_types() -> None:
    """List the types of filters. Exit status: 0 done, 2 wrong usage.

    \b
    Examples:
      leafcuttr filters list
      leafcuttr filters list --json
    """
    context = command_context()
    if context.as_json:
        context.print_json([_plain(kind) for kind in TYPES])
    else:
        context.print_table(("TYPE", "WHAT IT DOES"), [(kind.name, kind.summary) for kind in TYPES])


@filters.command("describe", short_help="Print one type with its options.")
@click.argument("kind", metavar="TYPE")
@json_option
def describe(kind: str) -> None:
    """Print one type of filters: what it does, its options and an example. Exit status: 0 done, 2 wrong usage.

    \b
    Examples:
      leafcuttr filters describe mask
    """
    context = command_context()
    found = next((one for one in TYPES if one.name == kind), None)
    if found is None:
        raise click.UsageError(
            f"there is no type of filter {kind!r}; there are {', '.join(one.name for one in TYPES)}"
        )
    if context.as_json:
        context.print_json(_plain(found))
        return
    context.print_line(f"{found.name}: {found.summary}")
    if found.connect:
        context.print_line(f"Kafka Connect: {found.connect}")
    context.print_line(f"{_PREFIX}example={found.example}")
    context.print_line("")
    rows = [
        (
            one["name"],
            "needed" if one["required"] else one["default"],
            one["allowed"],
            one["help"].replace("`", ""),
        )
        for one in _plain(found)["options"]
    ]
    context.print_table(("OPTION", "DEFAULT", "VALUE", "WHAT IT DOES"), rows)


@filters.command("test", short_help="Show what filters make of the records of a file.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--filter",
    "definitions",
    multiple=True,
    metavar="DEFINITION",
    help="A filter by its type and options; behind those of NAMES; may be repeated.",
)
@click.option(
    "--sample",
    type=click.File("rb"),
    required=True,
    metavar="FILE",
    help="A record on each line; - is standard input.",
)
@click.option(
    "--records",
    "whole",
    is_flag=True,
    help="Lines are records in JSON, as `consume --json` prints them, not values.",
)
@click.option("--key-separator", metavar="TEXT", help="What stands between key and value on a line.")
@click.option("--topic", default="test", show_default=True, help="The topic of the records.")
@click.option(
    "--config",
    "-c",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The server.properties file that names the filters.",
)
@click.option(
    "--override",
    "-o",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting as `serve -o` takes it; may be repeated.",
)
@json_option
def test(
    names: tuple[str, ...],
    definitions: tuple[str, ...],
    sample: Any,
    whole: bool,
    key_separator: str | None,
    topic: str,
    file: Path | None,
    overrides: tuple[str, ...],
) -> None:
    """Show what filters make of the records of a file, one behind the other. Nothing is sent, and no broker is needed.

    Exit status: 0 done, 1 a filter is not there or has failed on a record, 2 wrong usage.

    \b
    Examples:
      leafcuttr filters test --filter 'deny condition="value.level == 1"' --sample records.jsonl
      leafcuttr filters test mask allow -c server.properties --sample - --json
    """
    context = command_context()
    settings = _settings(file, overrides)
    made = [f"filter-{number}" for number in range(1, len(definitions) + 1)]
    settings.update({_PREFIX + name: text for name, text in zip(made, definitions, strict=True)})
    if not names and not made:
        raise click.UsageError("name filters, or give some by --filter")
    try:
        records = list(records_of(sample.read(), whole=whole, key_separator=key_separator))
    except ValueError as error:
        raise click.UsageError(f"--sample: {error}") from None
    chain = context.record_filters((*names, *made), topic, settings)
    try:
        outcomes = chain.filter(records)
    finally:
        chain.close()
    rows = [_row(number, *pair) for number, pair in enumerate(zip(records, outcomes, strict=False), 1)]
    if context.as_json:
        context.print_json(rows)
    else:
        columns = ("record", "verdict", "detail", "key", "value", "headers")
        context.print_table(
            [name.upper() for name in columns], [[_cell(row[name]) for name in columns] for row in rows]
        )
    if any(row["verdict"] in ("failed", "not ready") for row in rows):
        raise SystemExit(1)


def _settings(file: Path | None, overrides: Sequence[str]) -> dict[str, str]:
    """Those that matter here: filters, and where other plugins are. Raises click.UsageError."""
    found: dict[str, str] = {}
    if file is not None:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise click.UsageError(f"{file}: {error}") from None
        found = {one.key: one.value for one in parse_properties(text)}
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise click.UsageError(f"-o {override}: allowed is key=value")
        found[key.strip()] = value
    return found


def _row(number: int, record: Record, outcome: Outcome) -> dict[str, Any]:
    verdict, detail, left = _told(record, outcome)
    row: dict[str, Any] = {
        "record": number,
        "verdict": verdict,
        "detail": detail,
        "key": None,
        "value": None,
        "headers": {},
    }
    if left is not None:
        row["key"], row["value"] = _text(left.key), _text(left.value)
        row["headers"] = {name: _text(value) for name, value in left.headers}
    return row


def _told(record: Record, outcome: Outcome) -> tuple[str, str | None, Record | None]:
    """The verdict in a word or two, what belongs to it, and the record that is left."""
    if isinstance(outcome, Drop):
        return "dropped", None, None
    if isinstance(outcome, DeadLetter):
        to = f" (to {outcome.topic})" if outcome.topic else ""
        return "dead letter", f"{outcome.reason}{to}", outcome.record
    if isinstance(outcome, Routed):
        return "routed", outcome.topic, outcome.record
    if isinstance(outcome, NotReady):
        return "not ready", outcome.waits_for, record
    if isinstance(outcome, FilterFailure):
        return "failed", f"{outcome.filter}: {outcome.reason}", record
    return ("kept" if outcome is record else "changed"), None, outcome


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="backslashreplace")


def _cell(value: Any) -> Any:
    if isinstance(value, dict):
        return ",".join(f"{name}={text}" for name, text in value.items()) or None  # pyright: ignore
    return value


def _plain(kind: FilterType) -> dict[str, Any]:
    return {
        "name": kind.name,
        "summary": kind.summary,
        "connect": kind.connect or None,
        "example": kind.example,
        "on_error": kind.on_error,
        "options": [
            {
                "name": one.name,
                "required": one.required,
                "default": one.default or (kind.on_error if one.name == "on.error" else None),
                "allowed": (one.kind.__doc__ or "").strip().replace("`", ""),
                "help": one.help,
            }
            for one in (*kind.options, *COMMON)
        ],
    }

"""The page of the reference, from the table of types:
`python -m leafcuttr_filters.reference > docs/reference/filters.md`. A test compares the committed page with it."""

import sys
from collections.abc import Iterable, Iterator
from typing import Final

from leafcuttr_filters.definitions.table import COMMON, TYPES, FilterOption, FilterType

_HEAD: Final = """\
# Types of record filters

Each setting `lc.record.filter.<name>=<type> <option>=<value> ...` makes a filter of that name, which topics name in
`lc.filters`, relays by `--filter`, and MQTT's way down by `mqtt.egress.filters`.
[Filter and transform records](../how-to/filters.md) shows how; `leafcuttr filters describe TYPE` prints what is here.

- A value with spaces stands in single or double quotes. Within them a backslash before the quote or another backslash
  takes it as it is; any other backslash is itself. In a properties file each backslash has to be written twice.
- A field is named by its path: `order.total`. A name with a dot in it stands in backticks: `` `a.b`.c ``.
- Regular expressions are Python's, without what has no bound for its time: backreferences, lookahead and lookbehind.
  Those that replace something are refused if they could take long.
- Durations have a unit: `ms s m h d w`.
- Where Kafka Connect has such a transform, the filter makes of a JSON value without schema what that makes of it, and
  options have Connect's names.

## Options of all types

"""


def page() -> str:
    """The whole page, as Markdown."""
    return _HEAD + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from _table(COMMON, None)
    for kind in TYPES:
        yield f"\n## {kind.name}\n"
        yield f"It {kind.summary}.{f' Connect: {kind.connect}.' if kind.connect else ''}\n"
        yield f"```properties\nlc.record.filter.example={_escaped(kind.example)}\n```\n"
        yield f"What it cannot handle: `on.error={kind.on_error}`, unless another value is given."
        if kind.options:
            yield ""
            yield from _table(kind.options, kind)


def _table(options: Iterable[FilterOption], _: FilterType | None) -> Iterator[str]:
    yield "| option | value | default | what it does |"
    yield "|---|---|---|---|"
    for one in options:
        default = "needed" if one.required else f"`{one.default}`" if one.default is not None else ""
        yield f"| `{one.name}` | {_allowed(one)} | {default} | {one.help} |"


def _allowed(option: FilterOption) -> str:
    return (option.kind.__doc__ or "").strip().rstrip(".")


def _escaped(text: str) -> str:
    """As it stands in a properties file."""
    return text.replace("\\", "\\\\")


if __name__ == "__main__":
    sys.stdout.write(page())

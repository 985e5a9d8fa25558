"""The text of a setting to a `Definition`. Raises ValueError with one line: what was given, and what is allowed.

A value of an option that has spaces stands in quotes, single or double; there a backslash before the quote or before a
backslash takes it as it is, and any other backslash is itself, as in conditions. Outside of quotes all is as written.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from leafcuttr_filters.definitions.table import COMMON, TYPES, FilterOption, FilterType

MOST_CHARACTERS: Final = 20_000
_BLANKS: Final = re.compile(r"\s*")
_NAME: Final = re.compile(r"[a-z][a-z0-9.-]*")
_QUOTED: Final = {
    quote: re.compile(rf"{quote}((?:[^{quote}\\]|\\.)*){quote}(?=\s|\Z)", re.DOTALL) for quote in "'\""
}
_PLAIN: Final = re.compile(r"\S*")


class Definition(NamedTuple):
    """A filter as a person defined it: its type, and a value for each option of the type; None for one that was not
    given and has no default."""

    type: FilterType
    values: Mapping[str, Any]

    @property
    def on_error(self) -> str:
        """What becomes of a record that the filter cannot handle: `drop`, `dead-letter` or `fail`."""
        given: str | None = self.values["on.error"]
        return given or self.type.on_error


def parse_definition(text: str) -> Definition:
    """Raises ValueError."""
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"a filter of {len(text)} characters, and it may have {MOST_CHARACTERS}")
    word, _, rest = text.strip().partition(" ")
    kind = next((one for one in TYPES if one.name == word), None)
    if kind is None:
        what = f"there is no type of filter {word!r}" if word else "the type of the filter is missing"
        raise ValueError(f"{what}; {_nearest(word, [one.name for one in TYPES])}")
    options = {one.name: one for one in (*kind.options, *COMMON)}
    values: dict[str, Any] = {}
    for name, given in _options(rest):
        option = options.get(name)
        if option is None:
            raise ValueError(f"{kind.name} has no option {name!r}; {_nearest(name, list(options))}")
        if name in values:
            raise ValueError(f"{name} is given twice")
        values[name] = _value(option, given)
    for one in options.values():
        if one.name not in values:
            if one.required:
                raise ValueError(f"{kind.name} needs {one.name}: {one.help}")
            values[one.name] = one.default if one.default is None else _value(one, one.default)
    wrong = kind.check(values) if kind.check is not None else None
    if wrong:
        raise ValueError(wrong)
    return Definition(kind, values)


def quoted(value: str) -> str:
    """The value as it stands in a definition."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _value(option: FilterOption, given: str) -> Any:
    try:
        return option.kind(given)
    except ValueError as error:
        raise ValueError(f"{option.name}={given}: {error}") from None


def _options(text: str) -> Iterator[tuple[str, str]]:
    at = _end(_BLANKS, text, 0)
    while at < len(text):
        name = _NAME.match(text, at)
        if name is None or not text.startswith("=", name.end()):
            shown = text[at : at + 30]
            raise ValueError(f"expected option=value, not {shown!r}; a value with spaces stands in quotes")
        at = name.end() + 1
        quote = _QUOTED.get(text[at : at + 1])
        if quote is None:
            end = _end(_PLAIN, text, at)
            yield name[0], text[at:end]
        else:
            found = quote.match(text, at)
            if found is None:
                raise ValueError(f"the value of {name[0]} has no end: {text[at : at + 30]!r}")
            end = found.end()
            yield name[0], re.sub(rf"\\([\\{text[at]}])", r"\1", found[1])
        at = _end(_BLANKS, text, end)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    assert found is not None  # every text begins with none of it
    return found.end()


def _nearest(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"

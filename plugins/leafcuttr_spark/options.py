"""Options as Spark hands them over: names in any case, values as texts. The tables of options are made of `Option`.

An option that is unknown, or whose value is not allowed, is refused with one line.
"""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from enum import Flag, auto
from typing import Any, Final, NamedTuple

CLIENT_PREFIX: Final = "kafka."
"""In front of the properties of Kafka's clients."""


class OptionError(ValueError):
    """An option that cannot be used. The message is the line for the person who has set it."""


class Query(Flag):
    """The kinds of queries that an option is for."""

    BATCH = auto()
    STREAM = auto()
    BOTH = BATCH | STREAM


class Option(NamedTuple):
    """One option, as tables and pages have it."""

    name: str
    value: str
    """What it may be, in words."""
    default: str
    """As it is written; empty where there is none."""
    what: str
    query: Query = Query.BOTH
    ignored: bool = False
    """It is accepted and has no meaning; `what` says why."""


def sorted_out(given: Mapping[str, Any], table: Iterable[Option]) -> tuple[dict[str, str], dict[str, str]]:
    """The options of the table that are given, by their names in small letters, and the properties of the client.
    Raises OptionError for one that is in neither."""
    names = {one.name.lower(): one.name for one in table}
    known: dict[str, str] = {}
    client: dict[str, str] = {}
    for name, value in given.items():
        lower = name.lower()
        # A name of the table may begin as properties do: kafkaConsumer.pollTimeoutMs does not, kafka.group.id may.
        if lower in names:
            known[lower] = str(value)
        elif lower.startswith(CLIENT_PREFIX):
            client[lower.removeprefix(CLIENT_PREFIX)] = str(value)
        else:
            raise OptionError(f"there is no option {name}{_nearest(lower, names)}")
    return known, client


def client_options(
    given: Mapping[str, Any], table: Iterable[Option], refused: Mapping[str, str]
) -> "tuple[Values, dict[str, str]]":
    """The values of the table's options, and the properties of the client. `refused` says of properties why they are
    not allowed. Raises OptionError for those, and without an address."""
    known, client = sorted_out(given, table)
    values = Values(known, table)
    for name, why in refused.items():
        if name in client:
            raise OptionError(f"the option kafka.{name} is not allowed: {why}")
    if not (servers := values.text("kafka.bootstrap.servers")):
        raise OptionError("the option kafka.bootstrap.servers is missing")
    return values, {**client, "bootstrap.servers": servers}


def _nearest(name: str, names: Mapping[str, str]) -> str:
    found = difflib.get_close_matches(name, [*names, "kafka.bootstrap.servers"], n=1, cutoff=0.6)
    return f": did you mean {names.get(found[0], found[0])}?" if found else ""


class Values:
    """Reads the values of options that were sorted out. Each method raises OptionError for one that is not allowed."""

    def __init__(self, known: Mapping[str, str], table: Iterable[Option]) -> None:
        self._known = known
        self._names = {one.name.lower(): one.name for one in table}

    def text(self, name: str, default: str = "") -> str:
        """The value without blanks around it."""
        assert name.lower() in self._names, name
        return self._known.get(name.lower(), default).strip()

    def has(self, name: str) -> bool:
        """Whether it is given, as an empty text too."""
        return name.lower() in self._known

    def boolean(self, name: str, default: bool) -> bool:
        text = self.text(name, "true" if default else "false").lower()
        if text not in ("true", "false"):
            raise self.wrong(name, "true or false")
        return text == "true"

    def positive(self, name: str) -> int | None:
        """None where it is not given."""
        if not self.has(name):
            return None
        number = self.number(name)
        if number <= 0:
            raise self.wrong(name, "a number above 0")
        return number

    def number(self, name: str) -> int:
        text = self.text(name)
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or not -(1 << 63) <= int(text) < 1 << 63:
            raise self.wrong(name, "a number")
        return int(text)

    def one_of(self, name: str, default: str, allowed: Iterable[str]) -> str:
        """In small letters."""
        text = self.text(name, default).lower()
        if text not in (found := tuple(allowed)):
            raise self.wrong(name, " or ".join(found))
        return text

    def json(self, name: str, allowed: str, read: Callable[[Any], Any]) -> Any:
        """What `read` makes of the JSON text, which raises ValueError, TypeError or AttributeError for another."""
        try:
            return read(json.loads(self.text(name), object_pairs_hook=_once))
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise self.wrong(name, allowed) from None

    def wrong(self, name: str, allowed: str) -> OptionError:
        """The error for its value."""
        value = self.text(name)
        shown = value if len(value) <= 60 else f"{value[:57]}..."
        return OptionError(f"the option {name} has the value {shown!r}; allowed is {allowed}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice")
    return found


_UNITS_MS: Final = {
    "us": 0.001,
    "microsecond": 0.001,
    "ms": 1.0,
    "millisecond": 1.0,
    "s": 1000.0,
    "sec": 1000.0,
    "second": 1000.0,
    "m": 60_000.0,
    "min": 60_000.0,
    "minute": 60_000.0,
    "h": 3_600_000.0,
    "hour": 3_600_000.0,
    "d": 86_400_000.0,
    "day": 86_400_000.0,
}


def milliseconds(text: str) -> float | None:
    """A time with its unit as Spark writes it (`15m`, `30 seconds`; without a unit milliseconds); None for none."""
    match = re.fullmatch(r"\s*([0-9]{1,15})\s*([a-z]*)\s*", text.lower())
    if match is None:
        return None
    unit = match[2] or "ms"
    factor = _UNITS_MS.get(unit, _UNITS_MS.get(unit.removesuffix("s")) if len(unit) > 2 else None)
    return None if factor is None else int(match[1]) * factor

"""What a setting is: its type, default, range, unit, help, effect; how its text is read and written.

The tables (`log_settings`, `network_settings`, ...) are made of these; values and their sources live in
`settings`. Types, ranges and the wording of a refusal are those of Kafka 4.3's own definitions, because tools
show them to people who know them from Kafka.
"""

import re
from collections.abc import Callable, Sequence
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from leafcuttr_sdk.settings import SettingFinding, Settings

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
DOUBLE_MAX: Final = 1.7976931348623157e308

_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?\Z")
_COMMA = re.compile(r"\s*,\s*")


class ConfigType(IntEnum):
    """The type of a value. The number is the one on the wire of DescribeConfigs (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = ConfigType

_BITS: Final = {ConfigType.INT: 31, ConfigType.SHORT: 15, ConfigType.LONG: 63}


class Effect(Enum):
    """What a value other than the default does here."""

    HONOURED = "honoured"
    NONE = "accepted without effect"
    REFUSED = "refused"


class BadValueError(ValueError):
    """A value that its setting does not take. The text is the reason alone, in Kafka's words.

    `shown` is what Kafka names as the bad value when that is not the whole text: one element of a list.
    """

    def __init__(self, reason: str, shown: str | None = None) -> None:
        super().__init__(reason)
        self.shown = shown


class Override(NamedTuple):
    """The setting that a topic overrides one of the broker's with: its name, and what its row has otherwise.

    Kafka bounds a broker setting without a value of its own only for topics, so `minimum` may be the topic's alone.
    `default` is needed where the broker's row and those it falls back on have none.
    """

    name: str
    help: str = ""
    minimum: float | None = None
    default: Value = None


class ConfigKey(NamedTuple):
    """One row of a table.

    `unit` is for people ("ms", "bytes", ""). `dynamic` says whether it can be changed while the broker runs;
    `per_broker` whether a change may only be made for one broker, not as the cluster's default. `synonyms`
    are the names that give the value when this one does not, best first, each with the factor that turns its
    value into ours: for a topic setting the broker's names. `overridden_by` is the topic setting that has this one as
    its default. `reason` is one clause that says why `effect` is not HONOURED.

    A name such as `lc.filters.<topic or pattern>` is that of a family: any text may stand in the brackets' place. A
    family has no value itself; each member has its own row, made of this one. `check_member` also gets what stands
    there. `check_with_others` and `check_file`, of a plugin's setting, get the whole name, the plugin's settings and
    the value.
    """

    name: str
    type: ConfigType
    default: Value
    help: str
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    ignore_case: bool = False
    check: Callable[[Value], str | None] | None = None
    check_member: Callable[[str, Value], str | None] | None = None
    check_with_others: "Callable[[str, Settings, Value], str | None] | None" = None
    check_file: "Callable[[str, Settings, Value], Sequence[SettingFinding]] | None" = None
    dynamic: bool = False
    per_broker: bool = False
    synonyms: tuple[tuple[str, int], ...] = ()
    effect: Effect = Effect.HONOURED
    reason: str = ""
    overridden_by: Override | None = None

    @property
    def is_ours(self) -> bool:
        """Kafka has none of this name."""
        return self.name.startswith("lc.")

    @property
    def is_family(self) -> bool:
        return self.name.endswith(">")

    @property
    def prefix(self) -> str:
        """What the names of a family begin with."""
        return self.name.partition("<")[0]

    @property
    def sensitive(self) -> bool:
        """A secret: its value never leaves the process, not even to a log line."""
        return self.type is ConfigType.PASSWORD

    def member(self, name: str) -> "ConfigKey":
        """The row of the member of this family that has this whole name."""
        check, check_member = self.check, self.check_member
        if check_member is None:
            return self._replace(name=name)
        place = name.removeprefix(self.prefix)

        def both(value: Value) -> str | None:
            return (check(value) if check is not None else None) or check_member(place, value)

        return self._replace(name=name, check=both, check_member=None)

    def no_member(self) -> "ConfigKey":
        """The row for the beginning of this family alone, with nothing in the brackets' place: it takes no value."""
        place = self.name.removeprefix(self.prefix)
        why = f"after {self.prefix} there has to be something, in the place of {place}"
        return self._replace(
            name=self.prefix, choices=(), minimum=None, check=lambda _: why, check_member=None
        )

    def parse(self, text: str) -> Value:
        """The typed value of a text. Raises BadValueError with the reason."""
        value = _read(self.type, text)
        self.validate(value)
        return value

    def refusal(self, text: str, error: BadValueError) -> str:
        """Kafka's sentence about a text that `parse` refused; a secret stays out of it."""
        shown = "[hidden]" if self.sensitive else text if error.shown is None else error.shown
        return f"Invalid value {shown} for configuration {self.name}: {error}"

    def refuses(self, value: Value) -> str | None:
        """Kafka's sentence, or ours, about a valid value that would be a false promise; None if it is not."""
        if self.effect is not Effect.REFUSED or value == self.default or value in ("", ()):
            return None
        if self.reason.endswith("."):
            return self.reason
        return f"Invalid value {render(value)} for configuration {self.name}: {self.reason}"

    def validate(self, value: Value) -> None:
        """Check range and choices of a typed value. Raises BadValueError with the reason."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            if self.check is not None and (reason := self.check(value)) is not None:
                raise BadValueError(reason, render(value))
            if self.minimum is not None and value < self.minimum:
                raise BadValueError(f"Value must be at least {self._bound(self.minimum)}", render(value))
            if self.maximum is not None and value > self.maximum:
                raise BadValueError(f"Value must be no more than {self._bound(self.maximum)}", render(value))
            return
        if self.choices:
            self._check_choices(value)
        if self.check is not None and (reason := self.check(value)) is not None:
            shown = f"[{', '.join(value)}]" if isinstance(value, tuple) else None
            raise BadValueError(reason.replace("{name}", self.name), shown)

    def allowed(self, instead_of: str = "") -> str:
        """The values it takes, for a person: `true or false`, `at least 1`, `one of gzip, lz4`.

        Where the text that stood there is a whole number beyond those of the type, both ends of the range.
        """
        if self.type is ConfigType.BOOLEAN:
            return "true or false"
        if self.choices:
            of = "any of" if self.type is ConfigType.LIST else "one of"
            return f"{of} {', '.join(self.choices)}"
        if self.type not in _BITS and self.type is not ConfigType.DOUBLE:
            return ""
        kind = "a number" if self.type is ConfigType.DOUBLE else "a whole number"
        least, most = self.minimum, self.maximum
        if self.type in _BITS and _INTEGER.match(instead_of) and not _holds(self.type, instead_of):
            bits = _BITS[self.type]
            least = -(2**bits) if least is None else least
            most = 2**bits - 1 if most is None else most
        if least is not None and most is not None:
            return f"{kind} from {self._bound(least)} to {self._bound(most)}"
        if least is not None:
            return f"{kind}, at least {self._bound(least)}"
        return kind

    def _check_choices(self, value: Value) -> None:
        if isinstance(value, tuple):
            for one in value:
                if one not in self.choices:
                    raise BadValueError(f"String must be one of: {', '.join(self.choices)}", one)
        elif isinstance(value, str):
            known = [c.upper() for c in self.choices] if self.ignore_case else self.choices
            if (value.upper() if self.ignore_case else value) not in known:
                words = (
                    "String must be one of (case insensitive)"
                    if self.ignore_case
                    else "String must be one of"
                )
                raise BadValueError(f"{words}: {', '.join(self.choices)}")

    def _bound(self, bound: float) -> str:
        return f"{bound:g}" if self.type is ConfigType.DOUBLE else f"{int(bound)}"


def _holds(kind: ConfigType, whole: str) -> bool:
    """Whether a type of whole numbers has this one."""
    return len(whole) <= 20 and -(2 ** _BITS[kind]) <= int(whole) < 2 ** _BITS[kind]


def _read(kind: ConfigType, text: str) -> Value:
    if kind is ConfigType.PASSWORD:
        return text
    text = text.strip()
    if kind is ConfigType.BOOLEAN:
        match text.lower():
            case "true":
                return True
            case "false":
                return False
        raise BadValueError("Expected value to be either true or false")
    if kind in _BITS:
        if not _INTEGER.match(text) or not _holds(kind, text):
            raise BadValueError(f"Not a number of type {kind.name}")
        return int(text)
    if kind is ConfigType.DOUBLE:
        if _DECIMAL.match(text) is None:
            raise BadValueError(f"Not a number of type {kind.name}")
        return float(text)
    if kind is ConfigType.LIST:
        return tuple(_COMMA.split(text)) if text else ()
    return text


def scaled(value: Value, factor: int) -> Value:
    """A value in a unit that is `factor` times smaller. What is not above 0 means something else than a number."""
    return value * factor if type(value) is int and value > 0 else value


def render(value: Value) -> str | None:
    """The text of a typed value as Kafka writes it: `true`, `a,b`, `1.0E9`; None stays None."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return _java_double(value)
    return str(value)


def _java_double(value: float) -> str:
    """Java's Double.toString: plain from 1e-3 to below 1e7, else one digit, a fraction and E."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value) if "e" not in repr(value) else f"{value:f}".rstrip("0")
    mantissa, _, exponent = f"{value:.16e}".partition("e")
    for digits in range(17):
        short = f"{value:.{digits}e}"
        if float(short) == value:
            mantissa, _, exponent = short.partition("e")
            break
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"

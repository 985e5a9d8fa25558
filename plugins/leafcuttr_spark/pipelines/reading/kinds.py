"""What values of keys can be: a class for each kind, which reads a node, says in words what is allowed, and as JSON
Schema.

`read` raises WrongValueError for a value that is not allowed. Kinds with values within them say all that is wrong there
by `At.wrong`, and go on; the values that were wrong are left out.

The kinds are in one module because they are one table: each is a few lines, and the larger ones are made of the others.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from leafcuttr_sdk.conditions.times import parse_duration, parse_moment
from leafcuttr_spark.pipelines.errors import Fault
from leafcuttr_spark.pipelines.model import Secrets
from leafcuttr_spark.pipelines.reading.variables import VariableError, Variables, nearest
from leafcuttr_spark.pipelines.reading.yaml_nodes import Entries, Items, Node, Scalar

MOST_FAULTS: Final = 100
_SHOWN: Final = 60
Defs: TypeAlias = dict[str, dict[str, Any]]
"""The `$defs` of a JSON Schema: each part that is met adds itself."""
_WHOLE: Final = re.compile(r"[-+]?[0-9]{1,18}")
_DECIMAL: Final = re.compile(r"[-+]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?")


class WrongValueError(ValueError):
    """A value that is not allowed. The message is what is wrong and what is allowed, without its place."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line
        self.what = what


class TooManyFaultsError(Exception):
    """More is wrong than anybody reads."""


@dataclass(slots=True)
class Faults:
    """All that is wrong, and the place for what comes."""

    variables: Variables
    folder: Path
    found: list[Fault] = field(default_factory=list)
    places: dict[tuple[str, str], int] = field(default_factory=dict)
    """The lines of values, by part and path."""

    def add(self, fault: Fault) -> None:
        """Raises TooManyFaultsError once there are MOST_FAULTS."""
        self.found.append(fault)
        if len(self.found) >= MOST_FAULTS:
            raise TooManyFaultsError


@dataclass(frozen=True, slots=True)
class At:
    """Where in the file a value is."""

    faults: Faults
    part: str = ""
    """`sources.orders`, `steps[2] (large)`."""
    path: str = ""
    """`value.format`, within the part."""

    def within(self, key: str) -> "At":
        return At(self.faults, self.part, f"{self.path}.{key}" if self.path else key)

    def at_key(self, key: Scalar) -> "At":
        """The place of a key's value: faults that are found later have the line of the key."""
        found = self.within(key.text)
        self.faults.places.setdefault((found.part, found.path), key.line)
        return found

    def wrong(self, line: int, what: str) -> None:
        """Add a fault. Raises TooManyFaultsError."""
        hidden = Secrets(frozenset(self.faults.variables.secrets)).hide(what)
        self.faults.add(Fault(line, self.part, f"{self.path}: {hidden}" if self.path else hidden))

    def read(self, kind: "Kind", node: Node) -> Any:
        """What the kind makes of the node; WRONG, with the fault added, for what is not allowed."""
        self.faults.places.setdefault((self.part, self.path), node.line)
        try:
            return kind.read(node, self)
        except WrongValueError as error:
            self.wrong(error.line, error.what)
            return WRONG

    def text(self, node: Scalar) -> str:
        """With its variables. Raises WrongValueError."""
        try:
            return self.faults.variables.fill(node.text)
        except VariableError as error:
            raise WrongValueError(node.line, str(error)) from None


WRONG: Final = object()
"""Instead of a value that is not allowed: its fault was added."""


class Kind:
    """What a value can be. `words` complete "allowed: "."""

    words: str = "any value"

    def read(self, node: Node, at: At) -> Any:
        """Raises WrongValueError."""
        raise NotImplementedError

    def schema(self, defs: Defs) -> dict[str, Any]:
        """As JSON Schema."""
        return {}

    def refuse(self, node: Node, shown: str | None = None) -> WrongValueError:
        """The error for a node that is not allowed."""
        match node:
            case Scalar() if node.is_null and shown is None:
                what = "there is no value"
            case Scalar(text):
                text = shown if shown is not None else text
                text = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
                what = f"{text!r} is not allowed"
            case Items():
                what = "a list is not allowed"
            case _:
                what = "a mapping is not allowed"
        return WrongValueError(node.line, f"{what}; allowed: {self.words}")


def _set_words(kind: Kind, words: str) -> None:
    """Of a frozen one, while it is made."""
    object.__setattr__(kind, "words", words)


class ScalarKind(Kind):
    """A value that is written as one text: `parse` makes it, or raises ValueError."""

    def read(self, node: Node, at: At) -> Any:
        if not isinstance(node, Scalar) or node.is_null:
            raise self.refuse(node)
        text = at.text(node)
        try:
            return self.parse(text, at)
        except ValueError as error:
            found = self.refuse(node, text)
            if str(error):
                found = WrongValueError(node.line, str(error))
            raise found from None

    def parse(self, text: str, at: At) -> Any:
        """Raises ValueError: with a message that says it all, or without one."""
        raise NotImplementedError


@dataclass(frozen=True)
class Text(ScalarKind):
    """A text that is not empty."""

    words: str = "a text"
    pattern: str | None = None

    def parse(self, text: str, at: At) -> str:
        if not self.is_like(text):
            raise ValueError
        return text

    def is_like(self, text: str) -> bool:
        """Whether it is allowed."""
        return bool(text.strip()) and (self.pattern is None or re.fullmatch(self.pattern, text) is not None)

    def schema(self, defs: Defs) -> dict[str, Any]:
        # A variable may stand for all of it, and what is no text in YAML is read as it is written.
        return {"type": ["string", "number", "boolean"]}


@dataclass(frozen=True)
class AnyText(Text):
    """A text, which may be empty."""

    words: str = "a text"

    def read(self, node: Node, at: At) -> str:
        if not isinstance(node, Scalar):
            raise self.refuse(node)
        return at.text(node)


@dataclass(frozen=True)
class Choice(ScalarKind):
    """One of some words."""

    allowed: tuple[str, ...]

    words: str = field(init=False, default="")

    def __post_init__(self) -> None:
        *first, last = self.allowed
        _set_words(self, f"{', '.join(first)} or {last}" if first else last)

    def parse(self, text: str, at: At) -> str:
        if text not in self.allowed:
            hint = nearest(text, self.allowed)
            raise ValueError(f"{text[:_SHOWN]!r} is not allowed{hint}; allowed: {self.words}" if hint else "")
        return text

    def schema(self, defs: Defs) -> dict[str, Any]:
        return or_variable({"enum": list(self.allowed)})


@dataclass(frozen=True)
class Flag(ScalarKind):
    words: str = "true or false"

    def parse(self, text: str, at: At) -> bool:
        if text not in ("true", "false"):
            raise ValueError
        return text == "true"

    def schema(self, defs: Defs) -> dict[str, Any]:
        return or_variable({"type": "boolean"})


@dataclass(frozen=True)
class Whole(ScalarKind):
    """A whole number."""

    least: int = 1

    words: str = field(init=False, default="")

    def __post_init__(self) -> None:
        _set_words(self, f"a whole number from {self.least}")

    def parse(self, text: str, at: At) -> int:
        if not _WHOLE.fullmatch(text) or int(text) < self.least:
            raise ValueError
        return int(text)

    def schema(self, defs: Defs) -> dict[str, Any]:
        return or_variable({"type": "integer", "minimum": self.least})


@dataclass(frozen=True)
class Share(ScalarKind):
    """A part of a whole, from 0 to 1."""

    words: str = "a share, as 1% or 0.01"

    def parse(self, text: str, at: At) -> float:
        number = text.removesuffix("%").strip()
        if not _DECIMAL.fullmatch(number):
            raise ValueError
        share = float(number) / (100 if text.endswith("%") else 1)
        if not 0 < share <= 1:
            raise ValueError
        return share

    def schema(self, defs: Defs) -> dict[str, Any]:
        return {"type": ["string", "number"]}


@dataclass(frozen=True)
class Duration(ScalarKind):
    """Milliseconds. With `never`, that word is 0."""

    never: bool = False
    least: int = 1

    words: str = field(init=False, default="")

    def __post_init__(self) -> None:
        _set_words(self, f"a duration, as 500ms, 10s, 5m, 1h or 1d{', or never' if self.never else ''}")

    def parse(self, text: str, at: At) -> int:
        if self.never and text == "never":
            return 0
        found = parse_duration(text)
        if found is None or found < self.least:
            raise ValueError
        return found

    def schema(self, defs: Defs) -> dict[str, Any]:
        pattern = r"^(\d+(ms|s|m|h|d|w)|P.+" + ("|never)$" if self.never else ")$")
        return or_variable({"type": "string", "pattern": pattern})


@dataclass(frozen=True)
class Moment(ScalarKind):
    """Milliseconds since 1970."""

    words: str = "a time, as 2026-01-01T00:00:00Z, 2026-01-01 (UTC) or milliseconds since 1970"

    def parse(self, text: str, at: At) -> int:
        found = parse_moment(text)
        if found is None:
            raise ValueError
        return found

    def schema(self, defs: Defs) -> dict[str, Any]:
        return {"type": ["string", "integer"]}


@dataclass(frozen=True)
class FilePath(ScalarKind):
    """A path, from the folder of the pipeline's file."""

    words: str = "the path of a file"

    def parse(self, text: str, at: At) -> Path:
        if not text.strip() or "\0" in text:
            raise ValueError
        return at.faults.folder / Path(text).expanduser()

    def schema(self, defs: Defs) -> dict[str, Any]:
        return {"type": "string"}


@dataclass(frozen=True)
class Texts(Kind):
    """Texts: a list, or one alone."""

    words: str = "a name, or a list of names"
    empty: bool = False

    def read(self, node: Node, at: At) -> tuple[str, ...]:
        if isinstance(node, Scalar):
            node = Items([node], node.line) if not (node.is_null and self.empty) else Items([], node.line)
        if not isinstance(node, Items) or (not node.items and not self.empty):
            raise (
                self.refuse(node)
                if not isinstance(node, Items)
                else WrongValueError(node.line, f"the list is empty; allowed: {self.words}")
            )
        one = Text(words=self.words)
        found = [at.read(one, item) for item in node.items]
        return tuple(text for text in found if text is not WRONG)

    def schema(self, defs: Defs) -> dict[str, Any]:
        one = Text().schema(defs)
        return {"anyOf": [one, {"type": "array", "items": one, **({} if self.empty else {"minItems": 1})}]}


@dataclass(frozen=True)
class Named(Kind):
    """A mapping of names to values of one kind, in its order."""

    of: Kind
    words: str = "names with values"
    empty: bool = False

    def read(self, node: Node, at: At) -> dict[str, Any]:
        if isinstance(node, Scalar) and node.is_null and self.empty:
            return {}
        if not isinstance(node, Entries):
            raise self.refuse(node)
        if not node.entries and not self.empty:
            raise WrongValueError(node.line, f"there is nothing in it; allowed: {self.words}")
        found = {}
        for key, value in node.entries:
            if _is_rest(key, value):
                at.wrong(key.line, COMMA)
                continue
            name = at.text(key)
            read = at.at_key(Scalar(name, True, key.line)).read(self.of, value)
            if read is not WRONG:
                found[name] = read
        return found

    def schema(self, defs: Defs) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.of.schema(defs)}


PROPERTIES: Final = Named(AnyText(), words="properties with their values", empty=True)


@dataclass(frozen=True)
class Ddl(Kind):
    """Columns with their types as DDL: the text, or a mapping of names to types."""

    words: str = (
        'columns with their types, as {id: string, total: "decimal(10,2)"} or `id STRING, total DOUBLE`'
    )

    def read(self, node: Node, at: At) -> str:
        if isinstance(node, Entries) and node.entries:
            types = Named(Text(words="a type of Spark SQL")).read(node, at)
            return ", ".join(f"{quoted(name)} {type_}" for name, type_ in types.items())
        if not isinstance(node, Scalar) or node.is_null:
            raise self.refuse(node)
        return str(Text(words=self.words).read(node, at))

    def schema(self, defs: Defs) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}]}


def quoted(name: str) -> str:
    """A name as Spark SQL reads it: in backticks where it is not plain."""
    return name if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) else f"`{name.replace('`', '``')}`"


@dataclass(frozen=True)
class Anything(Kind):
    """Any value of YAML, as Python has it: arguments of functions."""

    def read(self, node: Node, at: At) -> Any:
        match node:
            case Items(items):
                return [self.read(one, at) for one in items]
            case Entries(entries):
                return {at.text(key): self.read(value, at) for key, value in entries}
            case _:
                return plain_value(at.text(node), node.plain)


def plain_value(text: str, plain: bool) -> str | int | float | bool | None:
    """What a scalar is by YAML 1.2."""
    if not plain:
        return text
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text


# Mappings with keys that are known


class Key(NamedTuple):
    """One key of a part."""

    name: str
    kind: Kind
    what: str
    """What it says, in sentences, for the page and for editors."""
    default: str = ""
    """As it is written; empty where there is none."""
    required: bool = False


Make = Callable[[Mapping[str, Any], Node, At], Any]


@dataclass(frozen=True)
class Part(Kind):
    """A mapping with keys that are known: the reader, the JSON Schema and the page are made of the table."""

    name: str
    """For the page and the JSON Schema."""
    what: str
    keys: tuple[Key, ...]
    make: Make
    """What the values, by their keys, make together. Raises WrongValueError, or adds faults."""
    short: Kind | None = None
    """What may stand in its place, for `short_key` alone."""
    short_key: str = ""
    example: str = ""

    words: str = field(init=False, default="")

    def __post_init__(self) -> None:
        keys = f"a mapping with {', '.join(key.name for key in self.keys)}"
        _set_words(self, f"{self.short.words}, or {keys}" if self.short else keys)

    def read(self, node: Node, at: At) -> Any:
        if self.short is not None and not isinstance(node, Entries):
            if isinstance(node, Scalar) and node.is_null:
                raise self.refuse(node)
            values = {self.short_key: self.short.read(node, at)}
        else:
            found = self.values(node, at)
            if found is None:
                return WRONG
            values = found
        return self.make(values, node, at)

    def values(self, node: Node, at: At) -> dict[str, Any] | None:
        """The values by their keys; None where one is wrong: `make` would say things that follow from it."""
        if not isinstance(node, Entries):
            raise self.refuse(node)
        known = {key.name: key for key in self.keys}
        right = True
        found: dict[str, Any] = {}
        for name, value in node.entries:
            key = known.get(name.text)
            if key is None:
                right = False
                at.wrong(name.line, COMMA if _is_rest(name, value) else unknown_key(name.text, known))
                continue
            before = len(at.faults.found)
            found[key.name] = at.at_key(name).read(key.kind, value)
            right &= len(at.faults.found) == before
        for key in self.keys:
            if key.required and key.name not in found:
                right = False
                at.wrong(node.line, f"the key {key.name} is missing: {key.kind.words}")
        return found if right else None

    def schema(self, defs: Defs) -> dict[str, Any]:
        if self.name not in defs:
            defs[self.name] = {}  # what it has in it may have it too
            defs[self.name] = self.full_schema(defs)
        return {"$ref": f"#/$defs/{self.name}"}

    def full_schema(self, defs: Defs) -> dict[str, Any]:
        """The schema itself, where `schema` refers to it."""
        full: dict[str, Any] = {
            "type": "object",
            "properties": {key.name: described(key, defs) for key in self.keys},
            "additionalProperties": False,
        }
        if required := [key.name for key in self.keys if key.required]:
            full["required"] = required
        if self.short is not None:
            full = {"anyOf": [self.short.schema(defs), full]}
        return {"description": self.what, **full}


def described(key: Key, defs: Defs) -> dict[str, Any]:
    """The schema of a key's value, with what it says."""
    default = f" Default: {key.default}." if key.default else ""
    return {"description": key.what + default, **key.kind.schema(defs)}


def or_variable(schema: dict[str, Any]) -> dict[str, Any]:
    """What is allowed, or a text with a variable in it."""
    return {"anyOf": [schema, {"type": "string", "pattern": r"\$\{"}]}


COMMA: Final = 'a text with a comma in it needs quotes within { }, as {total: "decimal(10,2)"}'


def _is_rest(key: Scalar, value: Node) -> bool:
    """Whether a key is what stands behind a comma of a text: `{total: decimal(10,2)}`."""
    alone = isinstance(value, Scalar) and value.is_null and key.plain
    return alone and any(key.text.count(left) < key.text.count(right) for left, right in ("()", "[]", "<>"))


def unknown_key(name: str, allowed: Mapping[str, object]) -> str:
    """The line for a key that is not known."""
    return f"there is no key {name[:_SHOWN]}{nearest(name, allowed)}; allowed: {', '.join(allowed)}"

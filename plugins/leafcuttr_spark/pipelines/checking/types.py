"""Types of columns as Spark SQL writes them, and DDL: `id STRING NOT NULL, items ARRAY<STRUCT<name: STRING>>`."""

import re
from dataclasses import dataclass
from typing import Final

from leafcuttr_spark.pipelines.reading.variables import nearest

NAMES: Final = {
    **{
        name: name
        for name in ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string")
    },
    **{name: name for name in ("binary", "boolean", "date", "timestamp", "timestamp_ntz", "void", "variant")},
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
    "varchar": "string",
    "char": "string",
    "character": "string",
}
"""All names of types that are not made of others, to the name that Spark shows."""
UNKNOWN_NAMES: Final = frozenset(("interval", "time", "geometry", "geography"))
"""Types of which nothing is known here."""
WHOLE_NUMBERS: Final = ("tinyint", "smallint", "int", "bigint")
NUMBERS: Final = frozenset((*WHOLE_NUMBERS, "float", "double", "decimal"))
NESTED: Final = frozenset(("struct", "array", "map"))

_DEEPEST: Final = 50
_TOKEN: Final = re.compile(
    r"\s*(?:(`(?:[^`]|``)+`)|('(?:[^'\\]|\\.|'')*')|([\w]+)|([<>(),:])|(\S))", re.DOTALL
)


class DdlError(ValueError):
    """A text that is no type, or no DDL. The message is one clause."""


@dataclass(frozen=True, slots=True)
class SqlType:
    """One type. What is within it may be unknown: None."""

    name: str
    parts: "tuple[tuple[str, SqlType | None], ...]" = ()
    """Of a struct its fields; of an array `element`; of a map `key` and `value`."""
    digits: tuple[int, ...] = ()
    """Of a decimal: precision and scale; none where they are not known."""

    def text(self) -> str:
        """As Spark's simpleString has it."""
        inner = [(name, part.text() if part else "?") for name, part in self.parts]
        if self.name == "struct":
            return f"struct<{','.join(f'{name}:{text}' for name, text in inner)}>"
        if self.name in ("array", "map"):
            return f"{self.name}<{','.join(text for _, text in inner)}>"
        return self.name + (f"({','.join(map(str, self.digits))})" if self.digits else "")

    def part(self, name: str) -> "SqlType | None":
        """The type within, by its name."""
        return dict(self.parts).get(name)


STRING: Final = SqlType("string")
BINARY: Final = SqlType("binary")
BOOLEAN: Final = SqlType("boolean")
INT: Final = SqlType("int")
BIGINT: Final = SqlType("bigint")
DOUBLE: Final = SqlType("double")
TIMESTAMP: Final = SqlType("timestamp")
HEADERS: Final = SqlType("array", (("element", SqlType("struct", (("key", STRING), ("value", BINARY)))),))


def parse_type(text: str) -> SqlType | None:
    """None for a type of which nothing is known. Raises DdlError."""
    parser = _Parser(text)
    found = parser.type(0)
    parser.end()
    return found


def parse_ddl(text: str) -> tuple[tuple[str, SqlType | None], ...]:
    """The columns of DDL, or the fields of a `STRUCT<...>` that stands alone. Raises DdlError."""
    if re.match(r"\s*struct\s*<", text, re.IGNORECASE):
        found = parse_type(text)
        assert found is not None
        return found.parts
    parser = _Parser(text)
    columns = parser.fields("", 0)
    parser.end()
    return columns


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = [*_TOKEN.finditer(text)]
        self._at = 0

    def fields(self, closing: str, depth: int) -> tuple[tuple[str, SqlType | None], ...]:
        found: dict[str, SqlType | None] = {}
        while True:
            name = self._name()
            if self._peek() == ":":
                self._at += 1
            type_ = self.type(depth + 1)
            if name.lower() in (known.lower() for known in found):
                raise DdlError(f"the column {name} comes twice")
            found[name] = type_
            self._rest_of_column()
            if self._peek() != ",":
                break
            self._at += 1
        if closing:
            self._expect(closing)
        return tuple(found.items())

    def type(self, depth: int) -> SqlType | None:
        if depth > _DEEPEST:
            raise DdlError(f"types are nested more than {_DEEPEST} deep")
        word = self._word()
        if word == "array":
            self._expect("<")
            element = self.type(depth + 1)
            self._expect(">")
            return SqlType("array", (("element", element),))
        if word == "map":
            self._expect("<")
            key = self.type(depth + 1)
            self._expect(",")
            value = self.type(depth + 1)
            self._expect(">")
            return SqlType("map", (("key", key), ("value", value)))
        if word == "struct":
            self._expect("<")
            if self._peek() == ">":
                self._at += 1
                return SqlType("struct")
            return SqlType("struct", self.fields(">", depth))
        if word in UNKNOWN_NAMES:
            while self._peek() not in ("", ",", ">"):
                self._at += 1
            return None
        if word not in NAMES:
            names = (*NAMES, "array", "map", "struct")
            raise DdlError(f"there is no type {word[:60]}{nearest(word, names)}")
        digits = self._digits()
        if NAMES[word] == "decimal":
            return SqlType("decimal", digits=digits if len(digits) == 2 else (*(digits or (10,)), 0))
        if word == "string" and self._peek().lower() == "collate":
            self._at += 2
        return SqlType(NAMES[word])

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise DdlError(f"{self._peek()[:60]!r} is not expected; allowed: NAME TYPE, NAME TYPE, ...")

    def _digits(self) -> tuple[int, ...]:
        found: list[int] = []
        if self._peek() != "(":
            return ()
        self._at += 1
        while True:
            number = self._peek()
            if not number.isdigit() or len(number) > 9:
                raise DdlError(f"{number[:60]!r} is no number")
            found.append(int(number))
            self._at += 1
            if self._peek() != ",":
                break
            self._at += 1
        self._expect(")")
        return tuple(found)

    def _rest_of_column(self) -> None:
        while self._peek().lower() in ("not", "null", "comment", "default"):
            word = self._peek().lower()
            self._at += 2 if word in ("not", "comment", "default") else 1

    def _peek(self) -> str:
        return self._tokens[self._at][0].strip() if self._at < len(self._tokens) else ""

    def _name(self) -> str:
        if self._at >= len(self._tokens):
            raise DdlError("it ends where the name of a column is expected")
        match = self._tokens[self._at]
        self._at += 1
        if match[1]:
            return str(match[1])[1:-1].replace("``", "`")
        if match[3]:
            return str(match[3])
        raise DdlError(f"{match[0].strip()[:60]!r} is no name of a column")

    def _word(self) -> str:
        if self._at >= len(self._tokens):
            raise DdlError("it ends where a type is expected")
        match = self._tokens[self._at]
        if not match[3]:
            raise DdlError(f"{match[0].strip()[:60]!r} is no type")
        self._at += 1
        return str(match[3]).lower()

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            found = repr(self._peek()[:60]) if self._peek() else "the end"
            raise DdlError(f"{token!r} is expected, not {found}")
        self._at += 1

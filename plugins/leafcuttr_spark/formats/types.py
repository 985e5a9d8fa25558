"""Types of Arrow as Spark takes them, and Spark's DDL, written and read. All fields are nullable.

Source: https://spark.apache.org/docs/latest/sql-ref-datatypes.html
"""

import re
from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as kinds

TIMESTAMP: Final = pa.timestamp("us", "UTC")
TIMESTAMP_NTZ: Final = pa.timestamp("us")
FIRST_US: Final = -62_135_596_800_000_000
"""The year 1: what Spark and Python hold begins here."""
LAST_US: Final = 253_402_300_799_999_999
"""The end of the year 9999."""
FIRST_DAY: Final = -719_162
LAST_DAY: Final = 2_932_896
MOST_FIELDS: Final = 5_000
"""Fields of a type, all levels together: more than any table has, fewer than a schema made to exhaust memory."""
DEEPEST: Final = 32

_NAMES: Final = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
    "void": pa.null(),
}
_WRITTEN: Final[dict[Any, str]] = {}
for _name, _type in _NAMES.items():
    _WRITTEN.setdefault(_type, _name)
_DECIMALS: Final = ("decimal", "dec", "numeric")
_TEXTS: Final = ("varchar", "char", "character")
MOST_DIGITS: Final = 38
"""Of a decimal."""


class TypeTextError(ValueError):
    """A text that is no type. The message is one line."""


def list_of(item: pa.DataType) -> pa.DataType:
    """As Spark names its element."""
    return pa.list_(pa.field("element", item))


def fields_in(type_: pa.DataType) -> int:
    """Fields and elements, all levels together."""
    return sum(1 + fields_in(type_.field(place).type) for place in range(type_.num_fields))


def ddl(type_: pa.DataType) -> str:
    """The type as Spark's DDL has it. Raises ValueError for one that Spark does not have."""
    if (name := _WRITTEN.get(type_)) is not None:
        return name
    if kinds.is_decimal128(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if kinds.is_struct(type_):
        return f"struct<{columns_ddl((field.name, field.type) for field in type_)}>"
    if kinds.is_map(type_):
        return f"map<{ddl(type_.key_type)}, {ddl(type_.item_type)}>"
    if kinds.is_list(type_):
        return f"array<{ddl(type_.value_type)}>"
    raise ValueError(f"Spark has no type {type_}")


def columns_ddl(columns: Iterable[tuple[str, pa.DataType]]) -> str:
    """Of fields, or of the columns of a table."""
    return ", ".join(f"{_quoted(name)} {ddl(type_)}" for name, type_ in columns)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def type_of_ddl(text: str) -> pa.DataType:
    """Of columns (`id BIGINT, name STRING`), which are a struct, or of one type (`ARRAY<INT>`). Raises
    TypeTextError."""
    try:
        return _whole(text, columns=True)
    except TypeTextError as error:
        try:
            return _whole(text, columns=False)
        except TypeTextError:
            raise error from None


def _whole(text: str, *, columns: bool) -> pa.DataType:
    reader = _Reader(text)
    found = reader.struct(end="") if columns else reader.type(0)
    reader.expect("")
    return found


_TOKEN: Final = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)+`)|(?P<text>'(?:[^'\\]|\\.)*')|(?P<word>\w+)|(?P<sign>[<>(),:]))",
    re.DOTALL,
)


class _Reader:
    """Reads one text from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        self._next = 0
        self._fields = 0
        at = 0
        text = text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise TypeTextError(f"{text[at:].strip()[:20]!r} does not belong into a type")
            self._tokens.append(match.group().strip())
            at = match.end()

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def expect(self, token: str) -> None:
        found = self._take()
        if found != token:
            raise TypeTextError(f"{found or 'the end'!r} stands where {token or 'the end'!r} is expected")

    def struct(self, end: str, depth: int = 0) -> pa.DataType:
        fields: list[pa.Field] = []
        while self._peek() != end or fields:
            name = self._take()
            if name.startswith("`"):
                name = name[1:-1].replace("``", "`")
            elif not re.fullmatch(r"\w+", name):
                raise TypeTextError(f"{name or 'the end'!r} stands where the name of a column is expected")
            if self._peek() == ":":
                self._take()
            fields.append(pa.field(name, self.type(depth)))
            self._fields += 1
            if self._fields > MOST_FIELDS:
                raise TypeTextError(f"there are more than {MOST_FIELDS} fields")
            self._skip_words()
            if self._peek() != ",":
                break
            self._take()
        names = [field.name for field in fields]
        if len(set(names)) < len(names):
            raise TypeTextError("a name comes twice")
        return pa.struct(fields)

    def _skip_words(self) -> None:
        if self._peek().lower() == "not":
            self._take()
            self._word("null")
        if self._peek().lower() == "comment":
            self._take()
            if not self._take().startswith("'"):
                raise TypeTextError("COMMENT has no text")

    def _word(self, word: str) -> None:
        if self._take().lower() != word:
            raise TypeTextError(f"{word.upper()} is expected")

    def type(self, depth: int) -> pa.DataType:
        if depth > DEEPEST:
            raise TypeTextError(f"types are nested deeper than {DEEPEST}")
        name = self._take()
        lower = name.lower()
        if lower in _NAMES:
            return _NAMES[lower]
        if lower in _DECIMALS:
            return self._decimal()
        if lower in _TEXTS:
            self._numbers()
            return pa.string()
        if lower == "array":
            self.expect("<")
            item = self.type(depth + 1)
            self.expect(">")
            return list_of(item)
        if lower == "map":
            self.expect("<")
            key = self.type(depth + 1)
            self.expect(",")
            value = self.type(depth + 1)
            self.expect(">")
            return pa.map_(key, value)
        if lower == "struct":
            self.expect("<")
            found = self.struct(">", depth + 1)
            self.expect(">")
            return found
        raise TypeTextError(f"{name or 'the end'!r} is no type; allowed are {', '.join(_WRITTEN.values())},"
                            " decimal(p,s), array<>, map<,> and struct<>")  # fmt: skip

    def _decimal(self) -> pa.DataType:
        digits, scale, *more = (*self._numbers(), 0) if self._peek() == "(" else (10, 0, 0)
        if len(more) > 1 or not 0 < digits <= MOST_DIGITS or not 0 <= scale <= digits:
            raise TypeTextError(
                f"a decimal has 1 to {MOST_DIGITS} digits, and at most as many behind the point"
            )
        return pa.decimal128(digits, scale)

    def _numbers(self) -> tuple[int, ...]:
        self.expect("(")
        found: list[int] = []
        while True:
            token = self._take()
            if not re.fullmatch("[0-9]{1,9}", token):
                raise TypeTextError(f"{token or 'the end'!r} stands where a number is expected")
            found.append(int(token))
            if self._peek() != ",":
                break
            self._take()
        self.expect(")")
        return tuple(found)

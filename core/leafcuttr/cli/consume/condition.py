r"""The language of `consume --filter`: a condition on one record, parsed once, then evaluated for each.

    condition   comparisons joined by `and`, `or`, `not` and parentheses
    comparison  FIELD  or  FIELD OPERATOR LITERAL
    FIELD       key, value, headers.NAME, topic, partition, offset, timestamp; into a JSON key or value by `.name`,
                `["any name"]` and `[0]`: value.order.lines[0].price
    OPERATOR    == != < <= > >=   ~ !~ (regular expression, found anywhere)   contains
    LITERAL     "text" or 'text' (a quote or a backslash in it after a backslash), a number, true, false, null

A FIELD alone is true if it exists and is not null. `key` and `value` without a member are the text that the format
makes of the bytes; beside a number, true or false they are that text read as JSON. Only values of one type compare: a
number with a number, a text with a text; anything else is unequal and neither less nor greater. A member that is
missing, a document that is no JSON, a key of no bytes: all are null. `timestamp` compares with milliseconds since the
epoch or with a time in quotes. Of headers of one name, any may match. `contains` finds a text in a text, or a literal
among the elements of a JSON list.

A condition runs no code of the user; it costs what its fields cost.
"""

import json
import operator
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from leafcuttr.cli.common.options.positions import parse_time
from leafcuttr.cli.common.records.json_lines import Codecs
from leafcuttr_sdk.formats import FormatError

_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<word>[A-Za-z_][\w-]*)
      | (?P<sign>==|!=|<=|>=|!~|[<>~().\[\]])
      | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_FIELDS: Final = ("key", "value", "headers", "topic", "partition", "offset", "timestamp")
_OPERATORS: Final = ("==", "!=", "<", "<=", ">", ">=", "~", "!~", "contains")
_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_DEEPEST: Final = 50
Path = tuple[str | int, ...]
_Test = Callable[["_Record"], bool]


class ConditionError(ValueError):
    """The condition cannot be read. The message says where and what was expected."""


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Record:
    """One message, with its texts and documents made when they are first needed."""

    __slots__ = ("_codecs", "_documents", "_message", "_texts")

    def __init__(self, message: Any, codecs: Codecs) -> None:
        self._message = message
        self._codecs = codecs
        self._texts: dict[str, str | None] = {}
        self._documents: dict[str, Any] = {}

    def values(self, field: str, path: Path, parsed: bool = False) -> list[Any]:
        """What the field holds: one value, or of headers all of that name. `parsed` reads a whole text as JSON."""
        message = self._message
        if field == "headers":
            return [_text(value) for name, value in message.headers() or () if name == path[0]] or [None]
        if field == "timestamp":
            kind, timestamp = message.timestamp()
            return [timestamp if kind else None]
        if field in ("key", "value"):
            return [_member(self._document(field), path) if path or parsed else self._as_text(field)]
        return [getattr(message, field)()]

    def _as_text(self, part: Any) -> str | None:
        if part not in self._texts:
            data = getattr(self._message, part)()
            codec, place = self._codecs.of(part)
            try:
                self._texts[part] = None if data is None else codec.decode(data, place)
            except FormatError:
                self._texts[part] = None
        return self._texts[part]

    def _document(self, part: str) -> Any:
        if part not in self._documents:
            text = self._as_text(part)
            try:
                self._documents[part] = None if text is None else json.loads(text)
            except (ValueError, RecursionError):
                self._documents[part] = None
        return self._documents[part]


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="surrogateescape")


def _member(document: Any, path: Path) -> Any:
    for step in path:
        if isinstance(step, str):
            if not isinstance(document, dict) or step not in document:
                return None
            document = document[step]
        else:
            if not isinstance(document, list) or not -len(document) <= step < len(document):
                return None
            document = document[step]
    return document


class Condition:
    """A condition that has been read. Raises ConditionError for one that cannot be."""

    def __init__(self, source: str, now_ms: int) -> None:
        self._holds = _Parser(source, now_ms).parse()

    def __call__(self, message: Any, codecs: Codecs) -> bool:
        """Whether it holds for a message of confluent-kafka."""
        return self._holds(_Record(message, codecs))


class _Parser:
    """Recursive descent, into closures."""

    def __init__(self, source: str, now_ms: int) -> None:
        self._source = source
        self._now_ms = now_ms
        self._tokens = self._cut()
        self._next = 0
        self._depth = 0

    def _cut(self) -> list[_Token]:
        tokens, at = [], 0
        while True:
            found = _TOKEN.match(self._source, at)
            if found is None:
                at = len(self._source) - len(self._source[at:].lstrip())
                raise self._error(at, f"{self._source[at]!r} has no meaning here")
            kind = str(found.lastgroup)
            tokens.append(_Token(kind, found[kind], found.start(kind)))
            if kind == "end":
                return tokens
            at = found.end()

    def _error(self, at: int, text: str) -> ConditionError:
        return ConditionError(f"{text}, at column {at + 1} of: {self._source}")

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._peek()
        self._next += token.kind != "end"
        return token

    def _if(self, *texts: str) -> bool:
        token = self._peek()
        found = token.kind in ("word", "sign") and token.text in texts
        self._next += found
        return found

    def parse(self) -> _Test:
        condition = self._either()
        token = self._peek()
        if token.kind != "end":
            raise self._error(token.at, f"expected `and`, `or` or the end, not {token.text}")
        return condition

    def _either(self) -> _Test:
        parts = [self._all()]
        while self._if("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else lambda record: any(part(record) for part in parts)

    def _all(self) -> _Test:
        parts = [self._one()]
        while self._if("and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else lambda record: all(part(record) for part in parts)

    def _one(self) -> _Test:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error(self._peek().at, f"more than {_DEEPEST} levels")
        try:
            if self._if("not"):
                inner = self._one()
                return lambda record: not inner(record)
            if self._if("("):
                condition = self._either()
                if not self._if(")"):
                    raise self._error(self._peek().at, "expected )")
                return condition
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> _Test:
        field, path = self._field()
        token = self._peek()
        if token.text not in _OPERATORS or token.kind == "text":
            if token.kind in ("text", "number") or token.text == "[":
                raise self._error(token.at, f"expected one of {' '.join(_OPERATORS)}")
            return lambda record: any(value is not None for value in record.values(field, path))
        self._take()
        parsed = self._peek().kind == "number" or self._peek().text in ("true", "false")
        test = self._test(token, field)
        return lambda record: any(map(test, record.values(field, path, parsed)))

    def _field(self) -> tuple[str, Path]:
        token = self._take()
        if token.kind != "word" or token.text not in _FIELDS:
            raise self._error(
                token.at, f"expected a field ({', '.join(_FIELDS)}), not {token.text or 'the end'}"
            )
        path = self._path()
        if token.text == "headers" and (len(path) != 1 or not isinstance(path[0], str)):
            raise self._error(token.at, 'expected the name of a header: headers.NAME or headers["NAME"]')
        if path and token.text not in ("key", "value", "headers"):
            raise self._error(token.at, f"{token.text} has no members")
        return token.text, path

    def _path(self) -> Path:
        steps: list[str | int] = []
        while True:
            if self._if("."):
                token = self._take()
                if token.kind != "word":
                    raise self._error(token.at, "expected a name after the dot")
                steps.append(token.text)
            elif self._if("["):
                token = self._take()
                if token.kind == "text":
                    steps.append(_unquoted(token.text))
                elif token.kind == "number" and token.text.removeprefix("-").isdigit():
                    steps.append(int(token.text[:20]))
                else:
                    raise self._error(token.at, "expected a number or a name in quotes")
                if not self._if("]"):
                    raise self._error(self._peek().at, "expected ]")
            else:
                return tuple(steps)

    def _test(self, sign: _Token, field: str) -> Callable[[Any], bool]:
        at = self._peek().at
        literal = self._literal()
        if sign.text in ("~", "!~"):
            if not isinstance(literal, str):
                raise self._error(at, f"expected a regular expression in quotes after {sign.text}")
            try:
                search = re.compile(literal).search
            except (re.error, RecursionError, OverflowError) as error:
                raise self._error(at, f"no regular expression: {error}") from None
            wanted = sign.text == "~"
            return lambda value: (isinstance(value, str) and search(value) is not None) is wanted
        if field == "timestamp" and isinstance(literal, str):
            try:
                literal = parse_time(literal, self._now_ms)
            except ValueError as error:
                raise self._error(at, str(error)) from None
        if sign.text == "contains":
            return lambda value: _contains(value, literal)
        if sign.text in ("==", "!="):
            wanted = sign.text == "=="
            return lambda value: _equal(value, literal) is wanted
        if literal is None or isinstance(literal, bool):
            raise self._error(at, f"expected a number or a text after {sign.text}")
        compare = _ORDER[sign.text]
        return lambda value: _alike(value, literal) and compare(value, literal)

    def _literal(self) -> Any:
        token = self._take()
        if token.kind == "text":
            return _unquoted(token.text)
        if token.kind == "number" and len(token.text) < 400:
            return float(token.text) if re.search("[.eE]", token.text) else int(token.text)
        words = {"true": True, "false": False, "null": None}
        if token.kind == "word" and token.text in words:
            return words[token.text]
        raise self._error(token.at, "expected a text in quotes, a number, true, false or null")


def _unquoted(text: str) -> str:
    # A backslash before anything but the quote or a backslash stays: regular expressions need theirs once only.
    quote = text[0]
    return re.sub(rf"\\([\\{quote}])", r"\1", text[1:-1])


def _alike(value: Any, literal: Any) -> bool:
    if isinstance(value, bool) or isinstance(literal, bool):
        return isinstance(value, bool) and isinstance(literal, bool)
    if isinstance(literal, str):
        return isinstance(value, str)
    return isinstance(value, int | float)


def _equal(value: Any, literal: Any) -> bool:
    if literal is None:
        return value is None
    return _alike(value, literal) and bool(value == literal)


def _contains(value: Any, literal: Any) -> bool:
    if isinstance(value, str):
        return isinstance(literal, str) and literal in value
    return isinstance(value, list) and any(_equal(one, literal) for one in value)

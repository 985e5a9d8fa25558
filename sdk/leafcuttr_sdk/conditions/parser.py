r"""The language of conditions: a text becomes a function of the values of a record.

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
"""

import operator
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from leafcuttr_sdk.conditions.errors import ConditionError
from leafcuttr_sdk.conditions.searching import Search
from leafcuttr_sdk.conditions.times import parse_time
from leafcuttr_sdk.conditions.tokens import Token, tokens_of, unquoted
from leafcuttr_sdk.conditions.values import (
    FIELDS,
    Path,
    RecordValues,
    alike,
    contains,
    equal,
    headers_reader,
    reader,
)

MOST_CHARACTERS: Final = 10_000
DEEPEST: Final = 50
"""Levels of parentheses and `not`."""
_OPERATORS: Final = ("==", "!=", "<", "<=", ">", ">=", "~", "!~", "contains")
_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Test: TypeAlias = Callable[[RecordValues], bool]


class Parser:
    """Recursive descent, into closures. `fields` are those that have been read."""

    def __init__(self, source: str, now_ms: int) -> None:
        """Raises ConditionError."""
        if len(source) > MOST_CHARACTERS:
            raise ConditionError(
                f"a condition of {len(source)} characters, and it may have {MOST_CHARACTERS}",
                MOST_CHARACTERS + 1,
                source,
            )
        self._source = source
        self._now_ms = now_ms
        self._tokens = tokens_of(source)
        self._next = 0
        self._depth = 0
        self.fields: set[str] = set()

    def _error(self, at: int, reason: str) -> ConditionError:
        return ConditionError(reason, at + 1, self._source)

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._peek()
        self._next += token.kind != "end"
        return token

    def _if(self, *texts: str) -> bool:
        token = self._peek()
        found = token.kind in ("word", "sign") and token.text in texts
        self._next += found
        return found

    def parse(self) -> Test:
        """Raises ConditionError."""
        condition = self._either()
        token = self._peek()
        if token.kind != "end":
            raise self._error(token.at, f"expected `and`, `or` or the end, not {token.text}")
        return condition

    def _either(self) -> Test:
        parts = [self._all()]
        while self._if("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else lambda record: any(part(record) for part in parts)

    def _all(self) -> Test:
        parts = [self._one()]
        while self._if("and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else lambda record: all(part(record) for part in parts)

    def _one(self) -> Test:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._error(self._peek().at, f"more than {DEEPEST} levels")
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

    def _comparison(self) -> Test:
        field, path = self._field()
        token = self._peek()
        if token.text not in _OPERATORS or token.kind == "text":
            if token.kind in ("text", "number") or token.text == "[":
                raise self._error(token.at, f"expected one of {' '.join(_OPERATORS)}")
            return _each(field, path, False, lambda value: value is not None)
        self._take()
        parsed = self._peek().kind == "number" or self._peek().text in ("true", "false")
        return _each(field, path, parsed, self._test(token, field))

    def _field(self) -> tuple[str, Path]:
        token = self._take()
        if token.kind != "word" or token.text not in FIELDS:
            raise self._error(
                token.at, f"expected a field ({', '.join(FIELDS)}), not {token.text or 'the end'}"
            )
        path = self._path()
        if token.text == "headers" and (len(path) != 1 or not isinstance(path[0], str)):
            raise self._error(token.at, 'expected the name of a header: headers.NAME or headers["NAME"]')
        if path and token.text not in ("key", "value", "headers"):
            raise self._error(token.at, f"{token.text} has no members")
        self.fields.add(token.text)
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
                    steps.append(unquoted(token.text))
                elif token.kind == "number" and token.text.removeprefix("-").isdigit():
                    steps.append(int(token.text[:20]))
                else:
                    raise self._error(token.at, "expected a number or a name in quotes")
                if not self._if("]"):
                    raise self._error(self._peek().at, "expected ]")
            else:
                return tuple(steps)

    def _test(self, sign: Token, field: str) -> Callable[[Any], bool]:
        at = self._peek().at
        literal = self._literal()
        if sign.text in ("~", "!~"):
            if not isinstance(literal, str):
                raise self._error(at, f"expected a regular expression in quotes after {sign.text}")
            try:
                search = Search(literal)
            except ValueError as error:
                raise self._error(at, str(error)) from None
            wanted = sign.text == "~"
            return lambda value: (isinstance(value, str) and search(value)) is wanted
        if field == "timestamp" and isinstance(literal, str):
            try:
                literal = parse_time(literal, self._now_ms)
            except ValueError as error:
                raise self._error(at, str(error)) from None
        if sign.text == "contains":
            return lambda value: contains(value, literal)
        if sign.text in ("==", "!="):
            wanted = sign.text == "=="
            return lambda value: equal(value, literal) is wanted
        if literal is None or isinstance(literal, bool):
            raise self._error(at, f"expected a number or a text after {sign.text}")
        compare = _ORDER[sign.text]
        return lambda value: alike(value, literal) and compare(value, literal)

    def _literal(self) -> Any:
        token = self._take()
        if token.kind == "text":
            return unquoted(token.text)
        if token.kind == "number" and len(token.text) < 400:
            return float(token.text) if re.search("[.eE]", token.text) else int(token.text)
        words = {"true": True, "false": False, "null": None}
        if token.kind == "word" and token.text in words:
            return words[token.text]
        raise self._error(token.at, "expected a text in quotes, a number, true, false or null")


def _each(field: str, path: Path, parsed: bool, test: Callable[[Any], bool]) -> Test:
    """Of headers of one name any may pass the test."""
    if field == "headers":
        headers = headers_reader(str(path[0]))
        return lambda record: any(map(test, headers(record)))
    read = reader(field, path, parsed)
    return lambda record: test(read(record))

"""JSON texts in and out: strict where RFC 8259 leaves it open, written as Confluent's registry writes them.

Refused are: a key twice in one object, NaN and the infinities, halves of surrogate pairs, nesting deeper than
`MAX_DEPTH`, numbers of more than `MAX_DIGITS` digits or beyond what a double holds. Numbers with a point or an exponent
are read as Decimal where the text has to be kept (schemas), as float where it has not (data).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

MAX_DEPTH: Final = 500
"""Objects and arrays within one another. A schema of 200 levels nests its texts twice as deep."""
MAX_DIGITS: Final = 1000

_TOKEN: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"(\s*:)?|[\[\]{}]|\n')


class TextError(ValueError):
    """A text that is not accepted. The message is one line; `line` is counted from 1."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class _DuplicateError(ValueError):
    """Two values of one key."""


def read(text: str, *, exact: bool) -> Any:
    """The value of a JSON text; `exact` keeps the digits of numbers. Raises TextError."""
    if text.count("{") + text.count("[") > MAX_DEPTH:
        _check_depth(text)
    parse_float: Callable[[str], Any] = _decimal if exact else _double
    try:
        value = json.loads(
            text,
            parse_float=parse_float,
            parse_int=_integer,
            parse_constant=_constant,
            object_pairs_hook=_object,
        )
    except json.JSONDecodeError as error:
        raise TextError(
            f"not JSON: {error.msg} at line {error.lineno} column {error.colno}", error.lineno
        ) from None
    except _DuplicateError as error:
        line = _line_of_duplicate(text)
        raise TextError(f"{error} at line {line}", line) from None
    except RecursionError:
        raise TextError("objects and arrays are nested too deeply") from None
    if "\\u" in text:
        _check_surrogates(value)
    return value


def decode(data: bytes) -> str:
    """The text of UTF-8 bytes. Raises TextError."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise TextError(f"not UTF-8: {error.reason} at byte {error.start}") from None


def write(value: Any, *, ordered: bool = False) -> str:
    """Without spaces, members in their order or, `ordered`, by their names; numbers as java.math.BigDecimal writes
    them, which Decimal's text is by the same algorithm (General Decimal Arithmetic, to-scientific-string)."""
    parts: list[str] = []
    todo: list[Any] = [value]
    while todo:
        one = todo.pop()
        match one:
            case _Raw():
                parts.append(one)
            case str():
                parts.append(_quoted(one))
            case Decimal():
                parts.append(str(abs(one) if one.is_zero() else one))
            case dict():
                pairs = sorted(one.items()) if ordered else list(one.items())
                todo.append(_CLOSE_OBJECT)
                for n, (key, member) in reversed(list(enumerate(pairs))):
                    todo += [member, _Raw(("," if n else "") + _quoted(key) + ":")]
                parts.append("{")
            case list():
                todo.append(_CLOSE_ARRAY)
                for n, item in reversed(list(enumerate(one))):
                    todo.append(item)
                    if n:
                        todo.append(_COMMA)
                parts.append("[")
            case _:
                parts.append(json.dumps(one, allow_nan=False))
    return "".join(parts)


class _Raw(str):
    """Text that is written as it is."""

    __slots__ = ()


_CLOSE_OBJECT: Final = _Raw("}")
_CLOSE_ARRAY: Final = _Raw("]")
_COMMA: Final = _Raw(",")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _DuplicateError(f"the key {shortened(twice)} is there twice in one object")
    return made


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise TextError(f"a number has {len(digits)} digits, {MAX_DIGITS} are allowed")
    return int(digits)


def _decimal(digits: str) -> Decimal:
    _double(digits)
    return Decimal(digits)


def _double(digits: str) -> float:
    if len(digits) > MAX_DIGITS:
        raise TextError(f"a number has {len(digits)} digits, {MAX_DIGITS} are allowed")
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise TextError(f"the number {shortened(digits)} is beyond the range of a double")
    return value


def _constant(name: str) -> Any:
    raise TextError(f"{name} is no JSON")


def _check_depth(text: str) -> None:
    depth, line = 0, 1
    for token in _TOKEN.finditer(text):
        first = token[0][0]
        if first in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise TextError(f"objects and arrays are nested deeper than {MAX_DEPTH} at line {line}", line)
        elif first in "]}":
            depth -= 1
        elif first == "\n":
            line += 1


def _line_of_duplicate(text: str) -> int:
    """The line of the first key that its object has already; only texts that have one are read so."""
    line, objects = 1, [set[str]()]
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word[0] == '"':
            if token[1] is not None:
                key = json.loads(word[: word.rindex('"') + 1])
                if key in objects[-1]:
                    return line
                objects[-1].add(key)
        elif word[0] in "[{":
            objects.append(set())
        elif word[0] in "]}" and len(objects) > 1:
            objects.pop()
        line += word.count("\n")
    return line


def _check_surrogates(value: Any) -> None:
    """A half of a surrogate pair is no character: it has no UTF-8."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            todo += one.keys()
            todo += one.values()
        elif isinstance(one, list):
            todo += one
        elif isinstance(one, str) and not one.isascii():
            try:
                one.encode()
            except UnicodeEncodeError:
                raise TextError("a string has a half of a surrogate pair, \\uD800 to \\uDFFF alone") from None


def shortened(text: str, limit: int = 100) -> str:
    """Text as it is shown to people: quoted, and not longer than they read."""
    quoted = _quoted(text if len(text) <= limit else text[: limit - 1] + "…")
    return quoted.encode("utf-8", "backslashreplace").decode()

"""JSON texts as Avro's Java library reads and writes them (Jackson): comments are allowed, and the order of properties
is kept. What readers would not agree on is refused with its place: duplicate keys, lone surrogates, NaN."""

import json
import math
import re
from collections.abc import Iterable
from typing import Final

from leafcuttr_sdk.schemas import JsonValue, SchemaError

MOST_BYTES: Final = 1 << 20
"""The longest text of a schema, in bytes of UTF-8."""
MOST_LEVELS: Final = 700
"""How deep arrays and objects may be nested: a level of a schema takes three of JSON."""
_MOST_DIGITS: Final = 1000

# All of these match to the end of the text what has no end, and do not try again: they take time in proportion.
_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_COMMENT: Final = re.compile(rf"{_STRING}|(//[^\n]*|/\*.*?(?:\*/|\Z))", re.DOTALL)
_CONSTANT: Final = re.compile(rf"{_STRING}|(-?\b(?:NaN|Infinity))", re.DOTALL)
_NESTING: Final = re.compile(rf"{_STRING}|([\[{{])|([\]}}])", re.DOTALL)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPED: Final = re.compile(r'["\\\x00-\x1f]')
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


class _Repeating(dict[str, JsonValue]):
    """An object in which a key comes twice."""

    key = ""


def load(text: str) -> JsonValue:
    """Raises SchemaError, with the line where the text is no JSON, and with the path where it is but must not be."""
    if len(text) > MOST_BYTES or (not text.isascii() and _utf8_length(text) > MOST_BYTES):
        raise SchemaError(f"the schema is longer than {MOST_BYTES} bytes")
    if not text.strip():
        raise SchemaError("the schema is empty", line=1)
    if "//" in text or "/*" in text:
        text = _COMMENT.sub(_without_comment, text)
    _check_nesting(text)
    repeating: list[_Repeating] = []

    def constant(name: str) -> JsonValue:
        at = next((found.start() for found in _CONSTANT.finditer(text) if found[1]), 0)
        line = text.count("\n", 0, at) + 1
        raise SchemaError(f"{name} at line {line} is not JSON: write it as a string", line=line)

    def pairs(found: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        value = dict(found)
        if len(value) == len(found):
            return value
        marked = _Repeating(value)
        seen: set[str] = set()
        marked.key = next(key for key, _ in found if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        repeating.append(marked)
        return marked

    try:
        value: JsonValue = json.loads(
            text, object_pairs_hook=pairs, parse_constant=constant, parse_int=_integer, parse_float=_number
        )
    except json.JSONDecodeError as error:
        raise SchemaError(
            f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}", line=error.lineno
        ) from None
    except RecursionError:
        raise SchemaError("too complex: arrays and objects are nested too deep") from None
    if repeating:
        path, found = next((path, one) for path, one in _walk(value) if isinstance(one, _Repeating))
        raise SchemaError(f"{path or '/'}: the key {found.key!r} comes twice", path=path)
    if _ESCAPED_SURROGATE.search(text):
        _check_surrogates(value)
    return value


def _utf8_length(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise SchemaError(f"not UTF-8: a lone surrogate at line {line}", line=line) from None


def _without_comment(match: re.Match[str]) -> str:
    """Lines stay where they were, for messages."""
    comment: str | None = match[1]
    return match[0] if comment is None else " " + "\n" * comment.count("\n")


def _check_nesting(text: str) -> None:
    if text.count("[") + text.count("{") <= MOST_LEVELS:
        return
    level = 0
    for match in _NESTING.finditer(text):
        if match[1]:
            level += 1
            if level > MOST_LEVELS:
                raise SchemaError(
                    f"too complex: arrays and objects are nested more than {MOST_LEVELS} levels deep",
                    line=text.count("\n", 0, match.start()) + 1,
                )
        elif match[2]:
            level -= 1


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise SchemaError(f"a number has more than {_MOST_DIGITS} digits")
    return int(text)


def _number(text: str) -> float:
    value = float(text) if len(text) <= _MOST_DIGITS else math.inf
    if math.isinf(value):
        raise SchemaError(f"the number {text[:40]} is too large or too long")
    return value


def _walk(value: JsonValue) -> Iterable[tuple[str, JsonValue]]:
    """All values with their JSON pointers, without recursion."""
    pending: list[tuple[str, JsonValue]] = [("", value)]
    while pending:
        path, one = pending.pop()
        yield path, one
        if isinstance(one, dict):
            pending += [(f"{path}/{escaped(key)}", each) for key, each in reversed(one.items())]
        elif isinstance(one, list):
            pending += [(f"{path}/{at}", each) for at, each in reversed(list(enumerate(one)))]


def _check_surrogates(value: JsonValue) -> None:
    for path, one in _walk(value):
        texts = one if isinstance(one, dict) else [one] if isinstance(one, str) else []
        if any(_SURROGATE.search(text) for text in texts):
            shown = path.encode("utf-8", "backslashreplace").decode()
            raise SchemaError(f"{shown or '/'}: a lone surrogate is no character", path=shown)


def escaped(token: str) -> str:
    """As a reference token of a JSON pointer (RFC 6901, 3)."""
    return token.replace("~", "~0").replace("/", "~1")


# Writing


def quoted(text: str) -> str:
    """A string as Jackson writes it: what need not be escaped is not."""
    if _ESCAPED.search(text):
        text = _ESCAPED.sub(lambda match: _SHORT.get(match[0]) or f"\\u{ord(match[0]):04X}", text)
    return f'"{text}"'


def java_double(value: float) -> str:
    """A number as Java's Double.toString writes it, which quotes what is not finite in JSON."""
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    sign = "-" if math.copysign(1, value) < 0 else ""
    value = abs(value)
    if value == 0:
        return f"{sign}0.0"
    digits, _, shown = f"{value!r}".partition("e")
    if 1e-3 <= value < 1e7 and not shown:
        return f"{sign}{digits}"
    mantissa, _, exponent = f"{value:.16e}".partition("e")
    for precision in range(17):
        mantissa, _, exponent = f"{value:.{precision}e}".partition("e")
        if float(f"{mantissa}e{exponent}") == value:
            break
    if 1e-3 <= value < 1e7:
        return f"{sign}{value:f}"
    return f"{sign}{mantissa}{'' if '.' in mantissa else '.0'}E{int(exponent)}"


def dump(value: JsonValue) -> str:
    """Compact, properties in their order. What `load` has read may be nested as deep as it is."""
    out: list[str] = []
    _dump(value, out)
    return "".join(out)


def _dump(value: JsonValue, out: list[str]) -> None:
    if isinstance(value, str):
        out.append(quoted(value))
    elif value is None or isinstance(value, bool):
        out.append({None: "null", True: "true", False: "false"}[value])
    elif isinstance(value, int):
        out.append(str(value))
    elif isinstance(value, float):
        out.append(java_double(value))
    elif isinstance(value, list):
        for at, one in enumerate(value):
            out.append("," if at else "[")
            _dump(one, out)
        out.append("]" if value else "[]")
    else:
        for at, (key, one) in enumerate(value.items()):
            out.append(f"{',' if at else '{'}{quoted(key)}:")
            _dump(one, out)
        out.append("}" if value else "{}")

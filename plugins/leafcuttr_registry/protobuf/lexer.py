"""From the text of a schema to tokens, by the rules of protoc's tokenizer. Comments are dropped.

Spec: https://protobuf.dev/reference/protobuf/textformat-spec/ (literals) and the language specifications of proto2,
proto3 and editions (lexical elements).
"""

import re
from typing import Final, NoReturn

from leafcuttr_registry.budget import Budget
from leafcuttr_sdk.schemas import SchemaError

IDENTIFIER: Final = "name"
INTEGER: Final = "integer"
FLOAT: Final = "float"
STRING: Final = "string"
SYMBOL: Final = "symbol"
END: Final = "end"

# Possessive quantifiers: nothing is tried twice, and no stack grows with the text.
MAX_REASON: Final = 400
_TOKEN: Final = re.compile(
    r"""
    (?P<space>[ \t\r\n\v\f]+ | //[^\n]* | /\*(?:[^*/]++|\*(?!/)|/(?!\*))*+\*/)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<float>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+)
    |(?P<integer>0[xX][0-9A-Fa-f]+ | [0-9]+)
    |(?P<string>"(?:[^"\\\n]++|\\[^\n])*+" | '(?:[^'\\\n]++|\\[^\n])*+')
    |(?P<symbol>(?!/\*|["'])[!-/:-@\[-`{-~])
    """,
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(
    r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([abfnrtv\\?'\"])|)"
)
_SIMPLE: Final = {
    "a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v",
    "\\": b"\\", "?": b"?", "'": b"'", '"': b'"',
}  # fmt: skip


def failure(text: str, at: int, reason: str) -> SchemaError:
    """The error of a place; -1 has none. Long reasons, those with long names in them, are cut; it is one line whatever
    names it has."""
    if len(reason) > MAX_REASON:
        reason = f"{reason[: MAX_REASON // 2]} ... {reason[-MAX_REASON // 2 :]}"
    if not reason.isprintable():
        reason = "".join(each if each.isprintable() else repr(each)[1:-1] for each in reason)
    if at < 0:
        return SchemaError(reason)
    line = text.count("\n", 0, at) + 1
    return SchemaError(f"line {line}: {reason}", line=line)


class Tokens:
    """Three lists of the same length; the last token is END."""

    __slots__ = ("kinds", "places", "texts")

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.texts: list[str] = []
        self.places: list[int] = []


def tokens_of(text: str, budget: Budget) -> Tokens:
    """Raises SchemaError for characters that begin no token."""
    tokens = Tokens()
    kinds, texts, places = tokens.kinds, tokens.texts, tokens.places
    match = _TOKEN.match
    at = 1 if text.startswith("\ufeff") else 0
    length = len(text)
    before = ""
    before_end = -1
    while at < length:
        found = match(text, at)
        if found is None:
            _refuse(text, at)
        kind = found.lastgroup
        end = found.end()
        if kind != "space":
            piece = found[0]
            if before_end == at and before != "symbol" and (kind != "symbol" or piece == "."):
                _adjacent(text, at, before, str(kind), piece)
            if kind == "integer" and piece[0] == "0" and len(piece) > 1 and piece[1] not in "xX":
                _octal(text, at, piece)
            if len(kinds) & 1023 == 1023:
                budget.spend(1024)
            kinds.append(str(kind))
            texts.append(piece)
            places.append(at)
            before, before_end = str(kind), end
        at = end
    kinds.append(END)
    texts.append("")
    places.append(length)
    return tokens


def _octal(text: str, at: int, piece: str) -> None:
    if not all(digit in "01234567" for digit in piece):
        raise failure(text, at, f"{piece} begins with 0, so it is octal, and has digits above 7")


def _adjacent(text: str, at: int, before: str, kind: str, piece: str) -> None:
    """Two tokens without space between them, of which one is a number."""
    if before in (INTEGER, FLOAT):
        if kind in (IDENTIFIER, INTEGER, FLOAT):
            raise failure(text, at, f"there must be a space between a number and {piece[:40]!r}")
        if piece == "." or kind == FLOAT:
            raise failure(text, at, "a number has at most one decimal point")
    if before == IDENTIFIER and kind == FLOAT and piece.startswith("."):
        raise failure(text, at, "there must be a space between an identifier and a decimal point")


def _refuse(text: str, at: int) -> NoReturn:
    character = text[at]
    if text.startswith("/*", at):
        inner = text.find("/*", at + 2)
        end = text.find("*/", at + 2)
        if end >= 0 and 0 <= inner < end:
            raise failure(text, inner, "/* within a block comment; block comments cannot be nested")
        raise failure(text, at, "the block comment that begins here has no end")
    if character in "\"'":
        raise failure(text, at, "the string that begins here does not end in its line")
    if ord(character) < 0x80:
        raise failure(text, at, f"the control character {ord(character):#04x} is allowed in no text")
    raise failure(text, at, f"the character {character!r} is only allowed in strings and comments")


def unquoted(text: str, at: int, piece: str) -> bytes:
    """The value of a string literal. Raises SchemaError for escapes that do not exist."""
    inner = piece[1:-1]
    if "\\" not in inner:
        return inner.encode()
    parts: list[bytes] = []
    last = 0
    index = inner.find("\\")
    while index >= 0:
        parts.append(inner[last:index].encode())
        found = _ESCAPE.match(inner, index)
        value = _escape(found) if found is not None else None
        if found is None or value is None:
            raise failure(text, at, f"{inner[index : index + 10]!r} begins no escape sequence of strings")
        parts.append(value)
        last = found.end()
        index = inner.find("\\", last)
    parts.append(inner[last:].encode())
    return b"".join(parts)


def _escape(found: re.Match[str]) -> bytes | None:
    octal, byte, short, long, simple = found.groups()
    if simple is not None:
        return _SIMPLE[simple]
    if octal is not None:
        return bytes((int(octal, 8) & 0xFF,))
    if byte is not None:
        return bytes((int(byte, 16),))
    digits = short or long
    if digits is None or int(digits, 16) > 0x10FFFF:
        return None
    return chr(int(digits, 16)).encode("utf-8", "surrogatepass")

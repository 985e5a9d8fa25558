"""A regular expression of Java's as one of Python's, and the text that replaces what it matches.

Most of both is the same. What Java alone has is written differently where Python can say it, and refused where it
cannot: a rule about names must not match others than those that it was written for.
"""

import re
from collections.abc import Callable
from typing import Final

_NOT_A_LINE_END: Final = r"[^\n\r\u0085\u2028\u2029]"
_GROUP: Final = re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>")
_REFERENCE: Final = re.compile(r"\\k<([A-Za-z][A-Za-z0-9]*)>")
_SAME_ESCAPES: Final = frozenset("0123456789bBdDsSwWtnrfaxu")
_POSIX: Final = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "XDigit": "0-9a-fA-F",
    "Punct": r"!-/:-@\[-`{-~",
    "Space": r" \t\n\x0b\f\r",
    "Blank": r" \t",
    "ASCII": r"\x00-\x7f",
}
_GROUP_OR_LITERAL: Final = re.compile(
    r"\\(?P<literal>.)|\$(?P<number>[0-9]+)|\$\{(?P<name>[A-Za-z][A-Za-z0-9]*)\}", re.DOTALL
)
_CLASS: Final = re.compile(r"\\p\{(\w+)\}")


class PatternError(ValueError):
    """It is none of Java's, or Python cannot say it."""


def java_pattern(text: str) -> re.Pattern[str]:
    """Raises PatternError."""
    pieces: list[str] = []
    at, in_class, class_begins = 0, False, False
    while at < len(text):
        begins, class_begins = class_begins, False
        piece, length = _piece(text, at, in_class)
        if piece == "[" and in_class:
            raise PatternError("a class within a class cannot be had here")
        if text.startswith("&&", at) and in_class:
            raise PatternError("an intersection of classes (&&) cannot be had here")
        if piece == "[":
            in_class = class_begins = True
            if text.startswith("[^", at):
                piece, length = "[^", 2
        elif piece == "]" and in_class:
            if begins:
                raise PatternError("a class without characters")
            in_class = False
        pieces.append(piece)
        at += length
    try:
        return re.compile("".join(pieces), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(str(error)) from None


def _piece(text: str, at: int, in_class: bool) -> tuple[str, int]:
    """What stands at this place, for Python, and how long it is."""
    one = text[at]
    if one == "\\":
        return _escape(text, at, in_class)
    if in_class or one not in ".(":
        return one, 1
    if one == ".":
        return _NOT_A_LINE_END, 1
    if named := _GROUP.match(text, at):
        return f"(?P<{named[1]}>", len(named[0])
    return one, 1


def _escape(text: str, at: int, in_class: bool) -> tuple[str, int]:
    if at + 1 >= len(text):
        raise PatternError("a backslash at the end")
    if reference := _REFERENCE.match(text, at):
        return f"(?P={reference[1]})", len(reference[0])
    if (found := _CLASS.match(text, at)) and found[1] in _POSIX:
        members = _POSIX[found[1]]
        return (members if in_class else f"[{members}]"), len(found[0])
    letter = text[at + 1]
    if letter == "z" and not in_class:
        return r"\Z", 2
    if letter.isascii() and letter.isalnum() and letter not in _SAME_ESCAPES:
        raise PatternError(f"\\{letter} cannot be had here")
    return text[at : at + 2], 2


def java_replacement(
    text: str, pattern: re.Pattern[str], *, unknown_is_text: bool = False
) -> Callable[[re.Match[str]], str]:
    """As Java's `Matcher.replaceAll` reads it. A number that no group has stays as it is written if
    `unknown_is_text`. Raises PatternError."""
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        found = _GROUP_OR_LITERAL.match(text, at)
        if found is None:
            if text[at] in "\\$":
                raise PatternError(f"{text[at]} stands before nothing that it could mean")
            parts.append(text[at])
            at += 1
            continue
        at = found.end()
        if found["literal"] is not None:
            parts.append(found["literal"])
        elif found["name"] is not None:
            if found["name"] not in pattern.groupindex:
                raise PatternError(f"the pattern has no group {found['name']}")
            parts.append(pattern.groupindex[found["name"]])
        else:
            parts.extend(_numbered(found["number"], pattern.groups, unknown_is_text))

    def replace(match: re.Match[str]) -> str:
        return "".join((match[each] or "") if isinstance(each, int) else each for each in parts)

    return replace


def _numbered(digits: str, groups: int, unknown_is_text: bool) -> list[str | int]:
    """The longest number that a group has, and the digits behind it."""
    for end in range(len(digits), 0, -1):
        if int(digits[:end]) <= groups:
            return [int(digits[:end]), *digits[end:]]
    if not unknown_is_text:
        raise PatternError(f"the pattern has no group {digits}" if groups else "the pattern has no groups")
    return ["$" + digits]

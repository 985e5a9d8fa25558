"""Regular expressions of Java in Python's syntax, as far as both have the same.

The two agree on most of what is written for names of topics and groups. What is spelt otherwise is rewritten; what only
Java has is refused with a line. Letters, digits and white space are those of ASCII, as they are in Java.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

_CLASSES: Final = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\f\r",
}
_ESCAPES: Final = {"h": r"[ \t\xa0]", "e": r"\x1b", "a": r"\x07", "z": r"\Z", "Z": r"(?=\n?\Z)"}
_SAME: Final = frozenset("dDsSwWbBAtnrf123456789")
_NAMED: Final = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")
_FLAGS: Final = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?\)")
_KNOWN_FLAGS: Final = frozenset("imsx")


def java_pattern(expressions: Sequence[str]) -> str:
    """One expression in Python's syntax that fits what one of these fits, each as a whole. None of them fits nothing.

    Raises ValueError with one clause: what is not right, or is not in Python.
    """
    return "|".join(_rewritten(expression) for expression in expressions) if expressions else r"(?!)"


def _rewritten(expression: str) -> str:
    written = "".join(_Rewriting(expression))
    try:
        re.compile(written, re.ASCII)
    except re.error as error:
        raise ValueError(f"{error.msg} (in {expression})") from None
    return f"(?a:{written})"


class _Rewriting:
    """The pieces of one expression, rewritten from its begin to its end."""

    def __init__(self, expression: str) -> None:
        self._text, self._at = expression, 0

    def __iter__(self) -> Iterator[str]:
        opened = 0
        while self._at < len(self._text):
            here = self._text[self._at]
            if here == "\\":
                yield self._escape(in_class=False)
            elif here == "[":
                yield self._class()
            elif match := _NAMED.match(self._text, self._at):
                self._at = match.end()
                yield f"(?P<{match[1]}>"
            elif match := _FLAGS.match(self._text, self._at):
                yield self._flags(match)
                opened += 1
            else:
                self._at += 1
                yield here
        yield ")" * opened

    def _flags(self, match: re.Match[str]) -> str:
        """Flags hold to the end of their group, which at the begin of an expression is its end. In Java's list of
        expressions they hold for those behind it too; here they do not."""
        if match.start():
            raise self._refused("flags that do not stand at the begin")
        on, off = match[1].replace("d", "").replace("u", "").replace("U", ""), match[2] or ""
        if not set(on + off) <= _KNOWN_FLAGS:
            raise self._refused(f"the flags {match[0]}")
        self._at = match.end()
        return f"(?{on}{f'-{off}' if off else ''}:"

    def _escape(self, *, in_class: bool) -> str:
        text, at = self._text, self._at
        if at + 1 == len(text):
            raise self._refused(r"a \ at the end")
        letter = text[at + 1]
        self._at += 2
        if letter == "Q":
            end = text.find(r"\E", self._at)
            quoted = text[self._at : len(text) if end < 0 else end]
            self._at = len(text) if end < 0 else end + 2
            return re.escape(quoted)
        if letter in "pP":
            return self._property(letter, in_class=in_class)
        if letter == "k" and (name := re.match(r"<([a-zA-Z][a-zA-Z0-9]*)>", text[self._at :])):
            self._at += name.end()
            return f"(?P={name[1]})"
        if letter in "xu":
            digits = {"x": 2, "u": 4}[letter]
            if not re.match(rf"[0-9a-fA-F]{{{digits}}}", text[self._at :]):
                raise self._refused(rf"\{letter} without {digits} digits")
            return "\\" + letter
        if letter in _ESCAPES and not (in_class and letter in "zZ"):
            return _ESCAPES[letter].strip("[]") if in_class else _ESCAPES[letter]
        if letter in _SAME or not letter.isalnum():
            return "\\" + letter
        raise self._refused("\\" + letter)

    def _property(self, letter: str, *, in_class: bool) -> str:
        match = re.match(r"\{(?:Is|java)?(\w+)\}", self._text[self._at :])
        members = _CLASSES.get(match[1]) if match else None
        if match is None or members is None or (in_class and letter == "P"):
            raise self._refused(f"\\{letter}{match[0] if match else ''}")
        self._at += match.end()
        if in_class:
            return members
        return f"[{'^' if letter == 'P' else ''}{members}]"

    def _class(self) -> str:
        """A class in brackets. Java has unions and intersections of classes, Python has not."""
        text, pieces = self._text, ["["]
        self._at += 1
        if text.startswith("^", self._at):
            pieces.append("^")
            self._at += 1
        while self._at < len(text) and text[self._at] != "]":
            if text[self._at] == "\\":
                pieces.append(self._escape(in_class=True))
            elif text[self._at] == "[":
                raise self._refused("a class within a class")
            elif text.startswith("&&", self._at):
                raise self._refused("&& in a class")
            else:
                # Python warns of what may become a set operation one day.
                pieces.append("\\" + text[self._at] if text[self._at] in "&~|" else text[self._at])
                self._at += 1
        if self._at == len(text):
            raise self._refused("a class that does not end")
        self._at += 1
        return "".join([*pieces, "]"])

    def _refused(self, what: str) -> ValueError:
        return ValueError(f"{what} is not taken here (in {self._text})")

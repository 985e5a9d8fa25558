"""Patterns of paths, and which of them a path of a request matches: for the admin port and for `leafcuttr_sdk.web`.

A pattern is parts behind slashes. A part is literal, or a name in braces (`{subject}`), which is one part of the path
that is not empty; the last one may be `{rest*}`: all that is left, slashes included, perhaps nothing.

Where several patterns match a path, the first part in which they differ decides: literal before `{name}`, `{name}`
before `{rest*}`. So no two patterns are equal for a path, but for those that differ in names only: `PathTable.add`
refuses the second. Methods of HTTP and answers are not in this module.
"""

import re
from collections.abc import Sequence
from typing import Final, Generic, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

T = TypeVar("T")

_PARAMETER: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.-]*)(\*?)\}\Z")
_BAD_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_DOTS: Final = (".", "..")


class PathMatch(NamedTuple, Generic[T]):
    """What a path has found."""

    thing: T
    pattern: str
    parameters: dict[str, str]


class PathTable(Generic[T]):
    """Things by pattern. To find one costs no more steps than all patterns together have parts."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()
        self._ends: dict[str, _End[T]] = {}

    def add(self, pattern: str, thing: T) -> None:
        """Raises ValueError, with the pattern, for one that is none, and for one that matches the same paths as
        another, with both."""
        parts = parts_of_pattern(pattern)
        node = self._root
        for part in parts:
            if part.kind == "rest":
                break
            node = node.parameter_child() if part.kind == "one" else node.literal_child(part.text)
        ends_open = parts[-1].kind == "rest"
        known = node.rest if ends_open else node.end
        if known is not None:
            raise ValueError(
                f"{pattern} is answered already"
                if known.pattern == pattern
                else f"{pattern} cannot be told from {known.pattern}: they match the same paths"
            )
        end = _End(pattern, tuple(part.text for part in parts if part.kind != "literal"), thing)
        self._ends[pattern] = end
        if ends_open:
            node.rest = end
        else:
            node.end = end

    def get(self, pattern: str) -> T | None:
        """What was added with exactly this pattern."""
        end = self._ends.get(pattern)
        return None if end is None else end.thing

    def patterns(self) -> list[str]:
        """All, in the order in which they were added."""
        return list(self._ends)

    def find(self, parts: Sequence[str]) -> PathMatch[T] | None:
        """What a path is for, which `split_path` has split. `.` and `..` are no value of a parameter."""
        values: list[str] = []
        end = _search(self._root, parts, 0, values)
        if end is None:
            return None
        return PathMatch(end.thing, end.pattern, dict(zip(end.names, values, strict=True)))


class PatternPart(NamedTuple):
    """One part of a pattern. `kind` is `literal`, `one` or `rest`, `text` what is written, or the name."""

    kind: str
    text: str


def parts_of_pattern(pattern: str) -> tuple[PatternPart, ...]:
    """Raises ValueError for what is no pattern."""
    if not pattern.startswith("/") or "?" in pattern or "#" in pattern:
        raise ValueError(f"{pattern!r} is no path: it has to begin with a slash, and ends before ? and #")
    parts = tuple(_part(pattern, text) for text in pattern.split("/")[1:])
    names = [part.text for part in parts if part.kind != "literal"]
    if any(part.kind == "rest" for part in parts[:-1]) or len(set(names)) < len(names):
        raise ValueError(f"{pattern}: only the last part may be all that is left, and each name stands once")
    return parts


def split_path(path: bytes) -> tuple[str, ...]:
    """The parts of a request's path as it came, each decoded after it was split: `%2F` is a slash within a part.

    Raises ValueError, one line, for a `%` without two hexadecimal digits (RFC 3986, 2.1), and for what is no UTF-8.
    """
    if not path.startswith(b"/"):
        raise ValueError("it does not begin with a slash")
    wrong = _BAD_ESCAPE.search(path)
    if wrong is not None:
        shown = path[wrong.start() : wrong.start() + 3].decode("ascii", "backslashreplace")
        raise ValueError(f"{shown!r} is no escape: two hexadecimal digits belong behind %")
    try:
        return tuple(unquote_to_bytes(part).decode() for part in path[1:].split(b"/"))
    except UnicodeDecodeError:
        raise ValueError("it is no UTF-8") from None


class _End(NamedTuple, Generic[T]):
    pattern: str
    names: tuple[str, ...]
    thing: T


class _Node(Generic[T]):
    """What has been matched so far. Names belong to the ends: `/{a}` and `/{b}/c` go through the same node."""

    __slots__ = ("end", "literals", "parameter", "rest")

    def __init__(self) -> None:
        self.literals: dict[str, _Node[T]] = {}
        self.parameter: _Node[T] | None = None
        self.end: _End[T] | None = None
        self.rest: _End[T] | None = None

    def literal_child(self, text: str) -> "_Node[T]":
        return self.literals.setdefault(text, _Node())

    def parameter_child(self) -> "_Node[T]":
        if self.parameter is None:
            self.parameter = _Node()
        return self.parameter


def _part(pattern: str, text: str) -> PatternPart:
    named = _PARAMETER.match(text)
    if named is not None:
        return PatternPart("rest" if named[2] else "one", named[1])
    if "{" in text or "}" in text:
        raise ValueError(f"{pattern}: {text!r} is no parameter: braces go around the name of a whole part")
    if text in _DOTS:
        raise ValueError(f"{pattern}: no request has a part {text!r}")
    return PatternPart("literal", text)


def _search(node: _Node[T], parts: Sequence[str], at: int, values: list[str]) -> _End[T] | None:
    """As deep as the longest pattern, not as the path. A node is entered once at most: it stands at one depth."""
    if at == len(parts):
        if node.end is None and node.rest is not None:
            values.append("")  # `/files` of `/files/{rest*}`
            return node.rest
        return node.end
    part = parts[at]
    literal = node.literals.get(part)
    if literal is not None:
        found = _search(literal, parts, at + 1, values)
        if found is not None:
            return found
    if node.parameter is not None and part and part not in _DOTS:
        values.append(part)
        found = _search(node.parameter, parts, at + 1, values)
        if found is not None:
            return found
        values.pop()
    if node.rest is not None and not any(one in _DOTS for one in parts[at:]):
        values.append("/".join(parts[at:]))
        return node.rest
    return None

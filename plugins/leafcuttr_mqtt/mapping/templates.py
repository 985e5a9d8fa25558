"""Texts with fields in braces, as `sensors-{1}`: names of Kafka topics, keys, and topics on the way down.

`{{` and `}}` stand for braces.
"""

import re
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

_PIECE: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class Field(NamedTuple):
    """A place in a template that a value goes into."""

    name: str


class Template:
    """A text with fields."""

    __slots__ = ("fields", "fixed", "parts", "text")

    def __init__(self, text: str, parts: tuple[str | Field, ...]) -> None:
        self.text: Final = text
        """As it was written."""
        self.parts: Final = parts
        self.fields: Final = tuple(part.name for part in parts if isinstance(part, Field))
        self.fixed: Final = None if self.fields else "".join(part for part in parts if isinstance(part, str))
        """The result, where there are no fields."""

    def render(self, value_of: Callable[[str], str]) -> str:
        """The text with a value for each field."""
        if self.fixed is not None:
            return self.fixed
        return "".join([part if isinstance(part, str) else value_of(part.name) for part in self.parts])

    def pattern(self) -> re.Pattern[str]:
        """What all results are like, and perhaps other texts."""
        pieces = [re.escape(part) if isinstance(part, str) else ".*" for part in self.parts]
        return re.compile("".join(pieces), re.DOTALL)


def parse(
    text: str, names: Collection[str] = (), captures: int = 0, prefixes: Collection[str] = ()
) -> Template:
    """A template whose fields are of these names, of names with one of these prefixes, or from 1 to `captures`. Raises
    ValueError, whose text says why in one clause."""
    parts: list[str | Field] = []
    at = 0
    for piece in _PIECE.finditer(text):
        if piece.start() > at:
            parts.append(text[at : piece.start()])
        at = piece.end()
        found = piece[0]
        if found in ("{{", "}}"):
            parts.append(found[0])
        elif len(found) == 1:
            raise ValueError(f"it has a single {found}; write {found}{found} for the character")
        else:
            name = piece[1]
            if not _is_known(name, names, captures, prefixes):
                raise ValueError(f"{{{name}}} is none of its fields: {_allowed(names, captures, prefixes)}")
            parts.append(Field(name))
    if at < len(text):
        parts.append(text[at:])
    return Template(text, tuple(parts))


def _is_known(name: str, names: Collection[str], captures: int, prefixes: Collection[str]) -> bool:
    if name in names or any(name.startswith(prefix) and name != prefix for prefix in prefixes):
        return True
    return name.isascii() and name.isdigit() and name[0] != "0" and len(name) < 6 and int(name) <= captures


def _allowed(names: Collection[str], captures: int, prefixes: Collection[str]) -> str:
    allowed = [f"{{{name}}}" for name in names] + [f"{{{prefix}<name>}}" for prefix in prefixes]
    if captures:
        allowed.append("{1}" if captures == 1 else f"{{1}} to {{{captures}}}")
    return "allowed are " + ", ".join(allowed) if allowed else "the filter has no + and no #"

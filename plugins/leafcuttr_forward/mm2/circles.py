"""Flows that keep names of topics and lie in a circle: they would copy the same records again and again.

With the default policy a topic's name says which clusters it came through, and a flow leaves out those of its target.
With identity it does not, so a circle is refused unless it is certain that no topic is in all of its flows. That is
decided by what expressions begin and end with.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

_LITERAL: Final = re.compile(r"(?:\\[^A-Za-z0-9]|[A-Za-z0-9_-])*")
_END: Final = re.compile(r"(?:\\[^A-Za-z0-9]|(?<!\\)[A-Za-z0-9_-])*\Z")


class Link(NamedTuple):
    """A flow that keeps names: from where to where, and which topics."""

    source: str
    target: str
    expressions: Sequence[str]
    """In Java's syntax."""
    fit: Callable[[str], bool]
    """Whether it has a topic of this name."""


def circles(links: Sequence[Link]) -> Iterator[tuple[Link, ...]]:
    """Circles that may have a topic in common, each once."""
    told = set[frozenset[tuple[str, str]]]()
    for first in links:
        circle = _back((first,), links)
        names = frozenset((link.source, link.target) for link in circle)
        if circle and names not in told:
            told.add(names)
            yield circle


def _back(path: tuple[Link, ...], links: Sequence[Link]) -> tuple[Link, ...]:
    """The path, continued to where it began; nothing if that cannot be."""
    passed = {link.source for link in path}
    for link in links:
        if link.source != path[-1].target or not all(_may_share(link, other) for other in path):
            continue
        if link.target == path[0].source:
            return (*path, link)
        if link.target not in passed and (found := _back((*path, link), links)):
            return found
    return ()


def _may_share(one: Link, other: Link) -> bool:
    """Whether a topic may be in both."""
    return any(
        _may_meet(mine, theirs, one, other) for mine in one.expressions for theirs in other.expressions
    )


def _may_meet(mine: str, theirs: str, one: Link, other: Link) -> bool:
    for expression in (mine, theirs):
        if _LITERAL.fullmatch(expression):
            name = _plain(expression)
            return one.fit(name) and other.fit(name)
    begins, ends = (_begin(mine), _begin(theirs)), (_end(mine), _end(theirs))
    return _agree(*begins) and _agree(ends[0][::-1], ends[1][::-1])


def _agree(one: str, other: str) -> bool:
    """Whether a text can begin with both."""
    return one.startswith(other) or other.startswith(one)


def _begin(expression: str) -> str:
    """What each name begins with that the expression fits, as far as it can be said at a glance."""
    match = _LITERAL.match(expression)
    if match is None or "|" in expression:
        return ""
    plain = _plain(match[0])
    # A quantifier is of the last character only.
    return plain[:-1] if expression[match.end() : match.end() + 1] in ("*", "?", "{", "+") else plain


def _end(expression: str) -> str:
    if "|" in expression or expression.startswith("(?"):
        return ""
    match = _END.search(expression)
    return _plain(match[0]) if match else ""


def _plain(literal: str) -> str:
    return re.sub(r"\\(.)", r"\1", literal)

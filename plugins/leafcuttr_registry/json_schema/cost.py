"""Which schemas are cheap to validate by: in time about proportional to the data, times the size of the schema.

Two things are not. A regular expression may take time in powers of the length of a string; cheap is one without a
repetition that is not bounded, or one where each is of single characters and ends at a character that is none of them.
And schemas that apply themselves to parts of a value through several others at once double the work at every level.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from leafcuttr_registry.json_schema.dialects import At
from leafcuttr_registry.json_schema.graph import SAME, Graph, Node, in_place

MAX_PATTERNS: Final = 256
"""Python's `re` keeps 512 compiled ones; beyond that each is compiled anew for each string."""
MAX_BOUNDED: Final = 1000
"""How often bounded repetitions may come to in all, within one another multiplied."""


def needs_worker(graph: Graph) -> bool:
    """Whether validating may take long, out of proportion to the data."""
    nodes = _reached(graph.root)
    if len({pattern for node in nodes for pattern in _patterns(node)}) > MAX_PATTERNS:
        return True
    return any(not is_cheap(pattern) for node in nodes for pattern in _patterns(node)) or _doubles(nodes)


def _reached(root: Node) -> list[Node]:
    found: dict[int, Node] = {}
    todo = [root]
    while todo:
        node = todo.pop()
        if id(node) not in found:
            found[id(node)] = node
            todo += _below(node)
    return list(found.values())


def _below(node: Node) -> Iterator[Node]:
    yield from (target for _, target in node.refs)
    yield from (one for at, one in node.subs.values() if at not in (At.NOWHERE, At.ANNOTATION))


def _patterns(node: Node) -> Iterator[str]:
    pattern = node.get("pattern")
    if isinstance(pattern, str):
        yield pattern
    named = node.get("patternProperties")
    if isinstance(named, dict):
        yield from named


def _doubles(nodes: list[Node]) -> bool:
    """Whether a schema comes to itself on two ways that both apply to the same part of a value."""
    circles = _circles(nodes)
    for node in nodes:
        mine = circles[id(node)]
        again = [one for one in in_place(node) if circles.get(id(one)) == mine]
        children = [
            path
            for path, (at, one) in node.subs.items()
            if at not in SAME and at not in (At.NOWHERE, At.ANNOTATION) and circles.get(id(one)) == mine
        ]
        # Members by different names, and items by different places, are different parts.
        apart = {path[0] for path in children} <= {"properties"} or len(children) <= 1
        if len(again) + (not apart) + bool(children and again) > 1:
            return True
        if not apart:
            return True
    return False


def _circles(nodes: list[Node]) -> dict[int, int]:
    """The strongly connected component of each node (Tarjan's algorithm); a number of its own where it is in none."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    component: dict[int, int] = {}
    stack: list[int] = []
    itself: set[int] = set()
    for start in nodes:
        if id(start) in index:
            continue
        work: list[tuple[Node, Iterator[Node]]] = [(start, _below(start))]
        index[id(start)] = low[id(start)] = len(index)
        stack.append(id(start))
        while work:
            node, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    above = id(work[-1][0])
                    low[above] = min(low[above], low[id(node)])
                if low[id(node)] == index[id(node)]:
                    _close(id(node), stack, component, itself)
            elif id(following) not in index:
                index[id(following)] = low[id(following)] = len(index)
                stack.append(id(following))
                work.append((following, _below(following)))
            else:
                if following is node:
                    itself.add(id(node))
                if id(following) not in component:
                    low[id(node)] = min(low[id(node)], index[id(following)])
    return component


def _close(root: int, stack: list[int], component: dict[int, int], itself: set[int]) -> None:
    members = []
    while True:
        member = stack.pop()
        members.append(member)
        if member == root:
            break
    for member in members:
        component[member] = root


# Regular expressions


@lru_cache(maxsize=4096)
def is_cheap(pattern: str) -> bool:
    """Whether `re.search` takes time proportional to the length of the string; `pattern` is one of Python's."""
    from re import _parser as parser  # type: ignore[attr-defined]

    try:
        parsed = _flat(parser.parse(pattern))
    except (re.error, RecursionError, OverflowError):
        return False
    unbounded: list[bool] = []
    bounded = _bounded(parsed, unbounded)
    if bounded > MAX_BOUNDED:
        return False
    if not unbounded:
        return True
    first = parsed[0] if parsed else None
    anchored = first is not None and str(first[0]) == "AT" and "BEGINNING" in str(first[1])
    return anchored and all(unbounded)


def _flat(parsed: Any) -> list[Any]:
    """Groups that are not repeated, opened."""
    found: list[Any] = []
    for item in parsed:
        found += _flat(item[1][-1]) if str(item[0]) == "SUBPATTERN" else [item]
    return found


def _bounded(parsed: list[Any], unbounded: list[bool]) -> int:
    """How many ways bounded repetitions and alternatives make at one place. Notes of each repetition without a bound
    whether it is of single characters and what follows is none of them."""
    ways = 1
    for n, (op, argument) in enumerate(parsed):
        match str(op):
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, within = argument
                inner: list[bool] = []
                ways *= _bounded(list(within), inner)
                if int(high) > MAX_BOUNDED:
                    single = len(within) == 1 and _characters(within[0]) is not None
                    unbounded.append(single and not inner and _ends(within[0], parsed[n + 1 :]))
                elif inner:
                    unbounded += [False] if high > 1 else inner
                    if high == 1 or low != high:
                        unbounded.append(False)
                else:
                    ways *= max(int(high) - int(low) + 1, 1)
            case "SUBPATTERN":
                inner = []
                ways *= _bounded(_flat(argument[-1]), inner)
                if inner:
                    # What ends a repetition within is outside; that is not looked for.
                    unbounded.append(False)
            case "BRANCH":
                inner = []
                ways *= sum(_bounded(list(one), inner) for one in argument[1])
                if inner:
                    unbounded.append(False)
            case "ASSERT" | "ASSERT_NOT":
                inner = []
                ways *= 1 + _bounded(list(argument[1]), inner)
                if inner:
                    unbounded.append(False)
            case "GROUPREF" | "GROUPREF_EXISTS" | "ATOMIC_GROUP":
                unbounded.append(False)
            case _:
                pass
    return ways


def _ends(repeated: Any, rest: list[Any]) -> bool:
    """Whether what follows a repetition is the end, or begins with a character that is not repeated."""
    if not rest:
        return True
    op, argument = rest[0]
    if str(op) == "AT":
        return "END" in str(argument)
    if str(op) in ("MAX_REPEAT", "MIN_REPEAT") and argument[0] >= 1 and len(argument[2]) == 1:
        return _apart(repeated, argument[2][0])
    return _apart(repeated, rest[0])


def _apart(one: Any, other: Any) -> bool:
    left, right = _characters(one), _characters(other)
    return left is not None and right is not None and not left & right


_SOME: Final = tuple(
    chr(n) for n in (*range(0x250), 0x3B1, 0x416, 0x5D0, 0x2028, 0x3042, 0x4E00, 0xFEFF, 0x1F600)
)


def _characters(item: Any) -> frozenset[str] | None:
    """The characters that one position matches, of a choice of all; None for what is no single position."""
    op, argument = item
    match str(op):
        case "LITERAL":
            return _one(argument)
        case "NOT_LITERAL":
            return frozenset(_SOME) - {chr(argument)} | {"other"}
        case "IN":
            return _in(argument)
        case "ANY":
            return frozenset(_SOME) | {"other"}
        case _:
            return None


def _one(code: int) -> frozenset[str]:
    """One character; those that are not among the choice are taken for the same."""
    return frozenset({chr(code)} if code < 0x250 else {chr(code), "other"})


def _in(members: list[Any]) -> frozenset[str] | None:
    negated = bool(members) and str(members[0][0]) == "NEGATE"
    found: set[str] = set()
    for op, argument in members[negated:]:
        match str(op):
            case "LITERAL":
                found |= _one(argument)
            case "RANGE":
                low, high = argument
                found |= {one for one in _SOME if low <= ord(one) <= high}
                found |= _one(low) | _one(high)
            case _:
                return None
    return frozenset(_SOME) - found | {"other"} if negated else frozenset(found)

"""What is known of the values of a schema: their types, a list of all of them where they are few, bounds.

The old side of a question is a conjunction: a tuple of nodes whose references and `allOf` are resolved, so that what
one part of it says of a member and what another one says come together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, Final, NamedTuple, TypeAlias

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.json_schema.graph import ANNOTATIONS, Node
from leafcuttr_registry.json_schema.shapes import Values, is_number, key_of
from leafcuttr_registry.json_schema.validators import accepts, as_fraction

Nodes: TypeAlias = tuple[Node, ...]

# Numbers are three types here: 1 and 1.0 are both integers from draft-06 on, in draft-04 the second one is none.
INTEGER: Final = frozenset({"1", "1.0"})
NUMBER: Final = frozenset({"1", "1.0", "0.5"})
ALL: Final = NUMBER | {"null", "boolean", "string", "array", "object"}
GROUPS: Final = {
    "number": NUMBER,
    **{one: frozenset({one}) for one in ("null", "boolean", "string", "array", "object")},
}

MAX_VALUES: Final = 2000


def nodes_of(nodes: Iterable[Node], budget: Budget) -> Nodes:
    """A conjunction without references and `allOf`; `{}` and true are left out."""
    found: dict[int, Node] = {}
    seen: set[int] = set()
    todo = list(nodes)[::-1]
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        budget.spend(4)
        # One that has only `allOf` is kept too: reasons are named by how many parts there were.
        if node.value is False or says_something(node) or node.get("allOf"):
            found[id(node)] = node
        todo += [target for _, target in node.refs]
        todo += [one for _, one in node.below("allOf")]
    return tuple(found.values())


SAYS_NOTHING: Final = ANNOTATIONS | {
    "$ref",
    "$recursiveRef",
    "$dynamicRef",
    "allOf",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "$vocabulary",
}


def says_something(node: Node) -> bool:
    return isinstance(node.value, dict) and not node.ref_alone and not node.value.keys() <= SAYS_NOTHING


def own_types(node: Node) -> frozenset[str]:
    """What the keyword `type` allows."""
    if isinstance(node.value, bool):
        return ALL if node.value else frozenset()
    named = node.get("type")
    if named is None:
        return ALL
    found: set[str] = set()
    for one in [named] if isinstance(named, str) else named:
        if one == "integer":
            found |= {"1"} if node.dialect.number == 4 else INTEGER
        elif one == "number":
            found |= NUMBER
        else:
            found.add(one)
    return frozenset(found)


def type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "1"
    if isinstance(value, float):
        return "1.0" if value.is_integer() else "0.5"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def types(nodes: Nodes) -> frozenset[str]:
    """All types that values of a conjunction may have."""
    found = ALL
    for node in nodes:
        found &= node.types if node.types is not None else _types_of(node)
    return found


def _types_of(start: Node) -> frozenset[str]:
    """Of one node, remembered there. What applies in place has no circles (`graph.check`), but may be deep."""
    stack = [start]
    while stack:
        node = stack[-1]
        always = [one for _, one in (*node.refs, *node.below("allOf"))]
        unions = [[one for _, one in node.below(union)] for union in ("anyOf", "oneOf")]
        open_ = [one for one in (*always, *unions[0], *unions[1]) if one.types is None]
        if open_:
            stack += open_
            continue
        found = own_types(node) if not node.ref_alone else ALL
        values = listed(node)
        if values is not None:
            found &= frozenset(map(type_of, values))
        for one in always:
            found &= one.types or frozenset()
        for parts in unions:
            if parts:
                found &= frozenset[str]().union(*(one.types or () for one in parts))
        node.types = found
        stack.pop()
    return start.types or frozenset()


def listed(node: Node) -> list[Any] | None:
    """The values of `enum` or `const`."""
    if not isinstance(node.value, dict) or node.ref_alone:
        return None
    if "const" in node.value and node.dialect.number >= 6:
        return Values([node.value["const"]])
    values = node.value.get("enum")
    return values if isinstance(values, list) else None


def values_of(nodes: Nodes, budget: Budget) -> list[Any] | None:
    """All values of a conjunction, where they are a list; None where they are not, or are too many."""
    lists = [one for one in map(listed, nodes) if one is not None]
    if not lists:
        if types(nodes) <= {"null", "boolean"}:
            lists = [[None, True, False]]
        else:
            return None
    shortest = min(lists, key=len)
    if len(shortest) > MAX_VALUES:
        return None
    found: dict[Any, Any] = {}
    for value in shortest:
        budget.spend(10 * len(nodes))
        if all_accept(nodes, value):
            found[key_of(value)] = value
    return list(found.values())


def all_accept(nodes: Nodes, value: Any) -> bool:
    return all(accepts(node, value) for node in nodes)


def is_empty(nodes: Nodes) -> bool:
    """Whether a conjunction is known to have no value."""
    return any(node.value is False for node in nodes) or not types(nodes)


class Bound(NamedTuple):
    """A limit of numbers."""

    at: Fraction
    excluded: bool
    keyword: str
    written: Any


def bounds(node: Node) -> Iterator[tuple[str, Bound]]:
    """Those of a node: `maximum` and `minimum`, each perhaps with a second one that excludes."""
    for side in ("maximum", "minimum"):
        limit, exclusive = node.get(side), node.get(f"exclusive{side.capitalize()}")
        if is_number(limit):
            strict = exclusive is True
            yield (
                side,
                Bound(as_fraction(limit), strict, f"exclusive{side.capitalize()}" if strict else side, limit),
            )
        if is_number(exclusive):
            yield side, Bound(as_fraction(exclusive), True, f"exclusive{side.capitalize()}", exclusive)


def tightest(nodes: Nodes, side: str, whole: bool) -> Bound | None:
    """The bound of a conjunction; `whole`: for integers, of which 4 is the last one below 5."""
    found: Bound | None = None
    sign = 1 if side == "maximum" else -1
    for node in nodes:
        for which, bound in bounds(node):
            if which != side:
                continue
            if whole:
                at = math.floor(bound.at) if sign == 1 else math.ceil(bound.at)
                if bound.excluded and at == bound.at:
                    at -= sign
                bound = bound._replace(at=Fraction(at), excluded=False)
            if found is None or (sign * bound.at, not bound.excluded) < (sign * found.at, not found.excluded):
                found = bound
    return found


def least(nodes: Nodes, keyword: str) -> Any:
    """The smallest value of a keyword that is a limit from above; None without one."""
    return min((node.get(keyword) for node in nodes if is_number(node.get(keyword))), default=None)


def greatest(nodes: Nodes, keyword: str) -> Any:
    """The largest value of a keyword that is a limit from below; None without one."""
    return max((node.get(keyword) for node in nodes if is_number(node.get(keyword))), default=None)


def required(nodes: Nodes) -> set[str]:
    """The members that all values have that are objects."""
    names: set[str] = set()
    for node in nodes:
        listed_names = node.get("required")
        names.update(listed_names if isinstance(listed_names, list) else ())
    return names

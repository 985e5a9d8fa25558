"""What a schema says of members and of items, in one form for all drafts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from leafcuttr_registry.json_schema.compare.engine import Comparison
from leafcuttr_registry.json_schema.graph import Node, in_place


class Members(NamedTuple):
    """Of objects."""

    named: dict[str, Node]
    patterns: tuple[tuple[str, Node], ...]
    rest: Node | None
    """For members that are neither named nor of a pattern; None: anything."""

    def at(self, name: str) -> list[Node]:
        """All schemas that a member has to be of."""
        found = [self.named[name]] if name in self.named else []
        found += [one for pattern, one in self.patterns if _compiled(pattern).search(name)]
        return found or ([self.rest] if self.rest is not None else [])


class Items(NamedTuple):
    """Of arrays."""

    first: tuple[Node, ...]
    rest: Node | None
    """For items after the first ones; None: anything."""
    rest_keyword: str
    first_keyword: str

    def at(self, place: int) -> list[Node]:
        if place < len(self.first):
            return [self.first[place]]
        return [self.rest] if self.rest is not None else []


@lru_cache(maxsize=8192)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


NO_MEMBERS = Members({}, (), None)
NO_ITEMS = Items((), None, "items", "items")


def members_of(run: Comparison, node: Node) -> Members:
    """Of a node on the old side: what is true of all its values. `unevaluatedProperties` says something of members
    that nothing in place may have evaluated."""
    key = ("members", id(node))
    if key not in run.views:
        run.views[key] = _members_of(run, node)
    found: Members = run.views[key]
    return found


def _members_of(run: Comparison, node: Node) -> Members:
    found = own_members(node)
    rest = _sub(node, "unevaluatedProperties") if node.dialect.number >= 2019 else None
    if rest is None or found.rest is not None:
        return found
    named, patterns = dict(found.named), list(found.patterns)
    for one in _parts(node):
        run.budget.spend()
        within = own_members(one)
        if within.rest is not None or _sub(one, "unevaluatedProperties") is not None:
            return found
        for name in within.named:
            named.setdefault(name, node._graph.true)
        patterns += [(pattern, node._graph.true) for pattern, _ in within.patterns]
    return Members(named, tuple(patterns), rest)


def own_members(node: Node) -> Members:
    if not isinstance(node.value, dict) or node.ref_alone:
        return NO_MEMBERS
    return Members(
        dict(node.below("properties")),
        tuple(node.below("patternProperties")),
        _sub(node, "additionalProperties"),
    )


def items_of(run: Comparison, node: Node) -> Items:
    """Of a node on the old side."""
    key = ("items", id(node))
    if key not in run.views:
        run.views[key] = _items_of(run, node)
    found: Items = run.views[key]
    return found


def _items_of(run: Comparison, node: Node) -> Items:
    found = own_items(node)
    rest = _sub(node, "unevaluatedItems") if node.dialect.number >= 2019 else None
    if rest is None or found.rest is not None or node.sub("contains") is not None:
        return found
    for one in _parts(node):
        run.budget.spend()
        within = own_items(one)
        if within.first or within.rest or any(_sub(one, word) for word in ("contains", "unevaluatedItems")):
            return found
    return found._replace(rest=rest, rest_keyword="unevaluatedItems")


def own_items(node: Node) -> Items:
    if not isinstance(node.value, dict) or node.ref_alone:
        return NO_ITEMS
    if node.dialect.number >= 2020:
        return Items(
            tuple(one for _, one in node.below("prefixItems")), _sub(node, "items"), "items", "prefixItems"
        )
    if isinstance(node.value.get("items"), list):
        first = tuple(one for _, one in node.below("items"))
        return Items(first, _sub(node, "additionalItems"), "additionalItems", "items")
    return Items((), _sub(node, "items"), "items", "items")


def _sub(node: Node, keyword: str) -> Node | None:
    if not isinstance(node.value, dict) or node.ref_alone:
        return None
    if keyword.startswith("additional") and isinstance(node.value.get(keyword), bool):
        # Of draft-04, where true and false are no schemas elsewhere.
        return node._graph.true if node.value[keyword] else node._graph.false
    return node.sub(keyword)


def sub(node: Node, keyword: str) -> Node | None:
    """The schema of a keyword; None where there is none."""
    return _sub(node, keyword)


def _parts(node: Node) -> Iterator[Node]:
    """All nodes that apply to the same value as a node does, without itself."""
    seen = {id(node)}
    todo = list(in_place(node))
    while todo:
        one = todo.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            todo += in_place(one)


def always(node: Node) -> Iterator[Node]:
    """A node and those that apply wherever it does: its references and `allOf`, theirs, and so on."""
    seen: set[int] = set()
    todo = [node]
    while todo:
        one = todo.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            todo += [target for _, target in one.refs]
            todo += [part for _, part in one.below("allOf")]

"""Whether two schemas are known to have no value in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from leafcuttr_registry.json_schema.compare import model
from leafcuttr_registry.json_schema.compare.engine import Comparison
from leafcuttr_registry.json_schema.compare.model import Nodes, nodes_of
from leafcuttr_registry.json_schema.compare.views import items_of, members_of
from leafcuttr_registry.json_schema.graph import Node
from leafcuttr_registry.json_schema.shapes import is_number

MAX_DEPTH: Final = 6


def have_none(run: Comparison, nodes: Nodes) -> bool:
    """Whether a conjunction is known to have no value."""
    key = frozenset(map(id, nodes))
    if key not in run.empty:
        run.empty[key] = are(run, nodes, ())
    return run.empty[key]


def are(run: Comparison, one: Iterable[Node], other: Iterable[Node], depth: int = 0) -> bool:
    """True only where it is certain."""
    nodes = nodes_of((*one, *other), run.budget)
    run.budget.spend(20 + 5 * len(nodes))
    common = model.types(nodes)
    if not common or any(node.value is False for node in nodes):
        return True
    values = model.values_of(nodes, run.budget)
    if values is not None:
        return not values
    if all(_of_type(run, nodes, name, depth) for name, group in model.GROUPS.items() if common & group):
        return True
    return _alternatives(run, nodes, depth)


def _of_type(run: Comparison, nodes: Nodes, name: str, depth: int) -> bool:
    if name == "number":
        lower, upper = model.tightest(nodes, "minimum", False), model.tightest(nodes, "maximum", False)
        if lower is None or upper is None:
            return False
        return lower.at > upper.at or (lower.at == upper.at and (lower.excluded or upper.excluded))
    if name == "string":
        return _conflict(nodes, "minLength", "maxLength")
    if name == "array":
        return _conflict(nodes, "minItems", "maxItems") or _items(run, nodes, depth)
    if name == "object":
        return _conflict(nodes, "minProperties", "maxProperties") or _members(run, nodes, depth)
    return False


def _conflict(nodes: Nodes, low: str, high: str) -> bool:
    least, most = model.greatest(nodes, low), model.least(nodes, high)
    return least is not None and most is not None and least > most


def _members(run: Comparison, nodes: Nodes, depth: int) -> bool:
    """A member that both have to have, and of which no value is of both."""
    if depth >= MAX_DEPTH:
        return False
    most = model.least(nodes, "maxProperties")
    if most is not None and len(model.required(nodes)) > most:
        return True
    for name in sorted(model.required(nodes)):
        run.budget.spend(2 * len(nodes))
        within = [part for node in nodes for part in members_of(run, node).at(name)]
        if within and are(run, within, (), depth + 1):
            return True
    return False


def _items(run: Comparison, nodes: Nodes, depth: int) -> bool:
    """An item that both have to have."""
    count = model.greatest(nodes, "minItems")
    if depth >= MAX_DEPTH or not is_number(count):
        return False
    known = max((len(items_of(run, node).first) for node in nodes), default=0)
    for n in range(min(int(count), known + 1)):
        within = [part for node in nodes for part in items_of(run, node).at(n)]
        if within and are(run, within, (), depth + 1):
            return True
    return False


def _alternatives(run: Comparison, nodes: Nodes, depth: int) -> bool:
    """A union of which every alternative has nothing in common with the rest."""
    if depth >= MAX_DEPTH:
        return False
    for node in nodes:
        for union in ("anyOf", "oneOf"):
            branches = [branch for _, branch in node.below(union)]
            rest = [other for other in nodes if other is not node]
            run.budget.spend(2 * len(branches))
            # What stands beside the union is left out: the same union would come up again.
            if rest and branches and all(are(run, (branch,), rest, depth + 1) for branch in branches):
                return True
    return False

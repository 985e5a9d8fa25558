"""Limits of numbers and strings."""

from __future__ import annotations

from typing import Any

from leafcuttr_registry.json_schema.compare import model
from leafcuttr_registry.json_schema.compare.engine import ABSENT, NOTHING, Comparison, Reasons
from leafcuttr_registry.json_schema.compare.model import Bound, Nodes
from leafcuttr_registry.json_schema.graph import Node
from leafcuttr_registry.json_schema.shapes import is_number
from leafcuttr_registry.json_schema.validators import as_fraction

_NAMES = {
    "maximum": "MAXIMUM",
    "minimum": "MINIMUM",
    "exclusiveMaximum": "EXCLUSIVE_MAXIMUM",
    "exclusiveMinimum": "EXCLUSIVE_MINIMUM",
}


def compare(run: Comparison, old: Nodes, new: Node, before: frozenset[str]) -> Reasons:
    """`maximum`, `minimum`, those that exclude, `multipleOf`; `before` are the types of the old side."""
    possible = before & model.own_types(new) & model.NUMBER
    if not possible:
        return NOTHING
    whole = "0.5" not in possible
    found: Reasons = NOTHING
    for side, bound in model.bounds(new):
        had = model.tightest(old, side, whole)
        if not (had is not None and _implies(had, bound, side)):
            found += _bound(run, old, side, bound)
    return found + _multiple(run, old, new, whole)


def _implies(had: Bound, bound: Bound, side: str) -> bool:
    if had.at == bound.at:
        return had.excluded or not bound.excluded
    return had.at < bound.at if side == "maximum" else had.at > bound.at


def _bound(run: Comparison, old: Nodes, side: str, bound: Bound) -> Reasons:
    """Named as the same keyword of the old schema, where it has one."""
    same = [
        one
        for node in old
        for which, one in model.bounds(node)
        if which == side and one.keyword == bound.keyword
    ]
    written = {one.at: one.written for one in same}
    change = "DECREASED" if side == "maximum" else "INCREASED"
    if not written:
        return run.found(f"{_NAMES[bound.keyword]}_ADDED", (bound.keyword,), ABSENT, bound.written)
    at = min(written) if side == "maximum" else max(written)
    return run.found(f"{_NAMES[bound.keyword]}_{change}", (bound.keyword,), written[at], bound.written)


def _multiple(run: Comparison, old: Nodes, new: Node, whole: bool) -> Reasons:
    divisor = new.get("multipleOf")
    if not is_number(divisor):
        return NOTHING
    now = as_fraction(divisor)
    had = [node.get("multipleOf") for node in old if is_number(node.get("multipleOf"))]
    if any((as_fraction(one) / now).denominator == 1 for one in had) or (
        whole and (1 / now).denominator == 1
    ):
        return NOTHING
    if not had:
        return run.found("MULTIPLE_OF_ADDED", ("multipleOf",), ABSENT, divisor)
    kind = "EXPANDED" if (now / as_fraction(had[0])).denominator == 1 else "CHANGED"
    return run.found(f"MULTIPLE_OF_{kind}", ("multipleOf",), had[0], divisor)


def compare_strings(run: Comparison, old: Nodes, new: Node) -> Reasons:
    """`maxLength`, `minLength`, `pattern`."""
    found = at_most(run, "maxLength", "MAX_LENGTH", model.least(old, "maxLength"), new.get("maxLength"))
    found += at_least(run, "minLength", "MIN_LENGTH", model.greatest(old, "minLength"), new.get("minLength"))
    pattern = new.get("pattern")
    if isinstance(pattern, str):
        had = [node.get("pattern") for node in old if isinstance(node.get("pattern"), str)]
        if pattern not in had:
            kind = "PATTERN_CHANGED" if had else "PATTERN_ADDED"
            found += run.found(kind, ("pattern",), had[0] if had else ABSENT, pattern)
    return found


def at_most(run: Comparison, keyword: str, name: str, had: Any, now: Any, *, known: Any = None) -> Reasons:
    """A limit from above; `known` is one that follows from something else."""
    if not is_number(now) or (had is not None and had <= now) or (known is not None and known <= now):
        return NOTHING
    kind = f"{name}_ADDED" if had is None else f"{name}_DECREASED"
    return run.found(kind, (keyword,), ABSENT if had is None else had, now)


def at_least(run: Comparison, keyword: str, name: str, had: Any, now: Any, *, known: int = 0) -> Reasons:
    """A limit from below."""
    if not is_number(now) or now <= known or (had is not None and had >= now):
        return NOTHING
    kind = f"{name}_ADDED" if had is None else f"{name}_INCREASED"
    return run.found(kind, (keyword,), ABSENT if had is None else had, now)

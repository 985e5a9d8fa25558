"""The answer to a question: the parts of a schema, and among them its own keywords."""

from __future__ import annotations

from typing import Any

from leafcuttr_registry.json_schema.compare import arrays, disjoint, model, numbers, objects, unions
from leafcuttr_registry.json_schema.compare.engine import (
    ABSENT,
    MAX_REASONS,
    NOTHING,
    WHOLE,
    Asking,
    Comparison,
    Question,
    Reason,
    Reasons,
    below,
    described,
)
from leafcuttr_registry.json_schema.compare.model import Nodes, is_empty, nodes_of
from leafcuttr_registry.json_schema.compare.same import is_among
from leafcuttr_registry.json_schema.graph import Node
from leafcuttr_registry.json_schema.shapes import Values, key_of
from leafcuttr_registry.json_schema.validators import accepts


def answer(run: Comparison, asked: Question) -> Asking:
    """The generator that answers a question."""
    if asked.part == WHOLE:
        return _whole(run, asked)
    if asked.part == "own":
        return _own(run, asked)
    return unions.answer(run, asked)


def _whole(run: Comparison, asked: Question) -> Asking:
    old, new = asked.old, asked.new
    if is_empty(old) or is_among(run, old, new):
        return NOTHING
    if new.value is False:
        return run.found("TYPE_CHANGED", (), described(old), False)
    values = model.values_of(old, run.budget)
    if values is not None:
        run.budget.spend(10 * len(values))
        if all(accepts(new, value) for value in values):
            return NOTHING
    found: Reasons = NOTHING
    # Members that are filled in are seen by what stands beside, too.
    alone = asked.fills and (new.ref_alone or _stands_alone(new))
    for _, target in new.refs:
        found += yield Question(old, target, fills=alone, split=asked.split)
    if not new.ref_alone:
        found += yield from _all_of(run, asked)
        found += yield asked._replace(part="own", deeper=False)
        for union in ("anyOf", "oneOf"):
            if new.get(union):
                found += yield asked._replace(part=union, deeper=False, fills=False)
    if values is not None and not found:
        # What is known of the values was of no use; one of them is refused.
        found = run.found("ENUM_ARRAY_CHANGED", ("enum",), values, new)
    if found and disjoint.have_none(run, old):
        return NOTHING  # No value at all is of the old schema.
    return _unique(found)


def _stands_alone(new: Node) -> bool:
    """Whether only one part of a schema says something."""
    parts = len(new.refs) + len(new.get("allOf") or ()) + any(new.get(one) for one in ("anyOf", "oneOf"))
    own = model.says_something(new)
    return parts + own <= 1


def _all_of(run: Comparison, asked: Question) -> Asking:
    """Every part has to accept all. How Confluent names it depends on what the old schema had."""
    parts = list(asked.new.below("allOf"))
    found: Reasons = NOTHING
    for name, part in parts:
        reasons = yield Question(
            asked.old, part, fills=asked.fills and _stands_alone(asked.new), split=asked.split
        )
        found += below(reasons, "allOf", name)
    if not found:
        return NOTHING
    before = max((len(node.get("allOf") or ()) for node in asked.old), default=0)
    if before:
        kind = "PRODUCT_TYPE_EXTENDED" if len(parts) > before else "COMBINED_TYPE_SUBSCHEMAS_CHANGED"
    elif any(node.get(union) for node in asked.old for union in ("anyOf", "oneOf")):
        kind = "COMBINED_TYPE_CHANGED"
    else:
        return found
    return run.found(kind, (), described(asked.old), asked.new.get("allOf"), unions.because(found))


def _own(run: Comparison, asked: Question) -> Asking:
    """The keywords that are neither references nor unions. Where they are not implied as a whole, they may be by each
    alternative of the old side."""
    found = yield from _keywords(run, asked)
    if found:
        parts = unions.alternatives(run, asked, by_types=False)
        if parts:
            each: Reasons = NOTHING
            for part in parts:
                each += yield part
            return _unique(each)
    return _unique(found)


def _keywords(run: Comparison, asked: Question) -> Asking:
    old, new = asked.old, asked.new
    if is_empty(old):
        return NOTHING
    before = model.types(old)
    common = before & model.own_types(new)
    if not common:
        return run.found("TYPE_CHANGED", (), described(old), described((new,)))
    found: Reasons = NOTHING
    if before - common:
        found += _types(run, old, new, before)
    found += _values(run, old, new)
    found += numbers.compare(run, old, new, before)
    if "string" in common:
        found += numbers.compare_strings(run, old, new)
    if "array" in common:
        found += yield from arrays.compare(run, asked)
    if "object" in common:
        found += yield from objects.compare(run, asked)
    found += yield from _not(run, asked)
    found += yield from _condition(run, asked)
    return found


def _types(run: Comparison, old: Nodes, new: Node, before: frozenset[str]) -> Reasons:
    """Some of the types are not allowed any more."""
    lost = before - model.own_types(new)
    if lost <= {"1.0", "0.5"}:
        kind = "TYPE_NARROWED"
    elif isinstance(new.get("type"), list) and any(isinstance(node.get("type"), list) for node in old):
        kind = "SUM_TYPE_NARROWED"
    else:
        kind = "TYPE_CHANGED"
    return run.found(kind, (), described(old), described((new,)))


def _values(run: Comparison, old: Nodes, new: Node) -> Reasons:
    """`enum` and `const`."""
    allowed = model.listed(new)
    if allowed is None:
        return NOTHING
    keyword = "const" if new.get("const", ABSENT) is not ABSENT and new.dialect.number >= 6 else "enum"
    keys = allowed.keys if isinstance(allowed, Values) else frozenset(map(key_of, allowed))
    lists = [one for one in map(model.listed, old) if isinstance(one, Values)]
    if any(one.keys <= keys for one in lists):
        return NOTHING
    had = model.values_of(old, run.budget)
    if had is None:
        return run.found("ENUM_ARRAY_NARROWED", (keyword,), ABSENT, new.get(keyword))
    before = frozenset(map(key_of, had))
    if before <= keys:
        return NOTHING
    kind = "ENUM_ARRAY_NARROWED" if keys <= before and keyword == "enum" else "ENUM_ARRAY_CHANGED"
    return run.found(kind, (keyword,), had if keyword == "enum" else had[0], new.get(keyword))


def _not(run: Comparison, asked: Question) -> Asking:
    """What is forbidden now must have been forbidden, or never possible."""
    forbidden = asked.new.sub("not")
    if forbidden is None:
        return NOTHING
    now = nodes_of((forbidden,), run.budget)
    hads = [one for node in asked.old if not node.ref_alone and (one := node.sub("not")) is not None]
    if is_among(run, hads, forbidden) or disjoint.are(run, asked.old, now):
        return NOTHING
    before: Any = ABSENT
    for node in asked.old:
        was = node.sub("not") if not node.ref_alone else None
        if was is not None:
            before = was.value
            # A part of what both sides of the question are about, still the same value.
            reasons = yield Question(_with(asked.old, now), was)
            if not reasons:
                return NOTHING
    return run.found("NOT_TYPE_EXTENDED", ("not",), before, forbidden.value)


def _with(old: Nodes, more: Nodes) -> Nodes:
    return tuple({id(node): node for node in (*old, *more)}.values())


def _condition(run: Comparison, asked: Question) -> Asking:
    """`if`, `then`, `else`: each branch must accept what can come to it."""
    new, old = asked.new, asked.old
    condition = new.sub("if")
    if condition is None or new.dialect.number < 7:
        return NOTHING
    now = nodes_of((condition,), run.budget)
    found: Reasons = NOTHING
    then, otherwise = new.sub("then"), new.sub("else")
    conditions = [(node, node.sub("if")) for node in old if node.dialect.number >= 7 and node.sub("if")]
    before: Any = conditions[0][1].value if conditions and conditions[0][1] else ABSENT
    if then is not None and not disjoint.are(run, old, now):
        known = _with(old, now)
        for node, was in conditions:
            assert was is not None
            if not (yield Question(known, was)):
                known = _with(known, nodes_of(filter(None, [node.sub("then")]), run.budget))
        reasons = yield Question(known, then, split=asked.split)
        found += below(reasons, "then")
    if otherwise is not None and (yield Question(old, condition, split=asked.split)):
        known = old
        for node, was in conditions:
            assert was is not None
            if not (yield Question(nodes_of((was,), run.budget), condition)):
                known = _with(known, nodes_of(filter(None, [node.sub("else")]), run.budget))
        reasons = yield Question(known, otherwise, split=asked.split)
        found += below(reasons, "else")
    if not found:
        return NOTHING
    kind = "CONDITION_CHANGED" if before is not ABSENT else "CONDITION_ADDED"
    return run.found(kind, ("if",), before, condition.value, unions.because(found))


def _unique(found: Reasons) -> Reasons:
    unique: dict[tuple[str, tuple[str, ...]], Reason] = {}
    for one in found:
        unique.setdefault((one.type, one.path), one)
        if len(unique) >= MAX_REASONS:
            break
    return tuple(unique.values())

"""`anyOf` and `oneOf`: every alternative of the old schema is one of the new schema's.

Alternatives of the old side are those of its unions, of its conditions, and its types. `oneOf` asks more: a value that
was of one alternative must not be of a second one now, so an alternative that is new or wider has to have nothing in
common with the others.
"""

from __future__ import annotations

from typing import Any

from leafcuttr_registry.json_schema.compare import disjoint, model
from leafcuttr_registry.json_schema.compare.engine import (
    NOTHING,
    Asking,
    Comparison,
    Question,
    Reason,
    Reasons,
    described,
)
from leafcuttr_registry.json_schema.compare.model import is_empty, nodes_of
from leafcuttr_registry.json_schema.compare.same import same_parts, twins
from leafcuttr_registry.json_schema.graph import Node


def answer(run: Comparison, asked: Question) -> Asking:
    """Of the part `anyOf` or `oneOf` of a question."""
    if is_empty(asked.old) or any(same_parts(run, node, asked.new, asked.part) for node in asked.old):
        return NOTHING
    branches = list(asked.new.below(asked.part))
    nearest: Reasons = NOTHING
    overlapping = False
    parts = alternatives(run, asked, by_types=True)
    by_union = any(key for key, _ in parts[0].split - asked.split) if parts else False
    # As a whole only where that is simple: what is of one alternative as a whole is so part by part.
    for place in _order(run, asked, len(branches)) if not by_union or asked.split else ():
        _, branch = branches[place]
        reasons = yield Question(asked.old, branch, split=asked.split)
        if reasons:
            if not nearest or len(reasons) < len(nearest):
                nearest = reasons
        elif asked.part == "anyOf" or (yield from _apart(run, asked, branches, place)):
            return NOTHING
        else:
            overlapping = True
    for part in parts:
        reasons = yield part
        if reasons:
            nearest, overlapping = reasons, _is_overlap(reasons)
            break
    else:
        if parts:
            return NOTHING
    return run.found(*_named(asked, nearest, overlapping))


def _order(run: Comparison, asked: Question, count: int) -> list[int]:
    """The alternatives of the new schema, those first that are the one which the old side was narrowed to."""
    first: list[int] = []
    for node, union, name in _chosen(asked):
        first += [
            n for n, names in enumerate(twins(run, node, asked.new, union, asked.part)) if name in names
        ]
    return list(dict.fromkeys([*first, *range(count)]))


def _is_overlap(found: Reasons) -> bool:
    return any(one.type == "SUM_TYPE_OVERLAPS" for one in found)


def _apart(run: Comparison, asked: Question, branches: list[tuple[str, Node]], place: int) -> Asking:
    """Whether no value of the old side is of another alternative: a finding says yes."""
    yes = (Reason("", (), None, None),)
    chosen = [(node, name) for node, union, name in _chosen(asked) if union == "oneOf"]
    known = [(twins(run, node, asked.new, "oneOf", asked.part), name) for node, name in chosen]
    for other, (_, branch) in enumerate(branches):
        if other == place:
            continue
        run.budget.spend()
        # A value of exactly one alternative is of no other one; nor of what is within that.
        if any(each[other] and each[other] != (mine,) for each, mine in known):
            continue
        now = nodes_of((branch,), run.budget)
        if disjoint.are(run, asked.old, now):
            continue
        inside = False
        for node, name in chosen:
            for was, schema in node.below("oneOf"):
                if was != name and not (yield Question(now, schema)):
                    inside = True
                    break
        if not inside:
            return NOTHING
    return yes


def _chosen(asked: Question) -> list[tuple[Node, str, str]]:
    """The alternatives of unions that the old side was narrowed to."""
    nodes = {id(node): node for node in asked.old}
    found = []
    for number, split in asked.split:
        union, _, name = split.partition("/")
        if name and number in nodes:
            found.append((nodes[number], union, name))
    return found


def alternatives(run: Comparison, asked: Question, *, by_types: bool) -> list[Question]:
    """The old side as several, of which each value is of one: by its first union that was not split yet, by a
    condition, or by types. Empty where there is nothing to split."""
    done = {(number, kind.partition("/")[0]) for number, kind in asked.split}
    unions = [
        (node, union)
        for node in asked.old
        for union in ("anyOf", "oneOf")
        if node.get(union) and (id(node), union) not in done
    ]
    if asked.part in ("anyOf", "oneOf"):
        # The union first whose alternatives are among those that are asked for.
        unions.sort(key=lambda one: -sum(map(len, twins(run, one[0], asked.new, one[1], asked.part))))
    for node, union in unions:
        return [
            _narrowed(run, asked, (branch,), (id(node), f"{union}/{name}"))
            for name, branch in node.below(union)
        ]
    for node in asked.old:
        condition = node.sub("if")
        if condition is not None and node.dialect.number >= 7 and (id(node), "if") not in done:
            then, otherwise = node.sub("then"), node.sub("else")
            return [
                _narrowed(run, asked, [condition, *([then] if then else [])], (id(node), "if")),
                _narrowed(run, asked, [otherwise] if otherwise else [], (id(node), "if")),
            ]
    if by_types and (0, "type") not in done:
        before = model.types(asked.old)
        groups = [name for name, group in model.GROUPS.items() if before & group]
        if len(groups) > 1:
            return [_narrowed(run, asked, (run.typed(name),), (0, "type")) for name in groups]
    return []


def _narrowed(run: Comparison, asked: Question, more: Any, split: tuple[int, str]) -> Question:
    old = nodes_of((*asked.old, *more), run.budget)
    return asked._replace(old=old, split=asked.split | {split}, deeper=False)


def _named(
    asked: Question, nearest: Reasons, overlapping: bool
) -> tuple[str, tuple[str, ...], Any, Any, str]:
    """The reason as Confluent's registry names it: by how many alternatives both have."""
    new = asked.new.get(asked.part)
    had = [(union, node.get(union)) for node in asked.old for union in ("oneOf", "anyOf") if node.get(union)]
    if overlapping:
        return "SUM_TYPE_OVERLAPS", (), had[0][1] if had else described(asked.old), new, ""
    detail = because(nearest)
    if had:
        union, branches = had[0]
        if union == "anyOf" and asked.part == "oneOf" and len(new) < len(branches):
            return "COMBINED_TYPE_CHANGED", (), branches, new, detail
        kind = "SUM_TYPE_NARROWED" if len(new) < len(branches) else "COMBINED_TYPE_SUBSCHEMAS_CHANGED"
        return kind, (), branches, new, detail
    listed = [node.get("type") for node in asked.old if isinstance(node.get("type"), list)]
    if listed:
        return "SUM_TYPE_NARROWED", (), listed[0], new, detail
    if any(node.get("allOf") for node in asked.old):
        return "COMBINED_TYPE_SUBSCHEMAS_CHANGED", (), described(asked.old), new, detail
    return "TYPE_CHANGED", (), described(asked.old), new, detail


def because(found: Reasons) -> str:
    """The first reason within, for the end of a sentence."""
    from leafcuttr_registry.json_schema.rules import sentence

    return f" ({sentence(found[0])})" if found else ""

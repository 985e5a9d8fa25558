"""Items of arrays: the first ones by their places, the rest, how many, what is contained."""

from __future__ import annotations

from leafcuttr_registry.json_schema.compare import disjoint, model
from leafcuttr_registry.json_schema.compare.engine import (
    ABSENT,
    NOTHING,
    Asking,
    Comparison,
    Question,
    Reasons,
    below,
)
from leafcuttr_registry.json_schema.compare.model import Nodes, nodes_of
from leafcuttr_registry.json_schema.compare.numbers import at_least, at_most
from leafcuttr_registry.json_schema.compare.same import evaluates_the_same
from leafcuttr_registry.json_schema.compare.unions import because
from leafcuttr_registry.json_schema.compare.views import Items, always, items_of, own_items, sub
from leafcuttr_registry.json_schema.graph import Node
from leafcuttr_registry.json_schema.shapes import is_number


def compare(run: Comparison, asked: Question) -> Asking:
    """All keywords of arrays."""
    old, new = asked.old, asked.new
    had = [items_of(run, node) for node in old]
    now = own_items(new)
    longest = _longest(old, had)
    # What is filled into items may make two of them equal, or one of them a match.
    fills = asked.fills and not any(new.get(word) for word in ("uniqueItems", "contains", "unevaluatedItems"))
    found = yield from _first(run, had, now, longest, fills)
    found += yield from _rest(run, had, now, longest, fills)
    found += yield from _unevaluated(run, asked, had, longest)
    found += yield from _contains(run, asked, had, longest)
    unique = any(node.get("uniqueItems") is True for node in old) or (longest is not None and longest <= 1)
    if new.get("uniqueItems") is True and not unique:
        found += run.found("UNIQUE_ITEMS_ADDED", ("uniqueItems",), ABSENT, True)
    found += at_most(
        run, "maxItems", "MAX_ITEMS", model.least(old, "maxItems"), new.get("maxItems"), known=longest
    )
    return found + at_least(
        run, "minItems", "MIN_ITEMS", model.greatest(old, "minItems"), new.get("minItems")
    )


def _longest(old: Nodes, had: list[Items]) -> int | None:
    """How many items there are at most."""
    limits = [len(one.first) for one in had if one.rest is not None and one.rest.value is False]
    for items in had:
        limits += [n for n, one in enumerate(items.first) if one.value is False][:1]
    most = model.least(old, "maxItems")
    return min([*limits, *([int(most)] if most is not None else [])], default=None)


def at(had: list[Items], place: int) -> list[Node]:
    """What the old side says of an item."""
    return [one for items in had for one in items.at(place)]


def _first(run: Comparison, had: list[Items], now: Items, longest: int | None, fills: bool) -> Asking:
    found: Reasons = NOTHING
    for place, schema in enumerate(now.first[:longest]):
        run.budget.spend()
        before = at(had, place)
        reasons = yield run.question(before, schema, fills=fills)
        if not reasons:
            continue
        path = (now.first_keyword, str(place))
        if any(place < len(items.first) for items in had):
            found += below(reasons, *path)
        elif not before:
            found += run.found("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", path, ABSENT, schema.value)
        else:
            found += below(reasons, *path)
            kind = "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
            found += run.found(kind, path, before[0].value, schema.value)
    return found


def _rest(run: Comparison, had: list[Items], now: Items, longest: int | None, fills: bool) -> Asking:
    """Items after the first ones of the new schema."""
    rest = now.rest
    if rest is None or rest.value is True or rest.value == {}:
        return NOTHING
    found: Reasons = NOTHING
    known = max((len(items.first) for items in had), default=0)
    keyword = next((items.first_keyword for items in had if items.first), now.first_keyword)
    for place in range(len(now.first), known if longest is None else min(known, longest)):
        run.budget.spend()
        before = at(had, place)
        if model.is_empty(nodes_of(before, run.budget)):
            continue
        path = (keyword, str(place))
        if rest.value is False:
            found += run.found("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", path, before[0].value, ABSENT)
            continue
        reasons = yield run.question(before, rest, fills=fills)
        if reasons:
            found += below(reasons, *path)
            kind = "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
            found += run.found(kind, path, before[0].value, rest.value)
    beyond = max(known, len(now.first))
    if longest is not None and longest <= beyond:
        return found
    before = at(had, beyond)
    reasons = yield run.question(before, rest, fills=fills)
    if reasons:
        found += _rest_named(run, now, before, rest, reasons)
    return found


def _rest_named(run: Comparison, now: Items, before: list[Node], rest: Node, reasons: Reasons) -> Reasons:
    place = (now.rest_keyword,)
    if now.first or now.rest_keyword == "additionalItems":
        if rest.value is False:
            return run.found("ADDITIONAL_ITEMS_REMOVED", place, before[0].value if before else ABSENT, False)
        if not before:
            return run.found("ADDITIONAL_ITEMS_NARROWED", place, ABSENT, rest.value)
    elif not before:
        return run.found("SCHEMA_ADDED", place, ABSENT, rest.value)
    return below(reasons, *place)


def _unevaluated(run: Comparison, asked: Question, had: list[Items], longest: int | None) -> Asking:
    """`unevaluatedItems`: items that nothing evaluates for certain have to be of it."""
    new = asked.new
    rest = sub(new, "unevaluatedItems") if new.dialect.number >= 2019 else None
    if (
        rest is None
        or rest.value is True
        or any(evaluates_the_same(run, node, new, "unevaluatedItems") for node in asked.old)
    ):
        return NOTHING
    evaluated = 0
    for node in always(new):
        items = own_items(node)
        if items.rest is not None or (node is not new and sub(node, "unevaluatedItems") is not None):
            return NOTHING
        evaluated = max(evaluated, len(items.first))
    last = max(evaluated, *(len(items.first) for items in had), 0)
    before: list[Node] = []
    for place in range(evaluated, last + 1):
        if longest is not None and place >= longest:
            return NOTHING
        before = at(had, place)
        reasons = yield run.question(before, rest)
        if reasons:
            break
    else:
        return NOTHING
    shown = before[0].value if before else ABSENT
    if rest.value is False:
        return run.found("UNEVALUATED_ITEMS_REMOVED", ("unevaluatedItems",), shown, False)
    if not before:
        return run.found("UNEVALUATED_ITEMS_NARROWED", ("unevaluatedItems",), ABSENT, rest.value)
    return below(reasons, "unevaluatedItems")


def _counts(node: Node) -> tuple[int, int | None]:
    """How many items have to be, and may be, of `contains`."""
    if node.dialect.number < 2019:
        return 1, None
    least, most = node.get("minContains"), node.get("maxContains")
    return (int(least) if is_number(least) else 1), (int(most) if is_number(most) else None)


def _contains(run: Comparison, asked: Question, had: list[Items], longest: int | None) -> Asking:
    """`contains`, `minContains`, `maxContains`."""
    new, old = asked.new, asked.old
    wanted = sub(new, "contains") if new.dialect.number >= 6 else None
    if wanted is None:
        return NOTHING
    least, most = _counts(new)
    before = [
        (node, one) for node in old if node.dialect.number >= 6 and (one := sub(node, "contains")) is not None
    ]
    found: Reasons = NOTHING
    if least > 0:
        found += yield from _at_least(run, old, had, wanted, least, before)
    if most is not None and (longest is None or longest > most):
        found += yield from _at_most(run, had, wanted, most, before)
    return found


def _at_least(
    run: Comparison, old: Nodes, had: list[Items], wanted: Node, least: int, before: list[tuple[Node, Node]]
) -> Asking:
    reasons: Reasons = NOTHING
    widest = 0
    for node, one in before:
        reasons = yield run.question((one,), wanted)
        if not reasons:
            widest = max(widest, _counts(node)[0])
    if widest >= least:
        return NOTHING
    # All items may be of it, and enough of them be there.
    enough = model.greatest(old, "minItems")
    if enough is not None and enough >= least:
        known = max((len(items.first) for items in had), default=0)
        for place in range(known + 1):
            misses = yield run.question(at(had, place), wanted)
            if misses:
                break
        else:
            return NOTHING
    if widest:
        return run.found("MIN_CONTAINS_INCREASED", ("minContains",), widest, least)
    if not before:
        return run.found("CONTAINS_ADDED", ("contains",), ABSENT, wanted.value)
    if not reasons:
        return run.found("MIN_CONTAINS_ADDED", ("minContains",), 0, least)
    return run.found("CONTAINS_CHANGED", ("contains",), before[0][1].value, wanted.value, because(reasons))


def _at_most(
    run: Comparison, had: list[Items], wanted: Node, most: int, before: list[tuple[Node, Node]]
) -> Asking:
    counted: int | None = None
    for node, one in before:
        limit = _counts(node)[1]
        if limit is not None and not (yield run.question((wanted,), one)):
            counted = limit if counted is None else min(counted, limit)
    if counted is not None and counted <= most:
        return NOTHING
    known = max((len(items.first) for items in had), default=0)
    if all(disjoint.are(run, at(had, place), (wanted,)) for place in range(most, max(most, known) + 1)):
        return NOTHING
    if counted is None:
        return run.found("MAX_CONTAINS_ADDED", ("maxContains",), ABSENT, most)
    return run.found("MAX_CONTAINS_DECREASED", ("maxContains",), counted, most)

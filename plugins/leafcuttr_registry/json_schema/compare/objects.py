"""Members of objects: open, closed and partially open content models, what is required, names, dependencies.

A member is compared by its name where either schema names it; all others by what the new schema says of patterns of
names and of the rest.
"""

from __future__ import annotations

from typing import Any

from leafcuttr_registry.json_schema.compare import model
from leafcuttr_registry.json_schema.compare.engine import (
    ABSENT,
    MAX_REASONS,
    NOTHING,
    Asking,
    Comparison,
    Question,
    Reasons,
    below,
)
from leafcuttr_registry.json_schema.compare.model import Nodes
from leafcuttr_registry.json_schema.compare.numbers import at_least, at_most
from leafcuttr_registry.json_schema.compare.same import evaluates_the_same
from leafcuttr_registry.json_schema.compare.unions import because
from leafcuttr_registry.json_schema.compare.views import Members, always, members_of, own_members, sub
from leafcuttr_registry.json_schema.graph import Node
from leafcuttr_registry.json_schema.validators import accepts

# Beside these a default that is filled in could make an object invalid.
_FILLING_IS_SEEN = [
    "maxProperties",
    "propertyNames",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "not",
    "if",
    "unevaluatedProperties",
    "enum",
    "const",
]


def compare(run: Comparison, asked: Question) -> Asking:
    """All keywords of objects."""
    old, new = asked.old, asked.new
    had = [members_of(run, node) for node in old]
    now = own_members(new)
    found = yield from _members(run, asked, had, now)
    found += yield from _patterns(run, had, now)
    found += yield from _rest(run, had, now, now.rest, "additionalProperties")
    found += yield from _unevaluated(run, asked, had, now)
    found += _required(run, asked, had, now)
    found += yield from _names(run, old, new, had)
    found += yield from _dependencies(run, asked, had)
    closed = [len(one.named) for one in had if _is_closed(one) and not one.patterns]
    found += at_most(
        run,
        "maxProperties",
        "MAX_PROPERTIES",
        model.least(old, "maxProperties"),
        new.get("maxProperties"),
        known=min(closed, default=None),
    )
    return found + at_least(
        run,
        "minProperties",
        "MIN_PROPERTIES",
        model.greatest(old, "minProperties"),
        new.get("minProperties"),
        known=len(model.required(old)),
    )


def _is_closed(members: Members) -> bool:
    return members.rest is not None and members.rest.value is False


def at(had: list[Members], name: str) -> list[Node]:
    """What the old side says of a member."""
    return [one for members in had for one in members.at(name)]


def _question(run: Comparison, asked: Question | None, old: list[Node], new: Node) -> Question:
    return run.question(old, new, fills=asked is not None and asked.fills)


def _members(run: Comparison, asked: Question, had: list[Members], now: Members) -> Asking:
    found: Reasons = NOTHING
    names = dict.fromkeys(name for members in had for name in members.named)
    patterns = sum(len(members.patterns) for members in had)
    for name, schema in now.named.items():
        run.budget.spend(2 + patterns)
        if len(found) > MAX_REASONS:
            return found
        before = at(had, name)
        reasons = yield _question(run, asked, before, schema)
        found += _added(run, asked, had, name, schema, before, reasons)
    for name in names:
        run.budget.spend(2 + len(now.patterns) + patterns)
        if len(found) > MAX_REASONS:
            return found
        if name in now.named and not now.patterns:
            continue
        before = at(had, name)
        if any(one.value is False for one in before):
            continue
        for schema in now.at(name):
            if schema is now.named.get(name):
                continue
            if schema.value is False and schema is now.rest:
                possible = not model.is_empty(model.nodes_of(before, run.budget))
                if possible:
                    found += run.found(
                        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
                        ("properties", name),
                        _shown(before),
                        ABSENT,
                    )
                continue
            reasons = yield _question(run, asked, before, schema)
            if reasons:
                found += below(reasons, "properties", name)
                if name not in now.named:
                    found += run.found(
                        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
                        ("properties", name),
                        _shown(before),
                        schema.value,
                    )
    return found


def _shown(nodes: list[Node]) -> Any:
    return nodes[0].value if nodes else ABSENT


def _added(
    run: Comparison,
    asked: Question,
    had: list[Members],
    name: str,
    schema: Node,
    before: list[Node],
    reasons: Reasons,
) -> Reasons:
    """A property of the new schema: what Confluent calls it depends on the old one's content model."""
    if any(name in members.named for members in had):
        return below(reasons, "properties", name)
    if any(one.value is False for one in before):
        return NOTHING
    place = ("properties", name)
    if before:
        if not reasons:
            return NOTHING
        kind = "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        return below(reasons, *place) + run.found(kind, place, _shown(before), schema.value)
    if not reasons:
        return NOTHING
    if not _is_newly_required(asked, name):
        kind = "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
    elif _has_default(asked.new, schema):
        kind = "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL"
    else:
        kind = "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
    return run.found(kind, place, ABSENT, schema.value)


def _is_newly_required(asked: Question, name: str) -> bool:
    return name in (asked.new.get("required") or ()) and name not in model.required(asked.old)


def _has_default(new: Node, schema: Node) -> bool:
    """A default that its own schema accepts; with `$ref` alone there is none."""
    return isinstance(schema.value, dict) and "default" in schema.value and not schema.ref_alone


def _is_filled(asked: Question, name: str, schema: Node | None) -> bool:
    """Whether a reader fills a member in, and the object is valid then."""
    new = asked.new
    if not asked.fills or schema is None or not _has_default(new, schema):
        return False
    if any(new.get(keyword, ABSENT) is not ABSENT for keyword in _FILLING_IS_SEEN):
        return False
    return all(accepts(one, schema.value["default"]) for one in own_members(new).at(name))


def _required(run: Comparison, asked: Question, had: list[Members], now: Members) -> Reasons:
    """Members that all have to have now, and had not to have."""
    found: Reasons = NOTHING
    listed = asked.new.get("required")
    have = model.required(asked.old)
    for name in listed if isinstance(listed, list) else ():
        run.budget.spend()
        schema = now.named.get(name)
        if name in have or _is_filled(asked, name, schema):
            continue
        known = schema is not None and not any(name in members.named for members in had)
        shown = ABSENT if schema is None else schema.value
        if not known:
            found += run.found("REQUIRED_ATTRIBUTE_ADDED", ("required", name), ABSENT, shown)
        elif at(had, name):
            found += run.found(
                "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", ("properties", name), ABSENT, shown
            )
        else:
            assert schema is not None
            with_default = "WITH_DEFAULT_" if _has_default(asked.new, schema) else ""
            kind = f"REQUIRED_PROPERTY_{with_default}ADDED_TO_OPEN_CONTENT_MODEL"
            found += run.found(kind, ("properties", name), ABSENT, shown)
    return found


def _patterns(run: Comparison, had: list[Members], now: Members) -> Asking:
    """Members by patterns of their names. Those that the old side names were compared by their names."""
    found: Reasons = NOTHING
    for pattern, schema in now.patterns:
        run.budget.spend(2)
        first: Reasons | None = None
        for members in had:
            same_pattern = [one for key, one in members.patterns if key == pattern]
            nearest = yield from _all(run, same_pattern or _possible(members, ()), schema)
            if not nearest:
                break
            if same_pattern:
                first = nearest
        else:
            if schema.value is True or schema.value == {}:
                continue
            place = ("patternProperties", pattern)
            if first is not None:
                found += below(first, *place)
            else:
                found += run.found("PATTERN_PROPERTY_ADDED", place, ABSENT, schema.value)
    return found


def _possible(members: Members, without: tuple[str, ...]) -> list[Node | None]:
    """The schemas of which a member that is not named is one, those of some patterns left out."""
    return [members.rest, *(one for pattern, one in members.patterns if pattern not in without)]


def _all(run: Comparison, possible: list[Any], schema: Node) -> Asking:
    """Why one of several is not of a schema; nothing where all are."""
    for one in possible:
        reasons = yield run.question([one] if one is not None else [], schema)
        if reasons:
            return reasons
    return NOTHING


def _rest(run: Comparison, had: list[Members], now: Members, rest: Node | None, keyword: str) -> Asking:
    """Members that are neither named now nor of a pattern."""
    if rest is None or rest.value is True or rest.value == {}:
        return NOTHING
    name = "ADDITIONAL_PROPERTIES" if keyword == "additionalProperties" else "UNEVALUATED_PROPERTIES"
    patterns = tuple(pattern for pattern, _ in now.patterns)
    nearest: Reasons = NOTHING
    for members in had:
        nearest = yield from _all(run, _possible(members, patterns), rest)
        if not nearest:
            return NOTHING
    before = next((one.rest for one in had if one.rest is not None), None)
    for one in had:
        removed = [pair for pair in one.patterns if pair[0] not in patterns]
        if removed and one.rest is not None and not (yield from _all(run, [one.rest], rest)):
            place = ("patternProperties", removed[0][0])
            return run.found("PATTERN_PROPERTY_REMOVED", place, removed[0][1].value, ABSENT)
    if rest.value is False:
        shown = ABSENT if before is None else before.value
        return run.found(f"{name}_REMOVED", (keyword,), shown, False)
    if before is None or before.value is True:
        return run.found(f"{name}_NARROWED", (keyword,), ABSENT if before is None else True, rest.value)
    return below(nearest, keyword)


def _unevaluated(run: Comparison, asked: Question, had: list[Members], now: Members) -> Asking:
    """`unevaluatedProperties`: members that nothing evaluates for certain have to be of it."""
    new = asked.new
    rest = sub(new, "unevaluatedProperties") if new.dialect.number >= 2019 else None
    if (
        rest is None
        or rest.value is True
        or any(evaluates_the_same(run, node, new, "unevaluatedProperties") for node in asked.old)
    ):
        return NOTHING
    named, patterns = dict(now.named), list(now.patterns)
    for node in always(new):
        members = own_members(node)
        if members.rest is not None or (node is not new and sub(node, "unevaluatedProperties") is not None):
            return NOTHING
        named |= members.named
        patterns += members.patterns
    all_of = Members(named, tuple(patterns), rest)
    found: Reasons = NOTHING
    for name in dict.fromkeys(name for members in had for name in members.named):
        before = at(had, name)
        if rest in all_of.at(name) and not any(one.value is False for one in before):
            reasons = yield run.question(before, rest)
            if reasons:
                kind = "NOT_COVERED_BY_PARTIALLY_OPEN" if rest.value is not False else "FROM_CLOSED"
                found += run.found(
                    f"PROPERTY_REMOVED_{kind}_CONTENT_MODEL", ("properties", name), _shown(before), rest.value
                )
    found += yield from _rest(run, had, all_of, rest, "unevaluatedProperties")
    return found


def _names(run: Comparison, old: Nodes, new: Node, had: list[Members]) -> Asking:
    """`propertyNames`."""
    schema = sub(new, "propertyNames") if new.dialect.number >= 6 else None
    if schema is None or schema.value is True:
        return NOTHING
    for members in had:
        if _is_closed(members) and not members.patterns:
            names = [name for name, one in members.named.items() if one.value is not False]
            run.budget.spend(10 * len(names))
            if all(accepts(schema, name) for name in names):
                return NOTHING
    before = [one for node in old if (one := sub(node, "propertyNames")) is not None]
    reasons = yield run.question([*before, run.typed("string")], schema)
    if not reasons:
        return NOTHING
    if not before:
        return run.found("PROPERTY_NAMES_ADDED", ("propertyNames",), ABSENT, schema.value, because(reasons))
    return run.found(
        "PROPERTY_NAMES_CHANGED", ("propertyNames",), before[0].value, schema.value, because(reasons)
    )


def _dependencies(run: Comparison, asked: Question, had: list[Members]) -> Asking:
    """`dependencies`, `dependentRequired`, `dependentSchemas`."""
    found: Reasons = NOTHING
    new = asked.new
    lists = [dict(_lists(node)) for node in asked.old]
    for name, names in _lists(new):
        run.budget.spend(5 + len(names))
        if any(one.value is False for one in at(had, name)):
            continue
        before = [set(one[name]) for one in lists if name in one]
        have = {name, *model.required(asked.old)}.union(*before)
        if not set(names) <= have:
            if not before:
                kind = "DEPENDENCY_ARRAY_ADDED"
            else:
                kind = "DEPENDENCY_ARRAY_EXTENDED" if before[0] <= set(names) else "DEPENDENCY_ARRAY_CHANGED"
            place = ("dependencies" if new.dialect.number <= 7 else "dependentRequired", name)
            found += run.found(kind, place, sorted(before[0]) if before else ABSENT, names)
    for keyword, name, schema in _schemas(new):
        run.budget.spend()
        if any(one.value is False for one in at(had, name)):
            continue
        same_name = [one for node in asked.old for _, key, one in _schemas(node) if key == name]
        old = (*asked.old, *same_name, run.requiring(name))
        reasons = yield run.question(old, schema, deeper=False)
        if reasons and same_name:
            found += below(reasons, keyword, name)
        elif reasons:
            found += run.found(
                "DEPENDENCY_SCHEMA_ADDED", (keyword, name), ABSENT, schema.value, because(reasons)
            )
    return found


def _lists(node: Node) -> list[tuple[str, list[str]]]:
    keyword = "dependencies" if node.dialect.number <= 7 else "dependentRequired"
    value = node.get(keyword)
    return (
        [(key, one) for key, one in value.items() if isinstance(one, list)] if isinstance(value, dict) else []
    )


def _schemas(node: Node) -> list[tuple[str, str, Node]]:
    keyword = "dependencies" if node.dialect.number <= 7 else "dependentSchemas"
    return [(keyword, name, one) for name, one in node.below(keyword)]

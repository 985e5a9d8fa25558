"""Whether two schemas say the same in the same words: references followed, annotations left out.

For keywords whose meaning depends on all that stands beside them (`unevaluatedProperties`), and to spare `anyOf` of the
same alternatives the long way.
"""

from __future__ import annotations

from collections.abc import Iterable

from leafcuttr_registry.json_schema.compare.engine import Comparison
from leafcuttr_registry.json_schema.compare.model import SAYS_NOTHING
from leafcuttr_registry.json_schema.graph import Node
from leafcuttr_registry.json_schema.shapes import key_of

_KEPT = SAYS_NOTHING - {"allOf", "$ref", "$recursiveRef", "$dynamicRef"}


def same(run: Comparison, one: Node, other: Node) -> bool:
    """Two that refer to themselves are the same where no difference is found; what is compared on the way is, too."""
    first = (id(one), id(other))
    known = run.same.get(first)
    if known is not None:
        return known
    seen: set[tuple[int, int]] = set()
    if not _same(run, one, other, seen):
        run.same[first] = False
        return False
    run.same.update(dict.fromkeys(seen, True))
    return True


def is_among(run: Comparison, nodes: Iterable[Node], other: Node) -> bool:
    """Whether one of several says the same as another."""
    number = other.fingerprint
    return number is not None and any(one.fingerprint == number and same(run, one, other) for one in nodes)


def twins(run: Comparison, one: Node, other: Node, keyword: str, theirs: str) -> list[tuple[str, ...]]:
    """For each of the schemas of a keyword of the second node, which of the first one's say the same."""
    key = (id(one), id(other), keyword, theirs)
    found = run.twins.get(key)
    if found is None:
        by_number: dict[int | None, list[tuple[str, Node]]] = {}
        for name, branch in one.below(keyword):
            by_number.setdefault(branch.fingerprint, []).append((name, branch))
        found = run.twins[key] = [
            tuple(name for name, mine in by_number.get(branch.fingerprint, ()) if same(run, mine, branch))
            for _, branch in other.below(theirs)
        ]
        run.budget.spend(5 * len(found))
    return found


def _same(run: Comparison, one: Node, other: Node, seen: set[tuple[int, int]]) -> bool:
    todo = [(one, other)]
    while todo:
        left, right = todo.pop()
        pair = (id(left), id(right))
        if left is right or pair in seen or run.same.get(pair):
            continue
        if run.same.get(pair) is False:
            return False
        seen.add(pair)
        run.budget.spend(20)
        if isinstance(left.value, bool) or isinstance(right.value, bool):
            if left.value is not right.value:
                return False
            continue
        if left.dialect.number != right.dialect.number or not _same_own(left, right):
            return False
        if [keyword for keyword, _ in left.refs] != [keyword for keyword, _ in right.refs]:
            return False
        todo += [(a, b) for (_, a), (_, b) in zip(left.refs, right.refs, strict=True)]
        if left.ref_alone:
            continue
        paths = [path for path in left.subs if path[0] not in _KEPT]
        if set(paths) != {path for path in right.subs if path[0] not in _KEPT}:
            return False
        todo += [(left.subs[path][1], right.subs[path][1]) for path in paths]
    return True


def same_parts(run: Comparison, one: Node, other: Node, keyword: str) -> bool:
    """Whether a list of schemas is the same in both."""
    run.budget.spend(2 + len(one.get(keyword) or ()) + len(other.get(keyword) or ()))
    left, right = list(one.below(keyword)), list(other.below(keyword))
    return (
        len(left) == len(right) > 0
        and one.dialect.number == other.dialect.number
        and all(same(run, a, b) for (_, a), (_, b) in zip(left, right, strict=True))
    )


def _same_own(left: Node, right: Node) -> bool:
    """The keywords that are no schemas and no references."""
    places = {path[0] for node in (left, right) for path in node.subs} | {
        "$ref",
        "$recursiveRef",
        "$dynamicRef",
    }
    if left.ref_alone or right.ref_alone:
        return left.ref_alone and right.ref_alone
    mine, theirs = (
        {key: key_of(value) for key, value in node.value.items() if key not in places and key not in _KEPT}
        for node in (left, right)
    )
    return mine == theirs and all(_lists(left, key) == _lists(right, key) for key in ("dependencies",))


def _lists(node: Node, keyword: str) -> object:
    value = node.value.get(keyword)
    return (
        {name: one for name, one in value.items() if isinstance(one, list)}
        if isinstance(value, dict)
        else None
    )


_EVALUATING = frozenset(
    (
        *(
            "properties",
            "patternProperties",
            "additionalProperties",
            "prefixItems",
            "items",
            "additionalItems",
        ),
        *("contains", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas"),
    )
)


def evaluates_the_same(run: Comparison, one: Node, other: Node, keyword: str) -> bool:
    """Whether the same members, or items, are left to a keyword in both, and it says the same of them."""
    if one.dialect.number != other.dialect.number or len(one.refs) != len(other.refs):
        return False
    paths = [path for path in one.subs if path[0] in _EVALUATING or path[0] == keyword]
    if (keyword,) not in paths or set(paths) != {
        path for path in other.subs if path[0] in _EVALUATING or path[0] == keyword
    }:
        return False
    pairs = [(one.subs[path][1], other.subs[path][1]) for path in paths]
    pairs += [(left, right) for (_, left), (_, right) in zip(one.refs, other.refs, strict=True)]
    return all(same(run, left, right) for left, right in pairs)

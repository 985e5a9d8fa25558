"""Schemas as a graph: a node for each schema that can be reached, with its references resolved.

A node knows the schemas within it and those that it refers to; both are made when they are asked for. What
`$dynamicRef` and `$recursiveRef` lead to depends on the way there (Core 2020-12, 8.2.3.2), so a node is a schema and,
where a document has such anchors, the resources that were passed on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.json_schema.dialects import DRAFT_2020, At, Dialect, dialect_of, pointer, subschemas
from leafcuttr_registry.json_schema.documents import Documents, specification
from leafcuttr_registry.json_schema.shapes import prepare
from leafcuttr_registry.json_schema.text import shortened
from leafcuttr_sdk.schemas import SchemaError

if TYPE_CHECKING:
    from referencing._core import Resolver

REFERENCES: Final = ("$ref", "$recursiveRef", "$dynamicRef")


class Node:
    """A schema in its place."""

    __slots__ = ("_graph", "_refs", "_subs", "dialect", "ref_alone", "resolver", "types", "value", "where")

    def __init__(
        self, graph: Graph, value: Any, dialect: Dialect, resolver: Resolver[Any] | None, where: str
    ) -> None:
        self._graph = graph
        self.value = value
        self.dialect = dialect
        self.resolver = resolver
        self.ref_alone = (
            dialect.ref_is_alone and isinstance(value, dict) and isinstance(value.get("$ref"), str)
        )
        """Whether it has a reference beside which nothing counts."""
        self.where = where
        """For messages: where it was first found."""
        self.types: frozenset[str] | None = None
        """The types of its values, once they were asked for: `compare.model`."""
        self._refs: tuple[tuple[str, Node], ...] | None = None
        self._subs: dict[tuple[str, ...], tuple[At, Node]] | None = None

    def get(self, keyword: str, default: Any = None) -> Any:
        """The value of a keyword; nothing beside a `$ref` that stands alone."""
        if not isinstance(self.value, dict) or (self.ref_alone and keyword != "$ref"):
            return default
        return self.value.get(keyword, default)

    @property
    def fingerprint(self) -> int | None:
        """A number that is the same for schemas that may say the same."""
        return self._graph.fingerprint(self)

    @property
    def refs(self) -> tuple[tuple[str, Node], ...]:
        """What it refers to, by the keywords that do. Raises SchemaError for what is not there."""
        if self._refs is None:
            self._refs = tuple(self._graph.references(self))
        return self._refs

    @property
    def subs(self) -> dict[tuple[str, ...], tuple[At, Node]]:
        """The schemas within it, by their paths."""
        if self._subs is None:
            self._subs = dict(self._graph.within(self))
        return self._subs

    def sub(self, *path: str) -> Node | None:
        found = self.subs.get(path)
        return None if found is None else found[1]

    def below(self, keyword: str) -> Iterator[tuple[str, Node]]:
        """The schemas of a keyword that has several, in their order."""
        value = self.get(keyword)
        names = map(str, range(len(value))) if isinstance(value, list) else iter(value or ())
        for name in names:
            one = self.sub(keyword, name)
            if one is not None:
                yield name, one


class Graph:
    """All nodes of one schema and its documents."""

    def __init__(self, documents: Documents) -> None:
        self.documents = documents
        self._nodes: dict[Any, Node] = {}
        self._fingerprints: dict[int, int] = {}
        self._dynamic = any(_is_dynamic(one.tree) for one in (documents.root, *documents.others))
        self.true = Node(self, True, documents.root.dialect, None, "")
        self.false = Node(self, False, documents.root.dialect, None, "")
        self.root = self._node(documents.root.tree, documents.root.dialect, documents.resolver(), "#")

    def fingerprint(self, node: Node) -> int | None:
        """A number that is the same for schemas that may say the same; None for those that are in no document."""
        if not self._fingerprints:
            for one in (self.documents.root, *self.documents.others):
                _fingerprint(one.tree, self._fingerprints)
        return self._fingerprints.get(id(node.value))

    def made(self, value: dict[str, Any], dialect: Dialect = DRAFT_2020) -> Node:
        """A node for a schema that is in no document, without references."""
        return Node(self, value, dialect, self.documents.resolver(), "")

    def _node(self, value: Any, dialect: Dialect, resolver: Resolver[Any], where: str) -> Node:
        if isinstance(value, bool):
            return self.true if value else self.false
        key: Any = (id(value), self._scope(resolver)) if self._dynamic else id(value)
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Node(self, value, dialect, resolver, where)
        return node

    def _scope(self, resolver: Resolver[Any]) -> tuple[str, ...]:
        """The resources of the dynamic scope, outermost first, each once: only its outermost place is of effect."""
        return (resolver._base_uri, *dict.fromkeys(reversed([uri for uri, _ in resolver.dynamic_scope()])))

    def within(self, node: Node) -> Iterator[tuple[tuple[str, ...], tuple[At, Node]]]:
        if not isinstance(node.value, dict) or node.resolver is None:
            return
        for at, path, value in subschemas(node.value, node.dialect):
            if isinstance(value, bool):
                yield path, (at, self.true if value else self.false)
                continue
            dialect = dialect_of(value, node.dialect)
            resource = specification(dialect).create_resource(value)
            resolver = node.resolver.in_subresource(resource)
            yield path, (at, self._node(value, dialect, resolver, node.where + pointer(path)))

    def references(self, node: Node) -> Iterator[tuple[str, Node]]:
        if not isinstance(node.value, dict) or node.resolver is None:
            return
        for keyword in REFERENCES:
            ref = node.value.get(keyword)
            if isinstance(ref, str) and _applies(keyword, node.dialect):
                yield keyword, self._target(node, keyword, ref)

    def _target(self, node: Node, keyword: str, ref: str) -> Node:
        from referencing.exceptions import CannotDetermineSpecification, Unresolvable
        from referencing.jsonschema import lookup_recursive_ref

        assert node.resolver is not None
        where = f"{node.where}/{keyword}".removeprefix("#")
        try:
            if keyword == "$recursiveRef":
                found = lookup_recursive_ref(node.resolver)
            else:
                found = node.resolver.lookup(ref)
        except (Unresolvable, CannotDetermineSpecification, ValueError, KeyError, TypeError, AttributeError):
            raise SchemaError(
                f"{keyword} {shortened(ref)} leads to nothing: it has to be a schema of this document, of a reference, "
                "or a metaschema",
                path=where,
            ) from None
        value = found.contents
        if not isinstance(value, dict | bool):
            raise SchemaError(f"{keyword} {shortened(ref)} leads to what is no schema", path=where)
        dialect = dialect_of(value, node.dialect)
        return self._node(value, dialect, found.resolver, ref if isinstance(value, dict) else "")


def _applies(keyword: str, dialect: Dialect) -> bool:
    return (
        keyword == "$ref"
        or (keyword == "$recursiveRef" and dialect.number == 2019)
        or (keyword == "$dynamicRef" and dialect.number == 2020)
    )


# What validates nothing; members of that name are left out as well, which makes no difference to a number.
ANNOTATIONS: Final = frozenset(
    [
        "$id",
        "id",
        "$schema",
        "$anchor",
        "$comment",
        "$defs",
        "definitions",
        "title",
        "description",
        "default",
        "examples",
        "readOnly",
        "writeOnly",
        "deprecated",
        "format",
    ]
)


def _fingerprint(tree: Any, found: dict[int, int]) -> None:
    todo: list[tuple[Any, bool]] = [(tree, False)] if isinstance(tree, dict) else []
    while todo:
        one, ready = todo.pop()
        members = one.values() if isinstance(one, dict) else one
        if not ready:
            todo.append((one, True))
            todo += [(member, False) for member in members if isinstance(member, dict | list)]
            continue
        if isinstance(one, dict):
            pairs = ((key, member) for key, member in one.items() if key not in ANNOTATIONS)
            found[id(one)] = hash(frozenset((key, _hash(member, found)) for key, member in pairs))
        elif isinstance(one, list):
            found[id(one)] = hash(tuple(_hash(member, found) for member in one))


def _hash(member: Any, found: dict[int, int]) -> int:
    return found[id(member)] if isinstance(member, dict | list) else hash((type(member) is bool, member))


def _is_dynamic(tree: Any) -> bool:
    """Whether a document has dynamic anchors, or refers to a metaschema, which may have them."""
    todo = [tree]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            if (
                "$dynamicAnchor" in one
                or "$recursiveAnchor" in one
                or "json-schema.org/draft/20" in str(one.get("$ref"))
            ):
                return True
            todo += one.values()
        elif isinstance(one, list):
            todo += one
    return False


def check(graph: Graph, budget: Budget) -> None:
    """Every schema that is reached: its references lead somewhere, and no schema applies to an instance only after
    itself. Raises SchemaError."""
    done: set[int] = set()
    todo = [graph.root]
    order: list[Node] = []
    while todo:
        node = todo.pop()
        if id(node) in done:
            continue
        done.add(id(node))
        order.append(node)
        budget.spend(1 + len(node.value) if isinstance(node.value, dict) else 1)
        for keyword, target in node.refs:
            budget.spend(20)
            _check_shape(graph, target, budget, f"{node.where}/{keyword}")
            todo.append(target)
        todo += [one for at, one in node.subs.values() if at not in (At.NOWHERE, At.ANNOTATION)]
    _check_circles(order, budget)


def _check_shape(graph: Graph, node: Node, budget: Budget, where: str) -> None:
    """What only a reference leads to, below an unknown keyword, was not checked with its document."""
    documents = graph.documents
    if (
        not isinstance(node.value, dict)
        or id(node.value) in documents.known.schemas
        or documents.is_metaschema(node.value)
    ):
        return
    try:
        prepared = prepare(node.value, node.dialect, budget, documents.known)
    except SchemaError as error:
        raise SchemaError(f"what a reference leads to: {error}", path=where.removeprefix("#")) from None
    # In its place: pointers into it, and the validators, find what was prepared.
    node.value.clear()
    node.value.update(prepared)
    documents.known.schemas.add(id(node.value))


SAME: Final = frozenset({At.SAME, At.SAME_LIST, At.SAME_MAP, At.DEPENDENCIES})


def in_place(node: Node) -> Iterator[Node]:
    """The nodes that apply to the same instance."""
    for _, target in node.refs:
        yield target
    for at, one in node.subs.values():
        if at in SAME:
            yield one


MAX_IN_PLACE: Final = 20_000
"""Schemas that apply to one instance, each counted as often as it is reached."""


def _check_circles(nodes: list[Node], budget: Budget) -> None:
    """Core 2020-12, 9.4.1: a schema must not make a validator loop, which one does that applies itself in place. How
    often schemas apply to one instance is bounded too."""
    counts: dict[int, int] = {}
    open_: set[int] = set()
    for start in nodes:
        stack: list[tuple[Node, Iterator[Node], list[int]]] = []
        if id(start) not in counts:
            open_.add(id(start))
            stack.append((start, in_place(start), [1]))
        while stack:
            node, rest, count = stack[-1]
            following = next(rest, None)
            if following is None:
                stack.pop()
                open_.discard(id(node))
                counts[id(node)] = count[0]
                if stack:
                    stack[-1][2][0] += count[0]
                if count[0] > MAX_IN_PLACE:
                    raise SchemaError(
                        f"too complex: more than {MAX_IN_PLACE} schemas apply to one value",
                        path=node.where.removeprefix("#"),
                    )
                continue
            budget.spend()
            if id(following) in open_:
                raise SchemaError(
                    "a schema refers to itself for the same value, which no validator comes to the end of",
                    path=following.where.removeprefix("#"),
                )
            if id(following) in counts:
                count[0] += counts[id(following)]
            else:
                open_.add(id(following))
                stack.append((following, in_place(following), [1]))

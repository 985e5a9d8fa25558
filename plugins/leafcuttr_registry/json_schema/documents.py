"""The documents of a schema, its own and those that it refers to, and where a `$ref` leads.

Nothing is ever fetched: what is neither one of these nor a metaschema is an error. A reference is known by its name and
by the URI that its name has below the `$id` of the document that refers to it, as in Confluent's registry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urljoin

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.json_schema import text
from leafcuttr_registry.json_schema.dialects import Dialect, dialect_of
from leafcuttr_registry.json_schema.shapes import Known, prepare
from leafcuttr_registry.json_schema.text import shortened
from leafcuttr_sdk.schemas import ResolvedReference, SchemaError

if TYPE_CHECKING:
    from referencing import Registry
    from referencing._core import Resolver

MAX_DOCUMENTS: Final = 1000
MAX_CHARACTERS: Final = 8_000_000
"""Of all documents together."""


class Document(NamedTuple):
    """One text, read and checked."""

    names: tuple[str, ...]
    """The URIs by which it is referred to; the first is its base where it has no identifier of its own."""
    source: Any
    """As it was written, with exact numbers."""
    tree: Any
    """As it is worked with."""
    dialect: Dialect
    known: Known

    @property
    def base(self) -> str:
        own = self.tree.get(self.dialect.id_keyword) if isinstance(self.tree, dict) else None
        if self.dialect.ref_is_alone and isinstance(self.tree, dict) and "$ref" in self.tree:
            own = None  # Beside `$ref` an identifier is ignored.
        return (
            urljoin(self.names[0], own) if isinstance(own, str) and not own.startswith("#") else self.names[0]
        )


def read_document(source: str, names: tuple[str, ...], budget: Budget) -> Document:
    """Raises SchemaError."""
    budget.spend(1 + len(source) // 16)
    try:
        value = text.read(source, exact=True)
    except text.TextError as error:
        raise SchemaError(str(error), line=error.line) from None
    if not isinstance(value, dict | bool):
        raise SchemaError("a schema of JSON Schema is an object, true or false")
    dialect = dialect_of(value)
    known = Known(set(), {})
    return Document(names, value, _bridged(prepare(value, dialect, budget, known)), dialect, known)


def _bridged(tree: Any) -> Any:
    """`#/$defs/X` finds what is in `definitions`, at the root: so do Confluent's loaders."""
    if isinstance(tree, dict) and isinstance(tree.get("definitions"), dict):
        beside = tree.get("$defs", {})
        if isinstance(beside, dict):
            tree["$defs"] = tree["definitions"] | beside
    return tree


def read_references(
    root: Document, references: Mapping[str, ResolvedReference], budget: Budget
) -> list[Document]:
    """All documents that are referred to, those of references too. Raises SchemaError, also for a name of two texts."""
    found: dict[str, tuple[str, Document]] = {}
    todo = [(root, references)]
    characters = 0
    while todo:
        parent, children = todo.pop()
        for name, reference in children.items():
            known = found.get(name)
            if known is not None:
                if known[0] != reference.text:
                    raise SchemaError(
                        f"two references are called {shortened(name)}, and their schemas differ"
                    )
                continue
            characters += len(reference.text)
            if len(found) >= MAX_DOCUMENTS or characters > MAX_CHARACTERS:
                raise SchemaError(
                    f"too complex: more than {MAX_DOCUMENTS} references or {MAX_CHARACTERS} characters"
                )
            try:
                document = read_document(reference.text, tuple(_names(name, parent)), budget)
            except SchemaError as error:
                raise SchemaError(f"in the reference {shortened(name)}: {error}", path=error.path) from None
            found[name] = (reference.text, document)
            todo.append((document, reference.references))
    return [document for _, document in found.values()]


def _names(name: str, parent: Document) -> Iterator[str]:
    try:
        yield urljoin(parent.base, name)
    except ValueError:
        raise SchemaError(f"the name of a reference is no URI: {shortened(name)}") from None
    yield name
    if "://" not in name and not name.startswith("."):
        yield "./" + name


class Documents:
    """The registry of one schema."""

    def __init__(self, root: Document, others: list[Document]) -> None:
        self.root = root
        self.others = others
        if len({one.dialect.number for one in (root, *others)}) == 1:
            # A schema that names its draft gets the package's own validator of it, not ours.
            for one in (root, *others):
                if isinstance(one.tree, dict):
                    one.tree.pop("$schema", None)
        pairs = [(name, _resource(document)) for document in others for name in document.names]
        pairs += [(document.base, _resource(document)) for document in others]
        pairs.append((root.base, _resource(root)))
        try:
            self.registry = _metaschema_registry().with_resources(pairs).crawl()
        except ValueError as error:
            raise SchemaError(f"an id in the schema is no URI: {shortened(str(error))}") from None

        self.known = Known(set(), {})
        for one in (root, *others):
            self.known.schemas.update(one.known.schemas)
            self.known.patterns.update(one.known.patterns)
        self._metaschemas = _metaschemas()

    def is_metaschema(self, value: Any) -> bool:
        """Whether a schema is within a metaschema, which is right and not ours to change."""
        return id(value) in self._metaschemas

    def resolver(self) -> Resolver[Any]:
        """Of the root document."""
        return self.registry.resolver(self.root.base)


def specification(dialect: Dialect) -> Any:
    """What the package `referencing` calls a dialect."""
    from referencing import jsonschema

    return {
        4: jsonschema.DRAFT4,
        6: jsonschema.DRAFT6,
        7: jsonschema.DRAFT7,
        2019: jsonschema.DRAFT201909,
        2020: jsonschema.DRAFT202012,
    }[dialect.number]


def _resource(document: Document) -> Any:
    return specification(document.dialect).create_resource(document.tree)


@cache
def _metaschema_registry() -> Registry[Any]:
    """The package's metaschemas, by all URIs by which they are known."""
    from jsonschema_specifications import REGISTRY

    registry: Registry[Any] = REGISTRY.with_resources(_aliases())
    return registry.crawl()


@cache
def _metaschemas() -> frozenset[int]:
    """The identities of all objects in the package's metaschemas."""
    from jsonschema_specifications import REGISTRY

    found: set[int] = set()
    todo: list[Any] = [REGISTRY.contents(uri) for uri in REGISTRY]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            found.add(id(one))
            todo += one.values()
        elif isinstance(one, list):
            todo += one
    return frozenset(found)


def _aliases() -> Iterator[tuple[str, Any]]:
    from jsonschema_specifications import REGISTRY

    from leafcuttr_registry.json_schema.dialects import aliases

    for uri, dialect in aliases():
        yield uri, specification(dialect).create_resource(REGISTRY.contents(dialect.uri))

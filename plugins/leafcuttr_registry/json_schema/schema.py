"""A schema of JSON Schema that was parsed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from functools import cached_property, lru_cache
from typing import Any

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.inline_tags import TaggedPlace, Tags, change, tags_of
from leafcuttr_registry.json_schema import bundle, tags, text
from leafcuttr_registry.json_schema.codec import JsonCodec
from leafcuttr_registry.json_schema.cost import needs_worker
from leafcuttr_registry.json_schema.dialects import pointer
from leafcuttr_registry.json_schema.documents import Documents, read_document, read_references
from leafcuttr_registry.json_schema.graph import Graph, check
from leafcuttr_sdk.schemas import ResolvedReference, SchemaError


class JsonSchema:
    """One schema with its references. Made by `parse`."""

    def __init__(
        self, written: str, references: Mapping[str, ResolvedReference], source: Any, documents: Documents
    ) -> None:
        self._written = written
        self._references = references
        self._source = source
        self.documents = documents
        self.graph = Graph(documents)

    def __reduce__(self) -> tuple[object, ...]:
        """Its parts refer to one another in circles: a pickle has the texts."""
        if self._references:
            return parse, (self._written, dict(self._references))
        return _again, (self._written,)

    @property
    def canonical(self) -> str:
        """The text without spaces, members in their order: what Confluent's registry keeps."""
        return self._canonical

    @cached_property
    def _canonical(self) -> str:
        return text.write(self._source)

    @property
    def record_name(self) -> str | None:
        """The title, as Confluent's registry has it; None without one."""
        title = self._source.get("title") if isinstance(self._source, dict) else None
        return title if isinstance(title, str) else None

    @cached_property
    def needs_worker(self) -> bool:
        """Whether validating one value may take long, out of proportion to its size: some regular expressions, and
        recursion through several schemas at once. Such codecs belong into a worker with a deadline."""
        return needs_worker(self.graph)

    def places(self) -> Collection[TaggedPlace]:
        """See `inline_tags.Tagged`."""
        return dict(tags.places(self._source)).keys()

    def tags(self) -> dict[TaggedPlace, list[str]]:
        """See `inline_tags.Tagged`."""
        return tags_of(tags.places(self._source))

    def with_tags(self, added: Tags, removed: Tags) -> str:
        """See `inline_tags.Tagged`."""
        schema = deepcopy(self._source)
        change(dict(tags.places(schema)), added, removed)
        return text.write(schema)

    def top_level_fields(self) -> list[str]:
        """The names of its `properties`. Raises SchemaError for one that begins with `$$`: Confluent's registry keeps
        these for itself."""
        properties = self._source.get("properties") if isinstance(self._source, dict) else None
        names = list(properties) if isinstance(properties, dict) else []
        for name in names:
            if name.startswith("$$"):
                raise SchemaError(
                    "Field names cannot start with $$ prefix", path=pointer(("properties", name))
                )
        return names

    def message_name(self, message: Sequence[int] = (0,)) -> str | None:
        return self.record_name

    def normalized(self) -> str:
        """The text with the members of all objects in the order of their names."""
        return text.write(self._source, ordered=True)

    def formatted(self, how: str) -> str:
        """`resolved` has the schemas of references within; anything else is the canonical text."""
        if how == "resolved" and self.documents.others:
            return text.write(bundle.resolved(self._source, self.documents))
        return self.canonical

    def codec(self, message: Sequence[int] = (0,)) -> JsonCodec:
        """`message` is ignored: it is Protobuf's."""
        return JsonCodec(self.graph.root)


PARSE_STEPS = 2_000_000


def parse(source: str, references: Mapping[str, ResolvedReference]) -> JsonSchema:
    """Raises SchemaError."""
    budget = Budget(PARSE_STEPS)
    root = read_document(source, ("",), budget)
    documents = Documents(root, read_references(root, references, budget))
    schema = JsonSchema(source, references, root.source, documents)
    check(schema.graph, budget)
    return schema


@lru_cache(maxsize=64)
def _again(source: str) -> JsonSchema:
    """What a pickle stands for. A worker process gets the same one again and again."""
    return parse(source, {})

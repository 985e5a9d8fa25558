"""The format JSON Schema, as a registry uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from leafcuttr_registry.json_schema.rules import LENIENT, schema_rules, sentence
from leafcuttr_registry.json_schema.schema import JsonSchema, parse
from leafcuttr_sdk.schemas import Difference, ParsedSchema, ResolvedReference, SchemaError, SchemaRule


class JsonSchemaFormat:
    """`schemaType` JSON. It keeps no state."""

    name: Final = "JSON"
    summary: Final = "JSON Schema, drafts 4, 6, 7, 2019-09 and 2020-12"

    @property
    def rules(self) -> Sequence[SchemaRule]:
        """What `differences` applies."""
        return schema_rules()

    def prepare(self) -> None:
        """Import what the first schemas would, some 80 modules: by the smallest ones."""
        some: Any = self.parse('{"type": "string"}', {})
        self.differences(some, some)

    def parse(self, text: str, references: Mapping[str, ResolvedReference]) -> JsonSchema:
        """The schema of a text. Raises SchemaError."""
        try:
            return parse(text, references)
        except RecursionError:
            raise SchemaError("too complex: the schema is nested too deeply") from None

    def lenient_differences(self, reader: ParsedSchema, writer: ParsedSchema) -> Sequence[Difference]:
        """The same without what Confluent's `compatibilityPolicy` LENIENT lets pass."""
        return self.differences(reader, writer, lenient=True)

    def differences(
        self, reader: ParsedSchema, writer: ParsedSchema, *, lenient: bool = False
    ) -> Sequence[Difference]:
        """Why values of `writer` are not all values of `reader`; empty where they are. Raises SchemaError for schemas
        that are too complex."""
        from leafcuttr_registry.json_schema.compare.engine import Comparison, shown
        from leafcuttr_registry.json_schema.compare.own import answer
        from leafcuttr_registry.json_schema.dialects import pointer

        assert isinstance(reader, JsonSchema) and isinstance(writer, JsonSchema)
        run = Comparison(LENIENT if lenient else frozenset(), reader.graph, answer)
        try:
            found = run.run(run.question([writer.graph.root], reader.graph.root, fills=True))
        except RecursionError:
            raise SchemaError("too complex: the schemas are nested too deeply to be compared") from None
        patterns = {**writer.documents.known.patterns, **reader.documents.known.patterns}
        found = tuple(
            one._replace(
                path=_written(one.path, patterns),
                old=_written(one.old, patterns),
                new=_written(one.new, patterns),
            )
            for one in found
        )
        return [
            Difference(one.type, pointer(one.path), shown(one.old), shown(one.new), sentence(one))
            for one in found
        ]


def _written(value: Any, patterns: Mapping[str, str]) -> Any:
    """A part of a schema with its regular expressions as they were written, by their translations."""
    if not patterns:
        return value
    if isinstance(value, str):
        return patterns.get(value, value)
    if isinstance(value, dict):
        return {_written(key, patterns): _written(one, patterns) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_written(one, patterns) for one in value)
    return value


JSON_SCHEMA: Final = JsonSchemaFormat()

"""The format that the registry calls AVRO."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from leafcuttr_registry.avro.schema import AvroSchema
from leafcuttr_sdk.schemas import Difference, ParsedSchema, ResolvedReference, SchemaRule

if TYPE_CHECKING:
    from leafcuttr_sdk.schemas import SchemaFormat


class AvroFormat:
    """Avro schemas, by the specification of Avro 1.12."""

    name = "AVRO"
    summary = "Apache Avro: compact records, found by the names of their fields"

    @property
    def rules(self) -> Sequence[SchemaRule]:
        from leafcuttr_registry.avro.rules import RULES

        return RULES

    def parse(
        self, text: str, references: Mapping[str, ResolvedReference], *, validate: bool = True
    ) -> AvroSchema:
        """Raises SchemaError. `validate=False` takes what an earlier registry has accepted: names in letters of any
        script, and defaults that are not of their types."""
        return AvroSchema(text, references, validate=validate)

    def differences(self, reader: ParsedSchema, writer: ParsedSchema) -> Sequence[Difference]:
        """Raises SchemaError where the comparison takes too many steps."""
        from leafcuttr_registry.avro.compatibility import differences
        from leafcuttr_registry.budget import Budget

        assert isinstance(reader, AvroSchema) and isinstance(writer, AvroSchema)
        return differences(reader.parsed.root, writer.parsed.root, Budget())


if TYPE_CHECKING:
    _CONTRACT: SchemaFormat = AvroFormat()

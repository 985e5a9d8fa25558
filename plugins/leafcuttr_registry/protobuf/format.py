"""Protobuf as a schema format."""

from collections.abc import Mapping, Sequence
from typing import Final

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.protobuf.compare import breaking
from leafcuttr_registry.protobuf.link import link
from leafcuttr_registry.protobuf.pool import pool_of
from leafcuttr_registry.protobuf.rules import RULES
from leafcuttr_registry.protobuf.schema import ProtobufSchema
from leafcuttr_sdk.schemas import Difference, ParsedSchema, ResolvedReference, SchemaRule

PARSE_STEPS: Final = 600_000
"""Of one schema with all that it imports: a token is one step, a field three more, a message ten. About a second."""


class ProtobufFormat:
    """The format PROTOBUF."""

    name = "PROTOBUF"
    summary = "Protocol Buffers: .proto texts of proto2, proto3 and editions, or base64 descriptors"

    @property
    def rules(self) -> Sequence[SchemaRule]:
        return RULES

    def parse(self, text: str, references: Mapping[str, ResolvedReference]) -> ProtobufSchema:
        """Raises SchemaError."""
        linked = link(text, references, Budget(PARSE_STEPS))
        return ProtobufSchema(linked, pool_of(linked.order))

    def differences(self, reader: ParsedSchema, writer: ParsedSchema) -> Sequence[Difference]:
        """Raises SchemaError for schemas that are too complex."""
        assert isinstance(reader, ProtobufSchema)
        assert isinstance(writer, ProtobufSchema)
        return breaking(reader, writer)


FORMAT: Final = ProtobufFormat()

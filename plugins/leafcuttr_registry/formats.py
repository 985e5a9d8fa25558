"""The formats that come with the registry. Each is a package of its own that knows nothing of the registry, and is
imported when it is first asked for something: in a worker process, as a rule. The broker itself needs
their names only."""

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from leafcuttr_sdk.schemas import Difference, ParsedSchema, ResolvedReference, SchemaFormat, SchemaRule

_PLACES: Final = (
    (
        "AVRO",
        "Apache Avro: compact records, found by the names of their fields",
        "leafcuttr_registry.avro.format",
        "AvroFormat",
    ),
    (
        "JSON",
        "JSON Schema, drafts 4, 6, 7, 2019-09 and 2020-12",
        "leafcuttr_registry.json_schema.format",
        "JsonSchemaFormat",
    ),
    (
        "PROTOBUF",
        "Protocol Buffers: .proto texts of proto2, proto3 and editions, or base64 descriptors",
        "leafcuttr_registry.protobuf.format",
        "ProtobufFormat",
    ),
)


def formats() -> "Iterator[SchemaFormat]":
    """Those three, in this order."""
    for name, summary, module, kind in _PLACES:
        yield LateFormat(name, summary, module, kind)


class LateFormat:
    """A format that is imported at its first use. Sent to another process it is the format itself."""

    def __init__(self, name: str, summary: str, module: str, kind: str) -> None:
        self._name = name
        self._summary = summary
        self._place = (module, kind)

    @property
    def name(self) -> str:
        return self._name

    @property
    def summary(self) -> str:
        return self._summary

    @cached_property
    def real(self) -> "SchemaFormat":
        """The format itself."""
        return load(*self._place)

    @property
    def rules(self) -> "Sequence[SchemaRule]":
        return self.real.rules

    def parse(self, text: str, references: "Mapping[str, ResolvedReference]") -> "ParsedSchema":
        return self.real.parse(text, references)

    def differences(self, reader: "ParsedSchema", writer: "ParsedSchema") -> "Sequence[Difference]":
        return self.real.differences(reader, writer)

    def __reduce__(self) -> "tuple[Callable[[str, str], SchemaFormat], tuple[str, str]]":
        return load, self._place


def load(module: str, kind: str) -> "SchemaFormat":
    """The format that this class of a module is."""
    made: SchemaFormat = getattr(importlib.import_module(module), kind)()
    return made

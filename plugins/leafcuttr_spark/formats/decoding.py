"""What the keys or values of topics decode to: which type, planned once by the driver, and the columns of many records.

`FormatPlan` is made where a query is planned, from the schema that is given or the latest version of the subject, and
pickled for the tasks. Each of these has a `FieldDecoder`, which gets the schemas that records name from the registry.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol
from uuid import UUID

import numpy as np
import pyarrow as pa

from leafcuttr_sdk.http_schemas.memory import Bounded
from leafcuttr_sdk.schema_framing import KEY_HEADER, VALUE_HEADER
from leafcuttr_sdk.schemas import (
    RegisteredSchema,
    ResolvedReference,
    SchemaError,
    SchemaNotFoundError,
    SchemaProviderError,
)
from leafcuttr_spark.codec.slices import edges_of, take_slices
from leafcuttr_spark.codec.varints import Longs
from leafcuttr_spark.formats.framing import Framed, Frames, frames_of
from leafcuttr_spark.formats.options import FormatName, FormatOptions
from leafcuttr_spark.formats.pieces import Decoded, Pieces
from leafcuttr_spark.formats.registry import RegistrySchemas
from leafcuttr_spark.formats.types import fields_in, type_of_ddl
from leafcuttr_spark.options import OptionError

if TYPE_CHECKING:
    from leafcuttr_spark.formats.avro.schema import AvroSchema

_CELLS: Final = 8 << 20
"""Fields of rows that are made at once."""
_LARGEST_PIECE: Final = 1 << 16
_KEPT: Final = 200
"""Decoders of writers' schemas that a task keeps."""


@dataclass(frozen=True)
class FormatPlan:
    """What the keys or values of a query are. Can be pickled."""

    options: FormatOptions
    part: str
    """`key` or `value`."""
    type: pa.DataType
    schema: bytes = b""
    """The one that rows have."""
    references: Mapping[str, ResolvedReference] = field(default_factory=dict)

    @property
    def rows_at_once(self) -> int:
        """Rows whose columns take a bounded amount of memory, whatever the schema."""
        return max(1, min(_LARGEST_PIECE, _CELLS // (1 + fields_in(self.type))))


def plan_format(options: FormatOptions, part: str, topics: Sequence[str]) -> FormatPlan:
    """`topics` are those of the query, as far as it names them. Raises OptionError: for a schema that cannot be used,
    and where the registry has none or does not answer."""
    simple = {FormatName.BYTES: pa.binary(), FormatName.TEXT: pa.string()}.get(options.name)
    if simple is not None:
        return FormatPlan(options, part, simple)
    try:
        references: Mapping[str, ResolvedReference] = {}
        if options.schema is not None:
            schema = options.schema
        else:
            schema, references = _latest(options, part, topics)
        return FormatPlan(options, part, _reading(options, schema, references).type, schema, references)
    except OptionError:
        raise
    except ValueError as error:  # SchemaError, TypeTextError, and what is no UTF-8
        raise OptionError(f"the schema of {part}s cannot be used: {error}") from None


def _latest(
    options: FormatOptions, part: str, topics: Sequence[str]
) -> tuple[bytes, Mapping[str, ResolvedReference]]:
    if options.subject is None and len(topics) != 1:
        raise OptionError(
            f"the option {part}.subject, or {part}.schema, is needed where there are several topics"
        )
    subject = options.subject or f"{topics[0]}-{part}"
    registry = RegistrySchemas(options.registry)
    try:
        found = registry.client.by_version(subject).schema
        if found.format != REGISTRY_NAMES[options.name]:
            raise OptionError(f"the subject {subject} has schemas of {found.format}, and {part}.format is"
                              f" {options.name.value}")  # fmt: skip
        if options.name is FormatName.PROTOBUF:
            from leafcuttr_spark.formats.protobuf.schema import descriptor_set

            return descriptor_set(registry.client, found, subject), {}
        return found.text.encode(), registry.client.resolved(found, subject)
    except SchemaNotFoundError as error:
        raise OptionError(f"the registry has no schema of the subject {subject}: {error}") from None
    except SchemaProviderError as error:
        raise OptionError(str(error)) from None
    finally:
        registry.client.close()


REGISTRY_NAMES: Final = {
    FormatName.AVRO: "AVRO",
    FormatName.JSON_SCHEMA: "JSON",
    FormatName.PROTOBUF: "PROTOBUF",
}
"""As registries call them."""

DecodeSome = Callable[[pa.Array, bytes], Decoded]
"""Data of one schema, without nulls, and the path to a message if that was in a header."""


class _Reading(Protocol):
    """A format, and the schema that rows have."""

    @property
    def type(self) -> pa.DataType: ...

    def bare(self) -> DecodeSome:
        """For data without ids."""
        ...

    def written_by(
        self, schema: RegisteredSchema, subject: str | None, registry: RegistrySchemas
    ) -> DecodeSome:
        """Raises SchemaError."""
        ...


def _reading(options: FormatOptions, schema: bytes, references: Mapping[str, ResolvedReference]) -> _Reading:
    if options.name is FormatName.AVRO:
        return _AvroReading(schema.decode(), references)
    if options.name is FormatName.PROTOBUF:
        from leafcuttr_spark.formats.protobuf.reading import ProtobufReading

        return ProtobufReading(schema, options.message)
    return _JsonReading(schema.decode(), references)


class _AvroReading:
    def __init__(self, text: str, references: Mapping[str, ResolvedReference]) -> None:
        from leafcuttr_spark.formats.avro.reading import expanded, unclear_union
        from leafcuttr_spark.formats.avro.schema import read_avro

        self._schema = read_avro(text, references)
        if (why := unclear_union(expanded(self._schema.plain, self._schema.defined))) is not None:
            raise SchemaError(why)

    @property
    def type(self) -> pa.DataType:
        return self._schema.type

    def bare(self) -> DecodeSome:
        return self._written(self._schema)

    def written_by(
        self, schema: RegisteredSchema, subject: str | None, registry: RegistrySchemas
    ) -> DecodeSome:
        from leafcuttr_spark.formats.avro.schema import read_avro

        references = registry.waited(lambda: registry.client.resolved(schema, subject))
        return self._written(read_avro(schema.text, references))

    def _written(self, writer: "AvroSchema") -> DecodeSome:
        from leafcuttr_spark.formats.avro.reading import AvroDecoder

        decoder = AvroDecoder(writer, self._schema)
        return lambda data, _: decoder.decode(data)


class _JsonReading:
    def __init__(self, text: str, references: Mapping[str, ResolvedReference]) -> None:
        from leafcuttr_spark.formats.json.reading import JsonDecoder
        from leafcuttr_spark.formats.json.schema import is_json_schema, type_of_json_schema

        type_ = type_of_json_schema(text, references) if is_json_schema(text) else type_of_ddl(text)
        self._decoder = JsonDecoder(type_)

    @property
    def type(self) -> pa.DataType:
        return self._decoder.type

    def bare(self) -> DecodeSome:
        return lambda data, _: self._decoder.decode(data)

    def written_by(
        self, schema: RegisteredSchema, subject: str | None, registry: RegistrySchemas
    ) -> DecodeSome:
        return self.bare()


class FieldDecoder:
    """The keys or values of many records. It is used by one thread."""

    def __init__(self, plan: FormatPlan, registry: RegistrySchemas | None = None) -> None:
        self._plan = plan
        self._options = plan.options
        self._header = KEY_HEADER if plan.part == "key" else VALUE_HEADER
        self._text = Pieces(
            pa.string(),
            None,
            lambda data: data.decode(),
            lambda objects: pa.array(objects, pa.string()),
        )
        self._reading: _Reading | None = None
        self._bare: DecodeSome | None = None
        self._registry = registry
        self._decoders: Bounded[int | UUID, DecodeSome | SchemaError] = Bounded(_KEPT)

    def decode(self, values: pa.Array, headers: pa.Array | None = None) -> Decoded:
        """Of a binary array; null for null. The errors say why elements are null that were not. Raises
        SchemaProviderError where the registry was waited for in vain."""
        if self._options.name is FormatName.BYTES:
            return Decoded(values, {})
        if self._options.name is FormatName.TEXT:
            try:
                return Decoded(values.cast(pa.string()), {})
            except pa.ArrowInvalid:
                pass
        frames = self._frames(values, headers)
        errors = dict(frames.errors)
        rows: list[Longs] = []
        parts: list[pa.Array] = []
        for one in frames.groups:
            try:
                decoder = self._decoder(one)
            except (SchemaError, SchemaNotFoundError) as error:
                errors |= dict.fromkeys(one.rows.tolist(), f"schema {one.schema}: {error}")
                continue
            found = decoder(_data(values, one), one.path)
            errors |= {int(one.rows[place]): line for place, line in found.errors.items()}
            rows.append(one.rows)
            parts.append(found.values)
        return Decoded(_placed(rows, parts, len(values), self._plan.type), errors)

    def _frames(self, values: pa.Array, headers: pa.Array | None) -> Frames:
        if self._options.has_ids:
            return frames_of(values, headers, self._options.id, self._header)
        some = np.flatnonzero(np.asarray(values.is_valid()))
        return Frames([Framed(-1, some, 0)] if len(some) else [], {})

    def _decoder(self, of: Framed) -> DecodeSome:
        """Raises SchemaError, SchemaNotFoundError, SchemaProviderError."""
        if self._options.name is FormatName.TEXT:
            return lambda data, _: self._text.decode(data)
        if self._reading is None:
            self._reading = _reading(self._options, self._plan.schema, self._plan.references)
        if not self._options.has_ids:
            if self._bare is None:
                self._bare = self._reading.bare()
            return self._bare
        known = self._decoders.get(of.schema)
        if known is None:
            known = self._found(of.schema, self._reading)
            self._decoders.put(of.schema, known)
        if isinstance(known, SchemaError):
            raise known
        return known

    def _found(self, key: int | UUID, reading: _Reading) -> DecodeSome | SchemaError:
        if self._registry is None:
            self._registry = RegistrySchemas(self._options.registry)
        schema = self._registry.schema(key, self._options.subject)
        wanted = REGISTRY_NAMES[self._options.name]
        if schema.format != wanted:
            return SchemaError(f"it is one of {schema.format}, where {wanted} is expected")
        try:
            return reading.written_by(schema, self._options.subject, self._registry)
        except SchemaError as error:
            return error


def _data(values: pa.Array, of: Framed) -> pa.Array:
    """What is behind the prefixes."""
    if not of.skip and len(of.rows) == len(values):
        return values
    edges, buffer = edges_of(values)
    starts = edges[of.rows] + of.skip
    return take_slices(buffer, starts, edges[of.rows + 1] - starts)


def _placed(rows: list[Longs], parts: list[pa.Array], count: int, type_: pa.DataType) -> pa.Array:
    """The elements in the places of their rows, null in all others."""
    if not parts:
        return pa.nulls(count, type_)
    found = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
    if len(rows) == 1 and len(found) == count:
        return found
    place = np.full(count, -1, np.int64)
    place[np.concatenate(rows)] = np.arange(len(found))
    return found.take(pa.array(place, mask=place < 0))

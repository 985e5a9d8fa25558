# pyarrow makes the functions of its module `compute` when it is imported.
# pyright: reportAttributeAccessIssue=false
"""Columns to keys or values by a format, framed with the id of their schema.

`encoding` is for the driver: it registers the schema, once, and finds out whether rows of the type are of it. What it
returns is pickled for tasks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from leafcuttr_sdk.schema_framing import KEY_HEADER, VALUE_HEADER, guid_prefix, id_prefix, indexes
from leafcuttr_sdk.schemas import (
    IncompatibleSchemaError,
    RegisteredSchema,
    ResolvedReference,
    SchemaError,
    SchemaNotFoundError,
    SchemaProviderError,
)
from leafcuttr_spark.formats.decoding import REGISTRY_NAMES
from leafcuttr_spark.formats.options import FormatName, FormatOptions, IdPlace
from leafcuttr_spark.formats.pieces import PieceError
from leafcuttr_spark.formats.registry import RegistrySchemas
from leafcuttr_spark.formats.types import ddl
from leafcuttr_spark.options import OptionError

Write = Callable[[pa.Array], pa.Array]
_FEWEST: Final = 1
_PARTS: Final = 8
_AUTO: Final = "schema.registry.auto.register.schemas"


class Encoded(NamedTuple):
    """One element for each row: null for null, and where it is in error."""

    values: pa.Array
    errors: dict[int, str]


@dataclass(frozen=True)
class Encoding:
    """How rows become keys or values. Can be pickled."""

    name: FormatName
    type: pa.DataType
    """Of the rows."""
    schema: bytes = b""
    references: Mapping[str, ResolvedReference] = field(default_factory=dict)
    message: str | None = None
    prefix: bytes = b""
    """In front of each."""
    header: tuple[str, bytes] | None = None
    """A header that each record needs, which says what its schema is."""

    def writer(self) -> Write:
        """For arrays of the type without nulls. Raises SchemaError; what it returns raises PieceError."""
        return _writer(self)

    def encode(self, column: pa.Array) -> Encoded:
        """Of an array of the type, or of one that Arrow casts to it: Spark's times have the zone of its session."""
        if column.type != self.type:
            column = column.cast(self.type)
        valid = column.is_valid()
        some = column.filter(valid) if column.null_count else column
        errors: dict[int, str] = {}
        parts = list(_encoded(self.writer(), some, 0, errors)) if len(some) else []
        found = pa.concat_arrays(parts) if parts else pa.nulls(0, pa.binary())
        if self.prefix and len(found):
            found = pc.binary_join_element_wise(pa.scalar(self.prefix, pa.binary()), found, b"")
        if not column.null_count:
            return Encoded(found, errors)
        rows = pc.indices_nonzero(valid)
        order = pc.if_else(valid, pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1), None)
        return Encoded(
            found.take(order) if len(found) else pa.nulls(len(column), pa.binary()),
            {rows[place].as_py(): line for place, line in errors.items()},
        )


def _encoded(write: Write, some: pa.Array, first: int, errors: dict[int, str]) -> Any:
    """Many at once; where one is in error, smaller pieces, down to itself."""
    try:
        yield write(some)
    except PieceError as error:
        if len(some) <= _FEWEST:
            errors[first] = str(error)
            yield pa.nulls(len(some), pa.binary())
            return
        size = -(-len(some) // _PARTS)
        for at in range(0, len(some), size):
            yield from _encoded(write, some.slice(at, size), first + at, errors)


def encoding(options: FormatOptions, type_: pa.DataType, subject: str, part: str = "value") -> Encoding:
    """The schema that `options` give, or one made of the type, is registered in the subject (`options.subject` wins),
    unless `auto.register.schemas` is false: then it has to be there, and without a schema it is the latest one.

    Raises OptionError with one line: for a type that the format cannot have, for a schema that the registry refuses,
    and where it does not answer.
    """
    try:
        if not options.name.has_schema:
            return _checked(Encoding(options.name, type_))
        return _checked(_with_schema(options, type_, options.subject or subject, part))
    except OptionError:
        raise
    except SchemaProviderError as error:
        raise OptionError(str(error)) from None
    except (SchemaNotFoundError, IncompatibleSchemaError) as error:
        raise OptionError(f"the registry refuses the schema of {part}s, subject {subject}: {error}") from None
    except ValueError as error:
        raise OptionError(f"{part}s cannot be written as {options.name.value}: {error}") from None


def _checked(made: Encoding) -> Encoding:
    made.writer()
    return made


def _with_schema(options: FormatOptions, type_: pa.DataType, subject: str, part: str) -> Encoding:
    if options.name is FormatName.JSON:
        return Encoding(options.name, type_)
    if options.id is IdPlace.NONE or not options.registry:
        if options.id in (IdPlace.PAYLOAD, IdPlace.HEADER):
            raise OptionError(f"{part}s are to name their schemas, and schema.registry.url is not given")
        if options.name is FormatName.PROTOBUF and options.schema is None:
            raise OptionError(f"{part}s in Protobuf need a descriptor set as schema, or a registry")
        schema = options.schema or _derived(options.name, type_, subject).encode()
        return Encoding(options.name, type_, schema, message=options.message)
    settings = dict(options.registry)
    registers = settings.pop(_AUTO, "true").lower() != "false"
    registry = RegistrySchemas(settings)
    try:
        found = _registered(registry, options, type_, subject, registers=registers)
        return _framed(options, type_, found, registry, subject, part)
    finally:
        registry.client.close()


def _registered(
    registry: RegistrySchemas, options: FormatOptions, type_: pa.DataType, subject: str, *, registers: bool
) -> RegisteredSchema:
    name = REGISTRY_NAMES[options.name]
    if options.schema is None and not registers:
        found = registry.client.by_version(subject).schema
        if found.format != name:
            raise OptionError(f"the subject {subject} has schemas of {found.format}, not of {name}")
        return found
    text = options.schema.decode() if options.schema is not None else _derived(options.name, type_, subject)
    if not registers:
        return registry.client.find(subject, name, text).schema
    return registry.client.register(subject, name, text)


def _framed(
    options: FormatOptions,
    type_: pa.DataType,
    found: RegisteredSchema,
    registry: RegistrySchemas,
    subject: str,
    part: str,
) -> Encoding:
    path = b""
    if options.name is FormatName.PROTOBUF:
        from leafcuttr_spark.formats.protobuf import schema as schemas

        schema, references = schemas.descriptor_set(registry.client, found, subject), {}
        files = schemas.files_of(schema)
        path = indexes(schemas.path_of(schemas.message_of(files, options.message)))
    else:
        schema, references = found.text.encode(), dict(registry.client.resolved(found, subject))
    prefix, header = id_prefix(found.id) + path, None
    if options.id is IdPlace.HEADER:
        if not found.guid:
            raise OptionError("the registry gives schemas no guids, which ids in headers need")
        header = (KEY_HEADER if part == "key" else VALUE_HEADER, guid_prefix(UUID(found.guid)) + path)
        prefix = b""
    return Encoding(options.name, type_, schema, references, options.message, prefix, header)


def _derived(name: FormatName, type_: pa.DataType, subject: str) -> str:
    """Raises SchemaError."""
    from leafcuttr_spark.formats import derived

    if name is FormatName.AVRO:
        return derived.avro_of(type_, subject)
    if name is FormatName.PROTOBUF:
        return derived.proto_of(type_, subject)
    return derived.json_schema_of(type_, subject)


def _writer(of: Encoding) -> Write:
    if of.name is FormatName.BYTES:
        if of.type not in (pa.binary(), pa.string(), pa.null()):
            raise SchemaError(f"the column is {ddl(of.type)}, and bytes are binary or string")
        return lambda array: array.cast(pa.binary())
    if of.name is FormatName.TEXT:
        if kinds.is_nested(of.type):
            raise SchemaError(f"the column is {ddl(of.type)}, which has no text: choose json")
        return lambda array: array.cast(pa.string()).cast(pa.binary())
    if of.name is FormatName.AVRO:
        from leafcuttr_spark.formats.avro.schema import read_avro
        from leafcuttr_spark.formats.avro.writing import avro_writer

        return avro_writer(read_avro(of.schema.decode(), of.references), of.type)
    if of.name is FormatName.PROTOBUF:
        from leafcuttr_spark.formats.protobuf.schema import files_of, message_of
        from leafcuttr_spark.formats.protobuf.writing import protobuf_writer

        return protobuf_writer(message_of(files_of(of.schema), of.message), of.type)
    from leafcuttr_spark.formats.json.writing import json_writer

    return json_writer(of.type)

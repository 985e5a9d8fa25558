"""Schema formats and schemas: what a schema registry parses, compares and decodes by, and how others get at it.

A format is Avro, JSON Schema, Protobuf, or one of a plugin. It waits for nothing and keeps no state: its functions may
be called in any thread and in worker processes. Where schemas are kept, and which versions a new one is compared with,
is a registry's: a `SchemaProvider` gives others its schemas.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from leafcuttr_sdk._described import described

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


def context_of(subject: str | None) -> str:
    """The context of a subject: `.other` of `:.other:orders`; `.` is the default one."""
    if subject is not None and subject.startswith(":."):
        end = subject.find(":", 1)
        return subject[1:] if end < 0 else subject[1:end]
    return "."


class SchemaError(ValueError):
    """A text that is no schema of the format, or one that is too complex to be judged. The message is one line: what
    was wrong, where in the schema, what is allowed."""

    def __init__(self, message: str, *, path: str = "", line: int | None = None) -> None:
        super().__init__(message)
        self.path = path
        """Where in the schema: a JSON pointer, or a dotted name of Protobuf; empty for the whole."""
        self.line = line
        """The line of the text, counted from 1; None where the format has none."""


class DataError(ValueError):
    """Data that are not of the schema. The message is one line: what was wrong, and where in the value."""


@described
class SchemaReference(NamedTuple):
    """How a schema names another one of the registry."""

    name: str
    """What the schema's text calls it: a full name of Avro, a `$ref`, an import of Protobuf."""
    subject: str
    version: int


@described
class ResolvedReference(NamedTuple):
    """The schema that a reference names."""

    text: str
    references: "Mapping[str, ResolvedReference]"
    """Those that it has itself, by their names. It is a tree without circles."""


@described
class Difference(NamedTuple):
    """One reason why data written by one schema cannot be read by another."""

    type: str
    """The rule, by its name in the format's table."""
    path: str
    """Where in the schema: a JSON pointer, or a dotted name of Protobuf."""
    old: str | None
    """What the writer's schema has there; None: nothing."""
    new: str | None
    """What the reader's schema has there; None: nothing."""
    message: str
    """A sentence for the person who reads it."""


@described
class SchemaRule(NamedTuple):
    """One row of a format's table of rules, for documentation and tests."""

    type: str
    summary: str
    breaks: bool
    """Whether a reader of the new schema cannot read what the old one wrote."""
    old: str
    """The text of an example: the writer's schema."""
    new: str
    """The reader's schema, to which the rule applies."""


@described
class RegisteredSchema(NamedTuple):
    """A schema as a registry keeps it."""

    id: int
    """What records carry; it never changes, and is given to no other schema of its context."""
    guid: str
    """What records carry that name their schema by a header: the same in every registry."""
    format: str
    """The name of its format: `AVRO`."""
    text: str
    references: tuple[SchemaReference, ...] = ()


@described
class SchemaVersion(NamedTuple):
    """A schema in a subject."""

    subject: str
    version: int
    """Counted from 1."""
    schema: RegisteredSchema


class SchemaNotFoundError(LookupError):
    """The registry has no such schema, subject or version. The message is one line that says which."""


class IncompatibleSchemaError(Exception):
    """The registry refuses a schema, because earlier versions of the subject and it cannot read each other's data as
    the subject's compatibility asks. The message is one line."""

    def __init__(self, message: str, differences: "Sequence[Difference]" = ()) -> None:
        super().__init__(message)
        self.differences = tuple(differences)


class SchemaProviderError(Exception):
    """The registry cannot answer for now, or refuses for another reason: not reachable, read-only. The message is one
    line."""


class SchemaCodec(Protocol):
    """Turns data of one schema into values of JSON, and back. It is used by one thread at a time."""

    def decode(self, data: bytes) -> JsonValue:
        """Raises DataError."""
        ...

    def encode(self, value: JsonValue) -> bytes:
        """Raises DataError."""
        ...

    def check(self, data: bytes) -> None:
        """Raises DataError for data that `decode` would refuse; it may be quicker."""
        ...


class ParsedSchema(Protocol):
    """A schema that its format has read."""

    @property
    def canonical(self) -> str:
        """The text by which two schemas are the same one."""
        ...

    @property
    def record_name(self) -> str | None:
        """The full name of the record or message, or the title; None where there is none."""
        ...

    @property
    def needs_worker(self) -> bool:
        """Whether some data, or some other schema, may keep it busy without a bound: by a regular expression, say.
        What its codec does, and comparisons with it, then belong into `Broker.run_in_worker`, with a deadline: it can
        be pickled. `leafcuttr_sdk.schema_work` has such a codec."""
        ...

    def message_name(self, message: Sequence[int] = (0,)) -> str | None:
        """The full name of the message that a path of indexes leads to; in a format without messages the
        `record_name`. Raises DataError for a path that leads to no message."""
        ...

    def normalized(self) -> str:
        """The text without differences that mean nothing: order of what has no order, defaults that are spelled out."""
        ...

    def formatted(self, how: str) -> str:
        """The text in another form; an unknown `how` gives the canonical one."""
        ...

    def codec(self, message: Sequence[int] = (0,)) -> SchemaCodec:
        """What decodes and encodes by it. `message` is the path of indexes to a message of Protobuf; others ignore it.
        Raises DataError for a path that leads to no message."""
        ...


class SchemaFormat(Protocol):
    """A kind of schemas. `leafcuttr_sdk.testing.check_schema_format` tests one against this contract."""

    @property
    def name(self) -> str:
        """What `schemaType` calls it, in upper case: `AVRO`."""
        ...

    @property
    def summary(self) -> str:
        """A few words for lists."""
        ...

    @property
    def rules(self) -> Sequence[SchemaRule]:
        """What `differences` applies, for documentation and tests."""
        ...

    def parse(self, text: str, references: Mapping[str, ResolvedReference]) -> ParsedSchema:
        """Raises SchemaError."""
        ...

    def differences(self, reader: ParsedSchema, writer: ParsedSchema) -> Sequence[Difference]:
        """Why data that `writer` wrote cannot be read by `reader`; empty where all of it can. Both are schemas that
        this format has parsed. Raises SchemaError for schemas that are too complex to be compared."""
        ...


class SchemaProvider(Protocol):
    """Where schemas come from: a registry, in this process or another one.

    `leafcuttr_sdk.testing.check_schema_provider` tests one against this contract. The functions that are not async may
    be called in any thread, and wait for nothing: they answer from memory. The others belong to the loop's thread.

    A subject with a context, as `:.other:orders`, has ids of that context. `key` is an id, or a guid as text.
    """

    @property
    def waits_for(self) -> str | None:
        """What it lacks for now, in one line: `the topic _schemas is still being read`. None: it can answer."""
        ...

    def get(self, key: int | str, subject: str | None = None) -> RegisteredSchema | None:
        """The schema, if it is in memory; `subject` says of which context an id is."""
        ...

    def parsed(self, key: int | str, subject: str | None = None) -> ParsedSchema | None:
        """The same schema as its format reads it, with all that it refers to; None for one that is not in memory.
        Raises SchemaError for one that its format does not read."""
        ...

    def belongs(self, key: int | str, subject: str) -> bool:
        """Whether a version of the subject that is not deleted has this schema, as far as memory tells."""
        ...

    async def by_id(self, key: int | str, subject: str | None = None) -> RegisteredSchema:
        """The schema. Afterwards `get` and `parsed` have it for a while. Raises SchemaNotFoundError,
        SchemaProviderError."""
        ...

    async def by_version(self, subject: str, version: int | None = None) -> SchemaVersion:
        """A version of the subject; None: the latest. Raises SchemaNotFoundError, SchemaProviderError."""
        ...

    async def find(
        self, subject: str, format: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> SchemaVersion:
        """The version of the subject that has this schema. Raises SchemaError, SchemaNotFoundError,
        SchemaProviderError."""
        ...

    async def register(
        self, subject: str, format: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> RegisteredSchema:
        """Add the schema to the subject, unless that has it already. When it returns, the schema is stored. Raises
        SchemaError, IncompatibleSchemaError, SchemaNotFoundError for references, SchemaProviderError. A cancelled
        call may have registered it."""
        ...

"""Which schema a key or value claims to be written by, and whether it may be: it has to be there, and to belong to the
subject that the topic's strategy names.

The claim is a header, `__key_schema_id` or `__value_schema_id`, or else the first bytes of the data
(`leafcuttr_sdk.schema_framing`).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from leafcuttr_registry.validation.settings import PartName, PartOptions, Strategy
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.filters import NotReady
from leafcuttr_sdk.schema_framing import (
    KEY_HEADER,
    MAGIC_ID,
    VALUE_HEADER,
    read_indexes,
    read_prefix,
)
from leafcuttr_sdk.schemas import DataError, ParsedSchema, SchemaError

if TYPE_CHECKING:
    from leafcuttr_sdk.filters import TopicContext
    from leafcuttr_sdk.schemas import SchemaProvider

HEADERS: Final[dict[PartName, str]] = {"key": KEY_HEADER, "value": VALUE_HEADER}
_PROTOBUF: Final = "PROTOBUF"


class Claim(NamedTuple):
    """An id, or a guid as text, and where the data begin, or for Protobuf the path to their message. Where a header has
    them, it has the path too."""

    key: int | str
    end: int
    in_header: bool = False
    path: tuple[int, ...] | None = None
    """Of the header."""


class Claims:
    """Of the keys, or the values, of one topic."""

    def __init__(self, context: "TopicContext", options: PartOptions) -> None:
        self.part: Final = options.part
        self.header: Final = HEADERS[options.part]
        self._topic = context.topic
        self._strategy = options.strategy
        self._subject = f"{context.topic}-{options.part}"
        self._schemas = schemas_of(context)

    def read(self, data: bytes, header: bytes | None) -> Claim:
        """What it claims; `header` is the value of the last header of that name, None without one. Raises
        DataError."""
        if header is not None:
            try:
                schema, end = read_prefix(header)
                path = None
                if end < len(header):
                    path, end = read_indexes(header, end)
            except DataError as error:
                raise DataError(f"the header {self.header} is none: {error}") from None
            if end != len(header):
                raise DataError(f"the header {self.header} has {len(header)} bytes; it has {end}")
            return Claim(str(schema) if isinstance(schema, UUID) else schema, 0, True, path)
        if data[:1] != bytes((MAGIC_ID,)):
            first = f"begins with the byte {data[0]}" if data else "is empty"
            raise DataError(
                f"the {self.part} {first}: it has neither the magic byte 0 and a schema id nor a header {self.header}"
            )
        schema, end = read_prefix(data)
        assert isinstance(schema, int)
        return Claim(schema, end)

    @property
    def waits_for(self) -> str | None:
        """What the registry lacks for now. Asked before it is asked anything else, and given to `settled` after it."""
        return self._schemas.waits_for

    def settled(self, why: str, waited_for: str | None) -> str | NotReady:
        """A refusal, unless the registry could not answer before or cannot now: it may start or stop meanwhile, and a
        record that it would take must not be refused for good."""
        waits_for = waited_for or self._schemas.waits_for
        return why if waits_for is None else NotReady(waits_for)

    def judge(self, claim: Claim, data: bytes) -> str | NotReady | None:
        """Why it may not; None if it may. `data` are the first bytes at least: those of a Protobuf message tell its
        name, which two of the strategies want."""
        waits_for = self.waits_for
        why = self._why_not(claim, data)
        return None if why is None else self.settled(why, waits_for)

    def surely_may(self, claim: Claim) -> bool:
        """Whether one question is enough to know that it may. Else `judge` says whether, and why not."""
        return (
            self._strategy is Strategy.TOPIC
            and not claim.in_header
            and self._schemas.belongs(claim.key, self._subject)
        )

    def _why_not(self, claim: Claim, data: bytes) -> str | None:
        schemas, key = self._schemas, claim.key
        registered = schemas.get(key)
        if registered is None:
            return f"there is no schema {key}"
        if claim.in_header and (claim.path is None) is (registered.format == _PROTOBUF):
            more = "no indexes of a message" if claim.path is None else "indexes of a message"
            return f"schema {key} is of type {registered.format}: the header {self.header} has {more}"
        subject = self._subject
        if self._strategy is not Strategy.TOPIC:
            try:
                name = self._record_name(claim, data)
            except (DataError, SchemaError) as error:
                return f"schema {key}: {error}"
            if name is None:
                return f"schema {key} has no name, which the strategy {self._strategy.value} needs"
            subject = name if self._strategy is Strategy.RECORD else f"{self._topic}-{name}"
        return None if schemas.belongs(key, subject) else f"schema {key} is none of subject {subject}"

    def has_messages(self, claim: Claim) -> bool:
        """Whether data of the schema begin with the path to a message. Raises SchemaError for one that is not there."""
        registered = self._schemas.get(claim.key)
        if registered is None:
            raise SchemaError("it is not there any more")
        return registered.format == _PROTOBUF

    def depends_on_message(self, claim: Claim) -> bool:
        """Whether the subject depends on which message of the schema a record has, as far as is known, and the claim
        does not tell it."""
        if self._strategy is Strategy.TOPIC or claim.path is not None:
            return False
        registered = self._schemas.get(claim.key)
        return registered is None or registered.format == _PROTOBUF

    def parsed(self, claim: Claim) -> ParsedSchema:
        """Raises SchemaError."""
        schema = self._schemas.parsed(claim.key)
        if schema is None:
            raise SchemaError("it is not there any more")
        return schema

    def _record_name(self, claim: Claim, data: bytes) -> str | None:
        schema = self.parsed(claim)
        if not self.has_messages(claim):
            return schema.record_name
        path = read_indexes(data, claim.end)[0] if claim.path is None else claim.path
        return schema.message_name(path)


def last_header(values: Sequence[bytes | None]) -> bytes | None:
    """Of several headers of one name the last counts."""
    return (values[-1] or b"") if values else None


def schemas_of(context: "TopicContext") -> "SchemaProvider":
    """Raises PluginError."""
    if context.schemas is None:
        raise PluginError("there is no schema registry in this broker to check records against")
    return context.schemas

"""The validator that decodes every key and value of a topic by its schema, and the filter that does so and sets the bad
ones aside."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from leafcuttr_registry.validation.claims import Claim, Claims, last_header
from leafcuttr_registry.validation.settings import (
    PARTS,
    Check,
    PartOptions,
    goes_to_dead_letters,
    options_of,
)
from leafcuttr_sdk.filters import DeadLetter, NotReady
from leafcuttr_sdk.schema_framing import ID_SIZE, read_indexes
from leafcuttr_sdk.schemas import DataError, ParsedSchema, SchemaCodec, SchemaError

if TYPE_CHECKING:
    from leafcuttr_sdk.filters import TopicContext, Verdict
    from leafcuttr_sdk.records import Record
    from leafcuttr_sdk.types import Clock

_REMEMBERED_S: Final = 1.0
"""How long a claim that was allowed is not asked for again: a schema can be deleted from its subject."""
_MOST: Final = 1000


def make_validator(context: "TopicContext") -> "SchemaValidator | None":
    if goes_to_dead_letters(context.topic_settings):
        return None
    parts = [each for each in _parts(context) if each.check is Check.FULL]
    return SchemaValidator(context, parts) if parts else None


def make_filter(context: "TopicContext") -> "SchemaFilter | None":
    if not goes_to_dead_letters(context.topic_settings):
        return None
    parts = [each for each in _parts(context) if each.check is not Check.OFF]
    return SchemaFilter(context, parts) if parts else None


def _parts(context: "TopicContext") -> Iterator[PartOptions]:
    return (options_of(context.topic_settings, part) for part in PARTS)


class SchemaValidator:
    """Refuses records, with the reason."""

    def __init__(self, context: "TopicContext", parts: list[PartOptions]) -> None:
        self._checks = [PartCheck(context, each) for each in parts]

    def validate(self, record: "Record") -> str | NotReady | None:
        for check in self._checks:
            why = check.why_not(record)
            if why is not None:
                return why
        return None


class SchemaFilter:
    """Sets records aside, with the reason."""

    def __init__(self, context: "TopicContext", parts: list[PartOptions]) -> None:
        self._validator = SchemaValidator(context, parts)

    def filter(self, record: "Record") -> "Verdict":
        why = self._validator.validate(record)
        if why is None:
            return record
        return why if isinstance(why, NotReady) else DeadLetter(why)


class _Plain:
    """Data that begin at one place, of one message where the schema has several."""

    def __init__(self, codec: SchemaCodec, begin: int) -> None:
        self._check = codec.check
        self._begin = begin

    def check(self, data: bytes) -> None:
        """Raises DataError."""
        self._check(data[self._begin :] if self._begin else data)


class _Messages:
    """Data before which a path of indexes says of which message they are."""

    def __init__(self, schema: ParsedSchema, begin: int) -> None:
        self._schema = schema
        self._begin = begin
        self._codecs: dict[tuple[int, ...], SchemaCodec] = {}

    def check(self, data: bytes) -> None:
        """Raises DataError."""
        path, at = read_indexes(data, self._begin)
        codec = self._codecs.get(path)
        if codec is None:
            codec = self._schema.codec(path)
            if len(self._codecs) < _MOST:
                self._codecs[path] = codec
        codec.check(data[at:])


class PartCheck:
    """Of the keys, or the values, of a topic."""

    def __init__(self, context: "TopicContext", options: PartOptions) -> None:
        self._claims = Claims(context, options)
        self._is_key: Final = options.part == "key"
        self._decodes: Final = options.check is Check.FULL
        self._clock: Clock = context.clock
        self._allowed: dict[tuple[bytes, bytes | None], Callable[[bytes], None]] = {}
        self._since = 0.0

    def why_not(self, record: "Record") -> str | NotReady | None:
        """None for a null: it is a tombstone, or a record without a key."""
        data = record.key if self._is_key else record.value
        if data is None:
            return None
        header = self._header(record) if record.headers else None
        now = self._clock.monotonic()
        if now - self._since > _REMEMBERED_S or len(self._allowed) >= _MOST:
            self._allowed.clear()
            self._since = now
        check = self._allowed.get((data[:ID_SIZE], None) if header is None else (b"", header))
        if check is None:
            found = self._find(data, header)
            if not callable(found):
                return found
            check = found
        try:
            check(data)
        except DataError as error:
            return f"the {self._claims.part} is not of its schema: {error}"
        return None

    def _header(self, record: "Record") -> bytes | None:
        return last_header([value for name, value in record.headers if name == self._claims.header])

    def _find(self, data: bytes, header: bytes | None) -> Callable[[bytes], None] | str | NotReady:
        """What checks data of such a claim, or why there may be none."""
        claims = self._claims
        try:
            claim = claims.read(data, header)
        except DataError as error:
            return str(error)
        waits_for = claims.waits_for
        why = claims.judge(claim, data)
        if why is not None:
            return why
        try:
            check = self._check_of(claim) if self._decodes else _nothing
        except SchemaError as error:
            return claims.settled(f"schema {claim.key}: {error}", waits_for)
        except DataError as error:
            return f"schema {claim.key}: in the header {claims.header} {error}"
        if not claims.depends_on_message(claim):
            self._allowed[(data[:ID_SIZE], None) if header is None else (b"", header)] = check
        return check

    def _check_of(self, claim: Claim) -> Callable[[bytes], None]:
        """Raises SchemaError, and DataError for a path of the header that leads to no message."""
        schema = self._claims.parsed(claim)
        if schema.needs_worker:
            raise SchemaError(
                f"schema {claim.key} cannot be checked while records come: some values would keep its regular "
                "expressions or alternatives busy without a bound"
            )
        if claim.path is not None:
            return _Plain(schema.codec(claim.path), claim.end).check
        if self._claims.has_messages(claim):
            return _Messages(schema, claim.end).check
        return _Plain(schema.codec(), claim.end).check


def _nothing(data: bytes) -> None:
    """The claim is all that is checked."""

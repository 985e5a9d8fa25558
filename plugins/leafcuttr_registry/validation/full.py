"""The validator that decodes every key and value of a topic by its schema, and the filter that does so and sets the bad
ones aside."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from leafcuttr_registry.provider import provider_of
from leafcuttr_registry.validation.by_worker import ByWorker
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

    def validate_in_thread(self, records: "Sequence[Record]") -> "list[str | NotReady | None]":
        """In a thread that may wait: see `leafcuttr_sdk.WaitingValidator`."""
        verdicts: list[str | NotReady | None] = [None] * len(records)
        for check in self._checks:
            for index, why in check.refusals(records).items():
                if verdicts[index] is None:
                    verdicts[index] = why
        return verdicts


class SchemaFilter:
    """Sets records aside, with the reason."""

    def __init__(self, context: "TopicContext", parts: list[PartOptions]) -> None:
        self._validator = SchemaValidator(context, parts)

    def filter(self, record: "Record") -> "Verdict":
        return _verdict(record, self._validator.validate(record))

    def filter_in_thread(self, records: "Sequence[Record]") -> "list[Verdict]":
        """In a thread that may wait: see `leafcuttr_sdk.WaitingFilter`."""
        return list(map(_verdict, records, self._validator.validate_in_thread(records)))


def _verdict(record: "Record", why: str | NotReady | None) -> "Verdict":
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
        self._provider = provider_of(context.broker)
        self._clock: Clock = context.clock
        self._allowed: dict[tuple[bytes, bytes | None], Callable[[bytes], None]] = {}
        self._since = 0.0

    def why_not(self, record: "Record") -> str | NotReady | None:
        """None for a null: it is a tombstone, or a record without a key."""
        data = record.key if self._is_key else record.value
        if data is None:
            return None
        check = self._check(record, data)
        return self._answer(check, data) if callable(check) else check

    def refusals(self, records: "Sequence[Record]") -> dict[int, str | NotReady]:
        """Of a batch, by the index of the record. In a thread of trio, which waits for a worker process."""
        refused: dict[int, str | NotReady] = {}
        by_worker: dict[ByWorker, list[tuple[int, bytes]]] = {}
        for index, record in enumerate(records):
            data = record.key if self._is_key else record.value
            if data is None:
                continue
            check = self._check(record, data)
            if isinstance(check, ByWorker):
                by_worker.setdefault(check, []).append((index, data))
                continue
            why = self._answer(check, data) if callable(check) else check
            if why is not None:
                refused[index] = why
        for check, some in by_worker.items():
            for (index, _), why in zip(some, check.refusals([data for _, data in some]), strict=True):
                if why is not None:
                    refused[index] = f"the {self._claims.part} {why}" if isinstance(why, str) else why
        return refused

    def _answer(self, check: Callable[[bytes], None], data: bytes) -> str | None:
        try:
            check(data)
        except DataError as error:
            return f"the {self._claims.part} is not of its schema: {error}"
        return None

    def _check(self, record: "Record", data: bytes) -> Callable[[bytes], None] | str | NotReady:
        """What checks its data, or why there may be none."""
        header = self._header(record) if record.headers else None
        now = self._clock.monotonic()
        if now - self._since > _REMEMBERED_S or len(self._allowed) >= _MOST:
            self._allowed.clear()
            self._since = now
        check = self._allowed.get((data[:ID_SIZE], None) if header is None else (b"", header))
        return self._find(data, header) if check is None else check

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
            return ByWorker(self._provider, schema, claim.key, claim.end)
        if claim.path is not None:
            return _Plain(schema.codec(claim.path), claim.end).check
        if self._claims.has_messages(claim):
            return _Messages(schema, claim.end).check
        return _Plain(schema.codec(), claim.end).check


def _nothing(data: bytes) -> None:
    """The claim is all that is checked."""

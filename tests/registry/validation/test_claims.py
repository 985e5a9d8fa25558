"""Claims, asked while the registry stops, starts or changes: a record that it would take is never refused for good."""

from __future__ import annotations

from typing import Any

import pytest

import leafcuttr_registry
from leafcuttr_registry.validation.claims import Claims, last_header
from leafcuttr_registry.validation.full import SchemaFilter, SchemaValidator
from leafcuttr_registry.validation.ids import SchemaIds
from leafcuttr_registry.validation.settings import options_of
from leafcuttr_sdk import NotReady, Record
from leafcuttr_sdk.peek import PeekedBatch
from leafcuttr_sdk.schemas import DataError, ParsedSchema, RegisteredSchema, SchemaError
from leafcuttr_sdk.settings import Value
from leafcuttr_sdk.testing import topic_context
from support.column_registry import ColumnRegistry
from support.column_schemas import Columns

CHECK = "lc.schema.validation.value"
STRATEGY = "lc.schema.subject.strategy.value"
READING = "it is still read"
ID = b"\0\0\0\0\1"
ROW = b'{"id":1}'


class Stopping(ColumnRegistry):
    """Answers so many questions of those that need its state, and then is away until it is asked what it waits for
    `back` times."""

    def __init__(self, answers: int, back: int = 10**6, format: str = "COLUMNS") -> None:
        super().__init__()
        self.by_key[1] = RegisteredSchema(1, "g", format, "id")
        for subject in ("t-value", "Row", "t-Row"):
            self.subjects[subject] = [self.by_key[1]]
        self._left = answers
        self._back = back
        self.waits_asked = 0

    def _is_there(self) -> bool:
        self._left -= 1
        return self._left >= 0 or self.waits_asked >= self._back

    @property
    def waits_for(self) -> str | None:  # type: ignore[override]
        if self._left > 0:
            return None
        self.waits_asked += 1
        return None if self.waits_asked > self._back else READING

    def get(self, key: int | str, subject: str | None = None) -> RegisteredSchema | None:
        return super().get(key) if self._is_there() else None

    def parsed(self, key: int | str, subject: str | None = None) -> ParsedSchema | None:
        found: Any = Columns().parse("id", {}) if self._is_there() else None
        if found is not None:
            found.record_name = "Row"
        schema: ParsedSchema | None = found
        return schema

    def belongs(self, key: int | str, subject: str) -> bool:
        return super().belongs(key, subject) if self._is_there() else False


def context_of(schemas: Any, **settings: Value) -> Any:
    return topic_context(
        "t",
        plugin=leafcuttr_registry,
        topic_settings={name.replace("__", "."): value for name, value in settings.items()},
        schemas=schemas,
    )


def verdicts(schemas: Any, strategy: str, check: str, value: bytes = ID + ROW) -> Any:
    context = context_of(schemas, **{CHECK: check, STRATEGY: strategy})
    options = options_of(context.topic_settings, "value")
    if check == "full":
        return SchemaValidator(context, [options]).validate(Record(value))
    batch = PeekedBatch(1, [None], [value], {"__value_schema_id": [()]})
    return SchemaIds(context, options).validate_batch(batch).get(0)


@pytest.mark.parametrize("format", ["COLUMNS", "PROTOBUF"])
@pytest.mark.parametrize("check", ["id", "full"])
@pytest.mark.parametrize("strategy", ["topic", "record", "topic-record"])
@pytest.mark.parametrize("answers", range(12))
def test_a_registry_that_stops_between_two_questions(
    answers: int, strategy: str, check: str, format: str
) -> None:
    value = ID + (b"\0" if format == "PROTOBUF" else b"") + ROW
    for back in (1, 2, 10**6):
        verdict = verdicts(Stopping(answers, back, format), strategy, check, value)
        assert verdict in ((None,) if answers == 11 else (None, NotReady(READING)))


@pytest.mark.parametrize("check", ["id", "full"])
def test_a_registry_that_stops_before_all(check: str) -> None:
    assert verdicts(Stopping(0), "topic", check) == NotReady(READING)


@pytest.mark.parametrize("check", ["id", "full"])
def test_a_registry_that_is_back_when_it_is_asked_what_it_waits_for(check: str) -> None:
    """It was not there when the schema was asked for, and is when the refusal is given."""

    class Coming(ColumnRegistry):
        waits_for: str | None = READING

        def get(self, key: int | str, subject: str | None = None) -> None:
            self.waits_for = None

    assert verdicts(Coming(), "topic", check) == NotReady(READING)


def test_a_registry_that_is_back_between_two_questions() -> None:
    """Whether the message of a record matters was not known yet: so it is taken to matter."""

    class Back(Stopping):
        waits_for = None  # type: ignore[assignment]

        def _is_there(self) -> bool:
            self._left += 1
            return self._left > 1

    assert verdicts(Back(0, format="PROTOBUF"), "record", "id", ID + b"\0" + ROW) is None


def test_what_no_registry_would_take_is_refused_at_once() -> None:
    context = context_of(Stopping(0), **{CHECK: "full"})
    validator = SchemaValidator(context, [options_of(context.topic_settings, "value")])
    assert "begins with the byte 120" in str(validator.validate(Record(b"x")))


def test_what_protobuf_is_does_not_change_with_a_stop() -> None:
    """A check of plain data must not be remembered for messages."""
    schemas = Stopping(3, back=1, format="PROTOBUF")
    context = context_of(schemas, **{CHECK: "full"})
    validator = SchemaValidator(context, [options_of(context.topic_settings, "value")])
    assert validator.validate(Record(ID + b"\0" + ROW)) == NotReady(READING)
    assert validator.validate(Record(ID + b"\0" + ROW)) is None


def test_a_schema_that_its_format_does_not_read() -> None:
    class Unread(ColumnRegistry):
        def parsed(self, key: int | str, subject: str | None = None) -> ParsedSchema | None:
            raise SchemaError("there is no schema format COLUMNS")

    schemas = Unread()
    schemas.by_key[1] = RegisteredSchema(1, "g", "COLUMNS", "id int")
    schemas.subjects["t-value"] = [schemas.by_key[1]]
    assert verdicts(schemas, "topic", "full") == "schema 1: there is no schema format COLUMNS"
    context = context_of(schemas, **{CHECK: "full", "lc.schema.validation.on.error": "dlq"})
    letter: Any = SchemaFilter(context, [options_of(context.topic_settings, "value")]).filter(Record(ID))
    assert letter.reason == "schema 1: there is no schema format COLUMNS"


def test_headers() -> None:
    claims = Claims(
        context_of(ColumnRegistry()), options_of(context_of(ColumnRegistry()).topic_settings, "key")
    )
    assert claims.read(b"anything", ID)[:2] == (1, 0)
    assert claims.read(ID + b"x", None)[:2] == (1, 5)
    assert claims.read(b"\0\xff\xff\xff\xfe", None).key == -2
    guid = b"\1" + bytes(range(16))
    assert claims.read(b"", guid)[:2] == ("00010203-0405-0607-0809-0a0b0c0d0e0f", 0)
    for data, header in ((b"", b""), (ID, ID + b"x"), (ID, guid + b"x"), (guid, None), (b"", None)):
        with pytest.raises(DataError):
            claims.read(data, header)
    assert last_header([]) is None
    assert last_header([b"a", b"b"]) == b"b"
    assert last_header([b"a", None]) == b""

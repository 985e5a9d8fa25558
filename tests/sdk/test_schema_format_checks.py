"""The check of schema formats passes a sound one, and names what is wrong with broken ones."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_sdk.schemas import Difference, SchemaError, SchemaRule
from leafcuttr_sdk.testing import ContractError, check_schema_format
from leafcuttr_sdk.testing.schema_format_checks import schema_format_report
from support.column_schemas import Columns, Head


def test_a_sound_one_passes() -> None:
    check_schema_format(Columns(), texts=["id", "id,name"])


def test_a_text_that_it_has_to_take() -> None:
    with pytest.raises(ContractError, match="it refuses '1': SchemaError: '1' is no name"):
        check_schema_format(Columns(), texts=["1"])


class BadName(Columns):
    name = "columns"


class LongSummary(Columns):
    summary = "one\ntwo"


class NotSent(Columns):
    def __init__(self) -> None:
        self.call = lambda: None


class Raises(Columns):
    def parse(self, text: str, references: Any) -> Head:
        if text == "{}":
            raise KeyError(text)
        return super().parse(text, references)


class TwoLines(Columns):
    def parse(self, text: str, references: Any) -> Head:
        try:
            return super().parse(text, references)
        except SchemaError as error:
            raise SchemaError(f"{error}\nand more") from None


class Grows(Columns):
    def parse(self, text: str, references: Any) -> Head:
        head = super().parse(text, references)
        head.canonical += ",more"
        return head


class Another(Columns):
    def parse(self, text: str, references: Any) -> Head:
        head = super().parse(text, references)
        head.canonical = "other"
        return head


class NeverSame(Columns):
    def differences(self, reader: Head, writer: Head) -> list[Difference]:
        return [Difference("COLUMN_MOVED", "", None, None, "Always.")]


class NoSentence(Columns):
    def differences(self, reader: Head, writer: Head) -> list[Difference]:
        return [each._replace(message="") for each in super().differences(reader, writer)]


class Unknown(Columns):
    def differences(self, reader: Head, writer: Head) -> list[Difference]:
        return [each._replace(type="OTHER") for each in super().differences(reader, writer)]


class Toothless(Columns):
    rules = (SchemaRule("COLUMN_ADDED", "A column is new.", True, "id", "id,name"),)


class Harmless(Columns):
    rules = (SchemaRule("COLUMN_MOVED", "A column is gone.", False, "id,name", "name"),)


class WildHead(Head):
    def decode(self, data: bytes) -> Any:
        return data.decode()


class WildCodec(Columns):
    def parse(self, text: str, references: Any) -> Head:
        return WildHead(super().parse(text, references).names, references)


@pytest.mark.parametrize(
    "broken, check",
    [
        (BadName, "named"),
        (LongSummary, "named"),
        (NotSent, "sent"),
        (Raises, "parses"),
        (TwoLines, "parses"),
        (Grows, "canonical"),
        (Another, "canonical"),
        (NeverSame, "compares"),
        (NoSentence, "compares"),
        (Unknown, "compares"),
        (Unknown, "rules"),
        (Toothless, "rules"),
        (Harmless, "rules"),
        (WildCodec, "codec"),
    ],
)
def test_what_is_wrong_is_named(broken: type[Columns], check: str) -> None:
    report = schema_format_report(broken())
    assert check in {each.name for each in report.checks if each.problems}, report

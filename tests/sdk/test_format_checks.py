"""The check of record formats passes our own, and names what is wrong with broken ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from leafcuttr.cli.common.records.own_formats import Base64Format, HexFormat, JsonFormat, TextFormat
from leafcuttr_sdk import FormatError, Place
from leafcuttr_sdk.testing import ContractError, check_record_format


@pytest.mark.parametrize("ours", [TextFormat, HexFormat, Base64Format, JsonFormat])
def test_our_own_formats_pass(ours: Any) -> None:
    check_record_format(ours())


def test_texts_that_it_has_to_take() -> None:
    check_record_format(HexFormat(), texts=["00ff"])
    with pytest.raises(ContractError, match="it refuses 'no hex': FormatError"):
        check_record_format(HexFormat(), texts=["no hex"])


class Plain:
    """What the broken ones below differ from in one thing: text as Latin-1."""

    name = "plain"
    summary = "text as Latin-1"
    options: Mapping[str, str] = {}
    json_text: Any = False

    def open(self, options: Mapping[str, str]) -> Any:
        return self

    def encode(self, text: str, place: Place) -> Any:
        try:
            return text.encode("latin-1")
        except UnicodeEncodeError:
            raise FormatError(f"{text!a} is no Latin-1") from None

    def decode(self, data: bytes, place: Place) -> Any:
        return data.decode("latin-1")

    def close(self) -> None:
        pass


class BadName(Plain):
    name = "Plain Text"


class LongSummary(Plain):
    summary = "one\ntwo"


class DoesNotOpen(Plain):
    def open(self, options: Mapping[str, str]) -> Any:
        raise KeyError(options.get("url"))


class RaisesForBytes(Plain):
    def decode(self, data: bytes, place: Place) -> Any:
        return data.decode()


class RaisesForText(Plain):
    def encode(self, text: str, place: Place) -> Any:
        return text.encode("latin-1")


class ManyLines(Plain):
    def encode(self, text: str, place: Place) -> Any:
        raise FormatError("no\nnever")


class TextForBytes(Plain):
    def encode(self, text: str, place: Place) -> Any:
        return text


class OneWay(Plain):
    def decode(self, data: bytes, place: Place) -> Any:
        return data.decode("latin-1").upper()


class NotBack(Plain):
    def encode(self, text: str, place: Place) -> Any:
        return b"\xff" if text == "hello" else super().encode(text, place)

    def decode(self, data: bytes, place: Place) -> Any:
        if data == b"\xff":
            raise FormatError("no")
        return super().decode(data, place)


class NoJson(Plain):
    json_text = True


class LinesOfJson(Plain):
    json_text = True

    def encode(self, text: str, place: Place) -> Any:
        return json.dumps(text).encode()

    def decode(self, data: bytes, place: Place) -> Any:
        return json.dumps([data.decode("latin-1")], indent=1)


class JsonPerhaps(Plain):
    json_text = "yes"


class DoesNotClose(Plain):
    closed = 0

    def close(self) -> None:
        self.closed += 1
        if self.closed > 1:
            raise OSError("closed")


@pytest.mark.parametrize(
    ("broken", "check", "says"),
    [
        (BadName, "named", "its name is 'Plain Text'"),
        (LongSummary, "named", "its summary is"),
        (DoesNotOpen, "opens", "open({}) raised KeyError"),
        (RaisesForBytes, "decodes", "it raised UnicodeDecodeError"),
        (RaisesForText, "encodes", "it raised UnicodeEncodeError"),
        (ManyLines, "encodes", "it is one line for the person"),
        (TextForBytes, "encodes", "it made a str of '', not bytes"),
        (OneWay, "there and back", "'hello' becomes b'hello', that 'HELLO', and that b'HELLO'"),
        (NotBack, "there and back", "it refuses b'\\xff'"),
        (NoJson, "json", "is no JSON"),
        (LinesOfJson, "json", "has several lines"),
        (JsonPerhaps, "json", "json_text is 'yes'"),
        (DoesNotClose, "closes", "close() raised OSError: closed"),
    ],
)
def test_a_broken_format_is_told_what_is_wrong(broken: Any, check: str, says: str) -> None:
    with pytest.raises(ContractError) as caught:
        check_record_format(broken())
    found = {one.name: one.problems for one in caught.value.report.checks}
    assert any(says in problem for problem in found[check]), str(caught.value)


def test_a_good_one_passes() -> None:
    check_record_format(Plain(), texts=["Größe"])

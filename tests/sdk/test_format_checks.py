"""The check of record formats passes our own, and names what is wrong with broken ones."""

from __future__ import annotations

import json
import random as of_the_process
import time
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import pytest

from leafcuttr.cli.common.records.own_formats import Base64Format, HexFormat, JsonFormat, TextFormat
from leafcuttr_sdk import FormatError, Place, Record
from leafcuttr_sdk.testing import ContractError, check_record_format
from leafcuttr_sdk.testing.format_checks import format_report


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


class NeedsPerhaps(Plain):
    needs_headers: Any = "yes"


class ByHeaders(Plain):
    """Text whose encoding a header names."""

    needs_headers = True

    def decode(self, data: bytes, place: Place) -> Any:
        name = dict(place.headers).get("encoding", b"latin-1") or b""
        try:
            return data.decode(name.decode())
        except (LookupError, UnicodeError) as error:
            raise FormatError(f"encoding: {str(error).splitlines()[0]}") from None


class TripsOverHeaders(ByHeaders):
    def decode(self, data: bytes, place: Place) -> Any:
        return data.decode("latin-1") + "".join(value.decode() for _, value in place.headers if value)


class NoTextByHeaders(ByHeaders):
    def decode(self, data: bytes, place: Place) -> Any:
        return data if place.headers else super().decode(data, place)


class NoJsonByHeaders(ByHeaders):
    json_text = True

    def encode(self, text: str, place: Place) -> Any:
        return b"1"

    def decode(self, data: bytes, place: Place) -> Any:
        return "no JSON" if place.headers else "1"


class DoesNotClose(Plain):
    closed = 0

    def close(self) -> None:
        self.closed += 1
        if self.closed > 1:
            raise OSError("closed")


class Maker(Plain):
    """Makes records as it should; those below differ in one thing."""

    def value(self, random: Random) -> Any:
        return random.choice(["one", "two", "Größe"]).encode("latin-1")

    def make_records(self, topic: str, options: Mapping[str, str], random: Random) -> Iterator[Any]:
        while True:
            yield Record(self.value(random), topic.encode(), (("a", None),), timestamp=7)


class MakesSome(Maker):
    def make_records(self, topic: str, options: Mapping[str, str], random: Random) -> Iterator[Any]:
        yield Record(None, b"gone")


class MakesNothing(Maker):
    def make_records(self, topic: str, options: Mapping[str, str], random: Random) -> Iterator[Any]:
        return iter(())


class RandomOfItsOwn(Maker):
    def value(self, random: Random) -> Any:
        return b"%d" % of_the_process.randrange(2**64)


class TimeOfTheDay(Maker):
    def make_records(self, topic: str, options: Mapping[str, str], random: Random) -> Iterator[Any]:
        for _ in range(3):
            yield Record(b"", timestamp=time.time_ns())


class TextValues(Maker):
    def value(self, random: Random) -> Any:
        return "one"


class OddHeader(Maker):
    def make_records(self, topic: str, options: Mapping[str, str], random: Random) -> Iterator[Any]:
        yield Record(b"", headers=(("a", "b"),))  # type: ignore[arg-type]


class BreaksOff(Maker):
    def value(self, random: Random) -> Any:
        raise KeyError("value")


class DoesNotReadItsOwn(Maker):
    def decode(self, data: bytes, place: Place) -> Any:
        if data == b"two":
            raise FormatError("that is two")
        return super().decode(data, place)


class NoFunction(Maker):
    make_records: Any = 7


@pytest.mark.parametrize("good", [Maker, MakesSome])
def test_a_format_that_makes_records_passes(good: Any) -> None:
    check_record_format(good())


def test_one_that_makes_none_is_not_checked_for_it() -> None:
    assert "makes records" not in {check.name for check in format_report(Plain()).checks}
    assert "makes records" in {check.name for check in format_report(Maker()).checks}


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
        (NeedsPerhaps, "headers", "needs_headers is 'yes'"),
        (TripsOverHeaders, "headers", "it raised UnicodeDecodeError"),
        (NoTextByHeaders, "headers", "it made a bytes"),
        (NoJsonByHeaders, "json", "'no JSON' is no JSON"),
        (MakesNothing, "makes records", "make_records yields nothing"),
        (RandomOfItsOwn, "makes records", "with the same seed record 0 is another one the second time"),
        (TimeOfTheDay, "makes records", "leave timestamp None"),
        (TextValues, "makes records", "the value of a record is a str, neither bytes nor None"),
        (OddHeader, "makes records", "a header of a record is ('a', 'b'): a name, and bytes or None"),
        (BreaksOff, "makes records", "make_records raised KeyError: 'value'"),
        (DoesNotReadItsOwn, "makes records", "it refuses b'two': FormatError: that is two"),
        (NoFunction, "makes records", "make_records raised TypeError"),
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


def test_a_codec_by_headers_passes() -> None:
    check_record_format(ByHeaders())
    (found,) = [each for each in format_report(ByHeaders()).checks if each.name == "headers"]
    assert not found.problems
    assert "headers" not in [each.name for each in format_report(Plain()).checks]

"""Record formats by themselves: what goes in comes out, and what is wrong with the rest."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.cli.common.records.formats import Formats, known_formats
from leafcuttr.cli.common.records.own_formats import Base64Format, HexFormat, JsonFormat, TextFormat
from leafcuttr_sdk.formats import FormatCodec, FormatError, Place, RecordFormat

VALUE = Place("t", "value")


@pytest.mark.parametrize("name", ["text", "hex", "base64"])
@given(data=st.binary(max_size=200))
def test_any_bytes_survive(name: str, data: bytes) -> None:
    codec = known_formats().get(name).open({})
    assert codec.encode(codec.decode(data, VALUE), VALUE) == data


@given(
    document=st.recursive(
        st.none()
        | st.booleans()
        | st.text()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    ),
    indent=st.none() | st.integers(0, 3),
)
def test_json_is_stored_as_written_and_printed_on_one_line(document: object, indent: int | None) -> None:
    written = json.dumps(document, ensure_ascii=False, indent=indent)
    try:
        stored = JsonFormat().encode(written, VALUE)
    except FormatError:
        with pytest.raises(UnicodeEncodeError):
            written.encode()
        return
    assert stored == written.encode()
    printed = JsonFormat().decode(stored, VALUE)
    assert "\n" not in printed
    assert json.loads(printed) == document


@pytest.mark.parametrize(
    ("codec", "text", "says"),
    [
        (JsonFormat(), "{a: 1}", "no JSON: Expecting property name enclosed in double quotes at column 2"),
        (JsonFormat(), "[1,\n2,,]", "line 2 column 3"),
        (JsonFormat(), "NaN", "NaN is not JSON"),
        (JsonFormat(), "[" * 100_000, "nested too deeply"),
        (JsonFormat(), "", "no JSON"),
        (HexFormat(), "0xfg", "'fg' is not pairs of hexadecimal digits"),
        (HexFormat(), "abc", "not pairs"),
        (Base64Format(), "a?==", "is not base64"),
        (TextFormat().open({"encoding": "ascii"}), "é", "ascii"),
    ],
)
def test_text_that_is_not_of_the_format(codec: FormatCodec, text: str, says: str) -> None:
    with pytest.raises(FormatError, match=says.replace("?", ".")) as raised:
        codec.encode(text, VALUE)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("data", [b"\xff", b"{", b"1 2", b"", b"nul"])
def test_bytes_that_are_no_json(data: bytes) -> None:
    with pytest.raises(FormatError):
        JsonFormat().decode(data, VALUE)


def test_what_a_person_types_is_taken() -> None:
    assert HexFormat().encode(" 0xde AD be ef\t", VALUE) == b"\xde\xad\xbe\xef"
    assert Base64Format().encode("-_8=", VALUE) == b"\xfb\xff"
    assert TextFormat().open({"encoding": "latin-1"}).encode("é", VALUE) == b"\xe9"
    with pytest.raises(FormatError, match="no such text encoding"):
        TextFormat().open({"encoding": "hex"})


def test_a_name_is_taken_once_and_the_nearest_is_named() -> None:
    formats = Formats([TextFormat()])
    formats.add(HexFormat())
    assert [one.name for one in formats] == ["text", "hex"]
    with pytest.raises(ValueError, match="already"):
        formats.add(HexFormat())
    with pytest.raises(FormatError, match="did you mean hex"):
        formats.get("hexx")
    with pytest.raises(FormatError, match="there are text, hex"):
        formats.get("avro")


def test_another_format_is_opened_with_its_options() -> None:
    """As a plugin will add one: by the contract alone."""

    class Rot:
        name, summary, options, json_text = "rot", "letters turned", {"by": "how far"}, False

        def __init__(self, by: int = 0) -> None:
            self.by = by

        def open(self, options: object) -> FormatCodec:
            return Rot(int(dict(options)["by"]))  # type: ignore[call-overload]

        def encode(self, text: str, place: Place) -> bytes:
            return bytes((ord(letter) + self.by) % 256 for letter in text)

        def decode(self, data: bytes, place: Place) -> str:
            return "".join(chr((byte - self.by) % 256) for byte in data)

        def close(self) -> None:
            return

    added: RecordFormat = Rot()
    formats = Formats([added])
    codec = formats.get("rot").open({"by": "1"})
    assert codec.encode("abc", VALUE) == b"bcd"
    with pytest.raises(ValueError, match="cannot name a format"):
        formats.add(type("Bad", (Rot,), {"name": "Not This"})())

"""`mask`: whole fields, and what matches in fields or anywhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leafcuttr_sdk import DeadLetter, PluginError, Record
from support.making_filters import made, of, reason_of, value_of

CARD = "4111 1111 1111 1111"


def test_a_field_without_a_replacement_becomes_empty() -> None:
    document = {"s": "x", "i": 5, "f": 1.5, "t": True, "l": [1], "o": {"a": 1}, "n": None, "kept": "x"}
    fields = ",".join(name for name in document if name != "kept")
    assert value_of(f"mask fields={fields},missing", document) == {
        "s": "", "i": 0, "f": 0.0, "t": False, "l": [], "o": {}, "n": None, "kept": "x",
    }  # fmt: skip


def test_a_field_with_a_replacement() -> None:
    assert value_of("mask fields=a replacement=hidden", {"a": "x", "b": "x"}) == {"a": "hidden", "b": "x"}
    assert value_of("mask fields=a,b replacement=42", {"a": 7, "b": 1.5}) == {"a": 42, "b": 42.0}
    assert (
        reason_of("mask fields=a replacement=x", {"a": 7})
        == "mask: the field a is of a type that 'x' cannot stand for"
    )
    assert "the field a is of a type" in reason_of("mask fields=a replacement=1", {"a": True})
    assert "the field a is of a type" in reason_of("mask fields=a replacement=1.5", {"a": 1})


def test_lists_are_masked_in_each_element() -> None:
    assert value_of("mask fields=l.a replacement=x", {"l": [{"a": "1"}, {"b": "2"}, 3]}) == {
        "l": [{"a": "x"}, {"b": "2"}, 3]
    }


def test_patterns_in_fields_leave_the_rest() -> None:
    document = {"note": f"paid with {CARD}, ann@example.org", "other": CARD, "n": 4111111111111111, "m": 5}
    assert value_of("mask fields=note,n,m patterns=card keep=4", document) == {
        "note": "paid with **** **** **** 1111, ann@example.org", "other": CARD, "n": "************1111", "m": 5,
    }  # fmt: skip
    assert value_of("mask fields=note patterns=card,email replacement=[gone]", document)["note"] == (
        "paid with [gone], [gone]"
    )


def test_patterns_without_fields_are_covered_wherever_they_are() -> None:
    document = {"a": [{"b": CARD}, 4111111111111111], "c": {"d": "me@example.org"}, CARD: 1}
    assert value_of("mask patterns=card,email", document) == {
        "a": [{"b": "**** **** **** ****"}, "****************"], "c": {"d": "**@*******.***"}, CARD: 1,
    }  # fmt: skip


def test_what_is_no_json_is_one_text_for_patterns() -> None:
    mask = made("mask patterns=card,email keep=4").filter
    assert mask(of(f"card {CARD}\xff".encode("latin-1"))) == of(b"card **** **** **** 1111\xff")
    untouched = of(b"no card, no mail")
    assert mask(untouched) is untouched
    assert made("mask patterns=email part=key").filter(of(b"", b"a@b.se")) == of(b"", b"*@*.**")


def test_what_is_escaped_is_found() -> None:
    left: Any = made("mask patterns=email").filter(of(b'{"a":"ann\\u0040example.org"}'))
    assert json.loads(left.value) == {"a": "***@*******.***"}
    left = made("mask patterns=card").filter(of(b'{"a":"4111\\u0031111 1111 1111"}'))
    assert left.value == b'{"a":"******** **** ****"}'


def test_a_regular_expression() -> None:
    assert value_of("mask regex=[0-9]{3}-[0-9]{2} keep=2", {"a": "no 123-45!", "b": 12}) == {
        "a": "no ***-45!",
        "b": 12,
    }
    too_long = {"a": "1" * 5000}
    assert reason_of("mask regex=[0-9]+x", too_long).startswith(
        "mask: a text of 5000 characters, and `regex` is"
    )


def test_what_cannot_be_masked_fails_unless_something_else_is_said() -> None:
    with pytest.raises(PluginError, match="mask: it is no JSON"):
        made("mask fields=a").filter(of(b"secret"))
    assert made("mask fields=a on.error=dead-letter").filter(of(b"x")) == DeadLetter("mask: it is no JSON")


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    "part",
    [b"@", b"a@", b"a", b"1", b"1 ", b"4111 ", b"+1", b"(555) ", b"4111-", b"\\", b"b.", b"-1."],
    ids=repr,
)
@pytest.mark.parametrize("form", [b"%s", b'{"a":"%s"}', b"a@%s", b"%s@"], ids=repr)
def test_a_hostile_text_takes_a_time_that_grows_with_its_length_only(part: bytes, form: bytes) -> None:
    """A quadratic search would take hours for it."""
    made("mask patterns=email,card,phone").filter(of(form % (part * (100_000 // len(part)))))


def test_a_record_without_anything_to_cover_is_the_same_object() -> None:
    for value in ({"a": "b"}, {"n": 123}, {"d": "2026-11-21"}):
        record = of(value)
        assert isinstance(record, Record) and made("mask patterns=card,email").filter(record) is record

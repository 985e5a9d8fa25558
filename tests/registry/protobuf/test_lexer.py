"""Tokens, and the lines of what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.protobuf.lexer import tokens_of, unquoted
from leafcuttr_registry.protobuf.option_printer import quoted
from leafcuttr_sdk.schemas import SchemaError
from registry.protobuf.parsing import parsed, refused


def texts(text: str) -> list[str]:
    return tokens_of(text, Budget(1000)).texts


def test_tokens() -> None:
    assert texts("a.b=-1.5e3 /* c */ 'd' // e") == ["a", ".", "b", "=", "-", "1.5e3", "'d'", ""]
    assert tokens_of("a 1 1. 'x' ;", Budget(100)).kinds == [
        "name",
        "integer",
        "float",
        "string",
        "symbol",
        "end",
    ]


def test_a_byte_order_mark_is_passed_over() -> None:
    assert texts("\ufeffa") == ["a", ""]


@pytest.mark.parametrize(
    ("text", "saying", "line"),
    [
        ("\n/* a", "has no end", 2),
        ("\n/* a\n /* b */", "block comments cannot be nested", 3),
        ("\n\n'a", "does not end in its line", 3),
        ('"a\n"', "does not end in its line", 1),
        ("x\n\x01", "the control character 0x01", 2),
        ("\nü", "'ü' is only allowed in strings and comments", 2),
        ("message M { int32 a = 08; }", "is octal", 1),
        ("message M {\nint32 a = 0x; }", "there must be a space between a number and 'x'", 2),
        ("message M {\nint32 a = 1b; }", "there must be a space", 2),
        ("message M {\noptional double a = 1 [default = 1.2.3]; }", "there must be a space", 2),
        ("message M {\noptional double a = 1 [default = x.5]; }", "decimal point", 2),
    ],
)
def test_what_is_no_token_is_refused_with_its_line(text: str, saying: str, line: int) -> None:
    refused(text, saying, line)


def test_lines_are_counted_by_line_feeds() -> None:
    refused("\r\n\r\n\x0b\x0c@", "where a statement", 3)


def test_many_tokens_are_too_complex() -> None:
    with pytest.raises(SchemaError, match="too complex"):
        tokens_of(";" * 3000, Budget(2000))


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (r'"\a\b\f\n\r\t\v\\\?\'\""', b"\a\b\f\n\r\t\v\\?'\""),
        (r"'\x4\x41\X42\1\12\123\777'", b"\x04AB\x01\x0aS\xff"),
        (r"'\u00e9\U0001F600'", "é😀".encode()),
        ("'ü'", "ü".encode()),
    ],
)
def test_escapes(literal: str, value: bytes) -> None:
    assert unquoted("", -1, literal) == value


@pytest.mark.parametrize("literal", [r"'\q'", r"'\x'", r"'\u12'", r"'\U0011'", r"'\U00110000'", r"'\8'"])
def test_escapes_that_do_not_exist(literal: str) -> None:
    with pytest.raises(SchemaError, match=r"line 2: .*begins no escape"):
        unquoted("\n" + literal, 1, literal)


@given(st.binary())
def test_what_is_quoted_is_unquoted(data: bytes) -> None:
    literal = quoted(data)
    assert texts(literal) == [literal, ""]
    assert unquoted("", -1, literal) == data


@given(st.text())
def test_any_text_is_tokens_or_refused(text: str) -> None:
    try:
        found = tokens_of(text, Budget(10_000))
    except SchemaError as error:
        assert error.line is not None
        return
    assert [
        text[at : at + len(each)] for at, each in zip(found.places, found.texts, strict=True)
    ] == found.texts


def test_a_reason_is_one_line() -> None:
    with pytest.raises(SchemaError) as caught:
        parsed('import "a\\n\\x00é\\r.proto";')
    assert "a\\n\\x00é\\r.proto" in str(caught.value) and str(caught.value).isprintable()

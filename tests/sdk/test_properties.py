"""The syntax of properties files, as java.util.Properties reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_sdk.properties import parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", [("a", "b", 1)]),
        ("  a = b ", [("a", "b ", 1)]),
        ("a:b", [("a", "b", 1)]),
        ("a b", [("a", "b", 1)]),
        ("a\t \f=  b", [("a", "b", 1)]),
        ("a==b", [("a", "=b", 1)]),
        ("a", [("a", "", 1)]),
        ("# no\n! no\n\n a=1", [("a", "1", 4)]),
        ("a=1\\\n   2\\\n3\nb=4", [("a", "123", 1), ("b", "4", 4)]),
        ("a=1\\\\\nb=2", [("a", "1\\", 1), ("b", "2", 2)]),
        ("a=1\\\n# 2", [("a", "1# 2", 1)]),
        ("a\\=b\\:c\\ d=e", [("a=b:c d", "e", 1)]),
        ("a=\\u0041\\t\\n\\q", [("a", "A\t\nq", 1)]),
        ("a=1\r\nb=2\rc=3", [("a", "1", 1), ("b", "2", 2), ("c", "3", 3)]),
        ("a=x # not a comment", [("a", "x # not a comment", 1)]),
        ("a=1\\", [("a", "1", 1)]),
        ("listeners=PLAINTEXT://:9092", [("listeners", "PLAINTEXT://:9092", 1)]),
        ("a=\\u00", [("a", "u00", 1)]),
    ],
)
def test_reads(text: str, expected: list[tuple[str, str, int]]) -> None:
    assert parse_properties(text) == expected


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    parse_properties(text)


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.text(st.characters(exclude_categories=["Cs"])),
)
def test_an_escaped_pair_reads_back(key: str, value: str) -> None:
    def escaped(text: str) -> str:
        return "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else c for c in text)

    (found,) = parse_properties(f"{escaped(key)}={escaped(value)}")
    assert (found.key, found.value) == (key, value)

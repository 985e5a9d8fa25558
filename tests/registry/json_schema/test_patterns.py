"""Regular expressions of ECMA-262 in Python, and which are cheap."""

from __future__ import annotations

import re
import time

import pytest

from leafcuttr_registry.json_schema.cost import is_cheap
from leafcuttr_registry.json_schema.patterns import PatternError, translate


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"^\d$", "1", "١"),
        (r"^\w$", "a", "é"),
        (r"^\W$", "é", "a"),
        (r"^\s$", "\ufeff", "\x1c"),
        (r"^\S$", "\x1c", "\u2029"),
        (r"^a$", "a", "a\n"),
        (r"^.$", "\x85", "\u2028"),
        (r"^\cA$", "\x01", "A"),
        (r"^\u0041\x42$", "AB", "ab"),
        (r"^\u{1F600}$", "😀", "x"),
        (r"^\ud83d\ude00$", "😀", "x"),
        (r"^\p{Lu}$", "É", "é"),
        (r"^\P{L}$", "1", "é"),
        (r"^[\p{N}x]$", "Ⅷ", "y"),
        (r"^[\D]$", "x", "1"),
        (r"^[^\d]$", "x", "1"),
        (r"^(?<year>\d{4})-\k<year>$", "2020-2020", "2020-2021"),
        (r"^[^]$", "\n", ""),
        (r"^\/\-$", "/-", "/"),
        (r"[[]a]", "[a]", "a"),
        (r"^[a&&b]$", "&", "c"),
        (r"\bcat\b", "a cat.", "concat"),
        (r"^\B", "é", "e"),
        (r"^\0$", "\0", "0"),
        (r"(?<=a)b(?!c)", "ab", "abc"),
    ],
)
def test_what_matches(pattern: str, matching: str, other: str) -> None:
    translated = translate(pattern)
    assert re.search(translated, matching)
    assert not re.search(translated, other)


def test_an_empty_class_matches_nothing() -> None:
    assert not re.search(translate("a[]"), "a")


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "a\\",
        "*",
        "[z-a]",
        "(?P<a>b)",
        "(?#c)",
        "(?i)a",
        "\\p{Han}",
        "\\p",
        "\\u12",
        "\\c1",
        "\\y",
        "(?>a)",
    ],
)
def test_what_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="not a regular expression"):
        translate(pattern)


def test_what_is_too_long_or_too_deep() -> None:
    for pattern in ("a" * 10_001, "(" * 4000 + ")" * 4000):
        with pytest.raises(PatternError):
            translate(pattern)


CHEAP = [
    "^S_",
    "a{3}",
    "^(foo|bar)$",
    "^[a-z]+$",
    "^[a-z]+@[a-z.]+$",
    "^\\d{3}-\\d+$",
    "^([A-Z]{2})\\d+$",
    "^.*$",
    "^\\p{L}+$",
    "^a?b+$",
    "^[^@]+@[^@]+$",
    "x|y",
    "^([a-z]+)$",
    "^\\d+\\.\\d+$",
]
DEAR = [
    "(a+)+$",
    "^(a|a)*$",
    "^(a|b)*c$",
    "a*b",
    ".*.*x",
    "^[a-z]+[a-z]+$",
    "^(?:a+){1,30}$",
    "a{0,200}b{0,200}c",
    "^(a)\\1+$",
    "^(?=a+)b+c",
    "^.*x",
    "^([a-z]+)a$",
]


@pytest.mark.parametrize("pattern", CHEAP)
def test_cheap(pattern: str) -> None:
    assert is_cheap(translate(pattern))


@pytest.mark.parametrize("pattern", DEAR)
def test_not_cheap(pattern: str) -> None:
    assert not is_cheap(translate(pattern))


@pytest.mark.parametrize("pattern", CHEAP)
def test_cheap_ones_take_time_in_proportion(pattern: str) -> None:
    """Of a long string of each kind; a power of its length would take minutes."""
    compiled = re.compile(translate(pattern))
    began = time.process_time()
    for one in ("a", "1", "z@", "ab", "é", "1.", "-"):
        compiled.search(one * 200_000)
        compiled.search(one * 200_000 + "\n")
    assert time.process_time() - began < 30

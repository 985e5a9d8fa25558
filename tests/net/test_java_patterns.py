"""Patterns of Java's. What each matches is what `java.util.regex` of Java 17 said."""

from __future__ import annotations

import pytest

from leafcuttr.net.java_patterns import PatternError, java_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (".*", "a\nb", False),
        (".*", "a\rb", False),
        (".*", "a\u2028b", False),
        (".*", "a\u0085b", False),
        ("[.]", ".", True),
        ("[.]", "x", False),
        (r"\.", "x", False),
        (r"\w+", "Ä", False),
        (r"\d+", "\u0661", False),
        ("(?i)cn", "CN", True),
        ("(?<who>a)\\k<who>", "aa", True),
        ("(?<who>a)\\k<who>", "ab", False),
        (r"\p{Alpha}+", "aZ", True),
        (r"\p{Alpha}+", "a1", False),
        (r"[\p{Digit}x]+", "1x2", True),
        ("a++b", "aab", True),
        (r"a\z", "a", True),
        ("[^,]+", "a,b", False),
        (r"[\]a]+", "]a", True),
    ],
)
def test_what_it_matches(pattern: str, text: str, matches: bool) -> None:
    assert bool(java_pattern(pattern).fullmatch(text)) is matches


@pytest.mark.parametrize(
    "pattern",
    ["(", "[a-z&&[^b]]", "[a[b]]", "[]a]", r"\Qa\E", r"\p{IsLatin}", r"\R", "\\", "a**", r"\h", "x{2,1}"],
)
def test_what_cannot_be_had(pattern: str) -> None:
    with pytest.raises(PatternError):
        java_pattern(pattern)

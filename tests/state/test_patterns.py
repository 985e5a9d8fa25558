"""Patterns of clients match what Python's `re` says, in time that does not explode."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.state.patterns import InvalidPattern, Pattern
from support.gates_slice import sampled

_PIECES = ["a", "b", ".", "*", "+", "?", "(", ")", "(?:", "|", "[ab]", "[^a]", "[a-c]", "[]a]", "\\d", "\\.", "{1,2}",
           "{2}", "^", "$", "-"]  # fmt: skip


@settings(max_examples=sampled(300), deadline=None)
@given(pieces=st.lists(st.sampled_from(_PIECES), max_size=7), text=st.text("ab1.-]\n", max_size=6))
async def test_as_python_where_both_take_it(pieces: list[str], text: str) -> None:
    pattern = "".join(pieces)
    if re.search(r"[*+?}]\+", pattern):
        return  # possessive, in Python alone
    try:
        compiled, reference = Pattern(pattern), re.compile(pattern)
    except (InvalidPattern, re.error):
        return
    if "$" in pattern and text.endswith("\n"):
        return  # Python's also matches before the last line's end
    assert await compiled.matches(text) == (reference.fullmatch(text) is not None), (pattern, text)


async def test_what_makes_others_backtrack_for_ever() -> None:
    assert not await Pattern("(a+)+$").matches("a" * 5000 + "b")
    assert await Pattern("(a|aa)*(a|aa)*").matches("a" * 2000)


@pytest.mark.parametrize(
    "pattern",
    ["[", "(", ")", "*", "a**", "a{2,1}", "a{1001}", "((a{1000}){1000}){1000}", "(((){1000}){1000}){1000}", "(" * 5000,
     "[b-a]", "\\b", "(?i)a", "[[:alpha:]]", "\\", "[\\"],
)  # fmt: skip
def test_refused(pattern: str) -> None:
    with pytest.raises(InvalidPattern):
        Pattern(pattern)

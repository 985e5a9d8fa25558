"""Regular expressions of conditions: as Python's, and in a time that has a bound."""

from __future__ import annotations

import math
import random
import re
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from leafcuttr_sdk.conditions.automaton import Automaton
from leafcuttr_sdk.conditions.regular import MOST_CHARACTERS, MOST_PARTS, parse_regular, ways_of
from leafcuttr_sdk.conditions.searching import Search
from support.gates_slice import sampled

ATOMS = [
    *[
        "a",
        "b",
        "1",
        " ",
        "é",
        ".",
        r"\n",
        r"\w",
        r"\W",
        r"\d",
        r"\s",
        "[ab]",
        "[^a]",
        "[]a]",
        r"[\]b]",
        "[a-c]",
    ],
    *[
        "^",
        "$",
        r"\A",
        r"\Z",
        r"\b",
        r"\B",
        r"\x61",
        r"\.",
        r"\u00e9",
        r"\141",
        r"\0",
        "{",
        "{}",
        "{a}",
        "]",
        "}",
    ],
]
if sys.version_info >= (3, 14):
    ATOMS.remove(r"\B")  # its meaning at the ends of a text has changed
COUNTS = ["*", "+", "?", "{2}", "{1,3}", "{,2}", "{2,}", "{,}", "{0}", "*?", "+?", "??", "{1,2}?"]
PATTERNS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map("|".join).map("({})".format)
        | st.tuples(inner, st.sampled_from(COUNTS)).map(lambda both: f"(?:{both[0]}){both[1]}")
        | st.tuples(st.sampled_from("ab."), st.sampled_from(COUNTS)).map("".join)
        | inner.map("(?P<x>{})".format)
    ),
    max_leaves=8,
)
FLAGS = st.sampled_from(["", "", "", "(?i)", "(?m)", "(?s)", "(?a)", "(?ms)", "(?mi)(?:)"])
TEXTS = st.text(st.sampled_from("aabA1 .\né\0"), min_size=1, max_size=10)


@settings(max_examples=sampled(600))
@given(FLAGS, PATTERNS, st.lists(TEXTS, min_size=1, max_size=6))
@example("", "a$", ["a\n", "a\n\n", "\na"])
@example("(?m)", "^b$", ["a\nb\na", "b\n", "a\n\nb"])
@example("", r"\bb", ["ab", "a b", "b"])
@example("", "(?:a*)*b", ["aab", "aaa"])
@example("", "(?:^|a)+b", ["ab", "xb", "b"])
def test_the_automaton_finds_what_python_finds(flags: str, pattern: str, texts: list[str]) -> None:
    try:
        regular = parse_regular(flags + pattern)
    except ValueError as error:
        with pytest.raises(re.error):
            re.compile(flags + pattern)
        assert str(error).startswith("no regular expression")
        return
    automaton = Automaton(regular)
    for text in texts:
        wanted = re.search(flags + pattern, text) is not None
        assert automaton.is_in(text) is wanted, (flags + pattern, text)
        assert Search(flags + pattern)(text) is wanted
        if wanted:
            assert regular.literal in text


def test_states_that_are_forgotten_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern, rng = "(a|b)*a(a|b){6}c", random.Random(1)
    texts = ["".join(rng.choices("aaabbbc", k=40)) for _ in range(300)]
    for most in (1, 3, 50):
        monkeypatch.setattr("leafcuttr_sdk.conditions.automaton._MOST_TRANSITIONS", most)
        monkeypatch.setattr("leafcuttr_sdk.conditions.automaton._MOST_CHARACTERS", 2)
        automaton = Automaton(parse_regular(pattern))
        found = [automaton.is_in(text) for text in texts]
        assert found == [re.search(pattern, text) is not None for text in texts]
        assert {*found} == {True, False}
        assert len(automaton._states) <= most + 2
        assert len(automaton._masks) <= 2


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        ("error", "error"),
        ("err.*timeout", "timeout"),
        ("a.b", "a"),
        ("ab(c|d)ef?", "ab"),
        (r"ab\.c", "ab"),
        ("(?i)error", ""),
        ("error|warn", ""),
        ("(error)+", ""),
        ("^error$", "error"),
    ],
)
def test_the_text_that_must_be_there(pattern: str, literal: str) -> None:
    """It is looked for before the automaton."""
    assert parse_regular(pattern).literal == literal


HOSTILE = [
    ("(a+)+[b]", "a" * 50 + "!"),
    ("(a|a)*[b]$", "a" * 200_000 + "!"),
    ("(a|aa)+[b]", "a" * 200_000 + "!"),
    ("(.*)*x", "x".rjust(9, "\n") + "a" * 200_000),
    ("a*a*a*a*b", "a" * 200_000),
    ("[0-9]+[^0-9]$", "1" * 200_000),
    ("(?:a?){100}[b]", "a" * 50_000),
    (r"(\w+\s?)+[;]", "word " * 40_000),
    ("([a-zA-Z0-9._]+)*@$", "a" * 100_000 + "@!"),
    (r"^(\d+)*$", "1" * 100_000 + "x"),
]


@pytest.mark.parametrize(("pattern", "text"), HOSTILE, ids=[pattern for pattern, _ in HOSTILE])
def test_what_keeps_pythons_engine_for_hours_is_not_given_to_it(pattern: str, text: str) -> None:
    """Each of these ends at once: the automaton makes a step for each character. Python's engine takes years for them,
    or minutes; this test would not end with it."""
    search = Search(pattern)
    assert search.longest < len(text)
    steps = [0]
    automaton = Automaton(parse_regular(pattern))
    original = automaton._step

    def counted(state: object, char: str) -> object:
        steps[0] += 1
        return original(state, char)  # type: ignore[arg-type]

    automaton._step = counted  # type: ignore[assignment,method-assign]
    search._automaton = automaton
    found = search(text)
    assert found is (pattern == "(.*)*x")
    assert steps[0] < 500, "nearly all steps are look-ups"


@pytest.mark.parametrize(
    ("pattern", "longest"),
    [
        ("error", math.inf),
        ("^user-[0-9]+$", math.inf),
        ("error.*timeout", 260),
        ("(warn|error|fatal)", math.inf),
        ("[0-9]+", 700),
        ("(a+)+", 0),
        ("(a|b)*", 0),
        ("a*b*c*d*e*", 0),
        ("(a*)*", 0),
        ("(|a)+", 0),
        ("(?:a|b){30}", 0),
        ("(?:a*){9}", 0),
    ],
)
def test_how_long_a_text_pythons_engine_searches(pattern: str, longest: float) -> None:
    """It takes some milliseconds at most: a million steps."""
    found = Search(pattern).longest
    assert found == longest if longest in (0, math.inf) else longest / 2 < found < longest * 2.1
    regular = parse_regular(pattern)
    if 0 < found < math.inf:
        ways = ways_of(regular.tree)
        degree = ways.degree + (not regular.at_beginning)
        assert (ways.steps + 1) * found**degree <= 1_000_000


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("(", "no regular expression: missing ), unterminated subpattern at position 0"),
        ("a**", "no regular expression: multiple repeat"),
        (r"(a)\1", r"with '\\1' at position 3"),
        (r"(?P<x>a)(?P=x)", "with '(?P' at position 8"),
        ("a(?=b)", "with '(?=' at position 1"),
        ("a(?!b)", "with '(?!' at position 1"),
        ("(?<=a)b", "with '(?<' at position 0"),
        ("(?>a+)", "with '(?>' at position 0"),
        ("a*+", "with '+' at position 2"),
        ("(a)?(?(1)b|c)", "with '(?(' at position 4"),
        ("(?x)a b", "with '(?x' at position 0"),
        ("(?i:a)", "with '(?i' at position 0"),
        ("a" * (MOST_CHARACTERS + 1), "a regular expression of 1001 characters, and it may have 1000"),
        ("a{251}", f"more than {MOST_PARTS} parts"),
        ("((a{99}){99}){99}", f"more than {MOST_PARTS} parts"),
        ("((){999}){999}", f"more than {MOST_PARTS} parts"),
        ("a{99999999999999999999}", "no regular expression: the repetition number is too large"),
        ("(" * 51 + ")" * 51, "more than 50 groups within one another"),
        ("(" * 500 + ")" * 500, "a regular expression"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_is_refused(pattern: str, says: str) -> None:
    if sys.version_info < (3, 11) or says.startswith("no regular"):
        says = says.partition(" at position")[0]
    with pytest.raises(ValueError, match=re.escape(says)) as raised:
        Search(pattern)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.filterwarnings("error")
def test_what_is_taken_without_a_warning() -> None:
    assert Search("[[a]")("[")
    assert Search("a{249}")("a" * 249)
    assert not Search("a{249}")("a" * 248)

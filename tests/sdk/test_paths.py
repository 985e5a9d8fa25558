"""Patterns of paths: what they match, which of several wins, and which are refused."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_sdk._paths import PathTable, parts_of_pattern, split_path


def table(*patterns: str) -> PathTable[str]:
    found = PathTable[str]()
    for pattern in patterns:
        found.add(pattern, f"<{pattern}>")
    return found


def found(path: bytes, *patterns: str) -> tuple[str, dict[str, str]] | None:
    match = table(*patterns).find(split_path(path))
    if match is None:
        return None
    assert match.thing == f"<{match.pattern}>"
    return match.pattern, match.parameters


@pytest.mark.parametrize(
    ("pattern", "path", "parameters"),
    [
        ("/", b"/", {}),
        ("/a/b", b"/a/b", {}),
        ("/a/b", b"/a/%62", {}),
        ("/größe", b"/gr%C3%B6%c3%9fe", {}),
        ("/a/b", b"/a", None),
        ("/a/b", b"/a/b/", None),
        ("/a/{b}", b"/a/", None),
        ("/a/{b}", b"/a", None),
        ("/a/{b}", b"/a/x/y", None),
        ("/a/{b}/c", b"/a/x/c", {"b": "x"}),
        ("/a/{b}/c", b"/a/x/d", None),
        ("/{a}/{b}", b"/1/2", {"a": "1", "b": "2"}),
        ("/a/{b}", b"/a/x%2Fy%20z%25", {"b": "x/y z%"}),
        ("/a/{b}", b"/a/%C3%A9+", {"b": "é+"}),
        ("/a/{b}", b"/a/..", None),
        ("/a/{b}", b"/a/%2e%2E", None),
        ("/a/{b}", b"/a/.", None),
        ("/a/{b}", b"/a/...", {"b": "..."}),
        ("/{all*}", b"/", {"all": ""}),
        ("/{all*}", b"/x//y/", {"all": "x//y/"}),
        ("/{all*}", b"/x/../y", None),
        ("/a/{b*}", b"/ab", None),
        ("/a/{b*}", b"/a", {"b": ""}),
        ("/a/{b*}", b"/a/x%2fy/z", {"b": "x/y/z"}),
    ],
)
def test_what_a_path_matches(pattern: str, path: bytes, parameters: dict[str, str] | None) -> None:
    assert found(path, pattern) == (None if parameters is None else (pattern, parameters))


@pytest.mark.parametrize(
    ("path", "winner"),
    [
        (b"/a/b/c", "/a/b/{y}"),
        (b"/a/x/c", "/a/{x}/c"),
        (b"/a/x/d", "/a/{x}/{y}"),
        (b"/a/b", "/a/b"),
        (b"/a/x", "/a/{x}"),
        (b"/a/b/c/d", "/a/b/{rest*}"),
        (b"/a/x/c/d", "/a/{rest*}"),
        (b"/a", "/a/{rest*}"),
        (b"/a/", "/a/{rest*}"),
        (b"/b/b/c", "/{all*}"),
    ],
)
def test_literal_before_parameter_before_rest(path: bytes, winner: str) -> None:
    """Whatever the order in which they were added."""
    patterns = [
        "/{all*}",
        "/a/{rest*}",
        "/a/{x}/{y}",
        "/a/{x}/c",
        "/a/b/{rest*}",
        "/a/b/{y}",
        "/a/{x}",
        "/a/b",
    ]
    for order in (patterns, patterns[::-1]):
        match = found(path, *order)
        assert match is not None and match[0] == winner


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        ("/a/{x}", "/a/{y}", "/a/{y} cannot be told from /a/{x}: they match the same paths"),
        ("/a/{x}", "/a/{x}", "/a/{x} is answered already"),
        ("/{a}/b/{c*}", "/{b}/b/{d*}", "/{b}/b/{d*} cannot be told from /{a}/b/{c*}"),
    ],
)
def test_two_for_the_same_paths_are_refused(first: str, second: str, says: str) -> None:
    both = table(first)
    with pytest.raises(ValueError, match=re.escape(says)):
        both.add(second, "")
    assert both.patterns() == [first]
    assert (both.get(first), both.get("/a/{z}")) == (f"<{first}>", None)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("", "is no path"),
        ("a", "is no path"),
        ("/a?b", "is no path"),
        ("/a#b", "is no path"),
        ("/a{b}", "'a{b}' is no parameter"),
        ("/{a}b", "is no parameter"),
        ("/{}", "is no parameter"),
        ("/{a b}", "is no parameter"),
        ("/{a", "is no parameter"),
        ("/a}", "is no parameter"),
        ("/{**}", "is no parameter"),
        ("/a/../b", "no request has a part '..'"),
        ("/{a*}/b", "only the last part"),
        ("/{a}/{a}", "each name stands once"),
    ],
)
def test_what_is_no_pattern(pattern: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        table(pattern)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (b"a", "does not begin with a slash"),
        (b"/a%", "'%' is no escape"),
        (b"/%4", "'%4' is no escape"),
        (b"/%zz", "'%zz' is no escape"),
        (b"/%\xff\xff", "is no escape"),
        (b"/%FF", "no UTF-8"),
        (b"/%C3/%A9", "no UTF-8"),
    ],
)
def test_what_is_no_path(path: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)) as raised:
        split_path(path)
    assert len(str(raised.value).splitlines()) == 1


PARTS = st.lists(st.sampled_from(["a", "b", "{x}"]), min_size=1, max_size=4)
PATTERNS = st.lists(st.tuples(PARTS, st.booleans()), min_size=1, max_size=8)


def rank(pattern: str) -> list[int]:
    return [{"literal": 0, "one": 1, "rest": 2}[part.kind] for part in parts_of_pattern(pattern)]


@given(PATTERNS, st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=1, max_size=5))
def test_the_winner_is_the_first_by_kinds_of_those_that_match(
    drawn: list[tuple[list[str], bool]], path: list[str]
) -> None:
    """Compared with every pattern by itself, as a regular expression."""
    wanted: dict[str, re.Pattern[str]] = {}
    found = PathTable[None]()
    for parts, ends_open in drawn:
        named = [part if part != "{x}" else f"{{x{at}}}" for at, part in enumerate(parts)]
        pattern = "/" + "/".join([*named, *(["{rest*}"] if ends_open else [])])
        if pattern in wanted:
            continue
        found.add(pattern, None)
        text = "".join("/" + ("[^/]+" if part == "{x}" else part) for part in parts)
        wanted[pattern] = re.compile(text + ("(?:/.*)?" if ends_open else ""))
    whole = "/" + "/".join(path)
    matching = [pattern for pattern, expression in wanted.items() if expression.fullmatch(whole)]
    match = found.find(split_path(whole.encode()))
    assert (match.pattern if match else None) == min(matching, key=lambda one: (rank(one), one), default=None)


@given(st.lists(st.text(min_size=1).filter(lambda text: text not in (".", "..")), min_size=1, max_size=4))
def test_every_text_comes_through_as_a_parameter(values: list[str]) -> None:
    pattern = "".join(f"/{{p{at}}}" for at in range(len(values)))
    path = "".join("/" + quote(value.encode("utf-8", "surrogatepass"), safe="") for value in values)
    try:
        parts = split_path(path.encode())
    except ValueError as error:
        assert "UTF-8" in str(error)
        assert any("\ud800" <= char <= "\udfff" for value in values for char in value)
        return
    match = table(pattern).find(parts)
    assert match is not None
    assert list(match.parameters.values()) == values


def test_many_patterns_that_nearly_match_cost_no_more_than_their_parts() -> None:
    """Each of 2**10 ways is a node of its own; none is entered twice, and depth is that of the patterns."""
    found = PathTable[int]()
    for number in range(2**10):
        parts = [f"{{p{at}}}" if number >> at & 1 else "a" for at in range(10)]
        found.add("/" + "/".join([*parts, "end"]), number)
    assert found.find(["a"] * 10 + ["other"]) is None
    match = found.find(["b"] * 10 + ["end"])
    assert match is not None and match.thing == 2**10 - 1
    assert found.find(["a"] * 100_000) is None

"""Sections 4.7 and 4.8.2, and 1.5.4 for the texts themselves."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_mqtt.topics.names import (
    has_wildcard,
    have_common_topics,
    matches,
    parse_shared,
    why_no_filter,
    why_no_name,
)

NAMES = (
    "a",
    "/",
    "//",
    " ",
    "a b",
    "a/b",
    "/a",
    "a/",
    "$SYS/broker/uptime",
    "$",
    "é",
    "\ufeff",
    "\U0001f600",
    "$share",
)
WILD = ("#", "+", "a/#", "/#", "+/#", "+/a/+", "a/+", "/+", "+/+", "a/+/b", "$SYS/#")


@pytest.mark.parametrize("text", NAMES)
def test_names_are_filters_too(text: str) -> None:
    assert why_no_name(text) is None
    assert why_no_filter(text) is None
    assert not has_wildcard(text)
    assert matches(text, text)


@pytest.mark.parametrize("text", WILD)
def test_filters_with_wildcards_are_no_names(text: str) -> None:
    assert why_no_filter(text) is None
    assert why_no_name(text) == "it has a wildcard, + or #"
    assert has_wildcard(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("a\0b", "it has a null character"),
        ("\0", "it has a null character"),
        ("a\ud800", "it has a surrogate, which UTF-8 cannot write"),
        ("a" * 65_536, "it has 65,536 bytes; allowed are 65,535"),
        ("é" * 32_768, "it has 65,536 bytes; allowed are 65,535"),
    ],
)
def test_what_is_neither(text: str, why: str) -> None:
    assert why_no_name(text) == why
    assert why_no_filter(text) == why


@pytest.mark.parametrize("text", ["a" * 65_535, "é" * 32_767, "/" * 65_535])
def test_the_longest(text: str) -> None:
    assert why_no_name(text) is None
    assert why_no_filter(text) is None


@pytest.mark.parametrize("text", ["#/a", "a/#/b", "##", "#/#", "#/"])
def test_the_number_sign_is_the_last_character(text: str) -> None:
    assert why_no_filter(text) == "# is allowed at the end only"


@pytest.mark.parametrize("text", ["a#", "a/b#", "+#"])
def test_the_number_sign_is_a_level(text: str) -> None:
    assert why_no_filter(text) == "# has to be a level of its own"


@pytest.mark.parametrize("text", ["a+", "+a", "a/b+/c", "++", "a/+b/#"])
def test_the_plus_sign_is_a_level(text: str) -> None:
    assert why_no_filter(text) == "+ has to be a level of its own"


@pytest.mark.parametrize(
    ("text", "share", "rest"),
    [
        ("$share/group/a/b", "group", "a/b"),
        ("$share/group//", "group", "/"),
        ("$share/group/#", "group", "#"),
        ("$share/$share/$share/x/a", "$share", "$share/x/a"),
        ("$shared/group/a", None, "$shared/group/a"),
        ("$share", None, "$share"),
        ("a/$share/b/c", None, "a/$share/b/c"),
    ],
)
def test_shared_subscriptions(text: str, share: str | None, rest: str) -> None:
    assert why_no_filter(text) is None
    assert parse_shared(text) == (share, rest)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("$share/", "a shared subscription needs a name: $share/<name>/<filter>"),
        ("$share//a", "a shared subscription needs a name: $share/<name>/<filter>"),
        ("$share/g", "a shared subscription needs a filter: $share/<name>/<filter>"),
        ("$share/g/", "a shared subscription needs a filter: $share/<name>/<filter>"),
        ("$share/+/a", "the name of a shared subscription has no + and no #"),
        ("$share/#", "the name of a shared subscription has no + and no #"),
        ("$share/g#/a", "the name of a shared subscription has no + and no #"),
        ("$share/g/a#", "# has to be a level of its own"),
        ("$share/g/#/a", "# is allowed at the end only"),
        ("$share/g/a+", "+ has to be a level of its own"),
    ],
)
def test_what_is_no_shared_subscription(text: str, why: str) -> None:
    assert why_no_filter(text) == why


@pytest.mark.parametrize(
    ("topic_filter", "yes", "no"),
    [
        ("sport/tennis/player1/#", ("sport/tennis/player1", "sport/tennis/player1/ranking", "sport/tennis/player1/a/b"),
         ("sport/tennis/player2", "sport/tennis", "sport/tennis/player11")),
        ("sport/#", ("sport", "sport/", "sport/a"), ("sports", "/sport", "Sport")),
        ("#", ("a", "/", "a/b", "/a"), ("$SYS", "$SYS/a", "$")),
        ("sport/tennis/+", ("sport/tennis/a", "sport/tennis/"), ("sport/tennis/a/b", "sport/tennis")),
        ("sport/+", ("sport/",), ("sport",)),
        ("+/+", ("/finance", "a/b"), ("a", "a/b/c", "$a/b")),
        ("/+", ("/finance",), ("finance", "a/finance")),
        ("+", ("finance", "fin ance"), ("/finance", "$SYS")),
        ("+/monitor/Clients", ("a/monitor/Clients",), ("$SYS/monitor/Clients",)),
        ("$SYS/#", ("$SYS", "$SYS/a"), ("SYS/a",)),
        ("$SYS/monitor/+", ("$SYS/monitor/Clients",), ("$SYS/monitor",)),
        ("a/+/c/#", ("a/b/c", "a//c", "a/$b/c/d"), ("a/b", "a/b/d/c")),
        ("+/+/#", ("a/b", "/"), ("a",)),
        ("a", ("a",), ("A", "a/", "/a", "b")),
    ],
)  # fmt: skip
def test_what_matches(topic_filter: str, yes: tuple[str, ...], no: tuple[str, ...]) -> None:
    assert why_no_filter(topic_filter) is None
    assert [topic for topic in (*yes, *no) if matches(topic_filter, topic)] == list(yes)


LEVELS = st.lists(st.sampled_from(["", "a", "b", "$c"]), min_size=1, max_size=5)


@given(LEVELS, st.data())
def test_a_topic_matches_what_it_becomes_with_wildcards(levels: list[str], data: st.DataObject) -> None:
    topic = "/".join(levels)
    if why_no_name(topic):
        return
    wanted = [data.draw(st.sampled_from([level, "+"])) for level in levels]
    if data.draw(st.booleans()):
        wanted[data.draw(st.integers(0, len(wanted))) :] = ["#"]
    topic_filter = "/".join(wanted)
    assert why_no_filter(topic_filter) is None
    assert matches(topic_filter, topic) == (topic_filter[0] not in "+#" or topic[0] != "$")


FILTERS = [
    "/".join(levels)
    for length in (1, 2, 3)
    for levels in product(["", "a", "$b", "+", "#"], repeat=length)
    if why_no_filter("/".join(levels)) is None
]
TOPICS = [
    "/".join(levels)
    for length in (1, 2, 3, 4)
    for levels in product(["", "a", "$b", "c"], repeat=length)
    if why_no_name("/".join(levels)) is None
]


def test_filters_have_common_topics_where_some_topic_matches_both() -> None:
    matched = {each: {topic for topic in TOPICS if matches(each, topic)} for each in FILTERS}
    for one in FILTERS:
        for other in FILTERS:
            if {one, other} == {"/#", "+"}:
                continue  # the topic would be empty, and there is none
            assert have_common_topics(one, other) == bool(matched[one] & matched[other]), (one, other)

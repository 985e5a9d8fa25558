"""The rules of a bridge: how they are written, and what they make of topics."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_mqtt.bridge.topics import Routes, Rule, parse_rule
from leafcuttr_mqtt.packets.types import SubscriptionRequest


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a/#", Rule("a/#", "out", 0, "", "")),
        ("a/# in", Rule("a/#", "in", 0, "", "")),
        (" a/#  both   2 ", Rule("a/#", "both", 2, "", "")),
        ("# out 1 here/", Rule("#", "out", 1, "here/", "")),
        ('# in 1 "" site/7/', Rule("#", "in", 1, "", "site/7/")),
        ('"" out 1 here there', Rule("", "out", 1, "here", "there")),
        ('"a b/#" out 0 "c d/"', Rule("a b/#", "out", 0, "c d/", "")),
        ("$SYS/# out", Rule("$SYS/#", "out", 0, "", "")),
    ],
)
def test_rules(text: str, rule: Rule) -> None:
    assert parse_rule(text) == rule


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not PATTERN"),
        ("a out 0 b/ c/ d", "is not PATTERN"),
        ("a up", "the direction is out, in or both"),
        ("a out 3", "the QoS is 0, 1 or 2"),
        ("a out -1", "the QoS is 0, 1 or 2"),
        ("a/#/b out", "the local topic: # is allowed at the end only"),
        ("+ out 0 a", "the local topic: + has to be a level of its own"),
        ('+ out 0 "" b', "the remote topic: + has to be a level of its own"),
        ("a out 0 +/", "the local prefix has a wildcard"),
        ('a out 0 "" #/', "the remote prefix has a wildcard"),
        ('"" out', "the local topic: it is empty"),
        ('"" out 0 a', "the remote topic: it is empty"),
        ("$share/g/a in", "a bridge cannot share a subscription"),
        ('a out 0 "', "No closing quotation"),
    ],
)
def test_what_is_no_rule(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)) as caught:
        parse_rule(text)
    assert str(caught.value).startswith(repr(text))


def routes(*rules: str) -> Routes:
    return Routes(map(parse_rule, rules))


def test_prefixes_are_exchanged() -> None:
    both = routes("sensors/# both 1 here/ there/7/")
    for _ in range(2):  # the second time it is remembered
        assert both.out("here/sensors/a/b") == "there/7/sensors/a/b"
        assert both.out("here/sensors") == "there/7/sensors"
        assert both.out("sensors/a") is None
        assert both.into("there/7/sensors/a") == "here/sensors/a"
        assert both.into("there/sensors/a") is None


def test_directions() -> None:
    each = routes('a out 0 "" x/', 'b in 0 "" x/')
    assert (each.out("a"), each.out("b")) == ("x/a", None)
    assert (each.into("x/a"), each.into("x/b")) == (None, "b")
    assert list(each.local_requests()) == ["a"]
    assert list(each.remote_requests()) == ["x/b"]


def test_an_empty_pattern_is_one_topic() -> None:
    one = routes('"" both 1 here/temperature there/t')
    assert one.out("here/temperature") == "there/t"
    assert one.into("there/t") == "here/temperature"
    assert one.out("here/temperature/x") is None


def test_the_first_rule_counts() -> None:
    assert routes('a/# out 0 "" x/', 'a/b out 0 "" y/').out("a/b") == "x/a/b"
    assert routes('a/b out 0 "" y/', 'a/# out 0 "" x/').out("a/b") == "y/a/b"


def test_a_topic_without_a_name_on_the_other_side() -> None:
    """`p/#` matches `p`, which does not begin with `p/`; `p/` would be called nothing at all."""
    there = routes("# out 0 p/")
    assert there.out("p") is None
    assert there.out("p/") is None
    assert there.out("p//") == "/"
    assert routes("# out 0 p/ q/").out("p") is None
    assert routes("# in 0 p/ q/").into("q") is None
    long = routes(f'# out 0 "" {"x" * 100}/')
    assert long.out("y" * 65_434) is not None
    assert long.out("y" * 65_435) is None


def test_topics_that_are_protected() -> None:
    """[MQTT-4.7.2-1]"""
    assert routes("# out").out("$SYS/x") is None
    assert routes("$SYS/# out").out("$SYS/x") == "$SYS/x"


def test_what_is_subscribed_to() -> None:
    """Nothing of its own comes back, flags go along, and retained messages come once (3.8.3.1)."""
    several = routes("a/# out 1", "a/# both 2", 'b out 0 "" a/#'.replace(" a/#", " c/"), "d in 1")
    assert several.local_requests() == {
        "a/#": SubscriptionRequest("a/#", 2, True, True, 1),
        "b": SubscriptionRequest("b", 0, True, True, 1),
    }
    assert several.local_requests(1)["a/#"].qos == 1
    assert several.remote_requests() == {
        "a/#": SubscriptionRequest("a/#", 2, True, True, 1),
        "d": SubscriptionRequest("d", 1, True, True, 1),
    }


def test_how_much_longer_a_topic_gets() -> None:
    assert routes("a out 0 x/ yyy/", "b in 0 z/ zzzzzz/").growth == 2
    assert routes("a out 0 xxx/ y/").growth == -2
    assert routes("a in").growth == 0


@given(st.lists(st.text("ab/", min_size=1, max_size=6), max_size=20))
def test_what_is_remembered_is_what_is_found(topics: list[str]) -> None:
    some = routes("a/# out 0 x/ y/", "# out 0 b/ c/", '+/b out 0 "" d/')
    for topic in topics:
        for name in (topic, f"x/{topic}", f"b/{topic}"):
            found = routes("a/# out 0 x/ y/", "# out 0 b/ c/", '+/b out 0 "" d/').out(name)
            assert some.out(name) == found
            assert some.out(name) == found


def test_names_are_not_remembered_without_bound() -> None:
    some = routes("# both")
    for number in range(10_000):
        assert some.out(str(number)) == some.into(str(number)) == str(number)
    assert len(some._names_out) <= 4096
    assert len(some._names_in) <= 4096

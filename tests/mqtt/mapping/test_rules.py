from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_mqtt.mapping.rules import Rules, count_captures, make_rule, make_rules
from leafcuttr_mqtt.topics.names import matches, why_no_filter, why_no_name


def where(rules: Rules, topic: str) -> list[tuple[str, str]]:
    """Kafka topics, with the filter of the mapping that leads to each."""
    return [(found.kafka_topic, found.rule.filter) for found in rules.destinations(topic)]


def test_each_mapping_that_matches_counts_and_each_kafka_topic_once() -> None:
    rules = make_rules({"a/+": "one", "a/#": "two", "+/b": "one", "a/b": "three", "c": "four"}, {})
    assert where(rules, "a/b") == [("one", "+/b"), ("two", "a/#"), ("three", "a/b")]
    assert where(rules, "a") == [("two", "a/#")]
    assert where(rules, "d") == []
    assert where(rules, "$SYS") == []
    assert rules
    assert not make_rules({}, {})


def test_the_order_is_that_of_the_filters_and_not_of_the_settings() -> None:
    mappings = {"a/+": "one", "+/b": "one", "#": "one"}
    keys = {"a/+": "x", "+/b": "y", "#": "z"}
    for order in (mappings, dict(reversed(mappings.items()))):
        (found,) = make_rules(order, keys).destinations("a/b")
        assert found.rule.key.text == "z"


def test_the_kafka_topics_that_messages_may_be_stored_in() -> None:
    rules = make_rules({"a": "fixed", "plant/#": "plant-{1}", "+/b/+": "{2}.of.{1}"}, {})
    names = ["fixed", "fixed-1", "a-plant-1", "plant-", "plant-a.b", "x.of.y", "xof.y", "other"]
    assert list(filter(rules.leads_to, names)) == ["fixed", "plant-", "plant-a.b", "x.of.y"]
    assert not make_rules({}, {}).leads_to("fixed")


@pytest.mark.parametrize(
    ("topic_filter", "target", "topic", "name"),
    [
        ("site/+/temp", "sensors-{1}", "site/roof/temp", "sensors-roof"),
        ("+/+", "{2}.{1}", "a/b", "b.a"),
        ("+/+", "{2}", "/b", "b"),
        ("site/#", "all-{1}", "site/a/b/c", "all-a.b.c"),
        ("site/#", "all-{1}", "site", "all-"),
        ("site/#", "all-{1}", "site/", "all-"),
        ("#", "x{1}", "a/b", "xa.b"),
        ("#", "x{1}", "/b", "x.b"),
        ("+/x/#", "{1}_{2}", "a/x/b/c", "a_b.c"),
        ("a.b/+", "t{1}", "a.b/c", "tc"),
        ("a/+", "{1}{1}", "a/b", "bb"),
        ("a/+", "_{1}", "a/b", "_b"),
    ],
)
def test_captures(topic_filter: str, target: str, topic: str, name: str) -> None:
    (found,) = make_rules({topic_filter: target}, {}).destinations(topic)
    assert (found.kafka_topic, found.wrong) == (name, None)


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        ("a/b c", "the name of a Kafka topic has letters and digits of ASCII, '.', '_' and '-' only"),
        ("a/é", "the name of a Kafka topic has letters and digits of ASCII, '.', '_' and '-' only"),
        ("a/b\n", "the name of a Kafka topic has letters and digits of ASCII, '.', '_' and '-' only"),
        ("a/", "the name of a Kafka topic is not empty"),
        ("a/..", "no Kafka topic can have the name .."),
        ("a//", "no Kafka topic can have the name ."),
        ("a/" + "x" * 250, "the name of a Kafka topic has at most 249 characters, this one has 250"),
        ("a/__consumer_offsets", "names that begin with __ are those of internal topics"),
        ("a/__mqtt_sessions", "names that begin with __ are those of internal topics"),
    ],
)
def test_a_name_that_no_kafka_topic_can_have_is_wrong_and_not_changed(topic: str, why: str) -> None:
    (found,) = make_rules({"a/#": "{1}"}, {}).destinations(topic)
    assert found.wrong == why


@pytest.mark.parametrize(
    ("topic_filter", "target", "why"),
    [
        ("a/#/b", "t", "a/#/b is no topic filter: # is allowed at the end only"),
        ("", "t", " is no topic filter: it is empty"),
        ("$share/g/a", "t", "the filter of a mapping is not that of a shared subscription"),
        ("a", "", "the name of a Kafka topic is not empty"),
        ("a", "b c", "the name of a Kafka topic has letters and digits of ASCII, '.', '_' and '-' only"),
        ("a/+", "{1} ", "the name of a Kafka topic has letters and digits of ASCII, '.', '_' and '-' only"),
        ("a", "__consumer_offsets", "names that begin with __ are those of internal topics"),
        ("a/+", "__{1}", "names that begin with __ are those of internal topics"),
        ("a", "t{1}", "{1} is none of its fields: the filter has no + and no #"),
        ("a/+", "t{2}", "{2} is none of its fields: allowed are {1}"),
        ("a/+", "t{topic}", "{topic} is none of its fields: allowed are {1}"),
    ],
)
def test_mappings_that_are_refused(topic_filter: str, target: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}$"):
        make_rule(topic_filter, target)


def test_keys() -> None:
    rules = make_rules({"a/+": "t", "b": "u"}, {"a/+": "{1}/{client_id}"}, "{client_id}")
    assert [rule.key.text for rule in rules.rules] == ["{1}/{client_id}", "{client_id}"]
    assert rules.destinations("a/x")[0].captures == ("x",)
    assert rules.destinations("b")[0].captures == ()
    with pytest.raises(ValueError, match=r"^there is a key for the filter c, which no mapping has$"):
        make_rules({"a": "t"}, {"c": "x"})


LEVELS = st.lists(st.sampled_from(["", "a", "b.c", "(", "+"]), min_size=1, max_size=4)


@given(LEVELS, st.booleans(), st.lists(st.sampled_from(["", "a", "b.c", "(", "\n"]), min_size=1, max_size=5))
def test_what_is_captured_put_into_the_filter_gives_the_topic(
    levels: list[str], hash_: bool, topic: list[str]
) -> None:
    topic_filter, name = "/".join(levels + ["#"] * hash_), "/".join(topic)
    if why_no_filter(topic_filter) or why_no_name(name):
        return
    key = "".join(f"{{{number}}}" for number in range(1, count_captures(topic_filter) + 1))
    found = Rules([make_rule(topic_filter, "t", key)]).destinations(name)
    assert bool(found) == matches(topic_filter, name)
    if found and key:
        captures = iter(found[0].captures)
        whole = "/".join(
            [next(captures) if level in ("+", "#") else level for level in topic_filter.split("/")]
        )
        assert whole == name or (hash_ and whole == f"{name}/")


def test_many_mappings_cost_no_more_than_those_that_match(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = make_rules({f"site/{number}/+": f"t{number}-{{1}}" for number in range(2000)}, {})
    looks = []
    from leafcuttr_mqtt.mapping import rules as module

    original = module._captured
    monkeypatch.setattr(module, "_captured", lambda *given: looks.append(given) or original(*given))
    assert where(rules, "site/77/x") == [("t77-x", "site/77/+")]
    assert len(looks) == 1

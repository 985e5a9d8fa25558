"""Retained messages, compared with a dictionary and a filter that is tried on each topic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.routing.retained import RetainedMessages
from leafcuttr_mqtt.topics.names import matches

LEVELS = st.sampled_from(["", "a", "b", "$x", "c"])
TOPICS = st.lists(LEVELS, min_size=1, max_size=4).map("/".join).filter(bool)
FILTERS = st.builds(
    lambda levels, rest: "/".join([*levels, *rest]),
    st.lists(st.sampled_from(["", "a", "b", "$x", "c", "+"]), max_size=4),
    st.sampled_from([["#"], ["+"], ["a"]]),
)


@given(st.lists(st.tuples(TOPICS, st.booleans()), max_size=30), FILTERS)
def test_as_a_dictionary(changes: list[tuple[str, bool]], topic_filter: str) -> None:
    kept, model = RetainedMessages(), dict[str, Message]()
    for number, (topic, stays) in enumerate(changes):
        message = Message(topic, b"%d" % number if stays else b"")
        assert kept.put(message) is (stays or topic in model)
        model.pop(topic, None)
        if stays:
            model[topic] = message
    found = kept.match(topic_filter, 0)
    assert {each.topic: each for each in found} == {
        t: m for t, m in model.items() if matches(topic_filter, t)
    }
    assert len(found) == len({each.topic for each in found})
    assert len(kept) == len(model)
    assert kept.bytes == sum(len(each.payload) for each in model.values())
    for topic in model:
        assert kept.remove(topic)
    assert not kept.remove("a")
    assert kept._root.children in ({}, None)
    assert kept._protected.children in ({}, None)


def test_an_expired_one_is_sent_to_nobody_and_goes() -> None:
    kept = RetainedMessages()
    kept.put(Message("a", b"1", expires_ms=10))
    kept.put(Message("b", b"2"))
    assert [each.topic for each in kept.match("#", 9)] == ["a", "b"] or len(kept.match("#", 9)) == 2
    assert [each.topic for each in kept.match("#", 10)] == ["b"]
    assert kept.match("a", 10) == []
    assert [each.topic for each in kept.expire(10)] == ["a"]
    assert kept.get("a") is None


@pytest.mark.long
def test_a_filter_goes_down_only_where_it_may_match() -> None:
    """Of 100,000 topics a filter that names their device sees those of that device."""
    kept = RetainedMessages()
    for number in range(100_000):
        kept.put(Message(f"site/{number // 10}/{number % 10}", b"x"))
    seen = 0

    class Counting(dict):  # type: ignore[type-arg]
        def values(self):  # type: ignore[no-untyped-def]
            nonlocal seen
            seen += len(self)
            return super().values()

    waiting = [kept._root]
    while waiting:
        node = waiting.pop()
        if node.children is not None:
            waiting += node.children.values()
            node.children = Counting(node.children)
    assert len(kept.match("site/77/+", 0)) == 10
    assert seen == 10


def test_wildcards_at_the_first_level_leave_out_topics_of_the_broker() -> None:
    """[MQTT-4.7.2-1]"""
    kept = RetainedMessages()
    for topic in ("$x", "$x/a", "a", "a/$x"):
        kept.put(Message(topic, b"1"))
    assert {each.topic for each in kept.match("#", 0)} == {"a", "a/$x"}
    assert {each.topic for each in kept.match("+", 0)} == {"a"}
    assert {each.topic for each in kept.match("+/#", 0)} == {"a", "a/$x"}
    assert {each.topic for each in kept.match("+/a", 0)} == set()
    assert {each.topic for each in kept.match("$x/#", 0)} == {"$x", "$x/a"}


@given(
    st.lists(TOPICS, unique=True, max_size=30),
    st.lists(st.tuples(st.integers(0, 5), TOPICS, st.booleans()), max_size=20),
    FILTERS,
)
def test_a_walk_while_messages_come_and_go(
    topics: list[str], changes: list[tuple[int, str, bool]], topic_filter: str
) -> None:
    """What stays comes once. What has come since the walk began does not: its subscriber gets it as it is published."""
    kept = RetainedMessages()
    for topic in topics:
        kept.put(Message(topic, b"before"))
    before = {each.topic: each for each in kept if matches(topic_filter, each.topic)}
    walk, found = kept.walk(topic_filter, 0), list[Message]()
    touched = set[str]()
    for steps, topic, comes in changes:
        found += [each for each in (next(walk, None) for _ in range(steps)) if each is not None]
        kept.put(Message(topic, b"since" if comes else b""))
        touched.add(topic)
    found += [each for each in walk if each is not None]
    assert len(found) == len({each.topic for each in found})
    assert all(before[each.topic] is each for each in found)
    assert before.keys() - touched <= {each.topic for each in found}


def test_a_walk_takes_a_step_for_each_topic_that_it_looks_at() -> None:
    """Also where none of them matches: the loop goes on in between."""
    kept = RetainedMessages()
    for number in range(1000):
        kept.put(Message(f"site/{number}/t", b"x"))
    assert list(kept.walk("site/+/none", 0)).count(None) >= 1000
    assert len(list(kept.walk("#", 0))) >= 2000
    assert list(kept.walk("site/7/t", 0)) == [kept.get("site/7/t")]

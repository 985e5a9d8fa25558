from __future__ import annotations

import pytest

from leafcuttr_mqtt.mapping.rules import make_rules
from leafcuttr_mqtt.replay.request import ReplayRequest, is_request, kafka_topics, parse_request, subscribed


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("$replay/ts/1700000000000/devices/#", ReplayRequest("devices/#", 1_700_000_000_000, 0)),
        ("$replay/ts/0//a", ReplayRequest("/a", 0, 0)),
        ("$replay/offset/42/+/t", ReplayRequest("+/t", None, 42)),
        ("$replay/offset/0/#", ReplayRequest("#", None, 0)),
    ],
)
def test_requests(text: str, request_: ReplayRequest) -> None:
    assert is_request(text)
    assert parse_request(text) == request_
    assert subscribed(text) == request_.filter


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("$replay/", "allowed are"),
        ("$replay/ts", "allowed are"),
        ("$replay/ts/5", "allowed are"),
        ("$replay/days/5/a", "allowed are"),
        ("$replay/ts/-5/a", "allowed are"),
        ("$replay/ts/²/a", "allowed are"),
        ("$replay/ts//a", "allowed are"),
        ("$replay/ts/+/a", "allowed are"),
        ("$replay/offset/" + "9" * 5000 + "/a", "a number of 5000 digits is too large"),
        ("$replay/ts/5/", "it is empty"),
        ("$replay/ts/5/a/#/b", "# is allowed at the end only"),
        ("$replay/ts/5/$share/g/a", "a history is of a filter that is not shared"),
        ("$replay/ts/5/$replay/ts/5/a", "a history is of a filter that is not shared"),
    ],
)
def test_what_asks_for_nothing(text: str, why: str) -> None:
    assert is_request(text)
    with pytest.raises(ValueError, match=f"^{why}"):
        parse_request(text)
    assert subscribed(text) == text


def test_other_filters_are_none() -> None:
    for text in ("$replay", "replay/ts/5/a", "a", "$SYS/#"):
        assert not is_request(text)
        assert subscribed(text) == text


def test_the_kafka_topics_that_may_have_it() -> None:
    rules = make_rules({"a/+": "fixed", "b/#": "of-{1}", "c": "c.c"}, {})
    existing = ["cxc", "c.c", "fixed", "of-", "of-x.y", "off-x", "other"]
    assert kafka_topics(rules, "a/x", existing) == ["fixed"]
    assert kafka_topics(rules, "b/x", existing) == ["of-", "of-x.y"]
    assert kafka_topics(rules, "+", existing) == ["c.c", "of-", "of-x.y"]
    assert kafka_topics(rules, "#", existing) == ["c.c", "fixed", "of-", "of-x.y"]
    assert kafka_topics(rules, "d", existing) == []

"""`route`: where records can be sent to another topic, and where they cannot."""

from __future__ import annotations

import pytest

from leafcuttr_sdk import DeadLetter, PluginError, Routed
from support.making_filters import NOW, made, of

RECORD = of(b"x")


@pytest.mark.parametrize(
    ("topic", "options", "target"),
    [
        ("orders-v1", "regex=(.*)-v1 replacement=$1", "orders"),
        ("orders-v1", "regex=(?P<name>.*)-v1 replacement=new.${name}", "new.orders"),
        ("orders", "regex=.* replacement=a\\$1", "a$1"),
        ("a-b", "regex=(.)-(.) replacement=$2$1$0", "baa-b"),
        ("orders", "regex=(x)?orders replacement=o$1", "o"),
        ("orders", "topic.format=${topic}-${timestamp}", "orders-20261121"),
        ("orders", "topic.format=x-${timestamp} timestamp.format=yyyy-MM", "x-2026-11"),
    ],
)
def test_targets(topic: str, options: str, target: str) -> None:
    route = made(f"route {options}", topic=topic).filter
    assert route(RECORD) == Routed(RECORD, target) == route(RECORD)


def test_a_name_that_does_not_match_stays() -> None:
    for topic in ("orders-v2", "x-orders-v1", "orders-v1-x", "orders"):
        assert made("route regex=(orders)-v1 replacement=$1", topic=topic).filter(RECORD) is RECORD
    assert made("route regex=orders replacement=orders").filter(RECORD) is RECORD


def test_times_of_records_differ() -> None:
    route = made("route topic.format=${timestamp}").filter
    later = of(b"x", timestamp=NOW + 86_400_000)
    assert [route(RECORD), route(later), route(RECORD)] == [
        Routed(RECORD, "20261121"), Routed(later, "20261122"), Routed(RECORD, "20261121"),
    ]  # fmt: skip
    assert route(of(b"x", timestamp=-1)) == DeadLetter("route: it has no timestamp")
    assert route(of(b"x", timestamp=2**62)) == DeadLetter(
        "route: its timestamp: it is beyond the years 1 to 9999"
    )


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("regex=orders replacement=", "replacement=: nothing is left of the name orders"),
    ],
)
def test_what_cannot_be_a_name(options: str, line: str) -> None:
    with pytest.raises(PluginError, match=line):
        made(f"route {options}")


def test_where_records_cannot_be_routed_it_is_not_made() -> None:
    with pytest.raises(PluginError, match=r"which a relay can do, and lc\.filters of a topic cannot"):
        made("route regex=a replacement=b", routes=False)

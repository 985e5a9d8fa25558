"""`extract`, `insert` and `replace`, beside what Kafka Connect makes of the same (`test_as_connect`)."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_sdk import DeadLetter, Record
from support.making_filters import NOW, made, of, reason_of, value_of

DOCUMENT = {"id": 7, "user": {"name": "ann", "card": {"cvc": 1, "no": 2}}, "list": [{"a": 1, "b": 2}]}


def test_extract() -> None:
    assert value_of("extract field=user.name", DOCUMENT) == "ann"
    assert value_of("extract field=user.card", DOCUMENT) == {"cvc": 1, "no": 2}
    assert made("extract field=user.name output=text").filter(of(DOCUMENT)) == of(b"ann")
    assert made("extract field=id output=text").filter(of(DOCUMENT)) == of(b"7")
    for missing in ("user.other", "id.x"):
        assert made(f"extract field={missing}").filter(of(DOCUMENT)) == of(None)
    assert made("extract field=a output=text").filter(of(b'{"a":"\\ud800"}')) == DeadLetter(
        "extract: a text in it cannot be written as UTF-8"
    )


def test_the_key_is_a_part_too() -> None:
    record = of({"a": 1}, b'{"id":5,"x":1}')
    assert made("extract field=id part=key").filter(record) == of({"a": 1}, b"5")
    assert made("replace exclude=x part=key").filter(record) == of({"a": 1}, b'{"id":5}')
    without = of({"a": 1})
    assert made("extract field=id part=key").filter(without) is without


def test_insert() -> None:
    inserted = value_of(
        "insert static.field=at.site static.value=x topic.field=topic timestamp.field=ts", {"a": 1}
    )
    assert inserted == {"a": 1, "topic": "orders", "ts": NOW, "at": {"site": "x"}}
    assert made("insert key.field=k").filter(of({}, b"\xc3\xa9")) == of('{"k":"é"}'.encode(), b"\xc3\xa9")
    assert made("insert key.field=k").filter(of({})) == of(b'{"k":null}')
    no_time = of({"a": 1}, timestamp=-1)
    assert made("insert timestamp.field=ts").filter(no_time) is no_time
    assert (
        reason_of("insert static.field=a.b static.value=x", {"a": 1})
        == "insert: there is no object for the field b"
    )
    verdict = made("insert key.field=k").filter(of({}, b"\xff"))
    assert isinstance(verdict, DeadLetter) and "utf-8" in verdict.reason


def test_replace() -> None:
    assert value_of("replace exclude=user.card,list.a", DOCUMENT) == {
        "id": 7,
        "user": {"name": "ann"},
        "list": [{"b": 2}],
    }
    assert value_of("replace include=id,user.card.no", DOCUMENT) == {"id": 7, "user": {"card": {"no": 2}}}
    assert value_of("replace include=id,user exclude=user.card renames=id:ID", DOCUMENT) == {
        "ID": 7,
        "user": {"name": "ann"},
    }
    kept = of(b'{"id": 7}')
    assert made("replace exclude=other").filter(kept) is kept


def test_what_is_taken_out_is_not_left_in_a_member_that_comes_twice() -> None:
    for hidden in (
        b'{"secret":1,"a":2,"secret":3}',
        b'{"u":{"secret":1},"u":5}',
        b'{"u":{"s\\u0065cret":1},"u":5}',
    ):
        for text in (
            "replace exclude=secret,u.secret",
            "mask fields=secret,u.secret",
            "hash fields=secret,u.secret",
        ):
            left: Any = made(text).filter(of(hidden))
            assert isinstance(left, Record) and left.value is not None
            assert b":1" not in left.value, text


@pytest.mark.parametrize(
    "type", ["extract field=a", "insert topic.field=a", "replace exclude=a", "flatten", "cast spec=a:int8"]
)
def test_what_is_no_object_is_set_aside_and_a_tombstone_passes(type: str) -> None:
    kind = type.partition(" ")[0]
    for value in ([1], "a", 3):
        assert reason_of(type, value) == f"{kind}: it is no JSON object"
    assert reason_of(type, b"nope") == f"{kind}: it is no JSON"
    tombstone = of(None)
    assert made(type).filter(tombstone) is tombstone

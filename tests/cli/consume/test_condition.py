"""The language of --filter."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.cli.common.records.json_lines import Codecs
from leafcuttr.cli.common.records.own_formats import JsonFormat, TextFormat
from leafcuttr.cli.consume.condition import Condition, ConditionError

NOW = 1_700_000_000_000
CODECS = Codecs("orders", TextFormat(), TextFormat())


class Message:
    """What confluent-kafka hands out, with the six methods that are called."""

    def __init__(
        self, value: bytes | None, key: bytes | None = None, headers: Any = None, at: int = NOW
    ) -> None:
        self._value, self._key, self._headers, self._at = value, key, headers, at

    def value(self) -> bytes | None:
        return self._value

    def key(self) -> bytes | None:
        return self._key

    def headers(self) -> Any:
        return self._headers

    def timestamp(self) -> tuple[int, int]:
        return 1, self._at

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 41


ORDER = Message(
    json.dumps(
        {
            "total": 99.5,
            "paid": True,
            "who": {"name": "Ada"},
            "lines": [{"price": 7}, {"price": 9}],
            "a b": None,
        }
    ).encode(),
    b"user-7",
    [("source", b"web"), ("tag", b"a"), ("tag", b"b"), ("raw", b"\xff"), ("none", None)],
)


@pytest.mark.parametrize(
    "condition",
    [
        'key == "user-7"',
        "key == 'user-7'",
        'key ~ "^user-[0-9]+$"',
        'key ~ "r-7" and not key ~ "^r"',
        'key !~ "x"',
        'value contains "Ada"',
        "value.total > 99 and value.total <= 99.5",
        "value.paid == true and value.paid != false",
        'value.who.name == "Ada"',
        'value["who"]["name"] >= "A"',
        "value.lines[0].price == 7 and value.lines[-1].price == 9",
        'value["a b"] == null and value.missing == null and not value.missing',
        "value and key and value.who",
        'headers.source == "web"',
        'headers.tag == "b"',
        'headers["tag"] == "a"',
        "not headers.nothing and headers.raw and not headers.none",
        'topic == "orders" and partition == 3 and offset >= 41 and offset < 42',
        "timestamp >= 1700000000000",
        'timestamp >= "2023-11-14T22:13:20Z" and timestamp < "now" or timestamp == "now"',
        'timestamp > "-1h"',
        "(partition == 1 or partition == 3) and not (offset == 0)",
        "partition == 3 or offset == 0 and offset == 1",
        'value.who != "Ada" and value.total != "99.5" and not value.total == "99.5"',
        "value.paid != 1 and not value.paid == 1",
        'not value.who.name > 1 and not value.total < "a"',
    ],
)
def test_what_holds(condition: str) -> None:
    assert Condition(condition, NOW)(ORDER, CODECS)
    assert not Condition(f"not ({condition})", NOW)(ORDER, CODECS)


@pytest.mark.parametrize(
    ("value", "condition", "holds"),
    [
        (b"5", "value == 5", True),
        (b"5", 'value == "5"', True),
        (b"50", "value > 6", True),
        (b"5 apples", "value > 4", False),
        (b"true", "value == true", True),
        (b"[1, 2]", "value contains 2", True),
        (b'{"tags": ["x"]}', 'value.tags contains "x"', True),
        (b'{"tags": ["x"]}', 'value.tags contains "y"', False),
        (b"not json", "value.a == 1", False),
        (b"not json", "value.a == null", True),
        (None, "value", False),
        (None, "value == null", True),
        (b"", "value", True),
        (b"", 'value == ""', True),
        (b"\xff", 'value ~ "."', True),
        (b"a.b", r'value ~ "a\.b"', True),
        (b"axb", r'value ~ "a\.b"', False),
        (b'say "hi"', r'value contains "\"hi\""', True),
        (b"[" * 100_000, "value[0] == 1", False),
    ],
)
def test_values(value: bytes | None, condition: str, holds: bool) -> None:
    assert Condition(condition, NOW)(Message(value), CODECS) is holds


def test_bytes_of_another_format_are_null() -> None:
    codecs = Codecs("t", TextFormat(), JsonFormat())
    assert Condition("value == null", NOW)(Message(b"{"), codecs)
    assert not Condition("value.a == 1", NOW)(Message(b"{"), codecs)


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        (
            "",
            "expected a field (key, value, headers, topic, partition, offset, timestamp), not the end, at column 1",
        ),
        ("valu == 1", "not valu, at column 1"),
        ("value ==", "expected a text in quotes, a number, true, false or null, at column 9"),
        ("value == abc", "at column 10"),
        ("value = 1", "'=' has no meaning here, at column 7"),
        ('value ~ "("', "no regular expression"),
        ("value ~ 3", "expected a regular expression in quotes after ~"),
        ("(value", "expected ), at column 7"),
        ("value) ", "expected `and`, `or` or the end, not )"),
        ("headers == 1", 'headers.NAME or headers["NAME"]'),
        ("offset.a == 1", "offset has no members"),
        ("value. == 1", "expected a name after the dot"),
        ("value[x]", "expected a number or a name in quotes"),
        ("value[0", "expected ]"),
        ("value > null", "expected a number or a text after >"),
        ('timestamp > "soon"', "is no time"),
        ('value "x"', "expected one of =="),
        ("not " * 60 + "value", "more than 50 levels"),
        ("value == 1 or", "not the end"),
        ('value == "open', "has no meaning here"),
        ("__import__('os')", "expected a field"),
    ],
)
def test_what_cannot_be_read(condition: str, says: str) -> None:
    with pytest.raises(ConditionError) as raised:
        Condition(condition, NOW)
    assert says in str(raised.value)


WORDS = [
    "value",
    "key",
    "headers",
    ".a",
    '["a"]',
    "[0]",
    "==",
    "~",
    "contains",
    "<",
    "1",
    '"a"',
    "null",
    "and",
    "or",
    "not",
    "(",
    ")",
    "offset",
    "true",
    "-1.5e3",
    "'",
]


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=12), st.binary(max_size=20))
def test_any_text_is_a_condition_or_a_filter_error(words: list[str], value: bytes) -> None:
    try:
        found = Condition(" ".join(words), NOW)
    except ConditionError:
        return
    assert found(Message(value, value, [("a", value)]), CODECS) in (True, False)


_NUMBERS = st.integers(-5, 5)


@given(
    st.recursive(
        st.tuples(st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), _NUMBERS),
        lambda inner: (
            st.tuples(st.sampled_from(["and", "or"]), inner, inner) | st.tuples(st.just("not"), inner)
        ),
        max_leaves=8,
    ),
    _NUMBERS,
)
def test_conditions_are_those_of_logic(tree: Any, value: int) -> None:
    """Written with every parenthesis, and judged by Python's own operators."""

    def text(node: Any) -> str:
        if node[0] == "not":
            return f"not ({text(node[1])})"
        if node[0] in ("and", "or"):
            return f"({text(node[1])}) {node[0]} ({text(node[2])})"
        return f"value.n {node[0]} {node[1]}"

    def truth(node: Any) -> bool:
        if node[0] == "not":
            return not truth(node[1])
        if node[0] in ("and", "or"):
            return all(map(truth, node[1:])) if node[0] == "and" else any(map(truth, node[1:]))
        return bool(eval(f"{value} {node[0]} {node[1]}"))

    message = Message(json.dumps({"n": value}).encode())
    assert Condition(text(tree), NOW)(message, CODECS) is truth(tree)

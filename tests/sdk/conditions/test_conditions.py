"""The language of conditions, on records."""

from __future__ import annotations

import json
import threading
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_sdk import FormatError, Record, StoredRecord
from leafcuttr_sdk.conditions import Condition, ConditionError, parse
from leafcuttr_sdk.records import Headers

NOW = 1_700_000_000_000


def record(
    value: bytes | None, key: bytes | None = None, headers: Headers = (), at: int = NOW
) -> StoredRecord:
    return StoredRecord("orders", 3, 41, at, key, value, headers)


def condition_of(text: str) -> Condition:
    return parse(text, now_ms=NOW)


ORDER = record(
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
    (("source", b"web"), ("tag", b"a"), ("tag", b"b"), ("raw", b"\xff"), ("none", None)),
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
    assert condition_of(condition).matches(ORDER)
    assert not condition_of(f"not ({condition})").matches(ORDER)


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
        (b"Infinity", "value > 5", False),
        (b'{"a": 1, "b": NaN}', "value.a", False),
    ],
)
def test_values(value: bytes | None, condition: str, holds: bool) -> None:
    assert condition_of(condition).matches(record(value)) is holds


def test_bytes_of_another_format_are_null() -> None:
    seen: list[tuple[str, bytes]] = []

    def decode(part: Literal["key", "value"], data: bytes) -> str | None:
        seen.append((part, data))
        if data == b"{":
            raise FormatError("no")
        return None if data == b"-" else data.decode().upper()

    assert condition_of("value == null and not value.a == 1").matches(record(b"{"), decode)
    assert seen == [("value", b"{")], "it is decoded once"
    assert condition_of("key == null").matches(record(b"", b"-"), decode)
    assert condition_of('key == "ADA" and value ~ "^A"').matches(record(b"a", b"ada"), decode)

    def broken(part: Literal["key", "value"], data: bytes) -> str | None:
        raise ZeroDivisionError

    assert condition_of("offset == 41").matches(ORDER, broken), "what is not read is not decoded"
    with pytest.raises(ZeroDivisionError):
        condition_of("key").matches(ORDER, broken)


def test_a_record_that_is_not_stored_yet_has_no_place() -> None:
    new = Record(b"5", b"k", (("h", b"x"),))
    assert condition_of('value == 5 and key == "k" and headers.h == "x"').matches(new)
    assert condition_of("topic == null and not partition and not offset and not timestamp").matches(new)
    assert not condition_of("timestamp > 0").matches(new)
    assert condition_of("timestamp > 0").matches(new._replace(timestamp=1))


def test_what_a_condition_says_of_itself() -> None:
    found = condition_of('value.a and (headers.h or not key) and timestamp > "-1h"')
    assert found.fields == {"value", "headers", "key", "timestamp"}
    assert found.text in repr(found)
    assert condition_of("offset").fields == {"offset"}


def test_relative_times_go_back_from_the_parse() -> None:
    assert parse('timestamp > "-1h"', now_ms=3_600_000).matches(record(b"", at=1))
    assert not parse('timestamp > "-1h"', now_ms=3_600_001).matches(record(b"", at=1))
    assert parse('timestamp < "now"').matches(record(b"", at=NOW)), "by default the time of the call"


def test_threads_share_a_condition() -> None:
    """The automaton of its regular expression too, which is made while they search."""
    found = condition_of('value ~ "(a|b)*a(a|b){9}c" and value.x == null')
    texts = [("ab" * number + "c").encode() * 30 for number in range(3, 60)]
    wanted = [found.matches(record(text)) for text in texts]
    assert {True, False} == {*wanted}
    fresh = condition_of(found.text)
    results: list[list[bool]] = []

    def work() -> None:
        results.append([fresh.matches(record(text)) for text in texts])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [wanted] * 4


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
        condition_of(condition)
    assert says in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("condition", "column", "reason"),
    [
        ("value ==", 9, "expected a text in quotes, a number, true, false or null"),
        ("key == 1 and\n\tvalu", 15, "expected a field (key, value"),
        ("(" * 60 + "value", 51, "more than 50 levels"),
        ("not " * 1000 + "value", 201, "more than 50 levels"),
        ("value and " * 2000 + "key", 10_001, "a condition of 20003 characters, and it may have 10000"),
        (f'value ~ "{"a" * 1001}"', 9, "a regular expression of 1001 characters, and it may have 1000"),
        ('value ~ "(a{100}){100}"', 9, "a regular expression of more than 250 parts"),
        ('value ~ "' + "(" * 200 + "a" + ")" * 200 + '"', 9, "within one another"),
        ('value ~ "' + "(" * 499 + "a" + ")" * 499 + '"', 9, "a regular expression"),
        ('value ~ "a(?=b)"', 9, "a regular expression with '(?=' at position 1"),
        (f"value == {'9' * 5000}", 10, "expected a text in quotes, a number"),
        ("\x1b[31mvalue", 1, "'\\x1b' has no meaning here"),
    ],
)
def test_where_it_is_wrong(condition: str, column: int, reason: str) -> None:
    """Whatever it is and however long: one short line for the person, and the place for a program."""
    with pytest.raises(ConditionError) as raised:
        condition_of(condition)
    error = raised.value
    assert (error.column, error.text) == (column, condition)
    assert error.reason.startswith(reason) or reason in error.reason
    assert str(error).isprintable() and len(str(error)) < 600
    assert f", at column {column} of: " in str(error)


def test_deep_conditions_and_documents_within_the_limits() -> None:
    assert condition_of("(" * 49 + "value" + ")" * 49).matches(ORDER)
    assert condition_of("not " * 48 + "value").matches(ORDER)
    assert condition_of(" or ".join(["offset == 0"] * 600 + ["key"])).matches(ORDER)
    deep = b'{"a":' * 100 + b"1" + b"}" * 100
    assert condition_of("value" + ".a" * 100 + " == 1").matches(record(deep))
    assert condition_of("value" + "[0]" * 3000 + " == null").matches(record(b"[" * 200_000))


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
        found = condition_of(" ".join(words))
    except ConditionError as error:
        assert str(error).isprintable()
        return
    assert found.matches(record(value, value, (("a", value),))) in (True, False)


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

    message = record(json.dumps({"n": value}).encode())
    assert condition_of(text(tree)).matches(message) is truth(tree)


LITERALS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, -1.0]), st.text(max_size=3)
)


@given(LITERALS, LITERALS, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]))
def test_only_values_of_one_type_compare(value: Any, literal: Any, sign: str) -> None:
    try:
        condition = condition_of(f"value.n {sign} {json.dumps(literal, ensure_ascii=False)}")
    except ConditionError:
        # No order with null or a boolean; a text may hold an escape of JSON that is none here.
        assert (literal is None or isinstance(literal, bool)) and sign not in ("==", "!=")
        return
    kinds = [
        str if isinstance(one, str) else bool if isinstance(one, bool) or one is None else float
        for one in (value, literal)
    ]
    same = kinds[0] is kinds[1] and (value is None) == (literal is None)
    wanted = bool(same and eval(f"value {sign} literal")) if sign != "!=" else not (same and value == literal)
    if isinstance(literal, str) and json.dumps(literal, ensure_ascii=False) != f'"{literal}"':
        return  # written with escapes, which mean something else
    assert condition.matches(record(json.dumps({"n": value}).encode())) is wanted


def test_documents_that_are_there_already_are_taken() -> None:
    """The text of a whole key or value is still made of its bytes."""
    asked: list[tuple[str, bytes]] = []

    def document(part: Literal["key", "value"], data: bytes) -> Any:
        asked.append((part, data))
        return {"a": part}

    condition = condition_of('value.a == "value" and key.a == "key" and value == "v" and value.b == null')
    assert condition.matches(record(b"v", b"k"), document=document)
    assert asked == [("value", b"v"), ("key", b"k")]
    assert condition_of("value.a == null and key.a == null").matches(record(None), document=document)
    assert len(asked) == 2

"""`flatten`, beside what Kafka Connect makes of the same (`test_as_connect`)."""

from __future__ import annotations

from support.making_filters import made, of, reason_of, value_of


def test_fields_in_fields() -> None:
    document = {"a": {"b": {"c": 1, "d": None}, "e": [{"f": 1}]}, "g": {}, "a.x": 2}
    assert value_of("flatten", document) == {"a.b.c": 1, "a.b.d": None, "a.e": [{"f": 1}], "a.x": 2}
    assert value_of("flatten delimiter=_", {"a": {"b": 1}}) == {"a_b": 1}


def test_order_stays() -> None:
    verdict = made("flatten").filter(of({"z": {"b": 1, "a": 2}, "c": 3}))
    assert verdict == of(b'{"z.b":1,"z.a":2,"c":3}')


def test_what_is_flat_is_the_same_object() -> None:
    record = of({"a": 1, "b": [{}]})
    assert made("flatten").filter(record) is record


def test_names_that_would_be_too_long_are_refused() -> None:
    """A quarter of a megabyte would become a gigabyte."""
    depth, leaves = 500, 20_000
    inner = b",".join(b'"%d":1' % number for number in range(leaves))
    data = b'{"aaaaaaa":' * depth + b"{" + inner + b"}" + b"}" * depth
    assert reason_of("flatten", data) == (
        "flatten: the names of its fields, flattened, have more than 1000000 characters"
    )

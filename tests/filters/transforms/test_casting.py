"""`cast`, beside what Kafka Connect makes of the same (`test_as_connect`)."""

from __future__ import annotations

from typing import Any

import pytest

from support.making_filters import made, of, reason_of, value_of


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int8", 300, 44), ("int8", "127", 127), ("int8", 1e10, -1), ("int16", True, 1), ("int32", 2**40, 0),
        ("int32", 1e300, 2**31 - 1), ("int64", -1e300, -(2**63)), ("int64", "-5", -5), ("int64", 2.9, 2),
        ("float32", 0.1, 0.1), ("float32", 1.23456789012, 1.2345679), ("float64", "1e3", 1000.0),
        ("float64", " 1.5f ", 1.5), ("float64", False, 0.0),
        ("boolean", "TRUE", True), ("boolean", "yes", False), ("boolean", 0.0, False), ("boolean", -1, True),
        ("boolean", 0.5, False), ("boolean", -1.5, True),
        ("string", 1e7, "1.0E7"), ("string", 0.0001, "1.0E-4"), ("string", 123456.5, "123456.5"),
        ("string", -1.5e-10, "-1.5E-10"), ("string", True, "true"), ("string", 5, "5"), ("string", 0.0, "0.0"),
        ("string", 1.7976931348623157e308, "1.7976931348623157E308"), ("string", 0.00123, "0.00123"),
        ("string", None, None),
    ],
)  # fmt: skip
def test_values(kind: str, value: Any, expected: Any) -> None:
    cast = value_of(f"cast spec=a:{kind}", {"a": value})["a"]
    assert (cast, type(cast)) == (expected, type(expected))
    assert value_of(f"cast spec={kind}", value) == expected or value is None


@pytest.mark.parametrize(
    ("kind", "value"),
    [("int8", "128"), ("int64", "x"), ("int64", "1.5"), ("int64", ""), ("int64", "9" * 30), ("float64", "x"),
     ("float64", "1" * 500), ("float32", 1e300), ("float64", "nan"), ("int32", [1]), ("string", {"a": 1})],
)  # fmt: skip
def test_what_cannot_be_cast_is_set_aside(kind: str, value: Any) -> None:
    if kind == "float32" or type(value) is str:
        assert reason_of(f"cast spec=a:{kind}", {"a": value}) == f"cast: the field a cannot be cast to {kind}"
    else:
        assert "the field a is neither a text, a number" in reason_of(f"cast spec=a:{kind}", {"a": value})


def test_a_path_goes_through_lists() -> None:
    assert value_of("cast spec=l.a:int8", {"l": [{"a": "1"}, {"b": 1}]}) == {"l": [{"a": 1}, {"b": 1}]}


def test_what_is_of_its_type_already_is_the_same_object() -> None:
    record = of({"a": "x", "b": 5, "c": True, "d": 0.5})
    assert made("cast spec=a:string,b:int64,c:boolean,d:float64,e:int8").filter(record) is record
    whole = of(5)
    assert made("cast spec=int32").filter(whole) is whole

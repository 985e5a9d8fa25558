"""Data of JSON Schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_registry.json_schema.schema import parse
from leafcuttr_sdk.schemas import DataError, JsonValue

ORDER = parse(
    json.dumps(
        {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "tags": {"uniqueItems": True}},
            "required": ["id"],
        }
    ),
    {},
).codec()
ANY = parse("{}", {}).codec()


def test_values_come_in_and_go_out_as_utf_8() -> None:
    assert ORDER.decode('{ "id": 1, "n": "é😀" }'.encode()) == {"id": 1, "n": "é😀"}
    assert ORDER.encode({"id": 1, "n": "é😀"}) == '{"id":1,"n":"é😀"}'.encode()
    assert ORDER.check(b'{"id": 1}') is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(),
        lambda one: st.lists(one) | st.dictionaries(st.text(), one),
    )
)
def test_what_is_encoded_is_decoded(value: Any) -> None:
    assert ANY.decode(ANY.encode(value)) == value


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"id": "a"}', "at \"$.id\": 'a' is not of type 'integer'"),
        (b"{}", "'id' is a required property"),
        (b'{"id": 1, "tags": [1, {"a": [2]}, {"a": [2.0]}]}', "non-unique elements"),
        (b"\xff", "not UTF-8"),
        (b"{", "not JSON"),
        (b"", "not JSON"),
        (b'{"id": 1, "id": 2}', 'the key "id" is there twice'),
        (b'{"id": NaN}', "NaN is no JSON"),
        (b'{"id": 1e400}', "beyond the range of a double"),
        (b'{"id": ' + b"9" * 2000 + b"}", "2000 digits"),
        (b'{"id": "\\udfff"}', "half of a surrogate pair"),
        (b"[" * 100_000, "nested deeper than 500"),
        (b"[1]", "is not of type 'object'"),
    ],
)
def test_what_is_refused(data: bytes, message: str) -> None:
    for ask in (ORDER.decode, ORDER.check):
        with pytest.raises(DataError) as refused:
            ask(data)
        assert message in str(refused.value)
        assert "\n" not in str(refused.value) and len(str(refused.value)) < 500


def test_what_cannot_be_encoded() -> None:
    with pytest.raises(DataError, match="is not of type 'integer'"):
        ORDER.encode({"id": "a"})
    with pytest.raises(DataError, match="half of a surrogate pair"):
        ANY.encode("\ud800")
    values: list[JsonValue] = [float("nan"), float("inf"), [float("-inf")]]
    for value in values:
        with pytest.raises(DataError, match="no value of JSON"):
            ANY.encode(value)


def test_a_value_that_is_nested_too_deeply_to_be_validated_is_refused() -> None:
    tree = parse('{"properties": {"a": {"$ref": "#"}}}', {}).codec()
    tree.check(b'{"a":' * 100 + b"{}" + b"}" * 100)
    with pytest.raises(DataError, match="nested too deeply"):
        tree.check(b'{"a":' * 490 + b"{}" + b"}" * 490)


def test_nothing_is_valid_for_false_and_all_for_true() -> None:
    with pytest.raises(DataError, match="the schema is false"):
        parse("false", {}).codec().check(b"1")
    assert parse("true", {}).codec().decode(b"[1]") == [1]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"multipleOf": 0.01}, 19.99, 19.999),
        ({"multipleOf": 1e-8}, 12391239123, 1e-9),
        ({"enum": [1, {"a": 1.0}]}, {"a": 1}, {"a": True}),
        ({"uniqueItems": True}, [1, True, "1", None, [1], [True]], [[1], [1.0]]),
        (
            {
                "items": True,
                "additionalItems": False,
                "$schema": "https://json-schema.org/draft/2019-09/schema",
            },
            [1],
            None,
        ),
        ({"pattern": "^\\d+$"}, "12", "12\n"),
        ({"format": "date"}, "no date", None),
    ],
)
def test_keywords_that_are_ours(schema: Any, good: Any, bad: Any) -> None:
    codec = parse(json.dumps(schema), {}).codec()
    codec.encode(good)
    if bad is not None:
        with pytest.raises(DataError):
            codec.encode(bad)


@pytest.mark.long
def test_many_items_are_compared_in_time() -> None:
    ORDER.check(json.dumps({"id": 1, "tags": [{"a": n} for n in range(50_000)]}).encode())


@pytest.mark.parametrize("pattern", ["^a$", "^a+", "\\\\d\\\\u{61}"])
def test_a_pattern_is_told_as_the_schema_has_it(pattern: str) -> None:
    codec = parse(f'{{"pattern": "{pattern}"}}', {}).codec()
    with pytest.raises(DataError) as caught:
        codec.check(b'"b"')
    assert str(caught.value) == f"at \"$\": 'b' does not match the pattern {pattern}"

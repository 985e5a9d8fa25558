"""The body of a produce request: the two ways to parse it agree, and nothing breaks either."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_http import envelope
from leafcuttr_http.errors import ApiError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.lists(st.dictionaries(st.sampled_from(["key", "value", "other"]), JSON), min_size=1, max_size=6)


def stepwise(text: str, limit: int = 1 << 20) -> list[object]:
    return list(envelope.in_steps(text, limit))


def outcome(call: Any, *arguments: Any) -> tuple[str, Any]:
    try:
        return "ok", call(*arguments)
    except ApiError as error:
        return "error", error.status


@given(RECORDS, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_both_ways_give_what_was_written(records: list[Any], indent: Any, schema: bool) -> None:
    document: dict[str, Any] = {"records": records}
    if schema:
        document["value_schema_id"] = None
    text = json.dumps(document, indent=indent)
    assert envelope.at_once(text) == records
    assert stepwise(text) == records


@given(RECORDS, st.data())
def test_a_window_smaller_than_the_body_changes_nothing(records: list[Any], data: st.DataObject) -> None:
    text = json.dumps({"records": records})
    longest = max(len('"records"'), *(len(json.dumps(record)) for record in records))
    limit = data.draw(st.integers(longest, longest + 20))
    slack, envelope._SLACK = envelope._SLACK, data.draw(st.integers(0, 30))  # type: ignore[misc]
    try:
        assert stepwise(text, limit) == records
        if longest > len('"records"'):
            with pytest.raises(ApiError) as caught:
                stepwise(text, longest - 1)
            assert caught.value.status == 413
    finally:
        envelope._SLACK = slack  # type: ignore[misc]


@given(st.text(alphabet='{}[]",:0123456789.eE+-nulltrueabc\\u \n', max_size=40))
def test_both_ways_refuse_the_same_texts(noise: str) -> None:
    for text in (noise, '{"records":' + noise, '{"records":[' + noise + "]}", '{"records":[{}],' + noise):
        at_once, in_steps = outcome(envelope.at_once, text), outcome(stepwise, text)
        # Of several mistakes each may come upon another one first.
        assert at_once[0] == in_steps[0]
        assert at_once[0] == "error" or at_once == in_steps


@given(st.binary(max_size=60))
def test_any_bytes_are_an_answer(noise: bytes) -> None:
    def both(data: bytes) -> None:
        text = envelope.decode(data)
        envelope.at_once(text)
        stepwise(text)

    outcome(both, noise)
    outcome(both, b'{"records":[' + noise + b"]}")


@pytest.mark.parametrize(
    ("text", "status", "says"),
    [
        ("", 400, "line 1 column 1"),
        ("[]", 422, "has to be an object"),
        ("3", 422, "has to be an object"),
        ("{}", 422, "at least one record"),
        ('{"records":[]}', 422, "at least one record"),
        ('{"records":{}}', 422, "has to be a list"),
        ('{"records":null}', 422, "has to be a list"),
        ('{"record":[{}]}', 422, "no member 'record'"),
        ('{"records":[{}],"value_schema_id":3}', 422, "formats with a schema"),
        ('{"records":[{}]} x', 400, "Extra data"),
        ('{"records":[{}],"records":[{}]}', 422, "two members 'records'"),
        ('{"records":[{}],}', 400, "not JSON"),
        ('{"records":[{},]}', 400, "not JSON"),
        ('{"records":[{"value":NaN}]}', 400, "NaN is not JSON"),
        ('{"records":[{"value":-Infinity}]}', 400, "Infinity is not JSON"),
        ('{"records":[{"value":' + "9" * 5000 + "}]}", 400, "too many digits"),
        ('{"records":[' + "[" * 100_000, 400, "nested too deeply"),
        ('\n{"records":\n [{"value":x}]}', 400, "line 3 column 12"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, status: int, says: str) -> None:
    for way in (envelope.at_once, stepwise):
        with pytest.raises(ApiError) as caught:
            way(text)
        assert caught.value.status == status
        assert says in str(caught.value)


def test_fifty_levels_are_no_problem() -> None:
    value: Any = 1
    for _ in range(50):
        value = [value]
    text = json.dumps({"records": [{"value": value}]})
    assert envelope.at_once(text) == stepwise(text) == [{"value": value}]


def test_no_bytes_but_utf_8() -> None:
    with pytest.raises(ApiError, match="byte 1"):
        envelope.decode(b"{\xff}")
    assert outcome(envelope.at_once, envelope.decode('{"records":[{}]}'.encode("utf-8-sig")))[0] == "error"

"""Whatever a value is, a filter of any type has a verdict on it that can be carried out, and does not raise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_filters.definitions.table import TYPES, FilterType
from leafcuttr_sdk import Record
from leafcuttr_sdk.testing.verdicts import why_no_verdict
from support.making_filters import made, of

TYPES_OF_VALUES = [one for one in TYPES if one.name not in ("python", "hash")]
NAMES = st.sampled_from(
    [
        "total",
        "order",
        "id",
        "card",
        "cvc",
        "at",
        "payload",
        "after",
        "type",
        "tenant",
        "country",
        "level",
        "a.b",
        "",
    ]
)
TEXTS = st.text(max_size=8) | st.sampled_from(
    ["4111111111111111", "a@b.se", "1e999", "2026-11-21T08:30:00Z", "5"]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
LARGE = {
    "many members": json.dumps({f"member{number}": number for number in range(15_000)}).encode(),
    "many elements": json.dumps({"order": [{"id": number} for number in range(15_000)]}).encode(),
    "one long text": json.dumps({"id": "x" * 300_000, "total": "1" * 300_000}).encode(),
    "deep": b'{"order":' * 400 + b"1" + b"}" * 400,
    "deep lists": b'{"total":' + b"[" * 400 + b"]" * 400 + b"}",
    "one member many times": b"{" + b'"id":1,' * 40_000 + b'"id":2}',
}


def judge(kind: FilterType, record: Record) -> None:
    verdict: Any = made(f"{kind.example} on.error=dead-letter").filter(record)
    assert why_no_verdict(verdict) is None, (verdict, record)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", TYPES_OF_VALUES, ids=lambda one: one.name)
@given(value=VALUES, key=st.none() | st.binary(max_size=5), timestamp=st.integers(-1, 2**63 - 1))
def test_any_value(kind: FilterType, value: Any, key: bytes | None, timestamp: int) -> None:
    judge(kind, Record(json.dumps(value).encode(), key, timestamp=timestamp))


@pytest.mark.parametrize("kind", TYPES_OF_VALUES, ids=lambda one: one.name)
def test_any_bytes(kind: FilterType) -> None:
    for data in (
        b"",
        b"\xff\xfe",
        b"null",
        b'"\\ud800"',
        b'{"id":"\\ud800","total":"\\udfff"}',
        b'{"id":NaN}',
        b"\0" * 9,
    ):
        judge(kind, of(data, data))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", TYPES_OF_VALUES, ids=lambda one: one.name)
@pytest.mark.parametrize("shape", LARGE)
def test_large_values(kind: FilterType, shape: str) -> None:
    judge(kind, of(LARGE[shape]))

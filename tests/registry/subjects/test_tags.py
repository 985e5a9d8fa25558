"""Tags that stand in schemas, as requests and answers have them."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_registry.subjects import tags
from leafcuttr_registry.subjects.refusals import Refusal


@pytest.mark.parametrize(
    "given",
    [
        [5],
        [{}],
        [{"schemaEntity": {"entityType": "sr_none", "entityPath": "a"}, "tags": []}],
        [{"schemaEntity": {"entityType": "sr_field", "entityPath": "a"}, "tags": ["\ud800"]}],
    ],
)
def test_requests_that_are_none(given: Any) -> None:
    with pytest.raises(Refusal, match="tagsToAdd has to be"):
        tags.read({"tagsToAdd": given}, "tagsToAdd")


def test_requests() -> None:
    entity = {"entityType": "SR_FIELD", "entityPath": "a.b"}
    assert tags.read({"t": [{"schemaEntity": entity, "tags": ["A"]}]}, "t") == {("sr_field", "a.b"): ["A"]}
    assert tags.read({}, "t") == {}
    twice = [{"schemaEntity": {**entity, "entityPath": path}, "tags": [path]} for path in ("a.b", ".a.b")]
    assert tags.read({"t": twice}, "t") == {("sr_field", "a.b"): ["a.b", ".a.b"]}


def test_answers() -> None:
    found = {("sr_record", "R"): ["A", "B"], ("sr_field", "R.f"): ["C"]}
    record = {"schemaEntity": {"entityPath": "R", "entityType": "sr_record"}, "tags": ["A", "B"]}
    field = {"schemaEntity": {"entityPath": "R.f", "entityType": "sr_field"}, "tags": ["C"]}
    for asked, answer in (
        (["B"], [record]),
        (["C", "none"], [field]),
        (["*"], [record, field]),
        (["none"], []),
    ):
        assert tags.answer(found, asked) == answer  # type: ignore[arg-type]

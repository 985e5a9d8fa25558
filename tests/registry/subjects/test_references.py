"""References: numbered, resolved, bounded."""

from __future__ import annotations

import pytest

from leafcuttr_registry.subjects.content import Content
from leafcuttr_registry.subjects.events import Event, SchemaKey, SchemaValue
from leafcuttr_registry.subjects.references import identity, numbered, resolve
from leafcuttr_registry.subjects.refusals import Refusal
from leafcuttr_registry.subjects.state import State
from leafcuttr_sdk.schemas import SchemaReference


def state_of(**refers: list[str]) -> State:
    """Subjects with a version 1 each that names others."""
    state = State()
    for id, (subject, names) in enumerate(refers.items(), 1):
        references = tuple(SchemaReference(name, name, 1) for name in names)
        state.apply(
            Event(SchemaKey(subject, 1), SchemaValue(id, Content("AVRO", subject.upper(), references)))
        )
    return state


A = (SchemaReference("a", "a", 1),)


def test_texts_of_all() -> None:
    state = state_of(c=[], b=["c"], a=["b", "c"])
    found = resolve(state, "x", A)
    assert found["a"].text == "A" and set(found["a"].references) == {"b", "c"}
    assert found["a"].references["b"].references["c"] is found["a"].references["c"]
    assert resolve(state, "x", ()) == {}


def test_what_tells_a_schema_from_others_is_also_what_it_names() -> None:
    """However far away: another schema may have taken the place of one."""
    content = Content("AVRO", "X", A)
    before = identity(state_of(c=[], b=["c"], a=["b"]), "x", content, {})
    assert before == identity(state_of(c=[], b=["c"], a=["b"]), "x", content, {})
    assert before != identity(state_of(c=[], b=["c"], a=["b", "c"]), "x", content, {})
    state = state_of(c=[], b=["c"], a=["b"])
    state.apply(Event(SchemaKey("c", 1), None))
    state.apply(Event(SchemaKey("c", 1), SchemaValue(9, Content("AVRO", "OTHER"))))
    known: dict[SchemaKey, bytes] = {}
    assert before != identity(state, "x", content, known)
    assert known.keys() == {SchemaKey(name, 1) for name in "abc"}
    assert identity(state, "x", Content("AVRO", "X"), {}) == Content("AVRO", "X").digest


def test_what_is_not_there_or_deleted() -> None:
    state = state_of(a=[])
    with pytest.raises(Refusal, match='No schema reference found for subject "z" and version 1'):
        resolve(state, "x", (SchemaReference("z", "z", 1),))
    state.apply(Event(SchemaKey("a", 1), SchemaValue(1, Content("AVRO", "A"), deleted=True)))
    assert resolve(state, "x", A)["a"].text == "A"
    with pytest.raises(Refusal):
        resolve(state, "x", A, deleted=False)
    with pytest.raises(Refusal):
        numbered(state, "x", (SchemaReference("a", "a", -1),))


def test_minus_one_is_the_latest() -> None:
    state = state_of(a=[])
    assert numbered(state, "x", (SchemaReference("n", "a", -1),)) == (SchemaReference("n", "a", 1),)
    assert numbered(state, "x", A) is A


def test_circles_that_others_have_written() -> None:
    with pytest.raises(Refusal, match="leads back to itself"):
        resolve(state_of(a=["b"], b=["a"]), "x", A)


def test_too_many() -> None:
    chain = {f"s{number}": [f"s{number + 1}"] for number in range(150)}
    with pytest.raises(Refusal, match="too complex"):
        resolve(state_of(**chain, s150=[]), "x", (SchemaReference("s0", "s0", 1),))
    wide = {"a": [f"s{number}" for number in range(1001)], **{f"s{number}": [] for number in range(1001)}}
    with pytest.raises(Refusal, match="too complex"):
        resolve(state_of(**wide), "x", A)


def test_a_schema_that_is_named_on_many_ways_counts_once() -> None:
    levels = {f"s{number}": [f"s{number + 1}", f"t{number + 1}"] for number in range(40)}
    others = {f"t{number}": [f"s{number + 1}", f"t{number + 1}"] for number in range(1, 40)}
    state = state_of(**levels, **others, s40=[], t40=[])
    assert resolve(state, "x", (SchemaReference("s0", "s0", 1),))["s0"].text == "S0"

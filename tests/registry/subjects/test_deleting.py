"""What a deletion means: the events that it takes, and what forbids it."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_registry.subjects import deleting
from leafcuttr_registry.subjects.config import Config
from leafcuttr_registry.subjects.content import Content
from leafcuttr_registry.subjects.events import (
    ConfigKey,
    DeletedUpTo,
    DeleteSubjectKey,
    Event,
    ModeKey,
    SchemaKey,
    SchemaValue,
)
from leafcuttr_registry.subjects.refusals import Refusal
from leafcuttr_registry.subjects.state import State
from leafcuttr_sdk.schemas import SchemaReference


def state_of(*versions: tuple[str, int, int], deleted: bool = False) -> State:
    """Subject, version and id of each."""
    state = State()
    for subject, version, id in versions:
        value = SchemaValue(id, Content("AVRO", f"s{id}"), deleted)
        state.apply(Event(SchemaKey(subject, version), value))
    return state


def refer(state: State, subject: str, to: tuple[str, int], *, deleted: bool = False) -> None:
    content = Content("AVRO", f"{subject} to {to}", (SchemaReference("n", *to),))
    state.apply(Event(SchemaKey(subject, 1), SchemaValue(90, content, deleted)))


def code(function: Any, *given: Any, permanent: bool) -> int:
    with pytest.raises(Refusal) as caught:
        function(*given, permanent=permanent)
    return caught.value.code


def test_with_the_last_version_go_the_settings_of_its_subject() -> None:
    state = state_of(("a", 1, 1), ("a", 2, 2), deleted=True)
    state.apply(Event(ConfigKey("a"), Config({"compatibilityLevel": "NONE"})))
    state.apply(Event(ModeKey("a"), "READWRITE"))
    first = [Event(SchemaKey("a", 1), None)]
    assert deleting.delete_version(state, "a", 1, permanent=True) == (first, 1)
    state.apply(first[0])
    events, number = deleting.delete_version(state, "a", 2, permanent=True)
    assert number == 2
    assert events == [Event(SchemaKey("a", 2), None), Event(ModeKey("a"), None), Event(ConfigKey("a"), None)]


def test_without_settings_there_is_nothing_more_to_delete() -> None:
    state = state_of(("a", 1, 1), deleted=True)
    assert deleting.delete_version(state, "a", 1, permanent=True)[0] == [Event(SchemaKey("a", 1), None)]


def test_a_subject_goes_from_its_last_version_on_with_its_settings() -> None:
    """A version may name an earlier one of its subject; who reads the topic finds none whose reference is gone."""
    state = state_of(("a", 1, 1), ("a", 2, 2), deleted=True)
    state.apply(Event(ModeKey("a"), "READWRITE"))
    events, numbers = deleting.delete_subject(state, "a", permanent=True)
    assert numbers == [1, 2]
    assert [event.key for event in events] == [SchemaKey("a", 2), SchemaKey("a", 1), ModeKey("a")]
    assert all(event.value is None for event in events)


def test_a_deletion_that_is_not_for_good_names_the_last_version() -> None:
    state = state_of(("a", 1, 1), ("a", 3, 2))
    assert deleting.delete_subject(state, "a", permanent=False) == (
        [Event(DeleteSubjectKey("a"), DeletedUpTo(3))],
        [1, 3],
    )


def test_first_for_now_and_then_for_good() -> None:
    state = state_of(("a", 1, 1))
    assert code(deleting.delete_version, state, "a", 1, permanent=True) == 40407
    assert code(deleting.delete_subject, state, "a", permanent=True) == 40405
    state.apply(deleting.delete_version(state, "a", 1, permanent=False)[0][0])
    assert code(deleting.delete_version, state, "a", 1, permanent=False) == 40406
    assert code(deleting.delete_subject, state, "a", permanent=False) == 40404
    assert code(deleting.delete_version, state, "a", 2, permanent=True) == 40402
    assert code(deleting.delete_version, state, "b", 1, permanent=True) == 40401


def test_what_others_name_stays() -> None:
    """For good also what a deleted version names: that one could not be read again."""
    state = state_of(("a", 1, 1))
    refer(state, "b", ("a", 1))
    assert code(deleting.delete_version, state, "a", 1, permanent=False) == 42206
    assert code(deleting.delete_subject, state, "a", permanent=False) == 42206
    refer(state, "b", ("a", 1), deleted=True)
    state.apply(deleting.delete_version(state, "a", 1, permanent=False)[0][0])
    assert code(deleting.delete_version, state, "a", 1, permanent=True) == 42206
    assert code(deleting.delete_subject, state, "a", permanent=True) == 42206

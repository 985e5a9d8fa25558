"""What stands for a version in a path."""

from __future__ import annotations

import pytest

from leafcuttr_registry.subjects.content import Content
from leafcuttr_registry.subjects.events import ContextKey, Event, Present, SchemaKey, SchemaValue
from leafcuttr_registry.subjects.refusals import Refusal
from leafcuttr_registry.subjects.state import State
from leafcuttr_registry.subjects.versions import LATEST, find_anywhere, need, read_version


@pytest.mark.parametrize(
    ("text", "version"),
    [("1", 1), ("latest", LATEST), ("LATEST", LATEST), ("-1", LATEST), (" 7 ", 7), ("2147483647", 2**31 - 1)],
)
def test_versions(text: str, version: int) -> None:
    assert read_version(text) == version


@pytest.mark.parametrize("text", ["0", "-2", "x", "", "1.0", "2147483648", "9" * 100, "٣", "1_0"])
def test_that_are_none(text: str) -> None:
    with pytest.raises(Refusal, match="not a valid version id") as refused:
        read_version(text)
    assert refused.value.code == 42202


def test_a_name_without_a_context_is_looked_for_in_each() -> None:
    state = State()
    for number, context in enumerate((".b", ".a", ".c"), 1):
        state.apply(Event(ContextKey("default", context), Present()))
        value = SchemaValue(1, Content("AVRO", "x"))
        for name in ("everywhere", f"only{number}"):
            state.apply(Event(SchemaKey(f":{context}:{name}", 1), value))
    for name, found in (("everywhere", ":.a:everywhere"), ("only1", ":.b:only1"), ("only2", ":.a:only2")):
        assert need(state, name, 1, deleted=False).subject == found
    assert need(state, "only3", LATEST, deleted=False).subject == ":.c:only3"
    for name in (":.a:only1", "only4"):
        assert find_anywhere(state, name, 1, deleted=False) is None
        with pytest.raises(Refusal) as caught:
            need(state, name, 1, deleted=False)
        assert caught.value.code == 40401

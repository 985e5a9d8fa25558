"""Fields in documents: what is named is found or changed, all else stays, and nothing is changed in place."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_filters.documents.fields import MISSING, get, project, put, remove, shown, update

NAMES = st.sampled_from("abc")
DOCUMENTS = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=15,
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
DEEP = {"a": {"b": {"c": 1}}, "l": [{"b": 1}, {"b": 2}, 3]}


def test_get() -> None:
    assert get(DEEP, ("a", "b", "c")) == 1
    assert get(DEEP, ("a", "x")) is MISSING and get(DEEP, ("a", "b", "c", "d")) is MISSING
    assert get(DEEP, ("l", "b")) is MISSING and get({"a": None}, ("a",)) is None


def test_put() -> None:
    assert put({"a": 1}, ("b", "c"), 2) == {"a": 1, "b": {"c": 2}}
    assert put(DEEP, ("a", "b", "c"), 2)["a"] == {"b": {"c": 2}}
    with pytest.raises(ValueError, match="there is no object for the field b"):
        put({"a": 1}, ("a", "b"), 2)


def test_remove_and_update_reach_into_lists() -> None:
    assert remove(DEEP, ("l", "b"))["l"] == [{}, {}, 3]
    assert update(DEEP, ("l", "b"), lambda one: -one)["l"] == [{"b": -1}, {"b": -2}, 3]
    assert update([1, 2], (), len) == 2


def test_project() -> None:
    assert project(DEEP, [("a", "b"), ("l", "b"), ("x",)]) == {
        "a": {"b": {"c": 1}},
        "l": [{"b": 1}, {"b": 2}, 3],
    }
    assert project({"a": {"b": 1, "c": 2}, "d": 3}, [("a", "c")]) == {"a": {"c": 2}}


def test_shown() -> None:
    assert shown(("a", "b.c")) == "a.`b.c`"


@given(DOCUMENTS, PATHS)
def test_no_document_is_changed(document: Any, path: tuple[str, ...]) -> None:
    before = copy.deepcopy(document)
    removed, updated = remove(document, path), update(document, path, lambda _: "new")
    project(document, [path])
    with suppress(ValueError):
        assert get(put(document, path, 7), path) == 7
    assert document == before
    assert get(removed, path) is MISSING
    if get(document, path) is MISSING:
        assert (removed is document) or isinstance(document, dict | list)
    else:
        assert get(updated, path) == "new"

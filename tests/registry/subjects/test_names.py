"""Contexts in names of subjects."""

from __future__ import annotations

import pytest

from leafcuttr_registry.subjects import names
from leafcuttr_registry.subjects.names import SubjectName


@pytest.mark.parametrize(
    ("name", "parts", "written"),
    [
        ("a", (".", "a"), "a"),
        (":.c:a", (".c", "a"), ":.c:a"),
        (":.c:", (".c", ""), ":.c:"),
        (":.c", (".c", ""), ":.c:"),
        (":.:a", (".", "a"), "a"),
        (":.c:a:b", (".c", "a:b"), ":.c:a:b"),
        (":*:a", ("*", "a"), ":*:a"),
        (":a", (".", ":a"), ":a"),
        ("", (".", ""), ""),
    ],
)
def test_names_and_their_parts(name: str, parts: tuple[str, str], written: str) -> None:
    assert names.split(name) == SubjectName(*parts)
    assert names.normalized(name) == written
    assert names.context_of(name) == parts[0]


def test_a_name_beside_another() -> None:
    assert names.beside("a", "b") == "b"
    assert names.beside(":.c:a", "b") == ":.c:b"
    assert names.beside(":.c:a", ":.d:b") == ":.d:b"


@pytest.mark.parametrize("given", ["c", ".c", ":.c:", ":c:", ".c:"])
def test_prefixes(given: str) -> None:
    assert names.prefix_of(given) == ":.c:"


def test_prefixes_that_are_none() -> None:
    assert names.prefix_of(".") == "" and names.prefix_of("") == ""
    with pytest.raises(ValueError, match="cannot contain a colon"):
        names.prefix_of("a:b")


def test_what_a_subject_may_be_called() -> None:
    assert names.is_valid("a/b ü", of_schemas=True)
    for name in ("a\nb", "a\x7f", "__GLOBAL", "__EMPTY", ":.c:__GLOBAL", ":.__GLOBAL:a"):
        assert not names.is_valid(name, of_schemas=True)
    assert names.is_valid(":.__GLOBAL:", of_schemas=False)


def test_within() -> None:
    assert names.within(None, "a") and names.within("a", "a") and not names.within("a", "b")
    assert names.within(":.c:", ":.c:a") and not names.within(":.c:", "a")
    assert names.within(":.__GLOBAL:", ":.c:a") and names.within(":.__GLOBAL:", "a")
    assert names.within("", "a") and not names.within("", ":.c:a")
    assert names.is_context(None) and names.is_context(":.c:") and not names.is_context("a")

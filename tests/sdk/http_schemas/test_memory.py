"""What a client remembers of a registry."""

from __future__ import annotations

import pytest

from leafcuttr_sdk.http_schemas.memory import Bounded, SchemaMemory, context_of
from leafcuttr_sdk.schemas import RegisteredSchema, SchemaVersion

ONE = RegisteredSchema(1, "0A-guid", "AVRO", '"int"')
OTHER = RegisteredSchema(1, "0b-guid", "AVRO", '"long"')


@pytest.mark.parametrize(
    ("subject", "context"),
    [
        (None, "."),
        ("orders", "."),
        (":.other:orders", ".other"),
        (":.:orders", "."),
        (":.other:", ".other"),
        (":.other", ".other"),
        (":orders", "."),
    ],
)
def test_the_context_of_a_subject(subject: str | None, context: str) -> None:
    assert context_of(subject) == context


def test_those_that_were_used_last_are_kept() -> None:
    kept: Bounded[str, int] = Bounded(2)
    kept.put("a", 1)
    kept.put("b", 2)
    assert kept.get("a") == 1
    kept.put("c", 3)
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == (1, None, 3)
    kept.put("a", 4)
    kept.put("d", 5)
    assert (kept.get("a"), kept.get("c")) == (4, None)


def test_ids_are_of_a_context_and_guids_of_all() -> None:
    memory = SchemaMemory(10, 0)
    memory.has(ONE, "orders")
    memory.has(OTHER, ":.far:orders")
    assert memory.get(1, None) == ONE
    assert memory.get(1, ":.far:others") == OTHER
    assert memory.get("0B-GUID", None) == OTHER
    assert memory.get("0a-guid", ":.far:x") == ONE
    assert memory.get(2, None) is None


def test_which_subjects_have_a_schema() -> None:
    memory = SchemaMemory(10, 0)
    memory.has(ONE, "orders")
    assert not memory.belongs(1, "orders")
    memory.is_in(ONE, "orders")
    memory.is_in(ONE, "others")
    assert memory.belongs(1, "orders")
    assert memory.belongs("0a-guid", "others")
    assert not memory.belongs(1, ":.far:orders")
    assert not memory.belongs(2, "orders")


def test_versions_are_by_the_subject_that_was_named() -> None:
    memory = SchemaMemory(10, 0)
    found = SchemaVersion("orders", 3, ONE)
    memory.has_version(found, "alias")
    assert memory.version("alias", 3) == found
    assert memory.version("orders", 3) is None
    assert memory.version("alias", 2) is None
    assert memory.belongs(1, "alias")


def test_what_was_registered_is_not_what_was_found() -> None:
    memory = SchemaMemory(10, 0)
    given = ("orders", "AVRO", '"int"', ())
    memory.answered(ONE, *given)
    assert memory.asked(RegisteredSchema, *given) == ONE
    assert memory.asked(SchemaVersion, *given) is None
    assert memory.asked(RegisteredSchema, "orders", "JSON", '"int"', ()) is None
    assert memory.asked(RegisteredSchema, "others", "AVRO", '"int"', ()) is None


def test_what_is_missing_is_so_for_a_time() -> None:
    memory = SchemaMemory(10, 5)
    memory.lacks(7, "orders", 100)
    assert memory.is_missing(7, None, 104.9)
    assert not memory.is_missing(7, None, 105)
    assert not memory.is_missing(7, ":.far:orders", 101)
    assert not memory.is_missing(8, None, 101)
    never = SchemaMemory(10, 0)
    never.lacks(7, None, 100)
    assert not never.is_missing(7, None, 100)

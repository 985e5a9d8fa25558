"""`schemas list` and `schemas get`."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from leafcuttr_sdk.testing import CommandResult
from support.registry import Asked

Schemas = Callable[..., CommandResult]


def test_subjects_with_their_latest_versions(schemas: Schemas, ask: Asked) -> None:
    ask.register("list-a", "id")
    first = ask.register("list-a", "id,name")["id"]
    ask.register("list-b", "other")
    done = schemas("list", "--prefix", "list-")
    assert done.status == 0, done.err
    head, *rows = [line.split() for line in done.out.splitlines()]
    assert head == ["SUBJECT", "VERSION", "ID", "TYPE", "REFERENCES", "SCHEMA"]
    assert rows[0] == ["list-a", "2", str(first), "COLUMNS", "-", "id,name"]
    assert [row[0] for row in rows] == ["list-a", "list-b"]


def test_the_versions_of_a_subject(schemas: Schemas, ask: Asked) -> None:
    ask.register("versions", "id")
    ask.register("versions", "id,name")
    ask("DELETE", "/subjects/versions/versions/1")
    for words, numbers in ((("list", "versions"), [2]), (("list", "versions", "--deleted"), [1, 2])):
        done = schemas(*words, "--json")
        assert [each["version"] for each in json.loads(done.out)] == numbers


@pytest.mark.parametrize("how", ["id", "guid", "subject", "version"])
def test_the_text_of_a_schema(schemas: Schemas, ask: Asked, how: str) -> None:
    id = ask.register(f"got-{how}", f"id,{how}")["id"]
    guid = ask.get(f"/subjects/got-{how}/versions/1")["guid"]
    words = {
        "id": [str(id)],
        "guid": [guid],
        "subject": [f"got-{how}"],
        "version": [f"got-{how}", "1"],
    }[how]
    done = schemas("get", *words)
    assert (done.status, done.out) == (0, f"id,{how}\n")
    assert json.loads(schemas("get", *words, "--json").out)["schema"] == f"id,{how}"


@pytest.mark.parametrize(
    "words, said",
    [
        (("get", "9999999"), "leafcuttr: Schema 9999999 not found"),
        (("get", "nothing"), "leafcuttr: Subject 'nothing' not found."),
        (("list", "nothing"), "leafcuttr: Subject 'nothing' not found."),
        (("get", "nothing", "x"), "leafcuttr: The specified version 'x' is not a valid version id."),
    ],
)
def test_what_is_not_there_is_one_line(schemas: Schemas, words: tuple[str, ...], said: str) -> None:
    done = schemas(*words)
    assert done.status == 1 and done.out == ""
    assert done.err.startswith(said) and len(done.err.splitlines()) == 1

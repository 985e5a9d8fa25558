"""`schemas export` and `schemas import`: a registry copied to another."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from leafcuttr_sdk.testing import CommandResult
from support.registry import Asked, running_registry

Schemas = Callable[..., CommandResult]
REFERENCE = {"name": "base", "subject": "copied-base", "version": 1}


def fill(ask: Asked) -> None:
    ask.register("copied-other", "one")
    ask.register("copied-base", "id,name")
    ask.register("copied-base", "id,name,more")
    ask.register("copied-top", "@base", references=[REFERENCE])
    ask("DELETE", "/subjects/copied-base/versions/2")
    ask("PUT", "/config/copied-top", {"compatibility": "FULL"})


def lines(text: str) -> list[dict[str, object]]:
    return [
        {key: value for key, value in json.loads(line).items() if key != "ts"} for line in text.splitlines()
    ]


@pytest.mark.long
def test_a_registry_copied_to_another(schemas: Schemas, ask: Asked, tmp_path: Path) -> None:
    fill(ask)
    written = schemas("export", "--prefix", "copied-", "--deleted")
    assert written.status == 0, written.err
    Path("all.jsonl").write_text(written.out)
    with running_registry(tmp_path / "other") as other:
        to_other = ("--registry", other.url)
        assert schemas("import", "all.jsonl", *to_other).out == "registered 4 versions\n"
        again = schemas("export", "--prefix", "copied-", "--deleted", *to_other)
        assert lines(again.out) == lines(written.out)
        assert other.ask.get("/config/copied-top")["compatibilityLevel"] == "FULL"
        assert other.ask("GET", "/mode/copied-base").status == 404  # it is not left in IMPORT
        # The ids are taken: what comes next has another one.
        new = other.ask.register("copied-next", "brand,new")["id"]
        assert new > max(each["id"] for each in lines(written.out) if "id" in each)  # type: ignore[type-var]


@pytest.mark.long
def test_with_ids_of_the_other_registry(schemas: Schemas, ask: Asked, tmp_path: Path) -> None:
    for number in range(3):
        ask.register(f"moved-{number}", f"column{number}")
    written = schemas("export", "--prefix", "moved-2").out
    with running_registry(tmp_path / "other") as other:
        done = schemas("import", "-", "--new-ids", "--registry", other.url, "--json", stdin=written)
        assert json.loads(done.out) == {"versions": 1}
        assert other.ask.get("/subjects/moved-2/versions/1")["id"] == 1


def test_what_export_has_not_written(schemas: Schemas) -> None:
    none = "it is none of the lines that export writes"
    for text, said in (
        ("{}", f"line 1: {none}"),
        ("\n[", "line 2: "),
        ('{"subject":"a","schema":"x"}', f"line 1: {none}"),
        ('{"subject":null,"schema":"x","id":1,"version":1}', f"line 1: {none}"),
        ('{"subject":"a","schema":"x","id":"1","version":1}', f"line 1: {none}"),
        ('{"subject":1,"mode":"IMPORT"}', f"line 1: {none}"),
        ('{"subject":"a"}', f"line 1: {none}"),
        ("[" * 100_000, "line 1: "),
    ):
        done = schemas("import", "-", stdin=text)
        assert done.status == 1 and done.err.startswith(f"leafcuttr: {said}")


def test_a_refusal_in_the_middle_says_how_far_it_came(schemas: Schemas, ask: Asked) -> None:
    ask.register("taken", "a,b")
    rows = [
        {"subject": "fresh", "version": 1, "id": 900_001, "schema": "x", "schemaType": "COLUMNS"},
        {"subject": "fresh", "version": 2, "id": 900_002, "schema": "?", "schemaType": "COLUMNS"},
    ]
    done = schemas("import", "-", stdin="\n".join(map(json.dumps, rows)))
    assert done.status == 1 and "(of 2 versions 1 are registered)" in done.err
    assert ask("GET", "/mode/fresh").status == 404


def test_bytes_that_are_no_text(schemas: Schemas) -> None:
    Path("odd.jsonl").write_bytes(b"\n\xff\xfe{}\n")
    done = schemas("import", "odd.jsonl")
    assert done.status == 1 and "is not UTF-8, at byte 1" in done.err


def test_a_line_separator_in_a_schema_is_part_of_it(schemas: Schemas, ask: Asked) -> None:
    text = '{"type":"record","name":"R","doc":"a\u2028b\x85","fields":[]}'
    row = json.dumps({"subject": "separated", "version": 1, "id": 1, "schema": text}, ensure_ascii=False)
    assert schemas("import", "-", "--new-ids", stdin=row).status == 0
    assert "\u2028" in ask.get("/subjects/separated/versions/1")["schema"]

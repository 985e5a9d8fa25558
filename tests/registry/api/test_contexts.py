"""Contexts: in names, before paths, listed, deleted."""

from __future__ import annotations

import pytest

from support.registry import Asked, RegistryProcess


@pytest.fixture(scope="module")
def registry(own_registry: RegistryProcess) -> RegistryProcess:
    return own_registry


def columns(schema: str, **more: object) -> dict[str, object]:
    return {"schema": schema, "schemaType": "COLUMNS", **more}


def test_ids_are_those_of_the_context(ask: Asked) -> None:
    outside = ask.register("x-a", "outside")
    inside = ask("POST", "/contexts/x/subjects/x-a/versions", columns("inside")).json
    assert inside["id"] == 1
    assert ask.register(":.x:x-b", "outside")["id"] == 2
    assert ask.get("/contexts/.x/schemas/ids/1")["schema"] == "inside"
    assert ask.get("/schemas/ids/1?subject=:.x:")["schema"] == "inside"
    assert ask.get("/schemas/ids/2?subject=x-b")["subject"] == ":.x:x-b"
    assert ask.get(f"/schemas/ids/{outside['id']}")["schema"] == "outside"
    assert ask.get("/contexts/x/subjects") == [":.x:x-a", ":.x:x-b"]
    assert ask.get("/contexts/x/subjects?subjectPrefix=x-b") == [":.x:x-b"]
    assert [each["subject"] for each in ask.get("/contexts/x/schemas")] == [":.x:x-a", ":.x:x-b"]
    assert ask.get("/contexts/x/subjects/x-a/versions/latest")["schema"] == "inside"
    assert ask.get("/contexts/x/subjects/x-a/versions") == [1]
    assert ask("POST", "/contexts/x/subjects/x-a", columns("inside")).json["subject"] == ":.x:x-a"
    assert ask.get("/contexts/x/schemas/types") == ask.get("/schemas/types")
    path = "/contexts/x/compatibility/subjects/x-a/versions/latest"
    assert ask("POST", path, columns("no")).json == {"is_compatible": False}
    ids = ask.get(f"/schemas/guids/{outside['guid']}/ids")
    assert ids == [{"context": ".", "id": outside["id"]}, {"context": ".x", "id": 2}]


def test_names_without_a_context_are_found_in_others(ask: Asked) -> None:
    ask.register(":.y:y-only", "y")
    assert ask.get("/subjects/y-only/versions/latest")["subject"] == ":.y:y-only"
    assert ask("POST", "/subjects/y-only", columns("y")).json["subject"] == ":.y:y-only"
    assert ask("GET", "/subjects/:.z:y-only/versions/latest").code == 40401


def test_references_are_in_the_context_of_the_schema(ask: Asked) -> None:
    ask.register(":.r:r-base", "base")
    refers = [{"name": "b", "subject": "r-base", "version": 1}]
    found = ask.register(":.r:r-uses", "@b", references=refers)
    assert found["references"] == refers
    path = "/subjects/:.r:r-uses/versions/1"
    assert ask.get(f"{path}?referenceFormat=qualified")["references"][0]["subject"] == ":.r:r-base"
    assert ask.get("/subjects/:.r:r-base/versions/1/referencedby") == [found["id"]]


@pytest.mark.long
def test_listed_and_deleted(ask: Asked) -> None:
    ask.register(":.l:a", "a")
    assert ask.get("/contexts")[0] == "." and ".l" in ask.get("/contexts")
    assert ask.get("/contexts?contextPrefix=.l") == [".l"]
    assert ask("DELETE", "/contexts/.l").code == 42211
    ask("DELETE", "/subjects/:.l:a")
    ask("DELETE", "/subjects/:.l:a?permanent=true")
    assert ask("DELETE", "/contexts/.l").status == 204
    assert ".l" not in ask.get("/contexts")
    assert ask.register(":.l:a", "b")["id"] == 2, "ids are not given twice"
    assert ask("DELETE", "/contexts/a:b").code == 400
    assert ask("GET", "/contexts/a%3Ab/subjects").code == 400

"""Modes: what may be written, and imports with ids that are given."""

from __future__ import annotations

from support.registry import Asked


def columns(schema: str, **more: object) -> dict[str, object]:
    return {"schema": schema, "schemaType": "COLUMNS", **more}


def test_of_a_subject(ask: Asked) -> None:
    assert ask.get("/mode") == {"mode": "READWRITE"}
    assert ask("GET", "/mode/m-a").code == 40409
    assert ask.get("/mode/m-a?defaultToGlobal=true") == {"mode": "READWRITE"}
    assert ask("PUT", "/mode/m-a", {"mode": "READONLY"}).json == {"mode": "READONLY"}
    answer = ask("POST", "/subjects/m-a/versions", columns("a"))
    assert (answer.code, answer.json["message"]) == (42205, "Subject m-a in context  is in read-only mode")
    assert ask("PUT", "/config/m-a", {"compatibility": "NONE"}).code == 42205
    assert ask("DELETE", "/mode/m-a").json == {"mode": "READONLY"}
    assert ask("DELETE", "/mode/m-a").code == 40401
    assert ask.register("m-a", "a")["version"] == 1
    ask("PUT", "/mode/m-a", {"mode": "READONLY"})
    assert ask.register("m-a", "a")["version"] == 1, "what is there already is found"
    assert ask("DELETE", "/subjects/m-a").code == 42205
    assert ask("DELETE", "/subjects/m-a/versions/1").code == 42205


def test_that_are_none(ask: Asked) -> None:
    assert ask("PUT", "/mode", {"mode": "SOME"}).code == 42204
    assert ask("PUT", "/mode/m-b", {"mode": "FORWARD"}).code == 42204
    assert ask("PUT", "/mode/__EMPTY", {"mode": "IMPORT"}).code == 42208


def test_import(ask: Asked) -> None:
    assert ask("POST", "/subjects/m-c/versions", columns("c", id=7000)).code == 42205
    ask.register("m-c", "c")
    assert ask("PUT", "/mode/m-c", {"mode": "IMPORT"}).code == 42205
    assert ask("PUT", "/mode/m-c?force=true", {"mode": "IMPORT"}).json == {"mode": "IMPORT"}
    assert ask("POST", "/subjects/m-c/versions", columns("d")).code == 42205
    answer = ask("POST", "/subjects/m-c/versions", columns("d", id=7000, version=12))
    assert (answer.json["id"], answer.json["version"]) == (7000, 12)
    again = ask("POST", "/subjects/m-c/versions", columns("d", id=7000, version=12))
    assert (again.json["id"], again.json["version"]) == (7000, 12)
    answer = ask("POST", "/subjects/m-c/versions", columns("e", id=7000))
    assert answer.code == 42205 and "Overwrite new schema with id 7000" in answer.json["message"]
    ask("PUT", "/mode/m-c", {"mode": "READWRITE"})
    assert ask.register("m-d", "after")["id"] == 7001
    assert ask.get("/schemas/ids/7000?fetchMaxId=true")["maxId"] == 7001


def test_import_removes_what_was_deleted(ask: Asked) -> None:
    ask.register("m-e", "e")
    ask("DELETE", "/subjects/m-e")
    assert ask("PUT", "/mode/m-e", {"mode": "import"}).json == {"mode": "import"}
    assert ask("GET", "/subjects/m-e/versions?deleted=true").code == 40401


def test_contexts_and_the_one_above_all(ask: Asked) -> None:
    ask("PUT", "/mode/:.m:", {"mode": "READONLY"})
    assert ask("POST", "/subjects/:.m:a/versions", columns("a")).code == 42205
    ask("PUT", "/mode/:.m:a", {"mode": "READWRITE"})
    assert ask.register(":.m:a", "a")["version"] == 1
    assert ask("DELETE", "/mode/:.m:?recursive=true").json == {"mode": "READONLY"}
    assert ask("GET", "/mode/:.m:a").code == 40409
    ask("PUT", "/mode/m-f", {"mode": "READWRITE"})
    ask("PUT", "/mode", {"mode": "READONLY_OVERRIDE"})
    assert ask("POST", "/subjects/m-f/versions", columns("a")).code == 42205
    assert ask("DELETE", "/mode").json == {"mode": "READONLY_OVERRIDE"}
    assert ask.register("m-f", "a")["version"] == 1

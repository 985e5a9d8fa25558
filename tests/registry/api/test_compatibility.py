"""Whether a schema could be registered: against one version, against those that the level asks for, with reasons."""

from __future__ import annotations

from typing import Any

import pytest

from support.registry import Asked


def check(ask: Asked, subject: str, schema: str, version: str = "", **more: Any) -> Any:
    path = f"/compatibility/subjects/{subject}/versions" + (f"/{version}" if version else "")
    answer = ask("POST", f"{path}?verbose=true", {"schema": schema, "schemaType": "COLUMNS", **more})
    assert answer.status == 200, answer
    assert bool(answer.json["messages"]) != answer.json["is_compatible"]
    quiet = ask("POST", path, {"schema": schema, "schemaType": "COLUMNS", **more})
    assert quiet.status == 422 or quiet.json == {"is_compatible": answer.json["is_compatible"]}
    return answer.json


@pytest.mark.parametrize(
    ("level", "fits"),
    [  # of a,b,c then a,b: may "a,b,c,d", "a", "x"?
        ("NONE", [True, True, True]),
        ("BACKWARD", [True, False, False]),
        ("BACKWARD_TRANSITIVE", [True, False, False]),
        ("FORWARD", [False, True, False]),
        ("FORWARD_TRANSITIVE", [False, True, False]),
        ("FULL", [False, False, False]),
        ("FULL_TRANSITIVE", [False, False, False]),
    ],
)
def test_levels(ask: Asked, level: str, fits: list[bool]) -> None:
    subject = f"c-{level}"
    ask("PUT", f"/config/{subject}", {"compatibility": "NONE"})
    ask.register(subject, "a,b,c")
    ask.register(subject, "a,b")
    ask("PUT", f"/config/{subject}", {"compatibility": level})
    assert [check(ask, subject, schema)["is_compatible"] for schema in ("a,b,c,d", "a", "x")] == fits


def test_transitive_levels_ask_for_all_versions(ask: Asked) -> None:
    ask("PUT", "/config/c-all", {"compatibility": "NONE"})
    for schema in ("a,b,c", "a"):
        ask.register("c-all", schema)
    for level, fits in (("BACKWARD", True), ("BACKWARD_TRANSITIVE", False)):
        ask("PUT", "/config/c-all", {"compatibility": level})
        assert check(ask, "c-all", "a,b")["is_compatible"] is fits
    assert check(ask, "c-all", "a,b", "1")["is_compatible"] is False
    assert check(ask, "c-all", "a,b", "2")["is_compatible"] is True


def test_reasons(ask: Asked) -> None:
    ask.register("c-why", "a,b")
    found = check(ask, "c-why", "b")
    assert len(found["messages"]) == 5
    assert (
        "errorType:'COLUMN_MOVED', description:'Column 0 was a.', path:'/0', old:'a', new:'b'"
        in found["messages"][0]
    )
    assert found["messages"][2:] == [
        "{oldSchemaVersion: 1}",
        "{oldSchema: 'a,b'}",
        "{validateFields: 'false', compatibility: 'BACKWARD'}",
    ]
    assert "no name of a column" in check(ask, "c-why", "1")["messages"][0]
    assert (
        "of type AVRO, version 1 of type COLUMNS"
        in check(ask, "c-why", '"string"', schemaType="AVRO")["messages"][0]
    )


def test_where_there_is_nothing(ask: Asked) -> None:
    assert check(ask, "c-none", "a")["is_compatible"] is True
    path = "/compatibility/subjects/c-none/versions/latest"
    answer = ask("POST", path, {"schema": "a", "schemaType": "COLUMNS"})
    assert (answer.status, answer.code) == (404, 40401)


def test_groups(ask: Asked) -> None:
    ask("PUT", "/config/c-group", {"compatibilityGroup": "major"})
    ask.register("c-group", "a,b", metadata={"properties": {"major": "1"}})
    assert check(ask, "c-group", "x")["is_compatible"] is True
    two = {"metadata": {"properties": {"major": "2"}}}
    assert check(ask, "c-group", "x", **two)["is_compatible"] is True
    assert check(ask, "c-group", "x", metadata={"properties": {"major": "1"}})["is_compatible"] is False
    assert ask.register("c-group", "x", **two)["version"] == 2

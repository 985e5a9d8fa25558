"""Whether a schema could be registered: against one version, against those that the level asks for, with reasons."""

from __future__ import annotations

import json
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


def test_reserved_fields(ask: Asked) -> None:
    """`validateFields`: a field that metadata reserve is not there, and stays reserved."""

    def of(field: str, reserved: str) -> dict[str, Any]:
        record = {"type": "record", "name": "R", "fields": [{"name": field, "type": "int", "default": 0}]}
        metadata = {"properties": {"confluent:reserved": reserved}}
        return {"schema": json.dumps(record), "metadata": metadata}

    one, two, taken = of("a", "f, g"), of("a", "g"), of("g", "f,g")
    for level in ("BACKWARD", "NONE"):
        subject = f"c-reserved-{level}"
        ask("PUT", f"/config/{subject}", {"compatibility": level, "validateFields": True})
        assert ask("POST", f"/subjects/{subject}/versions", one).status == 200
        path = f"/compatibility/subjects/{subject}/versions?verbose=true"
        answer = ask("POST", path, two).json
        assert answer["is_compatible"] is False
        assert answer["messages"] == [
            "The new schema has reserved field f removed from its metadata which is present in the old schema's "
            "metadata.",
            f"{{validateFields: 'true', compatibility: '{level}'}}",
        ]
        told = ask("POST", path, taken).json["messages"]
        assert "The new schema has field that conflicts with the reserved field g." in told
        assert ask("POST", f"/subjects/{subject}/versions", two).status == 409
        ask("PUT", f"/config/{subject}", {"validateFields": False})
        assert ask("POST", path, two).json["is_compatible"] is True
    dollars = {"schemaType": "JSON", "schema": '{"type":"object","properties":{"$$a":{}}}'}
    ask("PUT", "/config/c-dollars", {"validateFields": True})
    refused = ask("POST", "/subjects/c-dollars/versions", dollars)
    assert refused.code == 42201 and "cannot start with $$" in refused.json["message"]


def test_the_policy_of_json_schema(ask: Asked) -> None:
    def of(*names: str) -> dict[str, Any]:
        properties = {name: {"type": "string"} for name in names}
        return {"schemaType": "JSON", "schema": json.dumps({"type": "object", "properties": properties})}

    ask("POST", "/subjects/c-policy/versions", of("a"))
    path = "/compatibility/subjects/c-policy/versions/latest"
    assert ask("POST", path, of("a", "b")).json == {"is_compatible": False}
    ask("PUT", "/config/c-policy", {"compatibilityPolicy": "lenient"})
    assert ask.get("/config/c-policy")["compatibilityPolicy"] == "LENIENT"
    assert ask("POST", path, of("a", "b")).json == {"is_compatible": True}
    ask("PUT", "/config/c-policy", {"compatibilityPolicy": "STRICT"})
    assert ask("POST", path, of("a", "b")).json == {"is_compatible": False}
    for policy in ("LOGICAL", "other"):
        answer = ask("PUT", "/config/c-policy", {"compatibilityPolicy": policy})
        assert answer.status == 400 and "allowed are STRICT and LENIENT" in answer.json["message"]

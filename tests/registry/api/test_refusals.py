"""What is refused: the request, the code and the message, which is Confluent's."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_registry.api import documentation
from leafcuttr_registry.checks.reading import _refusal
from leafcuttr_sdk.schemas import SchemaError
from support.registry import Asked

RULES = {"ruleSet": {"domainRules": [{"name": "1"}]}}
MISSING = [{"name": "b", "subject": "r-none", "version": 1}]


def columns(schema: str, **more: Any) -> dict[str, Any]:
    return {"schema": schema, "schemaType": "COLUMNS", **more}


@pytest.fixture(scope="module")
def there(registry: Any) -> None:
    ask: Asked = registry.ask
    ask.register("r-a", "a")
    ask.register("r-a", "a,b")
    ask.register("r-base", "x")
    ask.register("r-uses", "@b", references=[{"name": "b", "subject": "r-base", "version": 1}])
    for subject in ("r-deleted", "r-partly"):
        ask.register(subject, "a")
        ask.register(subject, "a,b")
    ask("DELETE", "/subjects/r-deleted")
    ask("DELETE", "/subjects/r-partly/versions/1")
    ask.register("r-read", "a")
    ask("PUT", "/mode/r-read", {"mode": "READONLY"})
    ask.register(":.r:a", "a")


VERSIONS = "/subjects/r-a/versions"


@pytest.mark.parametrize(
    ("request_", "body", "code", "message"),
    [
        ("GET /subjects/r-none/versions", None, 40401, "Subject 'r-none' not found."),
        ("GET /subjects/r-none/versions/1", None, 40401, "Subject 'r-none' not found."),
        ("DELETE /subjects/r-none", None, 40401, "Subject 'r-none' not found."),
        ("POST /subjects/r-none", columns("a"), 40401, "Subject 'r-none' not found."),
        ("GET /config/r-none", None, 40401, "Subject 'r-none' does not have subject-level compatibility"),
        (f"GET {VERSIONS}/7", None, 40402, "Version 7 not found."),
        (f"DELETE {VERSIONS}/7", None, 40402, "Version 7 not found."),
        ("GET /schemas/ids/99999", None, 40403, "Schema 99999 not found"),
        ("GET /schemas/guids/none", None, 40403, "Schema none not found"),
        ("POST /subjects/r-a", columns("c"), 40403, "Schema not found"),
        (f"POST {VERSIONS}", {"schema": "a", "schemaType": "avro"}, 42201, "Invalid schema type avro"),
        (f"POST {VERSIONS}", {"schema": "a", "schemaType": ""}, 42201, "Invalid schema type "),
        (
            "DELETE /subjects/r-deleted",
            None,
            40404,
            "Subject 'r-deleted' was soft deleted.Set permanent=true to delete permanently",
        ),
        (
            "DELETE /subjects/r-a?permanent=true",
            None,
            40405,
            "Subject 'r-a' was not deleted first before being permanently deleted",
        ),
        (
            "DELETE /subjects/r-partly/versions/1",
            None,
            40406,
            "Subject 'r-partly' Version 1 was soft deleted.Set permanent=true to delete permanently",
        ),
        (
            f"DELETE {VERSIONS}/1?permanent=true",
            None,
            40407,
            "Subject 'r-a' Version 1 was not deleted first before being permanently deleted",
        ),
        ("GET /mode/r-none", None, 40409, "Subject 'r-none' does not have subject-level mode configured"),
        (f"POST {VERSIONS}", columns("b"), 409, "Schema being registered is incompatible with an earlier"),
        (f"POST {VERSIONS}", columns(" "), 42201, "Empty schema"),
        (f"POST {VERSIONS}", {"schema": "a", "schemaType": "NO"}, 42201, "Invalid schema type NO"),
        (f"POST {VERSIONS}", columns("@b", references=MISSING), 42201, 'subject "r-none" and version 1'),
        (f"GET {VERSIONS}/one", None, 42202, "The specified version 'one' is not a valid version id."),
        ("PUT /config/r-a", {"compatibility": "NO"}, 42203, "Invalid compatibility level."),
        ("PUT /mode/r-a", {"mode": "NO"}, 42204, "Invalid mode. Valid values are READWRITE, READONLY,"),
        (
            "POST /subjects/r-read/versions",
            columns("a,b"),
            42205,
            "Subject r-read in context  is in read-only",
        ),
        (
            "DELETE /subjects/r-base/versions/1",
            None,
            42206,
            "exist to the schema {magic=1,keytype=SCHEMA,subject=r-base,version=1}.",
        ),
        (
            "POST /subjects/__EMPTY/versions",
            columns("a"),
            42208,
            "The specified subject '__EMPTY' is not a valid.",
        ),
        (f"POST {VERSIONS}", columns("a,b,c", **RULES), 42210, ""),
        ("DELETE /contexts/.r", None, 42211, "The specified context ':.r:' is not empty."),
    ],
)
@pytest.mark.usefixtures("there")
def test_refusals(ask: Asked, request_: str, body: Any, code: int, message: str) -> None:
    answer = ask(*request_.split(), body)
    assert (answer.code, answer.status) == (code, code if code < 1000 else code // 100), answer
    assert answer.json["message"] and message in answer.json["message"], answer


@pytest.mark.parametrize(
    ("type", "schema", "details"),
    [
        (
            "AVRO",
            '{"type":"record","name":"R","fields":[{"name":"a","type":"no"}]}',
            "/fields/0/type: 'no' is not defined",
        ),
        ("JSON", '{"properties":{"a":{"minLength":"no"}}}', 'at "/properties/a/minLength" is "no"'),
        (
            "PROTOBUF",
            'syntax = "proto3";\nmessage M {\n  No a = 1;\n}\n',
            "line 3: No is not defined",
        ),
    ],
)
def test_the_place_in_the_schema(ask: Asked, type: str, schema: str, details: str) -> None:
    answer = ask("POST", "/subjects/r-place/versions", {"schema": schema, "schemaType": type})
    assert answer.code == 42201, answer
    assert answer.json["message"].startswith(f"Invalid schema of type {type}, details: ")
    assert details in answer.json["message"], answer
    assert answer.json["message"].count("line ") <= 1, answer


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (SchemaError("bad", path="M.a", line=3), "bad (at M.a, line 3)"),
        (SchemaError("bad", path="M.a"), "bad (at M.a)"),
        (SchemaError("bad", line=3), "bad (line 3)"),
        (SchemaError("M.a is bad", path="M.a", line=3), "M.a is bad (line 3)"),
        (SchemaError("line 3: bad", line=3), "line 3: bad"),
        (SchemaError("line 3: bad", path="M.a", line=3), "line 3: bad (at M.a)"),
        (
            SchemaError("in the reference x.proto, line 3: bad", path="x.proto", line=3),
            "in the reference x.proto, line 3: bad",
        ),
        (SchemaError("not JSON at line 30, column 3", line=3), "not JSON at line 30, column 3 (line 3)"),
        (SchemaError("line 3 has no end", line=3), "line 3 has no end"),
        (SchemaError("bad"), "bad"),
    ],
)
def test_a_place_that_the_message_does_not_say(error: SchemaError, message: str) -> None:
    assert str(_refusal("A", error)) == f"Invalid schema of type A, details: {message}"


OPERATIONS = sorted(
    operation
    for operation in documentation._OPERATIONS
    if operation[1] != "/" and not operation[1].startswith(("/contexts", "/restart", "/openapi"))
)
NAMES = {"subject": "w-a", "version": "1", "id": "1", "namespace": "-", "name": "w", "guid": "none"}


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_each_path_may_stand_below_a_context(ask: Asked, method: str, path: str) -> None:
    """It is there, and what is read is that of the context: as with the context in the subject."""
    if ask("GET", "/subjects/:.w:w-a/versions").status == 404:
        ask.register(":.w:w-a", "inside")
        ask.register("w-a", "outside")
        ask("PUT", "/config/:.w:w-a", {"compatibility": "NONE"})
        ask("PUT", "/mode/:.w:w-a", {"mode": "READWRITE"})
    below = ask(method, "/contexts/.w" + path.format(**NAMES), {"schema": " "} if method != "GET" else None)
    assert below.status not in (404, 405) or below.code > 40400, below
    assert below.status < 500, below
    if method != "GET":
        return
    inside = path.format(**{**NAMES, "subject": ":.w:w-a"})
    if path in ("/config", "/mode"):
        inside += "/:.w:"
    elif path.startswith("/schemas/ids"):
        inside += "?subject=:.w:"
    elif path in ("/schemas", "/subjects"):
        inside += "?subjectPrefix=:.w:"
    found = ask("GET", inside)
    assert (below.status, below.json) == (found.status, found.json)

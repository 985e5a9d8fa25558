"""Elements of OpenAPI, and the document: valid, and with the ways to authenticate that a service offers."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis

from leafcuttr_sdk.web import openapi

PATHS = {
    "/rows/{key}": {
        "parameters": [{"name": "key", "in": "path", "required": True, "schema": openapi.TEXT}],
        "get": {"responses": openapi.answers(openapi.ref("Row"), (404, 503))},
        "delete": {"responses": openapi.answers(None, status=204)},
    }
}
SCHEMAS = {
    "Row": openapi.record(key=openapi.TEXT, size=openapi.whole(9)),
    "Error": openapi.error_schema((404, 503)),
}


def document(*ways: str, **more: Any) -> dict[str, Any]:
    made = openapi.document("Rows", "1", PATHS, SCHEMAS, ways=ways, **more)
    schemathesis.openapi.from_dict(made).validate()
    return made


def test_without_authentication() -> None:
    made = document("none", description="All of them.", license={"name": "MIT"})
    assert made["info"] == {
        "title": "Rows",
        "version": "1",
        "description": "All of them.",
        "license": {"name": "MIT"},
    }
    assert made["paths"] == PATHS and "security" not in made and "securitySchemes" not in made["components"]
    assert [*made["paths"]["/rows/{key}"]["get"]["responses"]] == ["200", "404", "503"]
    assert made["paths"]["/rows/{key}"]["delete"]["responses"] == {"204": {"description": "Done"}}


@pytest.mark.parametrize(
    ("ways", "security", "refusal"),
    [
        (("basic",), [{"basic": []}], "401"),
        (("none", "bearer"), [{"bearer": []}, {}], "401"),
        (("basic", "mtls"), [{"basic": []}, {"mtls": []}], "401"),
        (("mtls",), [{"mtls": []}], "403"),
        (("none", "mtls"), [{"mtls": []}, {}], "403"),
    ],
)
def test_with_authentication(ways: tuple[str, ...], security: list[object], refusal: str) -> None:
    made = document(*ways, error_types=("application/a+json", "application/b+json"))
    assert made["security"] == security
    assert set(made["components"]["securitySchemes"]) == set(ways) - {"none"}
    row = made["paths"]["/rows/{key}"]
    assert row["parameters"] == PATHS["/rows/{key}"]["parameters"]
    for method in ("get", "delete"):
        answer = row[method]["responses"][refusal]
        assert [*answer["content"]] == ["application/a+json", "application/b+json"]
        assert ("WWW-Authenticate" in answer.get("headers", {})) == (refusal == "401")
    assert "401" not in PATHS["/rows/{key}"]["get"]["responses"], "what is given stays as it is"


def test_a_whole_number_or_its_text() -> None:
    assert openapi.whole(7)["anyOf"][0]["maximum"] == 7
    assert openapi.error_schema()["properties"]["error_code"] == openapi.WHOLE
    assert openapi.error_schema((503, 404))["properties"]["error_code"]["enum"] == [404, 503]
    assert openapi.record(a=openapi.TEXT)["required"] == ["a"]

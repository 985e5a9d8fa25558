"""What answers of a registry mean."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_sdk.http_schemas.answers import asked, checked, id_in_context, id_of, place, schema
from leafcuttr_sdk.http_schemas.exchange import Answer, NoAnswer
from leafcuttr_sdk.schemas import (
    IncompatibleSchemaError,
    RegisteredSchema,
    SchemaError,
    SchemaNotFoundError,
    SchemaProviderError,
    SchemaReference,
)

AT = "http://h:1"


@pytest.mark.parametrize(
    ("status", "body", "error", "says"),
    [
        (
            404,
            {"error_code": 40403, "message": "Schema 7 not found"},
            SchemaNotFoundError,
            "^Schema 7 not found$",
        ),
        (404, {"error_code": 404, "message": "HTTP 404"}, SchemaNotFoundError, "^HTTP 404$"),
        (
            409,
            {"error_code": 409, "message": "no\n[{a}\n{b}]"},
            IncompatibleSchemaError,
            r"^no \[\{a\} \{b\}\]$",
        ),
        (409, {"error_code": 40901, "message": "x"}, IncompatibleSchemaError, "^x$"),
        (422, {"error_code": 42201, "message": "Invalid"}, SchemaError, "^Invalid$"),
        (
            422,
            {"error_code": 42205, "message": "read only"},
            SchemaProviderError,
            r"read only \(error 42205\)",
        ),
        (401, {"error_code": 40101, "message": "who?"}, SchemaProviderError, "at http://h:1 refuses: who"),
        (401, None, SchemaProviderError, r"refuses: status 401 \(error 401\)"),
        (301, None, SchemaProviderError, "status 301"),
        (404, None, SchemaProviderError, r"status 404 \(error 404\)"),
        (404, {"message": "a page of a proxy"}, SchemaProviderError, "a page of a proxy"),
        (404, {"error_code": "40403", "message": ["x"]}, SchemaNotFoundError, "status 404"),
        (500, [], SchemaProviderError, "status 500"),
        (422, {"error_code": True, "message": "x"}, SchemaProviderError, "error 422"),
        (422, {"error_code": 42201, "message": "long " * 10_000}, SchemaError, "^long"),
        (200, None, NoAnswer, "is no schema registry: it sends no JSON"),
    ],
)
def test_refusals(status: int, body: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as raised:
        checked(Answer(status, body), AT)
    assert len(str(raised.value).splitlines()) == 1
    assert len(str(raised.value)) < 1200


def test_an_answer() -> None:
    assert checked(Answer(200, [1]), AT) == [1]


def test_schemas() -> None:
    references = [{"name": "n", "subject": "s", "version": 2}]
    whole = {"id": 7, "guid": "g", "schemaType": "JSON", "schema": "{}", "references": references}
    assert schema(whole, AT) == RegisteredSchema(7, "g", "JSON", "{}", (SchemaReference("n", "s", 2),))
    assert schema({"schema": "x", "schemaType": None, "guid": None}, AT, id=8) == RegisteredSchema(
        8, "", "AVRO", "x"
    )


@pytest.mark.parametrize(
    "body",
    [
        [],
        "x",
        {},
        {"id": 1},
        {"id": "1", "schema": "x"},
        {"id": 1, "schema": 2},
        {"id": 1, "schema": "x", "schemaType": 3},
        {"id": 1, "schema": "x", "guid": 3},
        {"id": 1, "schema": "x", "references": {}},
        {"id": 1, "schema": "x", "references": [1]},
        {"id": 1, "schema": "x", "references": [{"name": "n", "subject": "s"}]},
        {"id": 1, "schema": "x", "references": [{"name": "n", "subject": "s", "version": "1"}]},
        {"id": 1, "schema": "x", "references": [{"name": "n", "subject": "s", "version": 1}] * 1001},
    ],
)
def test_what_is_no_schema(body: Any) -> None:
    with pytest.raises(NoAnswer, match=f"^what answers at {AT} is no schema registry: "):
        schema(body, AT)


def test_places_and_ids() -> None:
    assert place({"subject": "s", "version": 3}, AT) == ("s", 3)
    assert id_of({"id": 4}, AT) == 4
    for read, body in ((place, {"subject": "s"}), (place, {"version": 1}), (id_of, {"id": "4"}), (id_of, [])):
        with pytest.raises(NoAnswer):
            read(body, AT)  # type: ignore[operator]


def test_the_id_of_a_guid() -> None:
    ids = [{"context": ".far", "id": 1}, {"context": ".", "id": 2}, {"context": ".near", "id": 3}]
    assert id_in_context(ids, ".near", AT) == 3
    assert id_in_context(ids, ".unknown", AT) == 2
    assert id_in_context(ids[:1], ".", AT) == 1
    assert id_in_context([], ".", AT) is None
    for body in ({}, [1]):
        with pytest.raises(NoAnswer):
            id_in_context(body, ".", AT)


def test_what_is_sent() -> None:
    assert asked("AVRO", "x", ()) == {"schema": "x"}
    assert asked("JSON", "x", [SchemaReference("n", "s", 1)]) == {
        "schema": "x",
        "schemaType": "JSON",
        "references": [{"name": "n", "subject": "s", "version": 1}],
    }

"""The OpenAPI 3.1 document of all parts and of producing, which the front serves. Tests hold it against the code."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from quart import Response
from quart_trio import QuartTrio

from leafcuttr_http import openapi
from leafcuttr_http.errors import CODES
from leafcuttr_http.negotiation import AS_JSON, JSON, LINES, METADATA, V2_BINARY, V2_JSON
from leafcuttr_http.parts import Part, reply
from leafcuttr_http.proxy import Proxy
from leafcuttr_http.schemas.types import MEDIA_TYPES
from leafcuttr_sdk.web.openapi import document, error_schema


def attach(app: QuartTrio, proxy: Proxy, parts: Sequence[Part]) -> None:
    made: dict[str, Any] = {}

    @app.get("/openapi.json")
    async def openapi_document() -> Response:
        if not made:
            made.update(describe(parts, proxy.broker.cluster.version, proxy.ways))
        return reply(made, offers=(JSON, "application/vnd.oai.openapi+json"))


def describe(parts: Sequence[Part], version: str, ways: Sequence[str] = ("none",)) -> dict[str, Any]:
    """The document of a proxy that offers these ways of authentication."""
    paths: dict[str, Any] = {
        "/openapi.json": {
            "get": {
                "summary": "This document",
                "responses": openapi.answers({"type": "object"}, types=[JSON]),
            }
        }
    }
    schemas = _schemas()
    for pages in (_produce_paths(), *(part.paths() for part in parts)):
        for path, operations in pages.items():
            paths.setdefault(path, {}).update(operations)
    for part in parts:
        schemas.update(part.schemas())
    return document(
        "LeafCuttr HTTP proxy",
        version,
        paths,
        schemas,
        description="Records over HTTP: REST proxy API v2, and more. A slash at the end of a path changes nothing.",
        license={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        ways=ways,
        error_types=METADATA,
    )


def _produce_paths() -> dict[str, Any]:
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "The same request with the same key within ten minutes is answered as before, and not stored "
        "again. Not for bulk uploads.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255},
    }

    def produce(summary: str, parameters: list[Any]) -> dict[str, Any]:
        good = openapi.answers(
            openapi.ref("Produced"),
            (400, 403, 404, 408, 413, 415, 422, 500, 503),
            types=dict.fromkeys(AS_JSON + METADATA),
        )
        good["200"]["content"][LINES] = {"schema": {"type": "string"}}
        return {
            "summary": summary,
            "parameters": [*parameters, key],
            "requestBody": {
                "required": True,
                "content": {
                    JSON: {"schema": openapi.ref("JsonRecords")},
                    V2_JSON: {"schema": openapi.ref("JsonRecords")},
                    V2_BINARY: {"schema": openapi.ref("BinaryRecords")},
                    **{type: {"schema": openapi.ref("SchemaRecords")} for type in MEDIA_TYPES.values()},
                    LINES: {"schema": {"type": "string"}},
                },
            },
            "responses": good,
        }

    return {
        "/topics/{topic}": {"post": produce("Produce records", [openapi.TOPIC])},
        "/topics/{topic}/partitions/{partition}": {
            "post": produce("Produce records to one partition", [openapi.TOPIC, openapi.PARTITION])
        },
    }


def _schemas() -> dict[str, Any]:
    base64 = {"type": ["string", "null"], "contentEncoding": "base64"}
    return {
        "Error": error_schema(CODES),
        "Header": {
            "type": "object",
            "properties": {
                "name": openapi.TEXT,
                "value": {"type": ["string", "null"]},
                "value_base64": base64,
            },
            "required": ["name"],
            "additionalProperties": False,
        },
        "JsonRecord": _record({"description": "Any JSON"}),
        "BinaryRecord": _record(base64),
        "JsonRecords": _records("JsonRecord"),
        "BinaryRecords": _records("BinaryRecord"),
        "SchemaRecords": _records(
            "JsonRecord",
            {
                "key_schema": _SCHEMA_TEXT,
                "key_schema_id": _SCHEMA_ID,
                "value_schema": _SCHEMA_TEXT,
                "value_schema_id": _SCHEMA_ID,
            },
        ),
        "ProducedRecord": openapi.record(
            partition={"type": ["integer", "null"]},
            offset={"type": ["integer", "null"]},
            error_code={"type": ["integer", "null"]},
            error={"type": ["string", "null"]},
        ),
        "Produced": openapi.record(
            offsets={"type": "array", "items": openapi.ref("ProducedRecord")},
            value_schema_id={"type": ["integer", "null"]},
            key_schema_id={"type": ["integer", "null"]},
        ),
    }


def _record(value: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "key": value,
            "value": value,
            "headers": {
                "anyOf": [
                    {"type": "array", "items": openapi.ref("Header")},
                    {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
                    {"type": "null"},
                ]
            },
            "partition": {"anyOf": [{"type": "null"}, *openapi.whole(2**31 - 1)["anyOf"]]},
            "timestamp": {"anyOf": [{"type": "null"}, *openapi.whole(2**63 - 1)["anyOf"]]},
        },
        "additionalProperties": False,
    }


_SCHEMA_TEXT: Final = {
    "type": ["string", "null"],
    "pattern": r"\S",
    "description": "The text of a schema, which is registered in the topic's subject; or its id instead",
}
_SCHEMA_ID: Final = {"anyOf": [{"type": "null"}, *openapi.whole(2**31 - 1)["anyOf"]]}


def _records(record: str, schemas: Mapping[str, Any] | None = None) -> dict[str, Any]:
    none = {
        name: {"type": "null"} for name in ("key_schema", "key_schema_id", "value_schema", "value_schema_id")
    }
    return {
        "type": "object",
        "properties": {
            "records": {"type": "array", "minItems": 1, "items": openapi.ref(record)},
            **(none if schemas is None else schemas),
        },
        "required": ["records"],
        "additionalProperties": False,
    }

"""What the OpenAPI document says of each endpoint. A test holds it against the routes, and another against what the
endpoints answer."""

from collections.abc import Mapping
from typing import Any, Final

from leafcuttr_registry.api.exchange import OFFERS
from leafcuttr_registry.subjects.associating import LIFECYCLES, PARTS
from leafcuttr_registry.subjects.config import LEVELS, POLICIES
from leafcuttr_registry.subjects.scopes import MODES
from leafcuttr_sdk.web import openapi
from leafcuttr_sdk.web.negotiation import JSON
from leafcuttr_sdk.web.openapi import FLAG, TEXT, WHOLE, ref

TITLE: Final = "LeafCuttr schema registry"
DESCRIPTION: Final = (
    "The API of Confluent's schema registry. Each path may also stand below /contexts/{context}: subjects in it are "
    "then those of that context."
)
DOCUMENT: Final = "/openapi.json"
TYPES: Final = (JSON, "application/vnd.oai.openapi+json")
"""Of the document."""
_VERSIONS: Final = "/subjects/{subject}/versions"
_COMPATIBILITY: Final = "/compatibility/subjects/{subject}/versions"

_REASONS: Final[Mapping[int, str]] = {
    **openapi.REASONS,
    400: "The body is no JSON, or a member has a wrong type",
    404: "There is no such subject, version or schema",
    409: "Not compatible with the versions before",
    422: "A schema, version, level, mode or rule set that is none, or a change that is not allowed",
    500: "It could not be written; nothing has changed",
    503: "Others took the time; it may be tried again",
}
_PARAMETERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "subject": TEXT,
    "context": TEXT,
    "version": {"type": "string", "description": "A number, or latest"},
    "id": WHOLE,
    "guid": {"type": "string", "format": "uuid"},
    "namespace": TEXT,
    "name": TEXT,
}
_QUERY: Final[Mapping[str, Mapping[str, Any]]] = {
    **dict.fromkeys(("offset", "limit"), WHOLE),
    **dict.fromkeys(
        ("subjectPrefix", "contextPrefix", "subject", "format", "referenceFormat", "ruleType"), TEXT
    ),
    **dict.fromkeys(("resourceType", "context"), TEXT),
    "lifecycle": {"enum": list(LIFECYCLES)},
    "dryRun": FLAG,
    "cascadeLifecycle": FLAG,
    **{key: {"type": "array", "items": TEXT} for key in ("key", "value", "findTags", "associationType")},
    **dict.fromkeys(
        (
            *(
                "deleted",
                "deletedOnly",
                "deletedAsNegative",
                "latestOnly",
                "aliases",
                "fetchMaxId",
                "normalize",
            ),
            *("force", "permanent", "verbose", "defaultToGlobal", "recursive"),
        ),
        FLAG,
    ),
}
_PAGE: Final = "offset limit"
_NAMES: Final = {"type": "array", "items": TEXT}
_NUMBERS: Final = {"type": "array", "items": WHOLE}


def _some(**members: Any) -> dict[str, Any]:
    """An object that may have these members, and others."""
    return {"type": "object", "properties": members}


_REFERENCES: Final = {"type": "array", "items": _some(name=TEXT, subject=TEXT, version=WHOLE)}
_TAGS: Final = {
    "type": "array",
    "items": _some(
        schemaEntity=_some(entityPath=TEXT, entityType={"enum": ["sr_record", "sr_field"]}), tags=_NAMES
    ),
}
_CONTENT: Final = {
    "schemaType": {"type": ["string", "null"]},
    "schema": TEXT,
    "references": {**_REFERENCES, "type": ["array", "null"]},
    "metadata": {"type": ["object", "null"]},
    "ruleSet": {"type": ["object", "null"]},
}
_TEXT_OR_NONE: Final = {"type": ["string", "null"]}
_FLAG_OR_NONE: Final = {"type": ["boolean", "null"]}
_OBJECT_OR_NONE: Final = {"type": ["object", "null"]}
_CONFIG: Final = {
    "alias": _TEXT_OR_NONE,
    "aliasForDeks": _TEXT_OR_NONE,
    "compatibilityGroup": _TEXT_OR_NONE,
    "compatibilityPolicy": {"enum": [*POLICIES, None]},
    "normalize": _FLAG_OR_NONE,
    "validateFields": _FLAG_OR_NONE,
    "validateNewSchemas": _FLAG_OR_NONE,
    "validateRules": _FLAG_OR_NONE,
    "defaultMetadata": _OBJECT_OR_NONE,
    "overrideMetadata": _OBJECT_OR_NONE,
    "defaultRuleSet": _OBJECT_OR_NONE,
    "overrideRuleSet": _OBJECT_OR_NONE,
}
_LEVEL: Final = {"enum": [*LEVELS, None]}
SCHEMAS: Final[Mapping[str, Any]] = {
    "Schema": _some(
        guid=TEXT, id=WHOLE, subject=TEXT, version=WHOLE, ts=WHOLE, schemaTags=_TAGS, maxId=WHOLE, **_CONTENT
    ),
    "Registration": _some(
        version=WHOLE,
        id=WHOLE,
        schemaTagsToAdd=_TAGS,
        schemaTagsToRemove=_TAGS,
        propagateSchemaTags=FLAG,
        **_CONTENT,
    ),
    "TagChange": _some(
        newVersion=WHOLE,
        tagsToAdd=_TAGS,
        tagsToRemove=_TAGS,
        rulesToMerge={"type": "object"},
        rulesToRemove=_NAMES,
        metadata={"type": ["object", "null"]},
        ruleSet={"type": ["object", "null"]},
    ),
    "Config": _some(compatibilityLevel=_LEVEL, **_CONFIG),
    "ConfigUpdate": _some(compatibility=_LEVEL, **_CONFIG),
    "Mode": _some(mode={"enum": [*MODES, None]}),
    "Association": _some(
        **dict.fromkeys(("subject", "guid", "resourceName", "resourceNamespace", "resourceId"), TEXT),
        resourceType=TEXT,
        associationType={"enum": list(PARTS)},
        lifecycle={"enum": list(LIFECYCLES)},
        frozen=FLAG,
        createTs=WHOLE,
        updateTs=WHOLE,
    ),
    "Associations": _some(
        **dict.fromkeys(("resourceName", "resourceNamespace", "resourceId", "resourceType"), TEXT),
        associations={
            "type": "array",
            "items": _some(
                subject=TEXT,
                associationType={"enum": list(PARTS)},
                lifecycle={"enum": list(LIFECYCLES)},
                frozen=FLAG,
                normalize=FLAG,
                schema={"type": "object"},
            ),
        },
    ),
    "Compatibility": _some(is_compatible=FLAG, messages=_NAMES),
}


def _operation(
    summary: str,
    answer: Mapping[str, Any] | None,
    query: str = "",
    *errors: int,
    body: str = "",
    status: int = 200,
) -> dict[str, Any]:
    parameters = [{"name": name, "in": "query", "schema": _QUERY[name]} for name in query.split()]
    refused = {406, *errors} if answer is not None else {*errors}
    found: dict[str, Any] = {"summary": summary, "parameters": parameters}
    if body:
        refused |= {400, 408, 413, 415, 422, 500}
        found["requestBody"] = {"required": True, "content": openapi.content(ref(body), OFFERS)}
    if body or "format" in query:  # it may need a worker process
        refused.add(503)
    found["responses"] = openapi.answers(
        answer, refused, status=status, types=OFFERS, error_types=OFFERS, reasons=_REASONS
    )
    return found


_SCHEMA: Final = ref("Schema")
_PLACES: Final = {"type": "array", "items": _some(subject=TEXT, version=WHOLE, context=TEXT, id=WHOLE)}
_ANY: Final[Mapping[str, Any]] = {}
_ASSOCIATIONS: Final = {"type": "array", "items": ref("Association")}
_ASSOCIATED: Final = f"resourceType associationType lifecycle {_PAGE}"
_OPERATIONS: Final[Mapping[tuple[str, str], dict[str, Any]]] = {
    ("GET", "/"): _operation("Nothing", {"type": "object"}),
    ("POST", "/"): _operation("Nothing", {"type": "object"}),
    ("GET", DOCUMENT): {
        "summary": "This document",
        "responses": openapi.answers({"type": "object"}, [406], error_types=OFFERS, reasons=_REASONS),
    },
    ("POST", "/restart"): _operation("Read the topic anew", {"type": "object"}, "", 404, 500),
    ("GET", "/v1/metadata/id"): _operation("What the server is", {"type": "object"}),
    ("GET", "/v1/metadata/version"): _operation("Its version", {"type": "object"}),
    ("GET", "/schemas"): _operation(
        "Versions of all subjects",
        {"type": "array", "items": _SCHEMA},
        f"subjectPrefix latestOnly deleted aliases ruleType resourceType associationType lifecycle {_PAGE}",
        400,
    ),
    ("GET", "/schemas/types"): _operation("The formats", _NAMES),
    ("GET", "/schemas/ids/{id}"): _operation(
        "A schema", _SCHEMA, "subject format referenceFormat findTags fetchMaxId", 400, 404, 422
    ),
    ("GET", "/schemas/ids/{id}/schema"): _operation("Its text alone", _ANY, "subject format", 400, 404, 422),
    ("GET", "/schemas/ids/{id}/subjects"): _operation(
        "The subjects that have it", _NAMES, f"subject deleted {_PAGE}", 400, 404
    ),
    ("GET", "/schemas/ids/{id}/versions"): _operation(
        "The versions that have it", _PLACES, f"subject deleted {_PAGE}", 400, 404
    ),
    ("GET", "/schemas/guids/{guid}"): _operation("A schema by its guid", _SCHEMA, "format", 400, 404, 422),
    ("GET", "/schemas/guids/{guid}/ids"): _operation("Its ids by context", _PLACES, "", 404),
    ("GET", "/subjects"): _operation("Subjects", _NAMES, f"subjectPrefix deleted deletedOnly {_PAGE}", 400),
    ("POST", "/subjects/{subject}"): _operation(
        "The version that has this schema", _SCHEMA, "normalize deleted format", 404, body="Registration"
    ),
    ("DELETE", "/subjects/{subject}"): _operation(
        "Delete all versions", _NUMBERS, "permanent", 400, 404, 422, 500
    ),
    ("GET", "/subjects/{subject}/metadata"): _operation(
        "The latest version with these metadata", _SCHEMA, "key value deleted format", 400, 404, 422
    ),
    ("GET", _VERSIONS): _operation(
        "The versions of a subject", _NUMBERS, f"deleted deletedOnly deletedAsNegative {_PAGE}", 400, 404
    ),
    ("POST", _VERSIONS): _operation(
        "Register a schema", _SCHEMA, "normalize format force", 409, body="Registration"
    ),
    ("GET", f"{_VERSIONS}/{{version}}"): _operation(
        "A version", _SCHEMA, "deleted format referenceFormat findTags", 400, 404, 422
    ),
    ("DELETE", f"{_VERSIONS}/{{version}}"): _operation(
        "Delete a version", WHOLE, "permanent", 400, 404, 422, 500
    ),
    ("GET", f"{_VERSIONS}/{{version}}/schema"): _operation(
        "Its text alone", _ANY, "deleted format", 400, 404, 422
    ),
    ("GET", f"{_VERSIONS}/{{version}}/referencedby"): _operation(
        "The ids of the schemas that name it", _NUMBERS, f"deleted {_PAGE}", 400, 404, 422
    ),
    ("POST", f"{_VERSIONS}/{{version}}/tags"): _operation(
        "Register it with other tags, metadata and rules", _SCHEMA, "", 404, 409, body="TagChange"
    ),
    ("POST", _COMPATIBILITY): _operation(
        "Whether a schema is compatible with all versions that the level asks for",
        ref("Compatibility"),
        "verbose normalize",
        404,
        body="Registration",
    ),
    ("POST", f"{_COMPATIBILITY}/{{version}}"): _operation(
        "Whether a schema is compatible with one version",
        ref("Compatibility"),
        "verbose normalize",
        404,
        body="Registration",
    ),
    **{
        ("GET", path): _operation("Config", ref("Config"), "defaultToGlobal", 400, 404, 422)
        for path in ("/config", "/config/{subject}")
    },
    **{
        ("PUT", path): _operation("Change the config", ref("ConfigUpdate"), body="ConfigUpdate")
        for path in ("/config", "/config/{subject}")
    },
    **{
        ("DELETE", path): _operation("Delete the config", ref("Config"), "", 404, 422, 500)
        for path in ("/config", "/config/{subject}")
    },
    **{
        ("GET", path): _operation("The mode", ref("Mode"), "defaultToGlobal", 400, 404, 422)
        for path in ("/mode", "/mode/{subject}")
    },
    **{
        ("PUT", path): _operation("Set the mode", ref("Mode"), "force", body="Mode")
        for path in ("/mode", "/mode/{subject}")
    },
    **{
        ("DELETE", path): _operation("Delete the mode", ref("Mode"), "recursive", 400, 404, 422, 500)
        for path in ("/mode", "/mode/{subject}")
    },
    ("GET", "/associations/subjects/{subject}"): _operation(
        "The associations of a subject", _ASSOCIATIONS, _ASSOCIATED, 400
    ),
    ("GET", "/associations/resources/{id}"): _operation(
        "The associations of a resource", _ASSOCIATIONS, _ASSOCIATED, 400
    ),
    ("GET", "/associations/resources/{namespace}/{name}"): _operation(
        "The associations of a resource by its name; - is any", _ASSOCIATIONS, _ASSOCIATED, 400
    ),
    ("POST", "/associations"): _operation(
        "Associate a resource with subjects", ref("Associations"), "context dryRun", 409, body="Associations"
    ),
    ("PUT", "/associations/resources/{id}"): _operation(
        "Associate it with more subjects, or change how",
        ref("Associations"),
        "context dryRun",
        409,
        body="Associations",
    ),
    ("DELETE", "/associations/resources/{id}"): _operation(
        "Delete associations, and with cascadeLifecycle the subjects of STRONG ones",
        None,
        "resourceType associationType cascadeLifecycle dryRun",
        400,
        404,
        409,
        422,
        500,
        status=204,
    ),
    ("GET", "/contexts"): _operation("Contexts", _NAMES, f"contextPrefix {_PAGE}", 400),
    ("DELETE", "/contexts/{context}"): _operation(
        "Delete a context without subjects", None, "", 400, 422, 500, status=204
    ),
}


def operation(method: str, path: str) -> dict[str, Any]:
    """What the document says of an endpoint."""
    found = _OPERATIONS[method, path]
    named = [name for name in _PARAMETERS if f"{{{name}}}" in path]
    parameters = {**_PARAMETERS, "id": TEXT} if "/resources/" in path else _PARAMETERS
    in_path = [{"name": name, "in": "path", "required": True, "schema": parameters[name]} for name in named]
    return {**found, "parameters": [*in_path, *found.get("parameters", ())]}

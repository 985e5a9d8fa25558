"""Elements of OpenAPI 3.1, and the document made of them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from leafcuttr_sdk.web.clients import CHALLENGES
from leafcuttr_sdk.web.negotiation import JSON

TEXT: Final = {"type": "string"}
WHOLE: Final = {"type": "integer"}
FLAG: Final = {"type": "boolean"}

SECURITY_SCHEMES: Final[Mapping[str, Mapping[str, str]]] = {
    "basic": {"type": "http", "scheme": "basic"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "mtls": {"type": "mutualTLS"},
}
"""How clients authenticate, by the ways of `leafcuttr_sdk.authentication`."""
_METHODS: Final = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})

REASONS: Final[Mapping[int, str]] = {
    400: "Not JSON",
    401: "Not authenticated",
    403: "No certificate of the client",
    404: "There is no such thing",
    405: "Not a method of this path",
    406: "None of the accepted types can be answered",
    408: "The body took too long",
    409: "Not in this state",
    413: "Too large",
    415: "Not a type that is read here",
    422: "JSON, but not as described",
    500: "The broker refused",
    503: "Too much at a time, or the broker is stopping",
}


def whole(largest: int) -> dict[str, Any]:
    """A whole number from 0 on, as a number or as its text."""
    return {
        "anyOf": [
            {"type": "integer", "minimum": 0, "maximum": largest},
            {"type": "string", "pattern": "^[0-9]{1,19}$"},
        ]
    }


def ref(schema: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{schema}"}


def record(**members: Any) -> dict[str, Any]:
    """An object that has all of these members and no others."""
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def content(schema: Mapping[str, Any], types: Iterable[str] = (JSON,)) -> dict[str, Any]:
    return {name: {"schema": schema} for name in types}


def answers(
    schema: Mapping[str, Any] | None,
    errors: Iterable[int] = (),
    *,
    status: int = 200,
    types: Iterable[str] = (JSON,),
    error_types: Iterable[str] = (JSON,),
    reasons: Mapping[int, str] = REASONS,
) -> dict[str, Any]:
    """`responses`: the good one, and the errors that it names, as the schema `Error`."""
    good: dict[str, Any] = {"description": "Done"}
    if schema is not None:
        good["content"] = content(schema, types)
    return {
        str(status): good,
        **{
            str(code): {"description": reasons[code], "content": content(ref("Error"), error_types)}
            for code in sorted(set(errors))
        },
    }


def error_schema(codes: Iterable[int] = ()) -> dict[str, Any]:
    """The schema `Error`: the body of `errors.ApiError`, with the codes that there are, if they are named."""
    code = {"type": "integer", "enum": sorted(codes)} if codes else WHOLE
    return record(error_code=code, message=TEXT)


def document(
    title: str,
    version: str,
    paths: Mapping[str, Any],
    schemas: Mapping[str, Any],
    *,
    description: str = "",
    license: Mapping[str, str] | None = None,
    ways: Iterable[str] = ("none",),
    error_types: Iterable[str] = (JSON,),
) -> dict[str, Any]:
    """The document, as JSON. `paths` are by path and method in lower case. `ways` are those of `Authentication.ways`:
    where there are others than `none`, the document says how clients authenticate, and each operation what those are
    answered that do not, as the schema `Error` in `error_types`."""
    info: dict[str, Any] = {"title": title, "version": version}
    if description:
        info["description"] = description
    if license:
        info["license"] = dict(license)
    components: dict[str, Any] = {"schemas": dict(schemas)}
    made: dict[str, Any] = {"openapi": "3.1.0", "info": info, "paths": dict(paths), "components": components}
    offered = [way for way in ways if way in SECURITY_SCHEMES]
    if offered:
        components["securitySchemes"] = {way: SECURITY_SCHEMES[way] for way in offered}
        made["security"] = [*({way: []} for way in offered), *([{}] if "none" in ways else [])]
        made["paths"] = _refusing(paths, offered, content(ref("Error"), error_types))
    return made


def _refusing(paths: Mapping[str, Any], offered: list[str], errors: Mapping[str, Any]) -> dict[str, Any]:
    """The same paths, with the answer to clients without valid credentials in each operation."""
    if any(way in CHALLENGES for way in offered):
        header = {"description": "The ways to authenticate (RFC 9110)", "required": True, "schema": TEXT}
        code, refusal = "401", {"headers": {"WWW-Authenticate": header}}
    else:
        code, refusal = "403", {}
    answer = {"description": REASONS[int(code)], "content": errors, **refusal}
    return {
        path: {
            method: {**operation, "responses": {**operation.get("responses", {}), code: answer}}
            if method in _METHODS
            else operation
            for method, operation in operations.items()
        }
        for path, operations in paths.items()
    }

"""Words of OpenAPI 3.1 that the parts write their pages with. The document itself is put together in
`documentation.py`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from leafcuttr_http.negotiation import METADATA

TEXT: Final = {"type": "string"}
WHOLE: Final = {"type": "integer"}
FLAG: Final = {"type": "boolean"}

TOPIC: Final = {"name": "topic", "in": "path", "required": True, "schema": TEXT}
PARTITION: Final = {
    "name": "partition",
    "in": "path",
    "required": True,
    "schema": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
}
REASONS: Final[Mapping[int, str]] = {
    400: "Not JSON",
    404: "There is no such topic, partition or consumer",
    405: "Not a method of this path",
    406: "None of the accepted types can be answered",
    408: "The body took too long",
    409: "Not in this state of the consumer",
    413: "Too large",
    415: "Not a type that is read here",
    422: "JSON, but not what is asked for",
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


def content(schema: Mapping[str, Any], types: Iterable[str] = METADATA) -> dict[str, Any]:
    return {name: {"schema": schema} for name in types}


def answers(
    schema: Mapping[str, Any] | None,
    errors: Iterable[int] = (),
    *,
    status: int = 200,
    types: Iterable[str] = METADATA,
) -> dict[str, Any]:
    """`responses`: the good one, and the errors that it names."""
    good: dict[str, Any] = {"description": "Done"}
    if schema is not None:
        good["content"] = content(schema, types)
    return {
        str(status): good,
        **{
            str(code): {"description": REASONS[code], "content": content(ref("Error"))}
            for code in sorted({*errors, 406})
        },
    }


def get(
    summary: str, schema: Mapping[str, Any], *errors: int, parameters: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """An operation that only reads."""
    return {"summary": summary, "parameters": list(parameters), "responses": answers(schema, errors)}

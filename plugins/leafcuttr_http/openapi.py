"""Elements of OpenAPI 3.1 of which the parts make their pages. The document itself is put together in
`documentation.py`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from leafcuttr_http.negotiation import METADATA
from leafcuttr_sdk.web import openapi
from leafcuttr_sdk.web.openapi import FLAG as FLAG
from leafcuttr_sdk.web.openapi import TEXT as TEXT
from leafcuttr_sdk.web.openapi import WHOLE as WHOLE
from leafcuttr_sdk.web.openapi import record as record
from leafcuttr_sdk.web.openapi import ref as ref
from leafcuttr_sdk.web.openapi import whole as whole

TOPIC: Final = {"name": "topic", "in": "path", "required": True, "schema": TEXT}
PARTITION: Final = {
    "name": "partition",
    "in": "path",
    "required": True,
    "schema": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
}
REASONS: Final[Mapping[int, str]] = {
    **openapi.REASONS,
    403: "The topic belongs to a plugin, or the client has no certificate",
    404: "There is no such topic, partition or consumer",
    409: "Not in this state of the consumer",
}


def content(schema: Mapping[str, Any], types: Iterable[str] = METADATA) -> dict[str, Any]:
    return openapi.content(schema, types)


def answers(
    schema: Mapping[str, Any] | None,
    errors: Iterable[int] = (),
    *,
    status: int = 200,
    types: Iterable[str] = METADATA,
) -> dict[str, Any]:
    """`responses`: the good one, and the errors that it names."""
    return openapi.answers(
        schema, {*errors, 406}, status=status, types=types, error_types=METADATA, reasons=REASONS
    )


def get(
    summary: str, schema: Mapping[str, Any], *errors: int, parameters: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """An operation that only reads."""
    return {"summary": summary, "parameters": list(parameters), "responses": answers(schema, errors)}

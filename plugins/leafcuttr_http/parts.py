"""What a part of the API is made of. A part is a group of endpoints with their pages of the OpenAPI document, a module
with a `PART`; `app.py` names them all.

In a handler: raise ApiError (or let a BrokerError through), return `reply(...)`.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from quart import Response, request
from quart_trio import QuartTrio

from leafcuttr_http.errors import ApiError
from leafcuttr_http.negotiation import JSON, METADATA, choose
from leafcuttr_http.proxy import Proxy


class Part(NamedTuple):
    """A group of endpoints."""

    attach: Callable[[QuartTrio, Proxy], None]
    """Adds its routes to the application."""
    paths: Callable[[], Mapping[str, Any]]
    """Its part of `paths` in the OpenAPI document."""
    schemas: Callable[[], Mapping[str, Any]] = dict
    """Its part of `components/schemas`."""


def reply(
    value: object,
    status: int = 200,
    headers: dict[str, str] | None = None,
    offers: tuple[str, ...] = METADATA,
) -> Response:
    """An answer as JSON, in the media type of `offers` that the client wants. Raises ApiError 406."""
    content_type = choose(request.headers.get("accept"), offers)
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Response(body, status, headers, content_type=content_type)


def reply_error(error: ApiError) -> Response:
    try:
        content_type = choose(request.headers.get("accept"), METADATA)
    except ApiError:
        content_type = JSON
    body = json.dumps(error.body, separators=(",", ":"))
    return Response(body, error.status, dict(error.headers), content_type=content_type)

"""What a part of the API is made of. A part is a group of endpoints with their pages of the OpenAPI document, a module
with a `PART`; `app.py` names them all.

In a handler: raise ApiError (or let a BrokerError through), return `reply(...)`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from quart import Response
from quart_trio import QuartTrio

from leafcuttr_http.negotiation import METADATA
from leafcuttr_http.proxy import Proxy
from leafcuttr_sdk.web import quart_app


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
    return quart_app.reply(value, status, headers, offers)

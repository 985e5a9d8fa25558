"""An application of Quart that answers as the other handlers of a service do: errors as JSON, limits from the service.
Import this module late: see `frameworks.LateApp`.
"""

import json
from collections.abc import Sequence

from quart import Response, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from leafcuttr_sdk.errors import BrokerError
from leafcuttr_sdk.web.asgi import App, Receive, Scope, Send
from leafcuttr_sdk.web.errors import ApiError, of_broker
from leafcuttr_sdk.web.negotiation import JSON, choose


def make_quart(name: str, error_types: Sequence[str] = (JSON,)) -> QuartTrio:
    """An application without routes. In its handlers raise ApiError (or let a BrokerError through), and return
    `reply(...)`. `error_types` are media types of errors, of which the client's Accept chooses."""
    app = QuartTrio(name, static_folder=None, template_folder=None)
    app.url_map.merge_slashes = False
    # The service has read the body within the limits already, and streams go on for as long as they like.
    for limit in ("MAX_CONTENT_LENGTH", "BODY_TIMEOUT", "RESPONSE_TIMEOUT"):
        app.config[limit] = None

    async def api_error(error: ApiError) -> Response:
        return reply_error(error, error_types)

    async def broker_error(error: BrokerError) -> Response:
        return reply_error(of_broker(error), error_types)

    async def http_error(error: HTTPException) -> Response:
        return reply_error(_of_quart(error), error_types)

    app.register_error_handler(ApiError, api_error)
    app.register_error_handler(BrokerError, broker_error)
    app.register_error_handler(HTTPException, http_error)
    return app


def as_asgi(app: QuartTrio) -> App:
    """The application as `frameworks.LateApp` takes it."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)  # type: ignore[arg-type]
        except ExceptionGroup as group:
            if group.split(HTTPException)[1] is not None:
                raise
            # Werkzeug reads the Host before it knows of our handlers of errors.
            raise ApiError(400, "The Host of the request is no name of a host.") from None

    return answer


def reply(
    value: object,
    status: int = 200,
    headers: dict[str, str] | None = None,
    offers: Sequence[str] = (JSON,),
) -> Response:
    """An answer as JSON, in the media type of `offers` that the client wants. Raises ApiError 406."""
    content_type = choose(request.headers.get("accept"), offers)
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Response(body, status, headers, content_type=content_type)


def reply_error(error: ApiError, offers: Sequence[str] = (JSON,)) -> Response:
    """An error as an answer: JSON in one of these media types, whatever the client accepts."""
    try:
        content_type = choose(request.headers.get("accept"), offers)
    except ApiError:
        content_type = JSON
    body = json.dumps(error.body, separators=(",", ":"))
    return Response(body, error.status, dict(error.headers), content_type=content_type)


def _of_quart(error: HTTPException) -> ApiError:
    """What Quart itself says: no such path, no such method."""
    status = error.code or 500
    allowed = getattr(error, "valid_methods", None)
    headers = (("allow", ", ".join(sorted(allowed))),) if allowed else ()
    messages = {
        404: f"There is nothing at {request.path}.",
        405: f"{request.path} does not take {request.method}.",
    }
    return ApiError(status, messages.get(status, f"{error.name}."), headers)

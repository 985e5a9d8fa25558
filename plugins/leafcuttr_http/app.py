"""The application: Quart with the endpoints of every part. Imported by `lazy_app`, when it is needed."""

from quart import Response, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from leafcuttr_http import documentation, metadata
from leafcuttr_http.asgi import App, Receive, Scope, Send
from leafcuttr_http.consumers import routes as consumers
from leafcuttr_http.errors import ApiError, of_broker
from leafcuttr_http.parts import Part, reply_error
from leafcuttr_http.proxy import Proxy
from leafcuttr_http.streams import pages as streams
from leafcuttr_sdk.errors import BrokerError

PARTS: tuple[Part, ...] = (metadata.PART, consumers.PART, streams.PART)
_OF_THE_FRONT = (
    ("POST", "/topics/<topic>"),
    ("POST", "/topics/<topic>/partitions/<partition>"),
    ("GET", "/topics/<topic>/stream"),
)


def build(proxy: Proxy) -> App:
    """The application of one start of the service."""
    app = QuartTrio("leafcuttr_http", static_folder=None, template_folder=None)
    app.url_map.merge_slashes = False
    # The front has read the body within the limits already, and streams go on for as long as they like.
    app.config.update(MAX_CONTENT_LENGTH=None, BODY_TIMEOUT=None, RESPONSE_TIMEOUT=None)
    app.register_error_handler(ApiError, _api_error)
    app.register_error_handler(BrokerError, _broker_error)
    app.register_error_handler(HTTPException, _http_error)
    add_routes(app, proxy)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)  # type: ignore[arg-type]
        except ExceptionGroup as group:
            if group.split(HTTPException)[1] is not None:
                raise
            # Werkzeug reads the Host before it knows of our handlers of errors.
            raise ApiError(400, "The Host of the request is no name of a host.") from None

    return answer


def add_routes(app: QuartTrio, proxy: Proxy) -> None:
    """Those of all parts."""
    for method, path in _OF_THE_FRONT:
        app.add_url_rule(path, f"{method} {path}", _of_the_front, methods=[method])
    for part in PARTS:
        part.attach(app, proxy)
    documentation.attach(app, proxy, PARTS)


async def _of_the_front(**_: str) -> Response:
    """Known here so that `Allow` names its method."""
    raise ApiError(50001, "The front has let a request through that is its own.")


async def _api_error(error: ApiError) -> Response:
    return reply_error(error)


async def _broker_error(error: BrokerError) -> Response:
    return reply_error(of_broker(error))


async def _http_error(error: HTTPException) -> Response:
    """What Quart itself says: no such path, no such method."""
    status = error.code or 500
    allowed = getattr(error, "valid_methods", None)
    headers = (("allow", ", ".join(sorted(allowed))),) if allowed else ()
    messages = {
        404: f"There is nothing at {request.path}.",
        405: f"{request.path} does not take {request.method}.",
    }
    return reply_error(ApiError(status, messages.get(status, f"{error.name}."), headers))

"""The application: Quart with the endpoints of every part. Imported when a request first needs it."""

from quart import Response
from quart_trio import QuartTrio

from leafcuttr_http import documentation, metadata
from leafcuttr_http.consumers import routes as consumers
from leafcuttr_http.errors import ApiError
from leafcuttr_http.negotiation import METADATA
from leafcuttr_http.parts import Part
from leafcuttr_http.proxy import Proxy
from leafcuttr_http.streams import pages as streams
from leafcuttr_sdk.web.asgi import App
from leafcuttr_sdk.web.quart_app import as_asgi, make_quart

PARTS: tuple[Part, ...] = (metadata.PART, consumers.PART, streams.PART)
_OF_THE_FRONT = (
    ("POST", "/topics/<topic>"),
    ("POST", "/topics/<topic>/partitions/<partition>"),
    ("GET", "/topics/<topic>/stream"),
)


def build(proxy: Proxy) -> App:
    """The application of one start of the service."""
    app = make_quart("leafcuttr_http", METADATA)
    add_routes(app, proxy)
    return as_asgi(app)


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

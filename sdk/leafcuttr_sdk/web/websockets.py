"""WebSockets (RFC 6455) as ASGI hands them over: what is the same for all that serve them."""

import json

from leafcuttr_sdk._origins import Origins
from leafcuttr_sdk.web.asgi import Scope, Send
from leafcuttr_sdk.web.errors import ApiError


async def refuse_websocket(send: Send, error: ApiError) -> None:
    """Answer the request for a WebSocket with an error. The first message has to be received before."""
    body = json.dumps(error.body).encode()
    fields = [
        *((name.encode("latin-1"), value.encode("latin-1")) for name, value in error.headers),
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
    ]
    await send({"type": "websocket.http.response.start", "status": error.status, "headers": fields})
    await send({"type": "websocket.http.response.body", "body": body, "more_body": False})


def check_origin(scope: Scope, origins: frozenset[str], setting: str) -> None:
    """A page of another origin may open a WebSocket without a preflight request (CORS does not hold there): allowed are
    the service's own origin, and `origins`, which come from this setting. Raises ApiError 403."""
    headers = dict(scope["headers"])
    origin = headers.get(b"origin", b"").decode("latin-1").lower()
    host = headers.get(b"host", b"").decode("latin-1")
    if origin and not Origins(origins).allows(origin, host):
        raise ApiError(403, f"Pages of {origin} may not read here; {setting} names those that may.")


def without_compression(scope: Scope) -> None:
    """Before the WebSocket is accepted: hypercorn agrees on permessage-deflate with every client that offers it, at a
    third of a megabyte for each of them."""
    handshake = getattr(scope["state"].get("websocket"), "handshake", None)
    if handshake is not None:
        handshake.extensions = None

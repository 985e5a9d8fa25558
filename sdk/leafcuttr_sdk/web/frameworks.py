"""An ASGI application of a framework, as one of quart-trio, as the handler of a service. It is imported when the first
request needs it: Quart is two thirds of what an HTTP service imports. The import goes on in a worker thread, because it
takes a tenth of a second.
"""

from collections.abc import Callable

import trio

from leafcuttr_sdk.trouble import import_late
from leafcuttr_sdk.web.asgi import App, Message, Receive
from leafcuttr_sdk.web.exchange import Exchange


class LateApp:
    """Hands requests to an ASGI application, with their bodies read already, within the limits of the service.

    `modules` are imported in a worker thread when the first request comes, then `make` makes the application, on the
    loop. A request fails with what either raises; the next one has both tried again.
    """

    def __init__(self, make: Callable[[], App], *modules: str) -> None:
        self._make = make
        self._modules = modules
        self._app: App | None = None
        self._loading = trio.Lock()

    async def __call__(self, exchange: Exchange) -> None:
        receive = exchange.receive
        scope = exchange.scope
        if not exchange.all_read:
            body = await exchange.read()
            receive = _once(body, receive)
            # What was gunzipped is as long as it is now.
            kept = [
                (name, value)
                for name, value in scope["headers"]
                if name not in (b"content-encoding", b"content-length", b"transfer-encoding")
            ]
            scope["headers"] = [*kept, (b"content-length", b"%d" % len(body))]
        app = self._app or await self._load()
        await app(scope, receive, exchange.send)

    async def _load(self) -> App:
        async with self._loading:
            if self._app is None:
                await trio.to_thread.run_sync(import_late, *self._modules)
                self._app = self._make()
            return self._app


def _once(body: bytes, receive: Receive) -> Receive:
    """A `receive` that hands out this body, and then what the real one says: that the client has left."""
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay

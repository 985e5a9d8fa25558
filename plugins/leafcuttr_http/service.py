"""The service `http`: an HTTP server with the endpoints of the proxy."""

from typing import TYPE_CHECKING

from leafcuttr_http.front import Front
from leafcuttr_http.proxy import Proxy
from leafcuttr_http.settings import PREFIX, read_limits
from leafcuttr_sdk.web.server import HttpServer

if TYPE_CHECKING:
    import trio

    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.web.front import Application
    from leafcuttr_sdk.web.serving import Serving


class HttpProxy:
    """The service `http`."""

    def __init__(self, broker: "Broker") -> None:
        self._limits = read_limits(broker.settings)
        self._server = HttpServer(broker, PREFIX, name="http", title="the HTTP proxy")

    async def run(self, *, task_status: "trio.TaskStatus[None]") -> None:
        await self._server.run(self._application, task_status=task_status)

    def _application(self, serving: "Serving") -> "Application":
        return Front(Proxy(serving, self._limits)).application()

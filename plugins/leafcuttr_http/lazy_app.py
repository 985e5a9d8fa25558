"""The application of Quart (`app`), imported when the first request needs it: everything that the front does not serve.

It is two thirds of what the proxy would import at the start; a broker whose clients only produce never pays for it. The
import goes on in a worker thread, because it takes a tenth of a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_http.asgi import App, Receive, Scope, Send
from leafcuttr_http.proxy import Proxy
from leafcuttr_sdk.trouble import import_late

if TYPE_CHECKING:
    from types import ModuleType

_APPLICATION: Final = "leafcuttr_http.app"


def _import() -> "ModuleType":
    """Raises OSError where the process may open no file; the next request has it tried again."""
    import_late(_APPLICATION)
    return import_module(_APPLICATION)


class LazyApp:
    """The ASGI application of all parts."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._app: App | None = None
        self._loading = trio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app or await self._load()
        await app(scope, receive, send)

    async def _load(self) -> App:
        async with self._loading:
            if self._app is None:
                module: ModuleType = await trio.to_thread.run_sync(_import)
                self._app = module.build(self._proxy)
            assert self._app is not None
            return self._app

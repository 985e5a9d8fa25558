"""An HTTP service of `leafcuttr_sdk.web` in a whole broker in this process, with what a test wants it to answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import trio

from leafcuttr.embedded import EmbeddedBroker, open_broker
from leafcuttr_sdk import Broker, Plugin, ServiceSpec, Setting
from leafcuttr_sdk.web import web_settings

if TYPE_CHECKING:
    from leafcuttr_sdk.web import Application, Serving

PLUGIN = Plugin("tested", 1, "what a test wants to be answered", extra="web", modules=("hypercorn",))
PREFIX = "lc.plugin.tested"

Make = Callable[["Serving"], "Application"]
_making: list[Make] = []
_MODULE = f"""
from {__name__} import PLUGIN, leafcuttr_register_services, leafcuttr_register_settings
"""


def leafcuttr_register_settings() -> Iterator[Setting]:
    yield from web_settings(PREFIX, 0)


def leafcuttr_register_services() -> Iterator[ServiceSpec]:
    yield ServiceSpec("tested", Tested)


class Tested:
    """The service."""

    def __init__(self, broker: Broker) -> None:
        from leafcuttr_sdk.web import HttpServer

        self._server = HttpServer(broker, PREFIX, name="tested", title="the tested service")

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        await self._server.run(_making[-1], task_status=task_status)


class Served(NamedTuple):
    """Where it is served."""

    port: int
    broker: EmbeddedBroker
    stop: Callable[[], None]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, **options: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, timeout=30, **options)

    async def metrics(self) -> str:
        async with httpx.AsyncClient() as client:
            return (await client.get(f"http://{self.broker.metrics_address}/metrics")).text


@asynccontextmanager
async def serving(
    folder: Path, make: Make, settings: Mapping[str, str | int] | None = None
) -> AsyncIterator[Served]:
    """Serve what `make` makes until the end of the context. `settings` are the service's, without their prefix."""
    plugins = folder / "plugins"
    plugins.mkdir(exist_ok=True)
    (plugins / "tested.py").write_text(_MODULE)
    given: dict[str, str | int | float | bool] = {
        "log.dirs": str(folder / "data"),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "lc.metrics.port": 0,
        "lc.plugins.path": str(plugins),
        "lc.plugins.strict": True,
        **{f"{PREFIX}.{name}": value for name, value in (settings or {}).items()},
    }
    stop = trio.Event()

    async def serve(*, task_status: trio.TaskStatus[EmbeddedBroker]) -> None:
        async with open_broker(given) as opened:
            task_status.started(opened)
            await stop.wait()

    _making.append(make)
    try:
        async with trio.open_nursery() as nursery:
            opened = await nursery.start(serve)
            yield Served(int(opened.listeners[PREFIX].rpartition(":")[2]), opened, stop.set)
            stop.set()
    finally:
        _making.pop()

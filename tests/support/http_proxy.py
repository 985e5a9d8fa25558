"""The HTTP proxy in this process, on a real broker and a free port."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import trio

import leafcuttr_http
from leafcuttr.config.settings import Settings as BrokerSettings
from leafcuttr.plugins.facade.view import make_broker_view
from leafcuttr.state.broker import Broker as Core
from leafcuttr.state.broker import open_broker
from leafcuttr.state.clock import SystemClock
from leafcuttr_http.service import HttpProxy
from leafcuttr_http.settings import settings as declared
from leafcuttr_sdk import Broker
from leafcuttr_sdk.settings import Value
from support.logs import HandClock


class Running(NamedTuple):
    """The proxy, and the broker behind it."""

    port: int
    core: Core
    view: Broker
    counted: dict[tuple[str, ...], float]
    stop: Callable[[], None]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, **options: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, timeout=30, **options)

    async def records(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """Keys and values of all that is in the topic, partition after partition."""
        found: list[tuple[bytes | None, bytes | None]] = []
        from leafcuttr_sdk import TopicPartition

        for partition in range(self.view.topics.partition_count(topic)):
            got = await self.view.fetch({TopicPartition(topic, partition): 0}, max_bytes=1 << 30)
            found += [(record.key, record.value) for record in got.records]
        return found


class _Settings:
    """The values of the proxy's settings."""

    def __init__(self, given: dict[str, Value]) -> None:
        self._values: dict[str, Value] = {setting.name: setting.default for setting in declared()}
        assert given.keys() <= self._values.keys()
        self._values.update(given)

    def _get(self, name: str) -> Any:
        return self._values[name]

    bool = int = float = text = optional_text = list = _get

    def family(self, name: str) -> dict[str, Value]:
        raise KeyError(name)

    def on_change(self, call: object) -> Callable[[], None]:
        return lambda: None


class _Metrics:
    def __init__(self) -> None:
        self.counted: dict[tuple[str, ...], float] = {}

    def counter(self, name: str, help: str, *labels: str) -> Any:
        return _Counter(self.counted, name)

    gauge = counter


class _Counter:
    def __init__(self, counted: dict[tuple[str, ...], float], name: str) -> None:
        self._counted = counted
        self._name = name

    def add(self, count: float = 1, *labels: str) -> None:
        self._counted[self._name, *labels] = self._counted.get((self._name, *labels), 0) + count


class _Listening(NamedTuple):
    sockets: list[socket.socket]
    host: str
    port: int
    ssl_context: ssl.SSLContext | None


@asynccontextmanager
async def running(
    directory: Path,
    settings: dict[str, Value] | None = None,
    *,
    broker: dict[str, str] | None = None,
    clock: HandClock | None = None,
    ssl_context: ssl.SSLContext | None = None,
) -> AsyncIterator[Running]:
    """Serve until the end of the context. `settings` are the proxy's, without their common prefix."""
    given = {f"lc.http.proxy.{name}": value for name, value in (settings or {}).items()}
    core = open_broker(
        BrokerSettings({"log.dirs": str(directory), "node.id": "1", **(broker or {})}), clock or SystemClock()
    )
    ports: list[int] = []

    @asynccontextmanager
    async def listen(prefix: str, *, authenticates: bool = False) -> AsyncIterator[_Listening]:
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            sock.listen(128)
            ports.append(sock.getsockname()[1])
            yield _Listening([sock], "127.0.0.1", ports[0], ssl_context)

    metrics = _Metrics()
    view = make_broker_view(
        core,
        leafcuttr_http.PLUGIN,
        settings=_Settings(given),
        metrics=metrics,
        listen=listen,
    )
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(HttpProxy(view).run)
            yield Running(ports[0], core, view, metrics.counted, nursery.cancel_scope.cancel)
            nursery.cancel_scope.cancel()
    finally:
        core.logs.close()
        core.metadata.close()

"""The HTTP proxy in this process, in a whole broker on free ports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import trio

from leafcuttr.embedded import EmbeddedBroker, open_broker
from leafcuttr.state.broker import Broker as Core
from leafcuttr_sdk import TopicPartition


class Running(NamedTuple):
    """The proxy, and the broker that it is a plugin of."""

    port: int
    broker: EmbeddedBroker
    stop: Callable[[], None]

    @property
    def core(self) -> Core:
        """What is behind the view, for tests that do damage."""
        return self.broker._core

    @property
    def view(self) -> EmbeddedBroker:
        return self.broker

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, **options: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, timeout=30, **options)

    async def records(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """Keys and values of all that is in the topic, partition after partition."""
        found: list[tuple[bytes | None, bytes | None]] = []
        for partition in range(self.broker.topics.partition_count(topic)):
            got = await self.broker.fetch({TopicPartition(topic, partition): 0}, max_bytes=1 << 30)
            found += [(record.key, record.value) for record in got.records]
        return found

    async def counted(self, name: str, **labels: str) -> float:
        """A metric of the broker, as a scrape has it; 0 where it is not there."""
        from prometheus_client.parser import text_string_to_metric_families

        async with httpx.AsyncClient() as client:
            page = (await client.get(f"http://{self.broker.metrics_address}/metrics")).text
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    return sample.value
        return 0.0


@asynccontextmanager
async def running(
    directory: Path,
    settings: Mapping[str, str | int] | None = None,
    *,
    broker: Mapping[str, str | int] | None = None,
) -> AsyncIterator[Running]:
    """Serve until the end of the context. `settings` are the proxy's, without their common prefix."""
    given: dict[str, str | int | float | bool] = {
        "log.dirs": str(directory),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "lc.metrics.port": 0,
        "lc.http.proxy.enable": True,
        "lc.http.proxy.port": 0,
        **{f"lc.http.proxy.{name}": value for name, value in (settings or {}).items()},
        **(broker or {}),
    }
    stop = trio.Event()

    async def serve(*, task_status: trio.TaskStatus[EmbeddedBroker]) -> None:
        async with open_broker(given) as opened:
            task_status.started(opened)
            await stop.wait()

    async with trio.open_nursery() as nursery:
        opened = await nursery.start(serve)
        assert "lc.http.proxy" in opened.listeners, "the proxy does not listen"
        port = int(opened.listeners["lc.http.proxy"].rpartition(":")[2])
        yield Running(port, opened, stop.set)
        stop.set()

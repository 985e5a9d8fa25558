"""A registry of this process, as a test drives it: beside the one that its broker serves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from leafcuttr.embedded import open_broker
from leafcuttr.metrics.added import AddedMetrics
from leafcuttr_registry.registry import Registry


class Beside:
    """The broker for a registry beside the one that it serves: with metrics of its own."""

    def __init__(self, broker: Any) -> None:
        self._broker = broker
        self.metrics = AddedMetrics().of("registry")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Registry]:
    """A registry that has read its topic and does not follow it yet."""
    settings: dict[str, Any] = {
        "log.dirs": str(folder),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "lc.metrics.port": 0,
        "lc.schema.registry.enable": True,
        "lc.schema.registry.port": 0,
    }
    async with open_broker(settings) as broker:
        registry = Registry(cast("Any", Beside(broker)))
        await registry.open()
        yield registry

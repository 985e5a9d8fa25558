"""The service: a topic that takes long to be read does not keep it from starting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from leafcuttr.embedded import open_broker
from leafcuttr_registry import service
from leafcuttr_registry.registry import Registry
from support.waiting import free_port


async def test_a_topic_that_takes_long_to_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker starts, and the port opens when the topic is read."""
    read, opened = trio.Event(), trio.Event()
    real = Registry.open

    async def slow(self: Registry) -> None:
        await read.wait()
        await real(self)
        opened.set()

    monkeypatch.setattr(Registry, "open", slow)
    monkeypatch.setattr(service, "WAITED_FOR_S", 0.01)
    port = free_port()
    settings: dict[str, Any] = {
        "log.dirs": str(tmp_path),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "lc.metrics.port": 0,
        "lc.schema.registry.enable": True,
        "lc.schema.registry.host": "127.0.0.1",
        "lc.schema.registry.port": port,
    }
    url = f"http://127.0.0.1:{port}/subjects"
    async with open_broker(settings) as broker, httpx.AsyncClient(timeout=60) as client:
        (line,) = [each.message for each in caplog.records if "its port opens then" in each.message]
        assert line.startswith("the schema registry has read 0 records of _schemas")
        with pytest.raises(httpx.ConnectError):
            await client.get(url)
        assert broker.schemas is not None and broker.schemas.waits_for is not None
        read.set()
        with trio.fail_after(60):
            await opened.wait()
            while True:
                try:
                    answer = await client.get(url)
                    break
                except httpx.ConnectError:
                    await trio.sleep(0.01)
        assert answer.json() == []
        assert broker.schemas.waits_for is None

"""A broker with real sockets in this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from leafcuttr.config.listeners import parse_listeners
from leafcuttr.config.settings import Settings
from leafcuttr.server.run import run_broker
from leafcuttr.state.broker import Broker

Serve = Callable[..., Awaitable[Broker]]


@pytest.fixture
def serve(tmp_path: Path, nursery: trio.Nursery) -> Serve:
    """Start a broker of this process with these settings; `stop` ends it."""

    async def start(settings: dict[str, str] | None = None, *, stop: trio.Event | None = None) -> Broker:
        given = {
            "log.dirs": str(tmp_path / "data"),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "node.id": "1",
            "group.initial.rebalance.delay.ms": "0",
            "lc.metrics.enable": "false",
            **(settings or {}),
        }
        found = Settings(given)

        async def run(task_status: trio.TaskStatus[Broker]) -> None:
            await run_broker(found, parse_listeners(found), stop=stop, task_status=task_status)

        broker: Broker = await nursery.start(run)
        return broker

    return start

"""A broker in a program: KeyboardInterrupt goes on to the program, whichever part raises it; SystemExit does not."""

from __future__ import annotations

import types
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
import trio

import leafcuttr
from leafcuttr.embedded import EmbeddedBroker
from leafcuttr_sdk import BrokerError
from support.bad_plugins import FAULTS, HEAD, PARTS
from support.waiting import eventually

NAME: Final = "bad"


def plugin(fault: str) -> types.ModuleType:
    module = types.ModuleType("bad_plugin")
    source = HEAD.format(name=NAME, statement=FAULTS[fault].statement, size=0) + PARTS
    exec(compile(source, "bad_plugin.py", "exec"), vars(module))
    return module


async def get(broker: EmbeddedBroker, path: str) -> bytes:
    assert broker.metrics_address is not None
    host, _, port = broker.metrics_address.rpartition(":")
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        await stream.send_all(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        return b"".join([piece async for piece in stream])


def route(path: str) -> Callable[[EmbeddedBroker, Any], Awaitable[object]]:
    return lambda broker, _: get(broker, path)


async def create(broker: EmbeddedBroker, _: Any) -> None:
    await broker.topics.create(f"{NAME}-topic")


async def filtered(broker: EmbeddedBroker, _: Any) -> None:
    await broker.topics.create("filtered", configs={"lc.filters": f"{NAME}-filter"})
    with suppress(BrokerError):
        await broker.produce("filtered", b"x")


def trigger(what: str) -> Callable[[EmbeddedBroker, Any], Awaitable[object]]:
    async def drive(_: EmbeddedBroker, module: Any) -> None:
        await module.TRIGGERS[what]()

    return drive


WAYS: Final = {
    "health check": route("/health"),
    "route": route(f"/plugins/{NAME}/route"),
    "metric": route("/metrics"),
    "callback": create,
    "filter": filtered,
    "task of a nursery": trigger("task"),
    "system task": trigger("spawn"),
    "callback of a token": trigger("soon"),
}


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    return {"listeners": "PLAINTEXT://localhost:0", "log.dirs": str(tmp_path / "data"), "lc.metrics.port": 0}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("way", WAYS)
async def test_an_interrupt_is_the_programs(way: str, settings: dict[str, Any]) -> None:
    module = plugin("interrupt")
    with pytest.raises(KeyboardInterrupt), trio.fail_after(60):
        async with leafcuttr.open_broker(settings, plugins=[module]) as broker:
            await WAYS[way](broker, module)
            await trio.sleep_forever()


def test_an_interrupt_in_a_broker_with_a_thread_of_its_own(settings: dict[str, Any]) -> None:
    module = plugin("interrupt")
    with pytest.raises(KeyboardInterrupt), leafcuttr.run_broker(settings, plugins=[module]) as broker:
        broker.call(WAYS["task of a nursery"], module)


async def test_nothing_else_is(settings: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    module = plugin("exit")
    async with leafcuttr.open_broker(settings, plugins=[module]) as broker:
        for drive in WAYS.values():
            await drive(broker, module)
        await eventually(lambda: "kill_everything" in caplog.text, "the last line")
        assert b'"status": "degraded"' in await get(broker, "/health")
    assert "Traceback" not in caplog.text

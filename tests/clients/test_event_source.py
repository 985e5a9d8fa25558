"""npm's EventSource and WebSocket on streams of the HTTP proxy, over connections that break."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import trio

from leafcuttr_sdk import Record
from support.client_programs import node
from support.http_proxy import Running, running

PATIENCE_S = 60

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("npm") is None, reason="not installed: npm"),
]


@pytest.fixture
async def proxy(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path / "data") as found:
        yield found


async def run(*command: str) -> str:
    with trio.fail_after(PATIENCE_S):
        done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


async def _cut(port: int, lives: list[int], stream: trio.SocketStream) -> None:
    """Hands a connection on to the proxy, and breaks it after some bytes of its answer."""
    budget = lives.pop(0) if lives else 1 << 30
    async with await trio.open_tcp_stream("127.0.0.1", port) as proxy, stream:
        with trio.CancelScope() as scope:

            async def asked() -> None:
                async for data in stream:
                    await proxy.send_all(data)
                scope.cancel()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(asked)
                while budget and (data := await proxy.receive_some(budget)):
                    await stream.send_all(data)
                    budget -= len(data)
                scope.cancel()


async def test_an_event_source_comes_again_where_it_was(proxy: Running) -> None:
    program = await trio.to_thread.run_sync(node, "event_source")
    await proxy.view.topics.create("t", partitions=3)
    partitions = [number % 3 for number in range(90)]
    await proxy.view.produce_batch("t", [Record(b"%d" % n) for n in range(90)], partitions=partitions)
    lives = [800, 2003, 411, 5000]  # bytes, so that answers break in the middle of an event
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, partial(_cut, proxy.port, lives), [listener])
        address = f"http://127.0.0.1:{listener.socket.getsockname()[1]}/topics/t/stream?from=earliest"
        shown = await run(*program, "sse", address, "90")
        nursery.cancel_scope.cancel()
    assert not lives
    assert sorted(json.loads(shown)) == list(range(90))  # none twice, none missing


async def test_ws_with_credits(proxy: Running) -> None:
    await proxy.view.topics.create("t")
    await proxy.view.produce_batch("t", [Record(b"%d" % number) for number in range(1000)])
    address = f"ws://127.0.0.1:{proxy.port}/topics/t/stream?from=earliest&credits=50"
    shown = await run(*await trio.to_thread.run_sync(node, "event_source"), "websocket", address, "1000")
    assert json.loads(shown) == list(range(1000))

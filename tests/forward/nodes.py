"""Identical sources, each behind a proxy."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from forward.clusters import Proxy, create, produce, values
from support.live_broker import LiveBroker, serve_here
from support.waiting import free_port


class Node:
    """A source behind a proxy, whose address is the one that it advertises to those who come through it; others come
    to it directly."""

    def __init__(self, way: Proxy, direct: str) -> None:
        self.way = way
        self.direct = direct

    @property
    def address(self) -> str:
        return self.way.address


@asynccontextmanager
async def nodes(folder: Path, count: int, topic: str) -> AsyncGenerator[list[Node]]:
    """Sources that have a topic of two partitions with a hundred records in each."""
    async with trio.open_nursery() as nursery:
        found: list[Node] = []
        stop, ended = trio.Event(), [trio.Event() for _ in range(count)]
        for number in range(count):
            port, direct = free_port(), free_port()
            settings = {
                "listeners": f"PLAINTEXT://127.0.0.1:0,DIRECT://127.0.0.1:{direct}",
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},DIRECT://127.0.0.1:{direct}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,DIRECT:PLAINTEXT",
            }
            broker = await serve_here(
                nursery, folder / f"node{number}", settings, stop=stop, ended=ended[number]
            )
            way = Proxy(broker.listeners[0].host, broker.listeners[0].port)
            await nursery.start(way.serve, port)
            found.append(Node(way, f"127.0.0.1:{direct}"))
        for node in found:
            await trio.to_thread.run_sync(create, node.direct, topic, 2)
            await write(node, topic, 0, 100)
        yield found
        stop.set()
        for each in ended:
            await each.wait()
        nursery.cancel_scope.cancel()


async def write(node: Node, topic: str, first: int, end: int) -> None:
    for partition in (0, 1):
        texts = [f"{partition}:{number}" for number in range(first, end)]
        await trio.to_thread.run_sync(produce, node.direct, topic, texts, partition)


async def whole(hub: LiveBroker, topic: str, count: int) -> None:
    for partition in (0, 1):
        found = await trio.to_thread.run_sync(values, hub.address, topic, partition)
        assert found == [f"{partition}:{number}" for number in range(count)]

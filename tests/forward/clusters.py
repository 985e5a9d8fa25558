"""Brokers of these tests and what is done with their records, all over TCP by a client that others wrote; and a proxy
that cuts, delays and holds connections."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import trio

from leafcuttr.client.peer import open_remote_peer
from leafcuttr_forward.relay.running import CommandClock
from leafcuttr_sdk.peers import Peer
from support import librdkafka

LOGGER = logging.getLogger("tests.forward")


def open_peer(properties: Mapping[str, str]) -> AbstractAsyncContextManager[Peer]:
    """As `CommandContext.peer`."""
    return open_remote_peer(properties, clock=CommandClock(), logger=LOGGER)


def produce(address: str, topic: str, values: Iterable[str | None], partition: int = 0, **more: Any) -> None:
    """Each is acknowledged."""
    from confluent_kafka import Producer

    wrong: list[Any] = []
    producer = Producer({"bootstrap.servers": address, **more})
    for value in values:
        producer.produce(
            topic,
            value,
            key=None if value is None else f"key of {value}",
            headers={"of": (value or "-").encode()},
            partition=partition,
            on_delivery=lambda error, _: wrong.append(error) if error else None,
        )
        producer.poll(0)
    producer.flush(60)
    assert wrong == []


def read(address: str, topic: str, partitions: Sequence[int] = (0,), *, committed: bool = True) -> list[Any]:
    """All messages of the partitions that readers of committed records see, in the order of the offsets."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "tests",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
    found: list[Any] = []
    ended = 0
    while ended < len(partitions):
        message = consumer.poll(30)
        assert message is not None, f"{topic} of {address} is not read to its end"
        error = message.error()
        if error is not None:
            assert error.code() == -191, error
            ended += 1
        else:
            found.append(message)
    consumer.close()
    return found


def values(address: str, topic: str, partition: int = 0) -> list[str]:
    """The values of a partition as texts."""
    return [message.value().decode() for message in read(address, topic, [partition])]


async def until(holds: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    """Wait for it, in the loop of the test."""
    with trio.move_on_after(seconds) as scope:
        while not holds():
            await trio.sleep(0.01)
    assert not scope.cancelled_caught, what


create = librdkafka.create


class Proxy:
    """Between clients and one broker. Brokers say their own address in their metadata, so a broker behind a proxy is to
    advertise the proxy's."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._open: set[trio.SocketStream] = set()
        self._held = trio.Event()
        self._held.set()
        self.delay_s = 0.0
        self.refuses = False
        self.address = ""

    def cut(self) -> None:
        """Reset every connection."""
        for stream in list(self._open):
            stream.setsockopt(1, 13, b"\x01\0\0\0\0\0\0\0")  # SO_LINGER: a reset
            stream.socket.close()
        self._open.clear()

    def hold(self) -> None:
        """Take bytes, and pass none on: half-open links."""
        self._held = trio.Event()

    def release(self) -> None:
        self._held.set()

    async def serve(self, port: int, *, task_status: trio.TaskStatus[None]) -> None:
        (listener,) = await trio.open_tcp_listeners(port, host="127.0.0.1")
        self.address = f"127.0.0.1:{listener.socket.getsockname()[1]}"
        task_status.started()
        await trio.serve_listeners(self._connection, [listener])

    async def _connection(self, client: trio.SocketStream) -> None:
        if self.refuses:
            await trio.aclose_forcefully(client)
            return
        try:
            server = await trio.open_tcp_stream(*self._target)
        except OSError:
            await trio.aclose_forcefully(client)
            return
        self._open |= {client, server}
        try:
            async with client, server, trio.open_nursery() as nursery:
                nursery.start_soon(self._pass, client, server, nursery.cancel_scope)
                nursery.start_soon(self._pass, server, client, nursery.cancel_scope)
        finally:
            self._open -= {client, server}

    async def _pass(
        self, source: trio.SocketStream, sink: trio.SocketStream, scope: trio.CancelScope
    ) -> None:
        try:
            while data := await source.receive_some(65536):
                if self.delay_s:
                    await trio.sleep(self.delay_s)
                await self._held.wait()
                await sink.send_all(data)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        scope.cancel()


@asynccontextmanager
async def proxy(address: str, port: int = 0) -> AsyncGenerator[Proxy]:
    host, _, number = address.rpartition(":")
    made = Proxy(host, int(number))
    async with trio.open_nursery() as nursery:
        await nursery.start(made.serve, port)
        yield made
        nursery.cancel_scope.cancel()

"""A connection between two brokers that breaks again and again: with QoS 2 each message arrives once, with QoS 1 at
least once, in both directions."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
import trio

from support.mqtt import MqttClient, RunningMqtt, running_mqtt
from support.mqtt_bridges import bridge, is_up

COUNT = 300


class Breaking:
    """A relay of bytes that ends a connection after a random number of them, in the middle of whatever it is."""

    def __init__(self, port: int, rng: random.Random) -> None:
        self._target = port
        self._rng = rng
        self.port = 0
        self.breaks = True
        self.broken = 0

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listener.socket.getsockname()[1]
        await trio.serve_listeners(self._serve, [listener], task_status=_Started(task_status))

    async def _serve(self, stream: trio.SocketStream) -> None:
        left = [self._rng.randint(200, 2000) if self.breaks else 1 << 60]
        with suppress(OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            other = await trio.open_tcp_stream("127.0.0.1", self._target)
            async with stream, other, trio.open_nursery() as nursery:
                for source, sink in ((stream, other), (other, stream)):
                    nursery.start_soon(self._copy, source, sink, left, nursery.cancel_scope)

    async def _copy(
        self,
        source: trio.SocketStream,
        sink: trio.SocketStream,
        left: list[int],
        scope: trio.CancelScope,
    ) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while data := await source.receive_some(1000):
                cut, left[0] = data[: left[0]], left[0] - len(data)
                await sink.send_all(cut)
                if left[0] <= 0:
                    self.broken += 1
                    break
        scope.cancel()


class _Started:
    """`serve_listeners` starts with its listeners, which nobody here needs."""

    def __init__(self, status: trio.TaskStatus[None]) -> None:
        self._status = status

    def started(self, value: object = None) -> None:
        self._status.started()


@asynccontextmanager
async def breaking(port: int, rng: random.Random) -> AsyncIterator[Breaking]:
    async with trio.open_nursery() as nursery:
        found = Breaking(port, rng)
        await nursery.start(found.run)
        yield found
        nursery.cancel_scope.cancel()


async def publish_all(client: MqttClient, topic: str, qos: int) -> None:
    for number in range(COUNT):
        await client.publish(topic, b"%d" % number, qos)
        if number % 10 == 0:
            await trio.sleep(0.02)


async def collect(client: MqttClient, got: list[int], last: trio.Event) -> None:
    while True:
        message = await client.message()
        if message.payload == b"end":
            last.set()
            return
        got.append(int(message.payload))


async def subscriber(mqtt: RunningMqtt, topic: str) -> MqttClient:
    client = await mqtt.connect(f"subscriber-{topic[:2]}")
    await client.subscribe(topic, qos=2)
    return client


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("protocol", "qos"),
    [
        ("3.1.1", 1),
        ("5.0", 2),
        pytest.param("3.1.1", 2, marks=pytest.mark.long),
        pytest.param("5.0", 1, marks=pytest.mark.long),
    ],
)
async def test_nothing_is_lost_and_with_qos_2_nothing_comes_twice(
    tmp_path: Path, protocol: str, qos: int
) -> None:
    seed = int(os.environ.get("LEAFCUTTR_FUZZ_SEED", str(random.randrange(1 << 32))))
    print(f"LEAFCUTTR_FUZZ_SEED={seed}")
    async with (
        running_mqtt(tmp_path / "there") as there,
        breaking(there.port, random.Random(seed)) as between,
    ):
        settings = bridge(between.port, f"up/# out {qos}, down/# in {qos}", protocol_version=protocol)
        async with running_mqtt(tmp_path / "here", settings) as here:
            await is_up(here)
            got_up: list[int] = []
            got_down: list[int] = []
            ends = trio.Event(), trio.Event()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(collect, await subscriber(there, "up/#"), got_up, ends[0])
                nursery.start_soon(collect, await subscriber(here, "down/#"), got_down, ends[1])
                async with trio.open_nursery() as publishers:
                    for broker, topic in ((here, "up/a"), (there, "down/a")):
                        client = await broker.connect("publisher")
                        publishers.start_soon(partial(publish_all, client, topic, qos))
                between.breaks = False
                for broker, topic in ((here, "up/a"), (there, "down/a")):
                    client = await broker.connect("publisher")
                    await client.publish(topic, b"end", qos)
                with trio.fail_after(60):
                    for end in ends:
                        await end.wait()
    print(f"{between.broken} breaks")
    assert between.broken >= 3
    for got in (got_up, got_down):
        assert set(got) == set(range(COUNT))
        if qos == 2:
            assert [number for number, times in Counter(got).items() if times > 1] == []
            assert got == sorted(got)

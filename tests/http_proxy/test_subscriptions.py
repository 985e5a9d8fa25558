"""Streams without connections, at random: every reader, however fast, gets every record once and in order."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

import leafcuttr_http
from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.runtime.clock import SystemClock
from leafcuttr_http.schemas.shared import Schemas
from leafcuttr_http.streams import subscription as rooms
from leafcuttr_http.streams.beginning import subscribe
from leafcuttr_http.streams.events import Event
from leafcuttr_http.streams.positions import parse
from leafcuttr_http.streams.query import Query
from leafcuttr_http.streams.streams import Streams
from leafcuttr_sdk import EARLIEST, Broker, Record
from support.live_broker import opening
from support.waiting import eventually

PATIENCE_S = 60


class Metrics:
    """Counts nothing."""

    def counter(self, name: str, help: str, *labels: str) -> Any:
        return self

    gauge = counter


class Limits:
    stream_buffer = 3000
    heartbeat_s = 15.0


class Proxy:
    """What streams need of the proxy."""

    def __init__(self, broker: Broker, nursery: trio.Nursery) -> None:
        self.broker = self.acting = broker
        self.schemas = Schemas(broker)
        self.limits = Limits()
        self.nursery = nursery
        self.closing = trio.Event()
        self.streams = 0


@asynccontextmanager
async def streaming(directory: Path) -> AsyncIterator[Streams]:
    with opening(directory, SystemClock()) as start:
        view = make_broker_view(start(), leafcuttr_http.PLUGIN, metrics=Metrics())
        async with trio.open_nursery() as nursery:
            proxy: Any = Proxy(view, nursery)
            yield Streams(proxy)
            nursery.cancel_scope.cancel()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(6))
async def test_every_record_once_and_in_order(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(seed)
    # Small, so that streams leave and join hubs all the time.
    monkeypatch.setattr(rooms, "_NEAR", dice.choice([0, 5, 50]))
    monkeypatch.setattr(rooms, "_PIECE_RECORDS", dice.choice([3, 20, 100]))
    partitions = [3]
    sent: dict[int, int] = {}
    over = trio.Event()

    async def produce(view: Broker) -> None:
        for _ in range(40):
            count = dice.randrange(1, 40)
            where = [dice.randrange(partitions[0]) for _ in range(count)]
            await view.produce_batch("t", [Record(b"1")] * count, partitions=where)
            for partition in where:
                sent[partition] = sent.get(partition, 0) + 1
            if dice.random() < 0.05:
                partitions[0] += 1
                await view.topics.add_partitions("t", partitions[0])
            await trio.sleep(dice.choice([0, 0, 0.002, 0.01]))
        over.set()

    async def read(streams: Streams, pauses: list[float], breaks: bool) -> None:
        seen: dict[int, int] = {}
        asked = Query(time=EARLIEST)
        subscription, _ = await subscribe(streams, "t", asked)
        last: Event | None = None
        while not (over.is_set() and seen == sent):
            chunk = await subscription.next(0.05)
            for event in chunk.events if chunk else ():
                assert event.offset == seen.get(event.partition, 0)
                seen[event.partition] = event.offset + 1
                last = event
                if breaks and dice.random() < 0.01:
                    break  # as a connection in the middle of a chunk
            else:
                await trio.sleep(dice.choice(pauses))
                continue
            assert last is not None
            subscription.close()
            asked = Query(last=parse(last.id))
            subscription, notices = await subscribe(streams, "t", asked)
            assert not notices
        subscription.close()

    async with streaming(tmp_path) as streams:
        await streams.broker.topics.create("t", partitions=3)
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(produce, streams.broker)
                for pauses in ([0.0], [0.0], [0.0, 0.005], [0.0, 0.02], [0.005, 0.01]):
                    for breaks in (False, True):
                        nursery.start_soon(read, streams, pauses, breaks)
            await eventually(lambda: not streams._hubs, "the end of the hubs, which nobody reads any more")

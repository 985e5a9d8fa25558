#!/usr/bin/env python3
"""How many records a plugin gets in and out of a broker in its process: `in_process.py [--seconds 2] [--synced]`.

One broker, no sockets; each line is one case. The records have 100 bytes; with headers, also a key
and four headers.
"""

import argparse
import operator
import tempfile
import time
from collections.abc import Awaitable, Callable

import trio
from reading import read

from leafcuttr.config.settings import Settings
from leafcuttr.plugins.facade.view import make_broker_view
from leafcuttr.runtime.clock import SystemClock
from leafcuttr.state.broker import Broker as Core
from leafcuttr.state.broker import open_broker
from leafcuttr.wire.records import Record as WireRecord
from leafcuttr.wire.records import encode_batch
from leafcuttr_sdk import Broker, NewBatch, Plugin, Record, TopicPartition
from leafcuttr_sdk.batches import BatchBuilder, encode_headers, encode_key

VALUE = b"x" * 100
KEY = b"sensor-17"
HEADERS = (("source", b"north"), ("unit", b"C"), ("version", b"3"), ("trace", b"0123456789abcdef"))
ONE = TopicPartition("one", 0)


async def measure(
    name: str, seconds: float, tasks: int, records: int, call: Callable[[], Awaitable[object]]
) -> None:
    """Have so many tasks call it again and again; each call is worth `records`."""
    calls = 0

    async def again() -> None:
        nonlocal calls
        while time.perf_counter() < end:
            await call()
            calls += 1

    began = time.perf_counter()
    end = began + seconds
    async with trio.open_nursery() as nursery:
        for _ in range(tasks):
            nursery.start_soon(again)
    rate = calls * records / (time.perf_counter() - began)
    print(f"{name:45} {rate:12,.0f} records/s")


async def main(seconds: float, synced: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        core = open_broker(
            Settings({"log.dirs": directory, "group.initial.rebalance.delay.ms": "0"}), SystemClock()
        )
        view = make_broker_view(core, Plugin("bench", 1, "a bench"))
        configs = {"lc.log.sync.always": str(synced).lower()}
        await view.topics.create("one", configs=configs)
        await view.topics.create("twelve", partitions=12, configs=configs)
        for tasks in (1, 8, 100):
            await measure(f"produce, {tasks} tasks", seconds, tasks, 1, lambda: view.produce("one", VALUE))
        keyless = [Record(VALUE)] * 100
        keyed = [Record(VALUE, b"key-%d" % n) for n in range(100)]
        for topic in ("one", "twelve"):
            for what, records in (("without keys", keyless), ("with keys", keyed)):
                await measure(
                    f"produce_batch of 100 {what}, {topic}", seconds, 1, 100,
                    lambda topic=topic, records=records: view.produce_batch(topic, records),  # type: ignore[misc]
                )  # fmt: skip
        batch = bytes(encode_batch([WireRecord(n, 0, None, VALUE) for n in range(100)]))
        await measure(
            "append of 10 batches of 100", seconds, 1, 1000, lambda: view.append([NewBatch(ONE, batch)] * 10)
        )
        await with_headers(view, seconds)
        await reading(view, seconds)
        await read(core, view, seconds)
        await in_workers(core, view, seconds)
        core.logs.close()
        core.metadata.close()


async def with_headers(view: Broker, seconds: float) -> None:
    """Batches of 100 with a key and four headers: as objects, and of encoded parts."""
    records = [Record(VALUE, KEY, HEADERS)] * 100
    key, headers, values = encode_key(KEY), encode_headers(HEADERS), [VALUE] * 100

    async def added() -> None:
        builder = BatchBuilder()
        for value in values:
            builder.add(value, 0, key, headers)
        await view.append((NewBatch(ONE, builder.finish()),))

    async def extended() -> None:
        builder = BatchBuilder()
        builder.extend(values, 0, key, headers)
        await view.append((NewBatch(ONE, builder.finish()),))

    for name, call in (
        ("produce_batch of 100 with four headers", lambda: view.produce_batch("one", records)),
        ("append of 100, encoded parts, by add", added),
        ("append of 100, encoded parts, by extend", extended),
    ):
        await measure(name, seconds, 1, 100, call)


async def reading(view: Broker, seconds: float) -> None:
    positions, count = {ONE: 0}, 0
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        fetched = await view.fetch(positions)
        count += len(fetched.records)
        positions = fetched.positions if fetched.records else {ONE: 0}
    print(f"{'fetch':45} {count / (time.perf_counter() - began):12,.0f} records/s")


async def in_workers(core: Core, view: Broker, seconds: float) -> None:
    """What a call in a warm worker process costs: `operator.add`, which takes no time itself."""
    async with trio.open_nursery() as nursery:
        core.plugged.background = nursery
        times: list[float] = []

        async def call() -> None:
            began = time.perf_counter()
            await view.run_in_worker(operator.add, 1, 2, deadline_s=60, memory_bytes=64 * 1024 * 1024)
            times.append(time.perf_counter() - began)

        await call()
        first = times.pop()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            await call()
        times.sort()
        print(f"{'run_in_worker, first call':45} {first * 1000:12,.3f} ms")
        for name, part in (("median", 0.5), ("99 of 100", 0.99)):
            print(f"{f'run_in_worker, warm, {name}':45} {times[int(len(times) * part)] * 1000:12,.3f} ms")
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each case")
    parser.add_argument("--synced", action="store_true", help="topics in sync mode")
    given = parser.parse_args()
    trio.run(main, given.seconds, given.synced)

#!/usr/bin/env python3
"""How many records a plugin gets in and out of a broker in its process: `in_process.py [--seconds 2] [--synced]`.

One broker, no sockets; each line is one case. The records have 100 bytes; with headers, also a key
and four headers. "trio alone" is how often trio wakes 10,000 tasks that wait for an event each; what is
compared is measured in turn, and the ratio is the median of the pairs, with the worst and the best.
"""

import argparse
import operator
import tempfile
import time
from collections.abc import Awaitable, Callable
from statistics import median

import trio
import trio.testing
from reading import read

from leafcuttr.config.settings import Settings
from leafcuttr.plugins.facade.opening import make_broker_view
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


async def rate_of(seconds: float, tasks: int, records: int, call: Callable[[], Awaitable[object]]) -> float:
    """Have so many tasks call it again and again; each call is worth `records`. Records a second, from when all tasks
    have started."""
    calls, end = 0, float("inf")

    async def again() -> None:
        nonlocal calls
        while time.perf_counter() < end:
            await call()
            calls += 1

    async with trio.open_nursery() as nursery:
        for _ in range(tasks):
            nursery.start_soon(again)
        await trio.lowlevel.checkpoint()
        calls, began = 0, time.perf_counter()
        end = began + seconds
    return calls * records / (time.perf_counter() - began)


async def measure(
    name: str, seconds: float, tasks: int, records: int, call: Callable[[], Awaitable[object]]
) -> None:
    """The same, as a line."""
    print(f"{name:45} {await rate_of(seconds, tasks, records, call):12,.0f} records/s")


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
        await sending(view, seconds)
        await reading(view, seconds)
        await read(core, view, seconds)
        await in_workers(core, view, seconds)
        await in_transactions(core, view, seconds)
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

    rows = [
        [
            await rate_of(seconds / 5, 1, 100, call)
            for call in (lambda: view.produce_batch("one", records), added, extended)
        ]
        for _ in range(5)
    ]
    produced, *parts = zip(*rows, strict=True)
    print(f"{'produce_batch of 100 with four headers':45} {median(produced):12,.0f} records/s")
    for way, rates in zip(("add", "extend"), parts, strict=True):
        ratios = sorted(rate / beside for beside, rate in zip(produced, rates, strict=True))
        print(
            f"{f'append of 100, encoded parts, by {way}':45} {median(rates):12,.0f} records/s, "
            f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) of produce_batch"
        )


async def sending(view: Broker, seconds: float) -> None:
    """By a producer. What it is compared with is measured in turn with it."""
    record, tasks = Record(VALUE), 10_000
    async with view.producer() as producer:

        async def flushed(count: int) -> None:
            for _ in range(count):
                producer.send("one", record)
            await producer.flush()

        async def awaited() -> None:
            await producer.send("one", record)

        for count in (100, 1000):
            await measure(
                f"send, flush of {count} a turn", seconds, 1, count,
                lambda count=count: flushed(count),  # type: ignore[misc]
            )  # fmt: skip
        alone = [
            (
                await rate_of(seconds / 5, 1, 1, lambda: view.produce("one", VALUE)),
                await rate_of(seconds / 5, 1, 1, awaited),
            )
            for _ in range(15)
        ]
        many = [(await wake_ups(seconds, tasks), await rate_of(seconds, tasks, 1, awaited)) for _ in range(5)]
    for name, base, pairs in (
        ("send, await the receipt, 1 task", "produce", alone),
        ("send, await the receipt, 10,000 tasks", "trio alone", many),
    ):
        ratios = sorted(rate / beside for beside, rate in pairs)
        print(
            f"{name:45} {median(rate for _, rate in pairs):12,.0f} records/s, {median(ratios):.2f} "
            f"({ratios[0]:.2f} to {ratios[-1]:.2f}) of {base} ({median(beside for beside, _ in pairs):,.0f})"
        )


async def wake_ups(seconds: float, tasks: int) -> float:
    """Of so many tasks a second that wait for an event of their own each, all of which are set in a loop."""
    events: list[trio.Event] = []
    count = 0

    async def wait() -> None:
        nonlocal count
        while True:
            event = trio.Event()
            events.append(event)
            await event.wait()
            count += 1

    async with trio.open_nursery() as nursery:
        for _ in range(tasks):
            nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            due = events[:]
            events.clear()
            for event in due:
                event.set()
            await trio.lowlevel.checkpoint()
        rate = count / (time.perf_counter() - began)
        nursery.cancel_scope.cancel()
    return rate


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


async def in_transactions(core: Core, view: Broker, seconds: float) -> None:
    """A turn of 100 messages with QoS 2: their records, and one of their session, in a transaction, in turn with one
    append (in which a header has the number of each message)."""
    await view.topics.create("sessions")
    records, session = (
        bytes(encode_batch([WireRecord(n, 0, None, VALUE) for n in range(count)])) for count in (100, 1)
    )
    batches = [NewBatch(ONE, records), NewBatch(TopicPartition("sessions", 0), session)]
    async with trio.open_nursery() as nursery:
        await nursery.start(core.transactions.run)
        async with view.transaction("bench") as producer:

            async def transacted() -> None:
                async with producer.begin() as transaction:
                    await transaction.append(batches)

            pairs = [
                (
                    await rate_of(seconds / 5, 1, 100, lambda: view.append(batches)),
                    await rate_of(seconds / 5, 1, 100, transacted),
                )
                for _ in range(5)
            ]
        nursery.cancel_scope.cancel()
    ratios = sorted(rate / beside for beside, rate in pairs)
    name, beside = "a turn of 100 and its session, transaction", median(one for one, _ in pairs)
    print(
        f"{name:45} {median(rate for _, rate in pairs):12,.0f} records/s, {median(ratios):.2f} "
        f"({ratios[0]:.2f} to {ratios[-1]:.2f}) of append ({beside:,.0f})"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each case")
    parser.add_argument("--synced", action="store_true", help="topics in sync mode")
    given = parser.parse_args()
    trio.run(main, given.seconds, given.synced)

#!/usr/bin/env python3
"""How fast topics are forwarded from a LeafCuttr to another cluster, by the engine in a process of its own.

  forward.py [--row NAME ...] [--target kafka|leafcuttr] [--runs 3] [--scale 1.0] [--warm 0.5] [--json FILE]
             [--kaf-relay PROGRAM]

The rows take turns in each run; before the first one those of flows and ceilings go through a part of it (`--warm`, 0
for none) which does not count: Kafka's JVM compiles then what it runs often. Prints a table in Markdown: medians of
records in a second, of the processor time that each of the three processes takes for a record, of the memory of the
forwarding process, and what is wanted of them; the status is 1 where one is missed. Records have 1000 bytes, in 12
partitions; batches are of 16 KiB (Java's default), of 1 MB (librdkafka's), or of one record. Flows are exactly once but
those of `at-least`. `filter` has the least that a filter may be, `allow` one of ours in a `relay`; those of `kaf-relay`
are that program's. `ceiling` is a producer that has nothing to read and nothing to make: it sends the target the same
request again and again. `lag` has 1,000 records a second, each from its producer's clock to a reader of the target,
after a second that does not count; `first` is the time from the start of the command `relay` to the first record at the
target; `idle` the processor time of a flow that has nothing to do; `switch` the time from a source's SIGKILL to the
next one's first record at the target, in intervals of its health check.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forward_process import INTERVAL_S, SIZE, Process, new_batch, peer, start_flow, start_frames, start_relay
from forward_table import Figures, status, table, with_ratios
from peers import Kafka, LeafCuttr, Peer

if TYPE_CHECKING:
    from leafcuttr_sdk import peers as sdk

PARTITIONS = 12
# Records, and records in a batch.
LOADS = {"16k": (1_200_000, 16), "1m": (1_200_000, 960), "one": (120_000, 1)}
FLOWS: dict[str, tuple[str, dict[str, Any]]] = {
    "raw 16k": ("16k", {}),
    "raw 1m": ("1m", {}),
    "at-least 16k": ("16k", {"guarantee": "AT_LEAST_ONCE"}),
    "at-least 1m": ("1m", {"guarantee": "AT_LEAST_ONCE"}),
    "one": ("one", {}),
    "filter": ("16k", {"filters": ["keep"]}),
}
RELAYS = {"allow": "16k", "kaf-relay 16k": "16k", "kaf-relay 1m": "1m"}
CEILINGS = {"ceiling 16k": "16k", "ceiling 1m": "1m"}
FILTER = "allow key.regex=^key-"


# What is done to it


async def fill(address: str, topic: str, count: int, in_batch: int) -> None:
    """The same records at every cluster, but for their times."""
    from leafcuttr_sdk.errors import TopicAlreadyExists
    from leafcuttr_sdk.records import NewBatch
    from leafcuttr_sdk.types import TopicPartition

    batch = new_batch(topic, in_batch)
    async with peer(address) as source:
        with suppress(TopicAlreadyExists):
            await source.create_topic(topic, partitions=PARTITIONS)
        async with source.appender() as appender:
            in_call = max(1, 500_000 // (in_batch * SIZE))
            left = count // in_batch // PARTITIONS
            while left > 0:
                in_call = min(in_call, left)
                batches = [
                    NewBatch(TopicPartition(topic, number), bytearray(batch))
                    for number in range(PARTITIONS)
                    for _ in range(in_call)
                ]
                for done in await appender.append(batches):
                    if isinstance(done, Exception):
                        raise done
                left -= in_call


async def create(address: str, topic: str) -> None:
    async with peer(address) as target:
        await target.create_topic(topic, partitions=PARTITIONS)


async def check(address: str, topic: str, count: int) -> None:
    """Everything is at the target: in each partition as many records as there are offsets, but for markers."""
    from leafcuttr_sdk.types import TopicPartition

    async with peer(address) as target:
        found = await target.offsets({TopicPartition(topic, number): -1 for number in range(PARTITIONS)})
    if sum(found.values()) < count:
        raise RuntimeError(f"{sum(found.values())} of {count} records are at the target: {found}")


def throughput(row: str, number: int, ends: tuple[Peer, Peer], scale: float) -> Figures:
    import trio

    load, options = FLOWS[row]
    count, in_batch = LOADS[load]
    count = int(count * scale)
    topic = f"{load}-{number}-{row.replace(' ', '-')}"
    count -= count % (PARTITIONS * in_batch)
    trio.run(fill, ends[0].address, topic, count, in_batch)
    return copied(lambda: start_flow(topic, topic, ends, stop=True, **options), topic, count, ends)


def relayed(row: str, number: int, ends: tuple[Peer, Peer], scale: float) -> Figures:
    import trio

    count, in_batch = LOADS[RELAYS[row]]
    count = int(count * scale)
    topic = f"relayed-{number}-{row.replace(' ', '-')}"
    count -= count % (PARTITIONS * in_batch)
    trio.run(fill, ends[0].address, topic, count, in_batch)
    trio.run(create, ends[1].address, topic)
    words = ["--name", topic, "--filter", "keep"]
    given: dict[str, Any] = {"env": {"KAFKA_LC_RECORD_FILTER_KEEP": FILTER}}
    if row.startswith("kaf-relay"):
        words, given = [], {"program": (os.environ["KAF_RELAY"],)}
    words += ["--mode", "single", "--stop-at-end"]
    with tempfile.TemporaryDirectory() as folder:
        return copied(
            lambda: start_relay(Path(folder), topic, [ends[0]], ends[1], *words, **given), topic, count, ends
        )


def ceiling(row: str, number: int, ends: tuple[Peer, Peer], scale: float) -> Figures:
    import trio

    count, in_batch = LOADS[CEILINGS[row]]
    topic = f"{row.replace(' ', '-')}-{number}"
    requests = max(int(count * scale) // (PARTITIONS * in_batch), 1)
    trio.run(create, ends[1].address, topic)
    given = {"requests": requests, "partitions": PARTITIONS, "in_batch": in_batch}
    count = requests * PARTITIONS * in_batch
    figures = copied(lambda: start_frames(topic, ends[1], **given), topic, count, ends)
    return {name: value for name, value in figures.items() if name != "source_us"}


def copied(start: Callable[[], Process], topic: str, count: int, ends: tuple[Peer, Peer]) -> Figures:
    """A process that ends once everything is copied."""
    import trio

    before = [end.cpu_s() for end in ends]
    process = start()
    used = peak = 0.0
    while not process.ended():
        try:
            used, peak = process.cpu_s(), max(peak, process.rss_mb())
        except (OSError, IndexError):
            break
        time.sleep(0.02)
    while not process.ended():
        time.sleep(0.01)
    seconds = time.monotonic() - process.began
    after = [end.cpu_s() for end in ends]
    trio.run(check, ends[1].address, topic, count)
    return {
        "records_per_s": count / seconds,
        "forward_us": used / count * 1e6,
        "source_us": (after[0] - before[0]) / count * 1e6,
        "target_us": (after[1] - before[1]) / count * 1e6,
        "rss_mb": peak,
    }


def lag(row: str, number: int, ends: tuple[Peer, Peer], scale: float) -> Figures:
    """Records at a rate; their time from the producer's clock to a reader at the target, in ms."""
    import trio

    topic, found = f"lag-{number}", list[float]()
    batches = 100 + int(1000 * scale)

    async def run() -> None:
        from leafcuttr_sdk.batches import BatchBuilder, batches_in
        from leafcuttr_sdk.records import NewBatch
        from leafcuttr_sdk.types import TopicPartition

        async def produce(source: sdk.Peer) -> None:
            async with source.appender() as appender:
                begin = trio.current_time()
                for at in range(batches):
                    await trio.sleep_until(begin + at / 100)
                    builder = BatchBuilder()
                    now = repr(time.time()).encode()
                    builder.extend_records(
                        [(now.ljust(SIZE), None, (), int(time.time() * 1000)) for _ in range(10)]
                    )
                    await appender.append(
                        [NewBatch(TopicPartition(topic, at % PARTITIONS), builder.finish())]
                    )

        async with peer(ends[0].address) as source, peer(ends[1].address) as target:
            await source.create_topic(topic, partitions=PARTITIONS)
            await target.create_topic(topic, partitions=PARTITIONS)
            process = start_flow(topic, topic, ends, stop=False)
            async with trio.open_nursery() as nursery, target.reader(committed=True) as reader:
                reader.assign({TopicPartition(topic, at): 0 for at in range(PARTITIONS)})
                await trio.sleep(2)
                nursery.start_soon(produce, source)
                while len(found) < batches * 10:
                    for read in await reader.read():
                        now = time.time()
                        for batch in batches_in(read.data):
                            if not batch.header.is_control:
                                found.extend(
                                    (now - float(bytes(one.value or b""))) * 1000 for one in batch.records()
                                )
            process.stop()

    trio.run(run)
    # Those of the first second are the first of their partitions, for which the target makes files.
    found = sorted(found[1000:])
    return {"p50_ms": found[len(found) // 2], "p99_ms": found[int(len(found) * 0.99)]}


def first(row: str, number: int, ends: tuple[Peer, Peer], scale: float) -> Figures:
    import trio

    topic = f"first-{number}"
    trio.run(fill, ends[0].address, topic, 12_000, 100)
    took = 0.0

    async def run() -> None:
        nonlocal took
        from leafcuttr_sdk.types import TopicPartition

        with tempfile.TemporaryDirectory() as folder:
            words = ["--mode", "single", "--name", topic]
            async with peer(ends[1].address) as target:
                await target.create_topic(topic, partitions=PARTITIONS)
                async with target.reader(committed=True) as reader:
                    reader.assign({TopicPartition(topic, at): 0 for at in range(PARTITIONS)})
                    process = start_relay(Path(folder), topic, [ends[0]], ends[1], *words)
                    await reader.read()
                    took = time.monotonic() - process.began
                    process.stop()

    trio.run(run)
    return {"first_s": took}


def idle(row: str, number: int, ends: tuple[Peer, Peer], scale: float) -> Figures:
    """The processor time of a flow that has copied everything, in ms for each second."""
    import trio

    topic = f"idle-{number}"
    trio.run(fill, ends[0].address, topic, 1200, 100)
    process = start_flow(topic, topic, ends, stop=False)
    time.sleep(4)
    before, began = process.cpu_s(), time.monotonic()
    time.sleep(20 * scale)
    used, seconds = process.cpu_s() - before, time.monotonic() - began
    figures = {"idle_ms_per_s": used / seconds * 1000, "idle_rss_mb": process.rss_mb()}
    process.stop()
    return figures


def switch(row: str, number: int, ends: tuple[Peer, Peer], scale: float) -> Figures:
    """Of two sources with the same records the one that is read is killed."""
    import trio

    topic, took = f"switch-{number}", 0.0

    async def run(folder: Path, sources: list[Peer]) -> None:
        nonlocal took
        from leafcuttr_sdk.types import TopicPartition

        async with peer(ends[1].address) as target, target.reader(committed=True) as reader:
            reader.assign({TopicPartition(topic, at): 0 for at in range(PARTITIONS)})
            process = start_relay(folder, topic, sources, ends[1], "--mode", "failover", "--name", topic)
            left = 1200
            while left > 0:
                left -= await read_some(reader)
            sources[0].stop(signal.SIGKILL)
            killed = time.monotonic()
            await fill(sources[1].address, topic, 1200, 100)
            await read_some(reader)
            took = time.monotonic() - killed
            process.stop()

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources: list[Peer] = [LeafCuttr(f"source{at}", folder / f"source{at}") for at in (1, 2)]
        try:
            for each in sources:
                each.start("lc.metrics.enable=false")
                trio.run(fill, each.address, topic, 1200, 100)
            trio.run(create, ends[1].address, topic)
            trio.run(run, folder, sources)
        finally:
            for each in sources:
                each.stop(signal.SIGKILL)
    return {"seconds": took, "intervals": took / INTERVAL_S}


async def read_some(reader: Any) -> int:
    """How many records came."""
    from leafcuttr_sdk.batches import batches_in

    found = 0
    while not found:
        for read in await reader.read():
            found += sum(batch.header.count for batch in batches_in(read.data) if not batch.header.is_control)
    return found


ROWS: dict[str, Callable[[str, int, tuple[Peer, Peer], float], Figures]] = {
    **dict.fromkeys(FLOWS, throughput),
    **dict.fromkeys(RELAYS, relayed),
    **dict.fromkeys(CEILINGS, ceiling),
    "lag": lag,
    "first": first,
    "idle": idle,
    "switch": switch,
}


def measure(rows: list[str], target: str, runs: int, scale: float, warm: float) -> dict[str, list[Figures]]:
    found: dict[str, list[Figures]] = {row: [] for row in rows}
    with tempfile.TemporaryDirectory() as folder:
        source = LeafCuttr("source", Path(folder) / "source")
        other: Peer = (Kafka if target == "kafka" else LeafCuttr)("target", Path(folder) / "target")
        try:
            source.start("lc.metrics.enable=false")
            other.start(*([] if target == "kafka" else ["lc.metrics.enable=false"]))
            for row in rows if warm else ():
                if row in FLOWS or row in CEILINGS:
                    ROWS[row](row, -1, (source, other), scale * warm)
            for number in range(runs):
                for row in rows:
                    figures = ROWS[row](row, number, (source, other), scale)
                    found[row].append(figures)
                    print(row, {name: round(value, 2) for name, value in figures.items()}, file=sys.stderr)
        finally:
            source.stop()
            other.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--row", nargs="+", choices=ROWS)
    parser.add_argument("--target", choices=("kafka", "leafcuttr"), default="kafka")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--warm", type=float, default=0.5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--kaf-relay", default=os.environ.get("KAF_RELAY"), metavar="PROGRAM")
    given = parser.parse_args()
    if given.kaf_relay:
        os.environ["KAF_RELAY"] = given.kaf_relay
    rows = given.row or [row for row in ROWS if given.kaf_relay or not row.startswith("kaf-relay")]
    found = measure(rows, given.target, given.runs, given.scale, given.warm)
    if given.json:
        given.json.write_text(json.dumps(with_ratios(found), indent=1))
    lines = list(table(found))
    print("\n".join(lines))
    sys.exit(status(lines))


if __name__ == "__main__":
    main()

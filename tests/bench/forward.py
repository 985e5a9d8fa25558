#!/usr/bin/env python3
"""How fast topics are forwarded from a LeafCuttr to another cluster, by the engine in a process of its own.

  forward.py [--row NAME ...] [--target kafka|leafcuttr] [--runs 3] [--scale 1.0] [--json FILE]

The rows take turns in each run. Prints a table in Markdown: medians of records in a second, of the processor time that
each of the three processes takes for a record, and of the memory of the forwarding process. Records have 1000 bytes, in
12 partitions; batches are of 16 KiB (Java's default), of 1 MB (librdkafka's), or of one record. Flows are exactly once
but those of `at-least`. `lag` has 1,000 records a second, each from its producer's clock to a reader of the target;
`first` is the time from the start of the command `relay` to the first record at the target; `idle` the processor time
of a flow that has nothing to do.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peers import Kafka, LeafCuttr, Peer

if TYPE_CHECKING:
    from leafcuttr_sdk import peers as sdk

PARTITIONS, SIZE = 12, 1000
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
Figures = dict[str, float]
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


# The forwarding process


def forward(text: str) -> None:
    """Run a flow as `text` says; print a line once it runs, and when it has ended."""
    import trio

    from leafcuttr.runtime.clock import SystemClock
    from leafcuttr_forward.flows.flow import run_flow
    from leafcuttr_forward.flows.report import FlowReport
    from leafcuttr_forward.flows.spec import FlowSpec, Guarantee, TopicRule

    given = json.loads(text)
    options = given["options"]
    spec = FlowSpec(
        name=given["name"],
        rules=[TopicRule(source=given["topic"])],
        stop_at_end=given["stop"],
        filters=options.get("filters", ()),
        guarantee=Guarantee[options.get("guarantee", "EXACTLY_ONCE")],
    )

    async def run() -> None:
        import logging

        async with peer(given["source"]) as source, peer(given["target"]) as target:
            await run_flow(
                spec,
                source,
                target,
                report=FlowReport(spec.name),
                logger=logging.getLogger("forward"),
                clock=SystemClock(),
                make_chain=make_chain,
            )

    trio.run(run)


class KeepsAll:
    """The least that a filter may be: it reads the first byte of each value."""

    names = ("keep",)

    def filter(self, records: Any) -> Any:
        return [record for record in records if record.value[0] >= 0]

    def forget(self) -> None: ...

    def close(self) -> None: ...


async def make_chain(names: Any, topic: str) -> Any:
    return KeepsAll()


@asynccontextmanager
async def peer(address: str) -> AsyncIterator[sdk.Peer]:
    import logging

    from leafcuttr.client.peer import open_remote_peer
    from leafcuttr.runtime.clock import SystemClock

    async with open_remote_peer(
        {"bootstrap.servers": address}, clock=SystemClock(), logger=logging.getLogger("bench")
    ) as found:
        yield found


class Process:
    """One that forwards."""

    def __init__(self, words: list[str]) -> None:
        self.began = time.monotonic()
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        self.peak_mb = 0.0

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def rss_mb(self) -> float:
        return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * _PAGE / 1e6

    def ended(self) -> bool:
        if self._process.poll() is None:
            return False
        if self._process.returncode:
            raise RuntimeError(f"the forwarding process ended with {self._process.returncode}")
        return True

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


def start_flow(name: str, topic: str, ends: tuple[Peer, Peer], *, stop: bool, **options: Any) -> Process:
    source, target = ends
    given = {
        "name": name, "topic": topic, "source": source.address, "target": target.address, "stop": stop,
        "options": options,
    }  # fmt: skip
    return Process([sys.executable, __file__, "--forward", json.dumps(given)])


# What is done to it


async def fill(address: str, topic: str, count: int, in_batch: int) -> None:
    from leafcuttr_sdk.batches import BatchBuilder
    from leafcuttr_sdk.records import NewBatch
    from leafcuttr_sdk.types import TopicPartition

    builder = BatchBuilder()
    value = os.urandom(SIZE // 2).hex().encode()
    now = int(time.time() * 1000)
    builder.extend_records([(value, b"key-%d" % at, (), now) for at in range(in_batch)])
    batch = builder.finish()
    async with peer(address) as source:
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
    before = [end.cpu_s() for end in ends]
    process = start_flow(topic, topic, ends, stop=True, **options)
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
    seconds = 10 * scale

    async def run() -> None:
        from leafcuttr_sdk.batches import BatchBuilder, batches_in
        from leafcuttr_sdk.records import NewBatch
        from leafcuttr_sdk.types import TopicPartition

        async def produce(source: sdk.Peer) -> None:
            async with source.appender() as appender:
                begin = trio.current_time()
                for at in range(int(100 * seconds)):
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
                while len(found) < int(100 * seconds) * 10:
                    for read in await reader.read():
                        now = time.time()
                        for batch in batches_in(read.data):
                            if not batch.header.is_control:
                                found.extend(
                                    (now - float(bytes(one.value or b""))) * 1000 for one in batch.records()
                                )
            process.stop()

    trio.run(run)
    found.sort()
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
            file = Path(folder) / "config.toml"
            file.write_text(
                f'[[sources]]\nname="s"\nservers=["{ends[0].address}"]\n[target]\nname="t"\n'
                f'servers=["{ends[1].address}"]\n[topics]\n"{topic}"="{topic}"\n'
                '[app]\nmetrics_server_addr="127.0.0.1:0"\n'
            )
            words = ["relay", "--config", str(file), "--mode", "single", "--name", topic]
            async with peer(ends[1].address) as target:
                await target.create_topic(topic, partitions=PARTITIONS)
                async with target.reader(committed=True) as reader:
                    reader.assign({TopicPartition(topic, at): 0 for at in range(PARTITIONS)})
                    process = Process([sys.executable, "-m", "leafcuttr", *words])
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


ROWS: dict[str, Callable[[str, int, tuple[Peer, Peer], float], Figures]] = {
    **dict.fromkeys(FLOWS, throughput),
    "lag": lag,
    "first": first,
    "idle": idle,
}


def measure(rows: list[str], target: str, runs: int, scale: float) -> dict[str, Figures]:
    found: dict[str, list[Figures]] = {row: [] for row in rows}
    with tempfile.TemporaryDirectory() as folder:
        source = LeafCuttr("source", Path(folder) / "source")
        other: Peer = (Kafka if target == "kafka" else LeafCuttr)("target", Path(folder) / "target")
        try:
            source.start("lc.metrics.enable=false")
            other.start(*([] if target == "kafka" else ["lc.metrics.enable=false"]))
            for number in range(runs):
                for row in rows:
                    figures = ROWS[row](row, number, (source, other), scale)
                    found[row].append(figures)
                    print(row, {name: round(value, 2) for name, value in figures.items()}, file=sys.stderr)
        finally:
            source.stop()
            other.stop()
    return {
        row: {name: statistics.median(one[name] for one in all_of) for name in all_of[0]}
        for row, all_of in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--row", nargs="+", choices=ROWS, default=[*ROWS])
    parser.add_argument("--target", choices=("kafka", "leafcuttr"), default="kafka")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--forward", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.forward:
        forward(given.forward)
        return
    found = measure(given.row, given.target, given.runs, given.scale)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))
    print("| | figure | median |\n|---|---|---:|")
    for row, figures in found.items():
        for name, value in figures.items():
            print(f"| {row} | {name} | {value:,.1f} |")


if __name__ == "__main__":
    main()

"""Compaction under way: how fast a child cleans, what memory it takes, and what a producer at 1,000/s feels of it.

    python tests/bench/compaction.py [--gb 1] [--keys 1000000]

One broker, one log of 100-byte records (key and value), first left alone, then compacted by a change of its settings.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from leafcuttr.wire.records import Record, encode_batch
from support import librdkafka
from support.broker_process import BrokerProcess, start_broker
from support.wire_client import WireClient

_RATE = 1000


def fill(address: str, gigabytes: float, keys: int) -> int:
    """Records of 100 bytes in all (16 of them key) until the log is as large; returns how many."""
    from confluent_kafka import Producer

    config = {"linger.ms": 50, "batch.size": 1_000_000, "queue.buffering.max.messages": 500_000}
    producer = Producer({"bootstrap.servers": address, **config})
    numbers, values = random.Random(1), random.Random(2).randbytes(100_000)
    count = int(gigabytes * 1e9 / 100)
    for number in range(count):
        key, at = b"%016d" % numbers.randrange(keys), number % 90_000
        while True:
            try:
                producer.produce("big", values[at : at + 74], key)
                break
            except BufferError:
                producer.poll(0.05)
    producer.flush()
    return count


def latencies(address: str, seconds: float, over: threading.Event | None = None) -> list[float]:
    """Milliseconds of single requests, begun 1,000 times a second, until the time or `over` has come."""
    found, batch = [], bytes(encode_batch([Record(0, 0, None, b"v" * 100)]))
    with WireClient(address) as client:
        began = time.perf_counter()
        number = 0
        while time.perf_counter() - began < seconds and not (over is not None and over.is_set()):
            due = began + number / _RATE
            while (now := time.perf_counter()) < due:
                time.sleep(max(due - now - 0.0001, 0))
            client.produce("small", bytearray(batch))
            found.append((time.perf_counter() - max(due, now)) * 1000)
            number += 1
    return found


def percentiles(found: list[float]) -> str:
    cuts = statistics.quantiles(found, n=1000)
    return f"p50 {cuts[499]:.2f} ms, p99 {cuts[989]:.2f} ms, p99.9 {cuts[998]:.2f} ms, of {len(found)}"


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(number) for task in tasks for number in task.read_text().split()]


def watch(broker: BrokerProcess, over: threading.Event, peak: list[int]) -> None:
    """Note the largest resident size of a child (KB); say when the compaction is over."""
    while not over.is_set():
        for child in children(broker.process.pid):
            try:
                status = Path(f"/proc/{child}/status").read_text()
            except OSError:
                continue
            found = re.search(r"VmHWM:\s+(\d+)", status)
            peak[0] = max(peak[0], int(found[1]) if found else 0)
        if "is compacted" in broker.log:
            over.set()
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gb", type=float, default=1.0)
    parser.add_argument("--keys", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="compaction-") as folder:
        settings = {"log.cleaner.backoff.ms": "100"}
        broker = start_broker(Path(folder), settings, options=("--log-level", "info"))
        try:
            measure(broker, given.gb, given.keys)
        finally:
            broker.stop()


def measure(broker: BrokerProcess, gigabytes: float, keys: int) -> None:
    address = broker.address
    librdkafka.create(
        address, "big", cleanup_policy="compact", min_cleanable_dirty_ratio="1.0", segment_bytes="104857600"
    )
    librdkafka.create(address, "small")
    count = fill(address, gigabytes, keys)
    print(f"{count:,} records", flush=True)
    before = latencies(address, 3)
    before = latencies(address, 15)
    over, peak = threading.Event(), [0]
    watcher = threading.Thread(target=watch, args=(broker, over, peak))
    watcher.start()
    librdkafka.alter(address, "topic", "big", {"min.cleanable.dirty.ratio": "0.0"})
    during = latencies(address, 180, over)
    watcher.join()
    line = next(line for line in broker.log.splitlines() if "is compacted" in line)
    print(line.partition("INFO ")[2])
    figures = re.search(r"bytes of (\d+), ([\d.]+) s", line)
    assert figures is not None
    print(f"{int(figures[1]) / float(figures[2]) / 1e6:.1f} MB/s of input, child {peak[0] / 1024:.0f} MB")
    print(f"alone:      {percentiles(before)}\ncompacting: {percentiles(during)}")


if __name__ == "__main__":
    main()

"""What a plugin reads of a broker in its process: records without headers and with four, by `fetch` and by a consumer.

`in_process.py` runs it. The cases take turns, so that a noisy machine is noisy to all of them.
"""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final

import trio

from leafcuttr.state.broker import Broker as Core
from leafcuttr_sdk import Broker, NewBatch, StoredRecord, TopicPartition
from leafcuttr_sdk.batches import BatchBuilder, encode_headers, encode_key
from leafcuttr_sdk.records import Headers

RECORDS: Final = 50_000
IN_A_BATCH: Final = 100
ROUNDS: Final = 7
VALUE: Final = b"x" * 100

KINDS: Final[dict[str, Callable[[int], Headers]]] = {
    "no-headers": lambda n: (),
    "four-equal-headers": lambda n: (
        ("source", b"north"), ("unit", b"C"), ("version", b"3"), ("trace", b"0123456789abcdef"),
    ),
    "four-that-differ": lambda n: (
        ("source", b"%05d" % (n * 7 % 100_000)), ("unit", b"%d" % (n % 10)), ("version", b"%d" % (n % 7)),
        ("trace", b"%016x" % n),
    ),
    "four-of-any-size": lambda n: (
        ("source", b"n" * (n % 13)), ("unit", b"%d" % (n % 1000)), ("version", b"%d" % (n * n)),
        ("trace", b"%x" % (n * 7919 * 7919)),
    ),
}  # fmt: skip
"""Headers of the n-th record. All records have a key and 100 bytes. The second and third are usual of one producer;
where all sizes differ, each from record to record, little can be foreseen."""


async def read(core: Core, view: Broker, seconds: float) -> None:
    """Print a line for each case: its median, and what that is of `fetch` without headers, or of the same records."""
    # As the command `leafcuttr serve` sets the collector.
    gc.collect()
    gc.freeze()
    gc.set_threshold(5000, 10, 100)
    for kind, headers in KINDS.items():
        await _fill(view, kind, headers)
    fetched: dict[str, list[float]] = {kind: [] for kind in KINDS}
    polled: dict[str, list[float]] = {kind: [] for kind in KINDS}
    async with trio.open_nursery() as nursery:
        await nursery.start(core.groups.run)
        await core.groups.ready()
        for _ in range(ROUNDS):
            for kind in KINDS:
                fetched[kind].append(await _fetch(view, TopicPartition(kind, 0), seconds / ROUNDS))
                polled[kind].append(await _poll(view, TopicPartition(kind, 0), seconds / ROUNDS))
        nursery.cancel_scope.cancel()
    for kind in KINDS:
        rate, plain = median(fetched[kind]), median(fetched["no-headers"])
        print(f"{f'fetch, {kind}':45} {rate:12,.0f} records/s   {rate / plain:.2f} of those without")
    for kind in KINDS:
        rate, beside = median(polled[kind]), median(fetched[kind])
        print(f"{f'poll of a group, {kind}':45} {rate:12,.0f} records/s   {rate / beside:.2f} of fetch")


async def _fill(view: Broker, topic: str, headers: Callable[[int], Headers]) -> None:
    await view.topics.create(topic)
    for start in range(0, RECORDS, IN_A_BATCH):
        builder = BatchBuilder()
        for n in range(start, start + IN_A_BATCH):
            builder.add(VALUE, 0, encode_key(b"sensor-%05d" % n), encode_headers(headers(n)))
        await view.append((NewBatch(TopicPartition(topic, 0), builder.finish()),))


async def _fetch(view: Broker, partition: TopicPartition, seconds: float) -> float:
    positions, count = {partition: 0}, 0
    for _ in _until(began := time.perf_counter(), seconds):
        found = await view.fetch(positions)
        count += _used(found.records)
        positions = found.positions if found.records else {partition: 0}
    return count / (time.perf_counter() - began)


async def _poll(view: Broker, partition: TopicPartition, seconds: float) -> float:
    async with view.consumer("bench", [partition.topic], auto_offset_reset="earliest") as consumer:
        while not await consumer.poll():
            pass  # it joins
        count = 0
        for _ in _until(began := time.perf_counter(), seconds):
            records = await consumer.poll(wait_s=0)
            count += _used(records)
            if not records:
                consumer.seek(partition, 0)
        return count / (time.perf_counter() - began)


def _until(began: float, seconds: float) -> Iterator[None]:
    while time.perf_counter() - began < seconds:
        yield


def _used(records: Sequence[StoredRecord]) -> int:
    """How many they are, once each header has been read as text and bytes."""
    for record in records:
        for _name, _value in record.headers:
            pass
    return len(records)

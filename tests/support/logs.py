"""Real logs in temporary folders, and batches to put into them."""

from __future__ import annotations

import struct
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from crc32c import crc32c

from leafcuttr.config.settings import Settings
from leafcuttr.config.topic import TopicConfig, topic_config
from leafcuttr.log.append.background_write import write_in_background
from leafcuttr.log.append.commit import commit
from leafcuttr.log.append.pending_write import PendingWrite
from leafcuttr.log.append.preparation import LongWork
from leafcuttr.log.append.rules import LONG_MAX, Origin
from leafcuttr.log.append.staged import Staged
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.files.write_pressure import WritePressure
from leafcuttr.log.log import Log
from leafcuttr.log.resources import LogResources
from leafcuttr.runtime.runtime import Runtime
from leafcuttr.state.transactions import markers
from leafcuttr.state.transactions.markers import End
from leafcuttr.wire.records import Record, encode_batch
from leafcuttr_sdk import Clock, TopicPartition

NOW = 1_700_000_000_000
TP = TopicPartition("t", 0)


class HandClock:
    """A clock that stands until it is moved."""

    def __init__(self, now_ms: int = NOW) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000


def config(**overrides: Any) -> TopicConfig:
    """Kafka's defaults but for these, `_` for `.`: `config(segment_bytes=1000)`. Values below Kafka's minimum are
    allowed, so that small logs roll."""
    from dataclasses import replace

    return replace(topic_config(Settings(), {}), **overrides)


class CalmDisk(WritePressure):
    """No write stalls, however busy this machine's disk is: what a test sees must not depend on that. Tests of the
    other way ask for it by flush.messages."""

    def stalls(self, size: int) -> bool:
        return False

    def wrote(self, seconds: float) -> None:
        return


def resources(
    *, pool: FilePool | None = None, clock: Clock | None = None, pressure: WritePressure | None = None
) -> LogResources:
    """What a log is given to work with."""
    runtime = Runtime.new(clock or HandClock())
    if pool is None:
        pool = FilePool(descriptors=runtime.descriptors)
    else:
        runtime.descriptors.add(pool.release_one)
    return LogResources(runtime, pool, pressure or CalmDisk())


def make_log(
    folder: Path,
    *,
    pool: FilePool | None = None,
    clock: Clock | None = None,
    pressure: WritePressure | None = None,
    **overrides: Any,
) -> Log:
    """An empty log in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    given = resources(pool=pool, clock=clock, pressure=pressure)
    return Log.create(TP, folder, config(**overrides), resources=given)


def batch(
    count: int = 1, *, timestamp: int = NOW, size: int = 10, key: bytes | None = None, **fields: Any
) -> bytearray:
    """One batch of `count` records of `size` bytes; producer fields by keyword."""
    records = [Record(i, timestamp, key, bytes([97 + i % 26]) * size) for i in range(count)]
    return bytearray(encode_batch(records, **fields))


def patched(data: bytes | bytearray, form: str, at: int, value: int, *, crc: bool = True) -> bytearray:
    """A copy with one field changed, its CRC right again unless `crc` is False."""
    out = bytearray(data)
    struct.pack_into(form, out, at, value)
    if crc:
        struct.pack_into(">I", out, 17, crc32c(bytes(out[21:])))
    return out


def read_all(log: Log, offset: int | None = None, max_bytes: int = 1 << 20) -> bytes:
    """Every published byte from an offset on, by reads one after the other."""
    at = log.log_start_offset if offset is None else offset
    out = b""
    while at < log.log_end_offset:
        read = log.read(at, max_bytes, at_least_one=True)
        assert read.region is not None
        assert read.next_offset > at
        out += read.region.read()
        at = read.next_offset
    return out


def append(log: Log, data: bytes | bytearray, now_ms: int = NOW, origin: Origin = Origin.CLIENT) -> int:
    """Stage one batch and write it, all of it here, whatever it takes; its base offset."""
    staged = stage_here(log, memoryview(bytearray(data)), now_ms, origin)
    write_now(log)
    return staged.base_offset


def stage_here(
    log: Log, data: memoryview | bytearray, now_ms: int = NOW, origin: Origin = Origin.CLIENT
) -> Staged:
    """Stage one batch, with the work that a worker should do."""
    prepared = None
    while True:
        try:
            return log.stage(data, origin, now_ms=now_ms, prepared=prepared)
        except LongWork as long:
            prepared = long.work.do()


def write_now(log: Log) -> None:
    """Write what is staged here, also what a worker should. Raises WriteError."""
    failure = commit(log).failure
    if failure is not None:
        raise failure


def begin_write(log: Log) -> PendingWrite:
    """Have a worker write what is staged, also what need not wait; or what it writes already."""
    return write_in_background(log) if log.groups or log.writing is None else log.writing


def write_by_worker(log: Log, staged: Staged | None = None) -> Coroutine[Any, Any, None]:
    """`begin_write` at the call, to be awaited. Raises WriteError; with `staged` only if that is not in the log."""
    return _written(begin_write(log) if log.busy else None, staged)


async def _written(pending: PendingWrite | None, staged: Staged | None) -> None:
    if pending is not None:
        await pending.confirm(Staged(LONG_MAX, LONG_MAX) if staged is None else staged)


def would_wait(log: Log) -> bool:
    """Whether what is staged has to wait: for a worker that writes, or for one that should."""
    return log.writing is not None or (bool(log.groups) and log.would_wait())


async def append_and_wait(log: Log, data: bytes | bytearray, now_ms: int = NOW) -> int:
    """Append one batch on the loop or off it, whichever does not block; its base offset."""
    staged = log.stage(memoryview(bytearray(data)), Origin.CLIENT, now_ms=now_ms)
    await log.write().confirm(staged)
    return staged.base_offset


def stage_marker(
    log: Log,
    producer_id: int,
    producer_epoch: int,
    *,
    commit: bool,
    coordinator_epoch: int,
    now_ms: int = NOW,
    transaction_version: int = 1,
) -> Staged:
    """Queue the marker that ends a transaction."""
    end = End(producer_id, producer_epoch, commit, coordinator_epoch, transaction_version)
    return markers.stage_marker(log, end, now_ms)


def append_marker(
    log: Log,
    producer_id: int,
    producer_epoch: int,
    *,
    commit: bool,
    coordinator_epoch: int,
    now_ms: int = NOW,
    transaction_version: int = 1,
) -> int:
    """Append the marker that ends a transaction; its offset."""
    staged = stage_marker(
        log,
        producer_id,
        producer_epoch,
        commit=commit,
        coordinator_epoch=coordinator_epoch,
        now_ms=now_ms,
        transaction_version=transaction_version,
    )
    write_now(log)
    return staged.base_offset

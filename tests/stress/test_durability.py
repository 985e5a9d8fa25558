"""What flush.messages promises to survive the loss of power, and what is answered from a log that cannot be read."""

from __future__ import annotations

import os
import struct
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from leafcuttr.errors import ErrorCode, StorageError
from leafcuttr.log.append.roll import new_segment, take_over
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.layout.checkpoints import LEADER_EPOCHS, write_leader_epochs
from leafcuttr.log.log import Log
from leafcuttr.state.broker import Broker
from leafcuttr.wire.compression import Codec, compress
from leafcuttr.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from leafcuttr.wire.records import Record, encode_batch
from leafcuttr_sdk import TopicPartition
from support.logs import NOW, HandClock, append, batch, make_log, patched, write_by_worker, write_now
from support.managers import abandon, opened, spec
from support.peer import Peer, connect

Serve = Callable[..., Awaitable[Broker]]


@contextmanager
def synced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The paths of all that is forced to disk meanwhile."""
    paths: list[str] = []

    def record(real: Callable[[int], None], fd: int) -> None:
        paths.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        real(fd)

    with monkeypatch.context() as patch:
        for real in (os.fsync, os.fdatasync):
            patch.setattr(os, real.__name__, partial(record, real))
        yield paths


def stage(log: Log, data: bytearray) -> None:
    log.stage(memoryview(data), Origin.CLIENT, now_ms=NOW)


async def test_flush_messages_covers_the_segment_before_a_roll(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(tmp_path, flush_messages=4, segment_bytes=1000)
    for _ in range(2):
        stage(log, batch(size=600))
        write_now(log)
    assert [log.unflushed, len(log.segments)] == [2, 2]
    stage(log, batch(2, size=50))
    with synced(monkeypatch) as paths:
        await write_by_worker(log)
    assert {segment.path(".log") for segment in log.segments} <= set(paths)
    assert log.unflushed == 0


def test_a_sync_makes_the_names_of_new_files_durable_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "t-0"
    log = make_log(folder, flush_messages=1)
    stage(log, batch())
    with synced(monkeypatch) as paths:
        write_now(log)
    assert paths == [log.segments[0].path(".log"), str(folder), str(tmp_path)]
    stage(log, batch())
    with synced(monkeypatch) as paths:
        write_now(log)
    assert paths == [log.segments[0].path(".log")]


def test_epochs_of_an_adopted_log_end_where_the_next_one_began(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    for _ in range(10):
        append(log, batch(), NOW)
    log.leader_epoch = 7
    write_leader_epochs(log.directory / LEADER_EPOCHS, [(2, 0), (4, 3), (7, 8)])
    asked = [log.offset_for_leader_epoch(epoch) for epoch in (1, 2, 3, 4, 5, 6, 7, 8)]
    assert asked == [(1, 0), (2, 3), (2, 3), (4, 8), (4, 8), (4, 8), (7, 10), (-1, -1)]
    (log.directory / LEADER_EPOCHS).write_text("7\n")
    with pytest.raises(StorageError):
        log.offset_for_leader_epoch(4)


async def asked_for_offset(peer: Peer, timestamp: int) -> int:
    part = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[part])])
    answer = await peer.ask(request, 7)
    return int(answer.topics[0].partitions[0].error_code)


async def test_a_log_that_cannot_be_read_answers_no_offsets_and_keeps_the_connection(serve: Serve) -> None:
    broker = await serve()
    await broker.topics.create("t", 1, {})
    log = broker.logs.logs[TopicPartition("t", 0)]
    for _ in range(3):
        append(log, batch(), NOW)
    os.pwrite(log.segments[0].open_file().fd, b"\xff" * 40, 0)
    async with await connect(broker) as peer:
        assert await asked_for_offset(peer, NOW) == ErrorCode.KAFKA_STORAGE_ERROR
        assert await asked_for_offset(peer, -3) == ErrorCode.KAFKA_STORAGE_ERROR
        assert await asked_for_offset(peer, -1) == 0
        log.offline = "its disk has gone"
        for special in (-1, -2, -3, NOW):
            assert await asked_for_offset(peer, special) == ErrorCode.KAFKA_STORAGE_ERROR


class TwoClocks(HandClock):
    """A time of day that can be set, and a monotonic time that goes on."""

    elapsed_s = 0.0

    def monotonic(self) -> float:
        return self.elapsed_s


async def test_flush_ms_is_kept_though_the_clock_is_set_back(tmp_path: Path) -> None:
    clock = TwoClocks()
    manager = opened(tmp_path, clock=clock)
    log = manager.create(spec(flush_ms=5000))
    append(log, batch(), NOW)
    await manager.soft_checkpoint()
    assert log.recovery_point == 0
    clock.ms -= 3_600_000
    clock.elapsed_s += 6
    await manager.soft_checkpoint()
    assert log.recovery_point == 1
    abandon(manager)


@pytest.mark.parametrize("set_by_ms", [3_600_000, -3_600_000])
async def test_files_that_go_wait_their_delay_though_the_clock_is_set(tmp_path: Path, set_by_ms: int) -> None:
    clock = TwoClocks()
    manager = opened(tmp_path, clock=clock)
    log = manager.create(spec(segment_bytes=1000, file_delete_delay_ms=5000))
    for _ in range(2):
        append(log, batch(size=600), NOW)
    log.delete_records_before(1)
    other = manager.create(spec(topic="other", file_delete_delay_ms=5000))
    manager.delete(other.topic_partition)
    await manager.soft_checkpoint()
    clock.ms += set_by_ms
    assert await manager.remove_deleted() == 0
    clock.elapsed_s += 5
    assert await manager.remove_deleted() > 1
    assert not [*tmp_path.glob("*-delete"), *tmp_path.glob("*/*.deleted")]
    abandon(manager)


async def test_a_roll_that_ends_after_its_topic_was_deleted_stays_out_of_the_next_topic(
    tmp_path: Path,
) -> None:
    """The worker has made the files of the new segment when the folder gets its other name."""
    manager = opened(tmp_path)
    log = manager.create(spec(segment_bytes=1000))
    append(log, batch(size=800), NOW)
    fresh = new_segment(log, log.segments[-1], 1)
    manager.delete(log.topic_partition)
    again = manager.create(spec(topic_id=bytes(16)))
    take_over(log, fresh)
    for segment in log.segments:
        segment.close()  # as the pool does when it needs the descriptors
    file = log.segments[-1].open_file()
    assert Path(file.path).parent == log.directory
    assert Path(file.path).parent != again.directory
    abandon(manager)


def bomb(records: int) -> bytearray:
    """A batch of some kilobytes that holds so many records, and claims a timestamp that none of them has."""
    one = encode_batch([Record(0, NOW, None, b"")])
    out = bytearray(one[:61]) + compress(Codec.ZSTD, bytes(one[61:]) * records)
    for form, at, value in (
        (">i", 8, len(out) - 12),
        (">h", 21, 4),
        (">i", 23, records - 1),
        (">q", 35, NOW + 5),
    ):
        struct.pack_into(form, out, at, value)
    return patched(out, ">i", 57, records)


async def test_a_search_by_time_does_not_hold_the_loop_however_many_records_a_batch_has(
    tmp_path: Path,
) -> None:
    log = make_log(tmp_path)
    append(log, bomb(100_000), NOW)
    append(log, batch(timestamp=NOW + 9), NOW)
    turns, over = 0, trio.Event()

    async def search() -> None:
        assert await log.offset_for_timestamp(NOW + 5) == (NOW + 9, 100_000, 0)
        over.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(search)
        while not over.is_set():
            await trio.lowlevel.checkpoint()
            turns += 1
    assert turns > 10

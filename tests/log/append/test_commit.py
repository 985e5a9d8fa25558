"""Writes that fail, writes in worker threads, and what is left of both."""

import os
import resource
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr.errors import StorageError
from leafcuttr.log.append.commit import IOV_MAX, write_all
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.append.staged import WriteError
from leafcuttr.log.log import Log
from support.logs import (
    NOW,
    append,
    append_and_wait,
    batch,
    make_log,
    read_all,
    would_wait,
    write_by_worker,
    write_now,
)

LIMIT = 1 << 20


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """No file of this process grows beyond `size`: a disk that is full from there on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def stage(log: Log, data: bytearray) -> int:
    return log.stage(memoryview(data), Origin.CLIENT, now_ms=NOW).base_offset


def nearly_full(folder: Path, **settings: Any) -> Log:
    log = make_log(folder, **settings)
    while log.size < LIMIT - 40_000:
        append(log, batch(size=20_000), NOW)
    return log


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    log = nearly_full(tmp_path)
    fields: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0}
    append(log, batch(base_sequence=0, **fields), NOW)
    end, size, content = log.log_end_offset, log.size, read_all(log)
    stage(log, batch(base_sequence=1, **fields))
    for _ in range(4):
        stage(log, batch(size=20_000))
    with file_size_limit(LIMIT), pytest.raises(StorageError, match="File too large"):
        write_now(log)
    assert (log.log_end_offset, log.next_offset, log.size) == (end, end, size)
    assert Path(log.segments[-1].path(".log")).stat().st_size == size
    assert log.offline is None
    assert read_all(log) == content
    entry = log.producers.get(5)
    assert entry is not None and entry.last_sequence == 0
    assert stage(log, batch(base_sequence=1, **fields)) == end
    write_now(log)
    assert log.log_end_offset == end + 1


def test_if_it_cannot_be_undone_the_log_goes_offline(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    append(log, batch(), NOW)
    read_only = os.open(log.segments[-1].path(".log"), os.O_RDONLY)
    os.dup2(read_only, log.segments[-1].open_file().fd)
    os.close(read_only)
    stage(log, batch())
    with pytest.raises(StorageError):
        write_now(log)
    assert log.offline is not None
    with pytest.raises(StorageError):
        stage(log, batch())
    with pytest.raises(StorageError):
        log.read(0, 100, at_least_one=True)


def test_a_failed_roll_can_be_repeated(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_bytes=1000)
    append(log, batch(size=800), NOW)
    (tmp_path / "00000000000000000001.snapshot").mkdir()
    stage(log, batch(size=800))
    with pytest.raises(StorageError):
        write_now(log)
    assert (len(log.segments), log.log_end_offset) == (1, 1)
    (tmp_path / "00000000000000000001.snapshot").rmdir()
    assert append(log, batch(size=800), NOW) == 1
    assert len(log.segments) == 2


def test_more_batches_than_one_call_takes(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    data = [batch(size=1 + i % 7) for i in range(2 * IOV_MAX + 5)]
    for one in data:
        stage(log, one)
    write_now(log)
    assert log.log_end_offset == len(data)
    assert read_all(log) == b"".join(data)


def test_short_writes_are_continued(tmp_path: Path) -> None:
    views: list[memoryview | bytearray] = [bytearray(os.urandom(300_000)) for _ in range(5)]
    path = tmp_path / "f"
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        with file_size_limit(1_000_000), pytest.raises(OSError):
            write_all(fd, views, 0, 1_500_000)
        assert path.stat().st_size == 1_000_000
        write_all(fd, views, 0, 1_500_000)
    finally:
        os.close(fd)
    assert path.read_bytes() == b"".join(views)


async def test_one_write_at_a_time_and_the_rest_together(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    done: list[int] = []

    async def produce(number: int) -> None:
        offset = stage(log, batch(size=100 + number))
        await write_by_worker(log)
        assert offset < log.log_end_offset
        done.append(offset)

    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(produce, number)
    assert sorted(done) == list(range(50))
    assert (log.log_end_offset, log.busy, would_wait(log)) == (50, False, False)
    assert len(read_all(log)) == log.size


async def test_while_a_write_is_in_flight_the_loop_must_wait(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    stage(log, batch())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(write_by_worker, log)
        await trio.testing.wait_all_tasks_blocked()
        if log.writing is not None:
            assert would_wait(log)
            stage(log, batch())
            with pytest.raises(RuntimeError):
                write_now(log)
            await write_by_worker(log)
            assert log.log_end_offset == 2


async def test_each_waiter_learns_of_a_failure(tmp_path: Path) -> None:
    log = nearly_full(tmp_path)
    end, size = log.log_end_offset, log.size
    failed = 0

    async def produce() -> None:
        nonlocal failed
        stage(log, batch(size=30_000))
        with pytest.raises(StorageError):
            await write_by_worker(log)
        failed += 1

    # None fits: the first group fails and takes with it what was staged behind it.
    with file_size_limit(size + 10_000):
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(produce)
    assert failed == 3
    assert (log.log_end_offset, log.next_offset, log.size) == (end, end, size)
    assert await append_and_wait(log, batch(), NOW) == end


def two_groups(folder: Path) -> tuple[Log, int]:
    """A log, and a size of files at which what rolls into a new segment fails and what comes before does not."""
    log = make_log(folder, segment_bytes=400_000)
    append(log, batch(size=200_000), NOW)
    return log, 300_000


def test_what_a_failed_commit_had_published_is_told_apart(tmp_path: Path) -> None:
    log, limit = two_groups(tmp_path)
    fits, does_not = stage(log, batch(size=50_000)), stage(log, batch(size=350_000))
    assert len(log.groups) == 2
    with file_size_limit(limit), pytest.raises(WriteError) as failed:
        write_now(log)
    assert fits < failed.value.written_to == does_not == log.log_end_offset == log.next_offset
    assert len(read_all(log)) == log.size
    stage(log, batch(size=350_000))
    write_now(log)
    assert log.log_end_offset == does_not + 1
    data = read_all(log)
    assert [header.base_offset for segment in log.segments for _, header in segment.scan(check_crc=True)] == [
        0,
        1,
        2,
    ]
    assert len(data) == sum(Path(segment.path(".log")).stat().st_size for segment in log.segments)


async def test_who_names_what_was_staged_hears_of_its_own_failure_only(tmp_path: Path) -> None:
    log, limit = two_groups(tmp_path)
    fits = log.stage(memoryview(bytearray(batch(size=50_000))), Origin.CLIENT, now_ms=NOW)
    does_not = log.stage(memoryview(bytearray(batch(size=350_000))), Origin.CLIENT, now_ms=NOW)
    first, second = write_by_worker(log, fits), write_by_worker(log, does_not)
    with file_size_limit(limit):
        await first
        with pytest.raises(WriteError):
            await second
    assert log.log_end_offset == does_not.base_offset


async def test_each_of_several_groups_in_one_flight_gets_its_own_answer(tmp_path: Path) -> None:
    log, limit = two_groups(tmp_path)
    outcomes: dict[int, bool] = {}

    async def produce(size: int) -> None:
        offset = stage(log, batch(size=size))
        try:
            await write_by_worker(log)
        except WriteError as error:
            outcomes[offset] = offset < error.written_to
        else:
            outcomes[offset] = True

    with file_size_limit(limit):
        async with trio.open_nursery() as nursery:
            for size in (50_000, 30_000, 350_000):
                await nursery.start(staged_first, produce, size)
    assert outcomes == {1: True, 2: True, 3: False}
    assert [header.base_offset for segment in log.segments for _, header in segment.scan(check_crc=True)] == [
        0,
        1,
        2,
    ]
    assert await append_and_wait(log, batch(), NOW) == 3


async def staged_first(
    produce: Callable[[int], Awaitable[None]], size: int, *, task_status: trio.TaskStatus[None]
) -> None:
    """Tasks run in the order in which they are started."""
    task_status.started()
    await produce(size)


async def test_who_asks_late_still_learns_of_the_failure(tmp_path: Path) -> None:
    log = nearly_full(tmp_path)
    stage(log, batch(size=60_000))
    with file_size_limit(log.size + 10_000):
        late = write_by_worker(log)
        with pytest.raises(StorageError):
            await write_by_worker(log)
        assert log.writing is None
    with pytest.raises(StorageError):
        await late


async def test_cancelling_does_not_tear_a_write(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    with trio.CancelScope() as scope:
        stage(log, batch())
        scope.cancel()
        await write_by_worker(log)
    assert log.log_end_offset == 1


async def test_rolls_happen_off_the_loop_too(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_bytes=1000)
    for _ in range(6):
        stage(log, batch(size=400))
    await write_by_worker(log)
    assert log.log_end_offset == 6
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]
    assert len(read_all(log)) == log.size


def test_flush_messages_asks_for_the_disk_before_the_answer(tmp_path: Path) -> None:
    log = make_log(tmp_path, flush_messages=3)
    stage(log, batch(2))
    assert not would_wait(log)
    write_now(log)
    assert log.unflushed == 2
    stage(log, batch())
    assert would_wait(log)
    write_now(log)
    assert log.unflushed == 0


def test_flush_moves_the_recovery_point(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_bytes=1000)
    for _ in range(5):
        append(log, batch(size=600), NOW)
    assert (log.recovery_point, log.unflushed) == (0, 5)
    log.flush()
    assert (log.recovery_point, log.unflushed) == (5, 0)

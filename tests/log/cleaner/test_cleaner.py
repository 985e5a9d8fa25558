"""The supervisor with real processes: what is in the log afterwards, who goes on reading, what goes wrong."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from leafcuttr.log.cleaner.cleaner import Cleaner
from leafcuttr.log.layout.checkpoints import read_offsets
from leafcuttr.log.log import Log
from leafcuttr.wire.batch import DELETE_HORIZON, parse, sealed
from leafcuttr.wire.records import Record, encode_batch
from support.compaction import records_of, split
from support.logs import NOW, TP, HandClock, append, append_marker, read_all
from support.waiting import eventually

MakeLog = Callable[..., Log]
MakeCleaner = Callable[..., Cleaner]


async def clean(cleaner: Cleaner) -> int:
    """One look at what is due; no process is left."""
    try:
        return await cleaner.clean_due()
    finally:
        await cleaner._end_children()


def latest(records: list[Record], end: int) -> list[Record]:
    """What compaction up to `end` leaves."""
    last = {record.key: record.offset for record in records if record.offset < end}
    return [r for r in records if r.offset >= end or last[r.key] == r.offset]


async def test_the_last_of_each_key_stays(
    dirty_log: MakeLog, make_cleaner: MakeCleaner, tmp_path: Path
) -> None:
    log = dirty_log_again(dirty_log(), segment_bytes=12_000)
    before, size, count = records_of(split(read_all(log))), log.size, len(log.segments)
    active = log.segments[-1]
    assert await clean(make_cleaner(log)) == 1
    after = records_of(split(read_all(log)))
    assert after == latest(before, active.base_offset)
    assert log.size < size / 2
    assert len(log.segments) < count
    assert log.segments[-1] is active
    assert read_offsets(tmp_path / "data" / "cleaner-offset-checkpoint") == {TP: active.base_offset}
    # What each reader may ask: every offset, also one that is gone, by index and by time.
    for offset in range(log.log_end_offset):
        read = log.read(offset, 1, at_least_one=True)
        assert read.region is not None
        batch = read.region.read()
        assert parse(batch).last_offset >= offset
    found = await log.offset_for_timestamp(NOW + 300)
    assert found == next((r.timestamp, r.offset, 0) for r in after if r.timestamp >= NOW + 300)
    names = [path.name for path in log.directory.iterdir()]
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))]
    assert log.delete_scheduled_files(NOW + 1_000_000, at_most=1000) > 0
    assert not list(log.directory.glob("*.deleted"))
    # Nothing is dirty any more.
    assert await clean(make_cleaner(log)) == 0


async def test_readers_of_the_old_files_go_on(dirty_log: MakeLog, make_cleaner: MakeCleaner) -> None:
    log = dirty_log()
    region = log.read(0, 100_000, at_least_one=True).region
    assert region is not None
    expected, old = region.read(), log.segments[0]
    assert await clean(make_cleaner(log)) == 1
    assert region.read() == expected
    # Also who has to open the file anew, and one who looks something up in it.
    log.pool.limit = 1
    del region
    old.close()
    found = old.find(3)
    assert found is not None
    assert found[1].base_offset == 0
    assert old.open_file().path.endswith(".log.deleted")


async def test_what_is_not_due_stays(dirty_log: MakeLog, make_cleaner: MakeCleaner) -> None:
    log = dirty_log(min_cleanable_dirty_ratio=1.0)
    assert await clean(make_cleaner(log)) == 0
    log = dirty_log_again(log, min_compaction_lag_ms=3_600_000)
    assert await clean(make_cleaner(log)) == 0
    clock = HandClock(NOW + 3_601_000)
    assert await clean(make_cleaner(log, clock=clock)) == 1


def dirty_log_again(log: Log, **config: object) -> Log:
    from support.logs import config as topic_config

    log.config = topic_config(**{"segment_bytes": 4000, "cleanup_policy": ("compact",), **config})
    return log


async def test_the_largest_lag_forces(dirty_log: MakeLog, make_cleaner: MakeCleaner) -> None:
    log = dirty_log(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1000)
    assert await clean(make_cleaner(log)) == 0
    assert await clean(make_cleaner(log, clock=HandClock(NOW + 2000))) == 1


async def test_two_that_clean_at_once_take_turns(dirty_log: MakeLog, make_cleaner: MakeCleaner) -> None:
    log = dirty_log()
    cleaner, cleaned = make_cleaner(log), []

    async def one() -> None:
        cleaned.append(await cleaner.clean_due())

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(one)
    await cleaner._end_children()
    assert cleaned == [1, 0], "the second finds nothing to do"
    assert cleaner.uncleanable == {}


async def test_only_what_is_synced_is_cleaned(dirty_log: MakeLog, make_cleaner: MakeCleaner) -> None:
    log = dirty_log()
    log.recovery_point = 0
    assert await clean(make_cleaner(log)) == 0


async def test_a_damaged_log_is_left_aside(
    dirty_log: MakeLog, make_cleaner: MakeCleaner, caplog: pytest.LogCaptureFixture
) -> None:
    log = dirty_log()
    path = Path(log.segments[3].path(".log"))
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    before = [(s.base_offset, s.size) for s in log.segments]
    cleaner = make_cleaner(log)
    assert await clean(cleaner) == 1
    assert "CRC" in cleaner.uncleanable[TP]
    assert len([r for r in caplog.records if "cannot be compacted" in r.getMessage()]) == 1
    assert [(s.base_offset, s.size) for s in log.segments] == before
    assert await clean(cleaner) == 0


async def test_a_killed_process_harms_nothing(dirty_log: MakeLog, make_cleaner: MakeCleaner) -> None:
    log = dirty_log()
    before = read_all(log)
    cleaner = make_cleaner(log, log_cleaner_io_max_bytes_per_second="20000")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cleaner.clean_due)
        await eventually(lambda: bool(cleaner._children), "the process that compacts")
        (child,) = cleaner._children
        os.kill(child.pid, signal.SIGKILL)
    assert "signal 9" in cleaner.uncleanable[TP]
    assert read_all(log) == before
    assert not list(log.directory.glob("*.cleaned"))


async def test_a_deleted_log_is_let_go_at_once(dirty_log: MakeLog, make_cleaner: MakeCleaner) -> None:
    log = dirty_log()
    cleaner = make_cleaner(log, log_cleaner_io_max_bytes_per_second="20000")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cleaner.clean_due)
        await eventually(lambda: bool(cleaner._children), "the process that compacts")
        log.offline = "it is deleted"
        cleaner.forget(TP)
    assert cleaner.uncleanable == {}
    assert not cleaner._children


async def test_the_process_ends_when_there_is_nothing_to_do(
    dirty_log: MakeLog, make_cleaner: MakeCleaner
) -> None:
    log = dirty_log()
    cleaner = make_cleaner(log)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cleaner.run)
        await eventually(
            lambda: bool(cleaner.rounds) and not cleaner._idle and not cleaner._children,
            "the end of the process",
        )
        nursery.cancel_scope.cancel()
    assert cleaner.rounds == 1
    assert cleaner.read_bytes >= cleaner.written_bytes > 0
    assert cleaner.removed_records > 0 and cleaner.busy_seconds > 0
    assert not cleaner.working


async def test_rounds_for_a_small_table(dirty_log: MakeLog, make_cleaner: MakeCleaner) -> None:
    log = dirty_log(6000, 3000, segment_bytes=20_000)
    before = records_of(split(read_all(log)))
    cleaner = make_cleaner(log, log_cleaner_dedupe_buffer_size="100000")
    assert await clean(cleaner) == 1
    assert cleaner.rounds > 2
    assert records_of(split(read_all(log))) == latest(before, log.segments[-1].base_offset)


async def test_aborted_transactions(dirty_log: MakeLog, make_cleaner: MakeCleaner) -> None:
    log = dirty_log(100, min_cleanable_dirty_ratio=0.0)
    rows = [Record(0, NOW, b"key 1", b"aborted")]
    append(log, encode_batch(rows, producer_id=3, producer_epoch=0, base_sequence=0, transactional=True), NOW)
    open_since = log.last_stable_offset
    log.roll()
    log.flush()
    # What is open is not touched, nor anything behind it.
    await clean(make_cleaner(log))
    assert b"aborted" in read_all(log, open_since)
    append_marker(log, 3, 0, commit=False, coordinator_epoch=0, now_ms=NOW, transaction_version=1)
    log.roll()
    log.flush()
    assert await clean(make_cleaner(log)) == 1
    assert b"aborted" not in read_all(log)
    assert any(record.key == b"key 1" for record in records_of(split(read_all(log))))
    # Its entry is still found: data of it were there in this round.
    assert [each.producer_id for each in log.aborted_transactions(0, log.log_end_offset)] == [3]
    # What the producer commits afterwards is none of its business.
    batch = encode_batch(
        [Record(0, NOW, b"key 1", b"committed")],
        producer_id=3,
        producer_epoch=0,
        base_sequence=1,
        transactional=True,
    )
    append(log, batch, NOW)
    append_marker(log, 3, 0, commit=True, coordinator_epoch=0, now_ms=NOW, transaction_version=1)
    log.roll()
    log.flush()
    assert await clean(make_cleaner(log)) == 1
    (left,) = (record for record in records_of(split(read_all(log))) if record.key == b"key 1")
    assert left.value == b"committed"


async def test_tombstones_are_kept_for_ever(dirty_log: MakeLog, make_cleaner: MakeCleaner) -> None:
    """delete.retention.ms may be as long as a long: Kafka's sum with the time of day would wrap, and they would go at
    once. Timestamps before 1970 are as far from that horizon as a delta can say, and farther."""
    log, clock = (
        dirty_log(records=0, delete_retention_ms=2**63 - 1, min_cleanable_dirty_ratio=0.0),
        HandClock(),
    )
    for stamp in (NOW - (2**63 - 1), -2, 0, NOW):
        for number in range(60):
            append(log, encode_batch([Record(0, stamp, b"%d %d" % (stamp, number), None)]), NOW)
    for number in range(100):
        append(log, encode_batch([Record(0, NOW, b"key", b"value %d" % number)]), NOW)
    log.flush_indexes()
    log.flush()
    before = records_of(split(read_all(log)))
    cleaner = make_cleaner(log, clock=clock)
    assert await clean(cleaner) == 1
    clock.ms += 10**15
    for number in range(100):
        append(log, encode_batch([Record(0, NOW, b"key", b"value %d" % number)]), NOW)
    log.flush_indexes()
    log.flush()
    assert await clean(cleaner) == 1
    assert not cleaner.uncleanable
    batches = split(read_all(log))
    tombstones = [record for record in records_of(batches) if record.value is None]
    assert tombstones == [record for record in before if record.value is None]
    assert len(tombstones) == 240
    horizons = {parse(b).base_timestamp for b in batches if parse(b).attributes & DELETE_HORIZON}
    assert horizons == {2**63 - 1}


async def test_what_the_process_did_not_expect_is_one_line(
    dirty_log: MakeLog, make_cleaner: MakeCleaner, caplog: pytest.LogCaptureFixture
) -> None:
    """A record that lies before its batch cannot be written again."""
    log = dirty_log(records=0)
    batch = encode_batch([Record(0, NOW, b"a", None)])
    append(log, batch, NOW)
    payload = bytearray(batch[61:])
    payload[3] = 1  # its offset delta is -1 now, which only a file of another can have
    with (log.directory / f"{0:020d}.log").open("r+b") as file:
        file.write(sealed(parse(batch), payload))
    for number in range(100):
        append(log, encode_batch([Record(0, NOW, b"key", b"value %d" % number)]), NOW)
    log.flush_indexes()
    log.flush()
    cleaner = make_cleaner(log)
    assert await clean(cleaner) == 1
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert "t-0 cannot be compacted" in line
    assert "ValueError: offset -1 lies before the batch's base offset 0 (records.py, line " in line

"""`Log.write`: whether it is done on the loop or by a worker, and what is told of it; `Origin`: what each batch is
spared."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.errors import (
    BrokerError,
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    StorageError,
)
from leafcuttr.log.append.chain.chain import Chain
from leafcuttr.log.append.pending_write import DONE, PendingWrite
from leafcuttr.log.append.preparation import LongWork
from leafcuttr.log.append.rules import LARGE, Origin
from leafcuttr.log.append.staged import Staged, WriteError
from leafcuttr.log.files.write_pressure import WritePressure
from leafcuttr.log.log import Log
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.markers import Marker, encode_marker
from leafcuttr_sdk.filters import DeadLetter
from support.chains import TestChain
from support.logs import NOW, append, append_and_wait, batch, make_log, patched, read_all, stage_here

ALL = list(Origin)
MARKERS = [Origin.MARKER, Origin.MARKER_OF_NEXT_EPOCH]


def stage(log: Log, data: bytearray | None = None) -> Staged:
    return stage_here(log, memoryview(data or batch()))


# On the loop or off it


async def test_a_plain_write_is_done_when_it_returns_and_no_worker_has_a_part_in_it(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    assert log.write() is DONE, "of nothing"
    stage(log)
    assert log.write() is DONE
    assert (log.log_end_offset, log.busy, log.resources.writers.busy) == (1, False, False)


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        ({"lc_log_sync_always": True}, 10),
        ({"flush_messages": 1}, 10),
        ({"max_message_bytes": 2 * LARGE}, LARGE + 1),
    ],
    ids=["synced", "flushed", "large"],
)
async def test_what_would_keep_the_loop_is_left_to_a_worker(
    tmp_path: Path, settings: dict[str, Any], size: int
) -> None:
    log = make_log(tmp_path, **settings)
    staged = stage(log, batch(size=size))
    write = log.write()
    assert (write.done, log.log_end_offset, log.busy) == (False, 0, True)
    assert log.write() is write, "there is no other"
    await write.confirm(staged)
    assert (write.done, log.log_end_offset, log.busy) == (True, 1, False)
    assert len(read_all(log)) == log.size


async def test_so_is_what_a_disk_that_holds_writers_up_would_take_long_for(
    tmp_path: Path,
) -> None:
    now = 0.0
    pressure = WritePressure(os.devnull, lambda: now)
    log = make_log(tmp_path, pressure=pressure)
    pressure.wrote(1.0)
    stage(log)
    write = log.write()
    assert not write.done
    await write.wait()
    now = 60.0
    stage(log)
    assert log.write() is DONE


async def test_who_leaves_dead_letters_waits_for_them(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    chain = TestChain(lambda _: DeadLetter("bad"))
    log.use_chain(chain.chain)
    stage(log)
    write = log.write()
    await write.wait_until_published()
    assert (write.published, write.done, log.log_end_offset) == (True, False, 1)
    chain.posted[0].finish()
    assert write.done


async def test_what_is_staged_meanwhile_makes_one_write_more(tmp_path: Path) -> None:
    log = make_log(tmp_path, lc_log_sync_always=True)
    stage(log)
    first = log.write()
    log.config = make_log(
        tmp_path / "plain"
    ).config  # what need not wait by itself waits for what is under way
    stage(log)
    second = log.write()
    stage(log)
    assert log.write() is second is not first
    assert log.writing is first
    await second.wait()
    assert (first.done, log.log_end_offset, log.writing, log.next_write) == (True, 3, None, None)


async def test_a_write_that_fails_at_once_is_done_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(tmp_path)
    staged = stage(log)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", full)
        write = log.write()
    assert (write.published, write.done) == (True, True)
    with pytest.raises(WriteError, match="No space left on device") as failed:
        await write.confirm(staged)
    assert failed.value is not write.failure, "each who asks gets one of his own, with a traceback of his own"
    assert (failed.value.written_to, log.next_offset) == (0, 0)
    assert await append_and_wait(log, batch()) == 0


def test_what_was_staged_below_the_failure_is_there() -> None:
    write = PendingWrite()
    write.finish(WriteError("no space", 7))
    assert [write.failure_of(Staged(offset, offset)) is None for offset in (0, 6, 7, 8)] == [
        True, True, False, False,
    ]  # fmt: skip
    assert DONE.failure_of(Staged(7, 7)) is None


# Origins


def refused(log: Log, data: bytearray, origin: Origin) -> type[Exception] | None:
    """With what, and nothing is left behind then."""
    before = log.next_offset
    try:
        log.stage(data, origin, now_ms=NOW)
    except (BrokerError, LongWork) as error:
        assert log.next_offset == before
        return type(error)
    log.forget_staged()
    return None


def told(log: Log, data: bytearray) -> dict[Origin, type[Exception] | None]:
    """Of those that are no markers."""
    return {origin: refused(log, bytearray(data), origin) for origin in ALL if origin not in MARKERS}


def marker() -> bytearray:
    return encode_marker(1, 0, Marker(True, 0), timestamp=NOW)


def test_below_the_free_space_only_what_the_broker_keeps_of_itself_is_staged(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    log.resources.refusal = "no space"
    assert told(log, batch()) == {
        Origin.CLIENT: StorageError,
        Origin.ENCODER: StorageError,
        Origin.COORDINATOR: None,
        Origin.DEAD_LETTERS: StorageError,
    }
    assert [refused(log, marker(), origin) for origin in MARKERS] == [None, None]


def test_what_takes_long_is_asked_of_a_worker_but_for_a_coordinator(tmp_path: Path) -> None:
    log = make_log(tmp_path, compression_type="gzip", max_message_bytes=2 * LARGE)
    assert told(log, batch(20_001, size=1)) == {
        Origin.CLIENT: LongWork,
        Origin.ENCODER: LongWork,
        Origin.COORDINATOR: None,
        Origin.DEAD_LETTERS: LongWork,
    }


def test_only_dead_letters_may_be_larger_than_the_topic_allows(tmp_path: Path) -> None:
    log = make_log(tmp_path, max_message_bytes=100)
    assert told(log, batch(size=200)) == {
        Origin.CLIENT: MessageTooLarge,
        Origin.ENCODER: MessageTooLarge,
        Origin.COORDINATOR: MessageTooLarge,
        Origin.DEAD_LETTERS: None,
    }


def test_only_a_clients_records_are_stepped_over(tmp_path: Path) -> None:
    data = batch(2)
    data[61:] = b"\xff" * (len(data) - 61)
    found = told(make_log(tmp_path), patched(data, ">q", 27, NOW))
    assert {origin for origin, error in found.items() if error is not None} == {Origin.CLIENT}


def test_a_coordinators_records_have_keys_and_are_not_looked_at_for_them(tmp_path: Path) -> None:
    assert told(make_log(tmp_path, cleanup_policy="compact"), batch()) == {
        Origin.CLIENT: InvalidRecord,
        Origin.ENCODER: InvalidRecord,
        Origin.COORDINATOR: None,
        Origin.DEAD_LETTERS: InvalidRecord,
    }


@pytest.mark.parametrize(
    ("codec", "settings", "kept"),
    [
        (Codec.NONE, {"compression_type": "producer"}, True),
        (Codec.GZIP, {"compression_type": "producer"}, True),
        (Codec.NONE, {"compression_type": "uncompressed"}, True),
        (Codec.GZIP, {"compression_type": "gzip"}, True),
        (Codec.GZIP, {"compression_type": "uncompressed"}, False),
        (Codec.NONE, {"compression_type": "gzip"}, False),
        (Codec.NONE, {"message_timestamp_type": "LogAppendTime"}, False),
        (Codec.NONE, {"message_timestamp_before_max_ms": 1000}, True),
        (Codec.GZIP, {"compression_type": "gzip", "message_timestamp_type": "LogAppendTime"}, False),
    ],
)
def test_a_coordinators_batch_is_stored_as_the_settings_of_its_topic_want_it(
    tmp_path: Path, codec: Codec, settings: dict[str, object], kept: bool
) -> None:
    log = make_log(tmp_path, cleanup_policy="compact", **settings)
    data = batch(2, key=b"k", codec=codec)
    append(log, bytearray(data), NOW + 5, Origin.COORDINATOR)
    assert (read_all(log)[21:] == data[21:]) == kept


def test_a_coordinators_record_is_not_older_than_its_topic_allows(tmp_path: Path) -> None:
    log = make_log(tmp_path, cleanup_policy="compact", message_timestamp_before_max_ms=1000)
    found = told(log, batch(key=b"k", timestamp=NOW - 2000))
    assert set(found.values()) == {InvalidTimestamp}


def test_only_a_coordinator_writes_for_a_producer_without_a_sequence(tmp_path: Path) -> None:
    found = told(make_log(tmp_path), batch(producer_id=1, producer_epoch=0))
    assert found == {
        Origin.CLIENT: InvalidRecord,
        Origin.ENCODER: InvalidRecord,
        Origin.COORDINATOR: None,
        Origin.DEAD_LETTERS: InvalidRecord,
    }


def test_the_chain_sees_what_comes_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, seen = make_log(tmp_path), []
    chain = TestChain(lambda record: seen.append(record) or record)
    log.use_chain(chain.chain)
    # Else a worker looks at the first batch, and at all behind one that the machine has held up.
    monkeypatch.setattr(Chain, "is_quick", lambda self, count: True)
    for origin in ALL:
        before = len(seen)
        assert refused(log, marker() if origin in MARKERS else batch(), origin) is None
        assert (len(seen) > before) == (origin in (Origin.CLIENT, Origin.ENCODER)), origin


def test_only_markers_are_control_batches(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    assert set(told(log, marker()).values()) == {InvalidRecord}
    for origin in MARKERS:
        assert refused(log, marker(), origin) is None
        broken = marker()
        broken[70] ^= 1
        assert refused(log, broken, origin) is CorruptMessage

"""Idempotent producers: against a model, against the log, and in Kafka's snapshot format."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.errors import BrokerError, ErrorCode, InvalidProducerEpoch, OutOfOrderSequence
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.append.staged import Staged
from leafcuttr.log.log import Log
from leafcuttr.log.producers.snapshot import DamagedSnapshotError, decode_snapshot, encode_snapshot
from leafcuttr.log.producers.state import BatchMetadata, ProducerEntry, ProducerStateTable
from leafcuttr.wire.batch import MAX_SEQUENCE, parse
from support.logs import NOW, batch, make_log, write_now

# Written by Apache Kafka 4.3.1 after the three producers of test_like_kafka.
KAFKA_SNAPSHOT = bytes.fromhex(
    "0001041c7fe40000000300000000000007d00001000000010000000000000015000000010000"
    "01a1fd9d4f04ffffffffffffffffffffffff00000000000003e8ffff00000001000000000000000d"
    "00000001000001a1fd9d4f04ffffffffffffffffffffffff0000000000000bb80000000000020000"
    "00000000001900000001000001a1fd9d4f04ffffffffffffffffffffffff"
)


def stage(log: Log, sequence: int, *, count: int = 2, producer_id: int = 2000, epoch: int = 0) -> Staged:
    data = batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    return log.stage(memoryview(data), Origin.CLIENT, now_ms=NOW)


def send(log: Log, sequence: int, **fields: int) -> Staged:
    staged = stage(log, sequence, **fields)
    write_now(log)
    return staged


def code(log: Log, sequence: int, **fields: int) -> ErrorCode:
    with pytest.raises(BrokerError) as refused:
        send(log, sequence, **fields)
    return refused.value.code


def test_like_kafka(tmp_path: Path) -> None:
    """The sequence of requests and answers of a real Apache Kafka 4.3.1."""
    log = make_log(tmp_path)
    assert send(log, 7).base_offset == 0, "of an unknown producer any sequence is taken"
    assert send(log, 9).base_offset == 2
    repeated = send(log, 7)
    assert repeated == Staged(0, 1, NOW, True)
    assert log.log_end_offset == 4
    assert code(log, 15) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert code(log, 8) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert code(log, 3, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 0, epoch=1).base_offset == 4
    assert code(log, 11, epoch=0) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(log, MAX_SEQUENCE, producer_id=3000).base_offset == 6
    assert send(log, 1, producer_id=3000).base_offset == 8
    assert send(log, 0, producer_id=1000, epoch=-1).base_offset == 10


def test_five_batches_are_remembered(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    for sequence in range(6):
        send(log, sequence, count=1)
    assert [send(log, sequence, count=1).base_offset for sequence in range(1, 6)] == [1, 2, 3, 4, 5]
    assert code(log, 0, count=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.log_end_offset == 6


def test_a_batch_staged_twice_in_one_turn_is_a_duplicate(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    first, second, third = stage(log, 0), stage(log, 0), stage(log, 2)
    assert (first.duplicate, second.duplicate, third.duplicate) == (False, True, False)
    assert (first.base_offset, second.base_offset, third.base_offset) == (0, 0, 2)
    assert len(log.producers) == 0, "nothing is published yet"
    write_now(log)
    assert log.log_end_offset == 4
    assert send(log, 2).duplicate


class Model:
    """A producer as the rules say, without tables: everything it ever appended."""

    def __init__(self) -> None:
        self.epoch = -1
        self.appended: list[tuple[int, int]] = []

    def expected(self, epoch: int, sequence: int, count: int) -> str:
        last = (sequence + count - 1) % 2**31
        if epoch == self.epoch and (sequence, last) in self.appended[-5:]:
            return "duplicate"
        if self.epoch == -1:
            return "append"
        if epoch < self.epoch:
            return "fenced"
        if epoch > self.epoch:
            return "append" if sequence == 0 else "gap"
        return "append" if sequence == (self.appended[-1][1] + 1) % 2**31 else "gap"

    def append(self, epoch: int, sequence: int, count: int) -> None:
        if epoch != self.epoch:
            self.epoch, self.appended = epoch, []
        self.appended.append((sequence, (sequence + count - 1) % 2**31))


@given(
    st.integers(MAX_SEQUENCE - 8, MAX_SEQUENCE) | st.integers(0, 3),
    st.lists(st.tuples(st.integers(0, 2), st.integers(-6, 3), st.integers(1, 3), st.booleans()), max_size=40),
)
def test_table_and_model_agree(start: int, steps: list[tuple[int, int, int, bool]]) -> None:
    table, model = ProducerStateTable(), Model()
    offset, at = 0, start
    staged: list[ProducerEntry] = []
    for epoch, distance, count, publish in steps:
        sequence = (at + distance) % 2**31 if epoch == max(model.epoch, 0) else abs(distance) // 4
        data = batch(count, producer_id=1, producer_epoch=epoch, base_sequence=sequence)
        header = parse(data)
        expected = model.expected(epoch, sequence, count)
        if table.follows(1, epoch, sequence):
            got = "append"
        elif table.duplicate_of(header) is not None:
            got = "duplicate"
        else:
            try:
                table.check(header)
                got = "append"
            except InvalidProducerEpoch:
                got = "fenced"
            except OutOfOrderSequence:
                got = "gap"
        assert got == expected
        if got == "append":
            staged.append(table.stage(1, epoch, sequence, count - 1, header.max_timestamp, offset))
            model.append(epoch, sequence, count)
            offset, at = offset + count, (sequence + count) % 2**31
        if publish:
            for entry in staged:
                table.publish(entry)
            staged.clear()
    for entry in staged:
        table.publish(entry)
    known = table.get(1)
    if known is not None:
        assert [(b.first_sequence, b.last_sequence) for b in known.batches] == model.appended[-5:]
        assert known.last_offset == offset - 1
        assert list(ProducerStateTable.from_dump(table.dump())) == [known]
        (reread,) = decode_snapshot(encode_snapshot(table))
        assert reread == known._replace(batches=known.batches[-1:])


def test_expiry(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    send(log, 0)
    assert log.producers.expire(NOW + 999, 1000) == 0
    assert log.producers.expire(NOW + 1000, 1000) == 1
    assert send(log, 77).duplicate is False


def test_a_snapshot_by_kafka() -> None:
    entries = decode_snapshot(KAFKA_SNAPSHOT)
    assert [entry.producer_id for entry in entries] == [2000, 1000, 3000]
    assert entries[0].epoch == 1
    assert entries[0].batches == (BatchMetadata(0, 1, 0x15, 1, entries[0].last_timestamp),)
    assert entries[2].batches[0].last_sequence == 2
    assert encode_snapshot(entries) == KAFKA_SNAPSHOT


@given(st.integers(0, len(KAFKA_SNAPSHOT) - 1), st.integers(1, 255))
def test_a_damaged_snapshot_is_noticed(at: int, change: int) -> None:
    damaged = bytearray(KAFKA_SNAPSHOT)
    damaged[at] ^= change
    with pytest.raises(DamagedSnapshotError):
        decode_snapshot(bytes(damaged))
    with pytest.raises(DamagedSnapshotError):
        decode_snapshot(KAFKA_SNAPSHOT[:at])


def test_replay_of_a_log_gives_the_same_table(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    for sequence in range(9):
        send(log, sequence, count=1)
        send(log, sequence, count=1, producer_id=7)
    replayed = ProducerStateTable()
    for _, header in log.segments[0].scan():
        replayed.replay(header)
    assert list(replayed) == list(log.producers)

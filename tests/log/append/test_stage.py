"""What a partition takes and refuses. The error codes are those a real Apache Kafka 4.3.1 gave for the same bytes."""

import struct
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.errors import BrokerError, ErrorCode, InvalidRecord, InvalidTimestamp
from leafcuttr.log.append.check import CHECKED_AT_ONCE
from leafcuttr.log.append.preparation import LongWork
from leafcuttr.log.append.rules import Origin
from leafcuttr.wire.batch import HEADER_SIZE, MIN_RECORD, parse
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record, decode_records, encode_batch
from support.gates_slice import sampled
from support.logs import NOW, append, batch, make_log, patched, read_all, write_now

GOOD = bytes(batch(2, key=b"k"))


def refusal(folder: Path, data: bytes | bytearray, **settings: Any) -> BrokerError | None:
    log = make_log(folder, **settings)
    try:
        log.stage(memoryview(bytearray(data)), Origin.CLIENT, now_ms=NOW)
    except BrokerError as error:
        assert not log.busy
        write_now(log)
        assert (log.next_offset, log.size) == (0, 0)
        return error
    write_now(log)
    return None


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (GOOD, None),
        (b"", 87),
        (GOOD[:16], 87),
        (GOOD[:-1], 87),
        (GOOD[:40], 87),
        (GOOD + b"12345", None),
        (GOOD + bytes(20), 2),
        (GOOD + GOOD[:-1], None),
        (GOOD + GOOD, 87),
        (patched(GOOD, ">b", 16, 1), 87),
        (patched(GOOD, ">b", 16, 3), 2),
        (patched(GOOD, ">i", 8, 10), 2),
        (patched(GOOD, ">i", 8, 20), 2),
        (patched(GOOD[:60], ">i", 8, 48), 2),
        (patched(GOOD, ">i", 8, -5), 2),
        (patched(GOOD, ">b", len(GOOD) - 1, 9, crc=False), 2),
        (patched(GOOD, ">q", 0, 5), 87),
        (patched(GOOD, ">h", 21, 5), 87),  # Kafka itself stumbles over an unknown codec: UNKNOWN_SERVER_ERROR
        (patched(GOOD, ">h", 21, 8), None),
        (patched(GOOD, ">h", 21, 0x80), None),
        (patched(GOOD, ">h", 21, 0x20), 87),
        (patched(GOOD, ">h", 21, 0x10), 87),
        (patched(GOOD, ">i", 57, 1), 87),
        (patched(GOOD, ">i", 57, 0), 87),
        (patched(GOOD, ">i", 57, -1), 87),
        (patched(GOOD, ">i", 23, -1), 87),
        (patched(GOOD, ">q", 43, 1000), 87),
        (patched(patched(GOOD, ">q", 43, 1000), ">i", 53, 0), None),
        (patched(GOOD, ">q", 43, -2), None),
        (batch(timestamp=NOW + 7_200_000), 32),
        (batch(timestamp=-1), None),
    ],
)
def test_error_codes(tmp_path: Path, data: bytes, code: int | None) -> None:
    error = refusal(tmp_path, data)
    assert (error and error.code) == (code and ErrorCode(code))


@pytest.mark.parametrize(
    ("data", "settings", "code"),
    [
        (batch(30), {"max_message_bytes": 200}, ErrorCode.MESSAGE_TOO_LARGE),
        (batch(30), {"segment_bytes": 200}, ErrorCode.RECORD_LIST_TOO_LARGE),
        (batch(timestamp=NOW - 2000), {"message_timestamp_before_max_ms": 1000}, ErrorCode.INVALID_TIMESTAMP),
        (batch(timestamp=NOW + 2000), {"message_timestamp_after_max_ms": 1000}, ErrorCode.INVALID_TIMESTAMP),
        (batch(key=None), {"cleanup_policy": ("compact",)}, ErrorCode.INVALID_RECORD),
        (
            patched(GOOD, ">h", 21, 8),
            {"message_timestamp_type": "LogAppendTime"},
            ErrorCode.INVALID_TIMESTAMP,
        ),
    ],
)
def test_settings_refuse(tmp_path: Path, data: bytearray, settings: dict[str, Any], code: ErrorCode) -> None:
    error = refusal(tmp_path / "with", data, **settings)
    assert error is not None and error.code == code
    if isinstance(error, InvalidRecord | InvalidTimestamp):
        assert [at for at, _ in error.record_errors] == list(range(parse(data).count))


def test_a_changed_setting_holds_from_the_next_append_on(tmp_path: Path) -> None:
    from dataclasses import replace

    log = make_log(tmp_path)
    append(log, batch(30), NOW)
    log.config = replace(log.config, max_message_bytes=200)
    with pytest.raises(BrokerError, match="200"):
        append(log, batch(30), NOW)
    log.config = replace(log.config, max_message_bytes=10_000)
    assert append(log, batch(30), NOW) == 30


def test_offsets_and_epoch_are_stamped_and_visible_after_commit_only(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    log.leader_epoch = 3
    buffer = batch(5) + batch(2)
    view, cut = memoryview(buffer), len(batch(5))
    first = log.stage(view[:cut], Origin.CLIENT, now_ms=NOW)
    second = log.stage(view[cut:], Origin.CLIENT, now_ms=NOW)
    assert (first.base_offset, first.last_offset, second.base_offset, second.last_offset) == (0, 4, 5, 6)
    assert (first.log_append_time, first.duplicate) == (-1, False)
    assert (log.log_end_offset, log.size) == (0, 0)
    assert log.read(0, 1000, at_least_one=True).region is None
    write_now(log)
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (7, 7, 7)
    assert read_all(log) == bytes(buffer)
    assert [(parse(buffer, at).base_offset, parse(buffer, at).leader_epoch) for at in (0, cut)] == [
        (0, 3),
        (5, 3),
    ]


def test_a_read_only_view_is_not_written_to(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    append(log, batch(3), NOW)
    data = bytes(batch(2))
    log.stage(memoryview(data), Origin.CLIENT, now_ms=NOW)
    write_now(log)
    assert data == bytes(batch(2))
    assert parse(read_all(log, 3)).base_offset == 3


@pytest.mark.parametrize("check", ["ends", "off"])
def test_a_header_cannot_claim_more_records_than_the_bytes_hold(tmp_path: Path, check: str) -> None:
    """By the header alone: neither a worker nor the records are needed to say so."""
    smallest = encode_batch([Record(i, NOW, None, None) for i in range(10)])
    assert len(smallest) == HEADER_SIZE + 10 * MIN_RECORD
    assert refusal(tmp_path / "as many", smallest, lc_records_check=check) is None
    for claimed in (11, CHECKED_AT_ONCE + 1):
        data = patched(patched(smallest, ">i", 57, claimed), ">i", 23, claimed - 1)
        error = refusal(tmp_path / str(claimed), data, lc_records_check=check)
        assert isinstance(error, InvalidRecord)
        assert f"A batch of {len(data)} bytes cannot hold {claimed} records" in str(error)


def test_compressed_records_may_be_more_than_the_bytes_would_hold(tmp_path: Path) -> None:
    data = encode_batch([Record(i, NOW, None, None) for i in range(60)], codec=Codec.GZIP)
    assert len(data) < HEADER_SIZE + 60 * MIN_RECORD
    assert refusal(tmp_path, data) is None


def test_log_append_time(tmp_path: Path) -> None:
    log = make_log(tmp_path, message_timestamp_type="LogAppendTime")
    staged = log.stage(memoryview(batch(2, timestamp=5)), Origin.CLIENT, now_ms=NOW)
    write_now(log)
    assert staged.log_append_time == NOW
    assert [record.timestamp for record in decode_records(read_all(log))] == [NOW, NOW]
    assert log.segments[-1].largest_timestamp == NOW


def test_the_append_time_of_what_a_worker_has_converted_is_that_of_its_records(tmp_path: Path) -> None:
    log = make_log(tmp_path, message_timestamp_type="LogAppendTime", compression_type="gzip")
    data = memoryview(batch(40, size=1000))
    with pytest.raises(LongWork) as long:
        log.stage(data, Origin.CLIENT, now_ms=NOW)
    staged = log.stage(data, Origin.CLIENT, now_ms=NOW + 5, prepared=long.value.work.do())
    write_now(log)
    assert staged.log_append_time == NOW
    assert {record.timestamp for record in decode_records(read_all(log))} == {NOW}


def test_a_sequence_out_of_order_leaves_the_batch_as_it_came(tmp_path: Path) -> None:
    log = make_log(tmp_path, message_timestamp_type="LogAppendTime")
    append(log, batch(producer_id=7, producer_epoch=0, base_sequence=0))
    data = batch(producer_id=7, producer_epoch=0, base_sequence=9)
    before = bytes(data)
    for _ in range(2):
        with pytest.raises(BrokerError) as refused:
            log.stage(memoryview(data), Origin.CLIENT, now_ms=NOW)
        assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert data == before


@pytest.mark.parametrize("name", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_compression_type_is_that_of_the_stored_batch(tmp_path: Path, name: str) -> None:
    log = make_log(tmp_path, compression_type=name)
    wanted = Codec.NONE if name == "uncompressed" else Codec[name.upper()]
    for codec in Codec:
        append(log, encode_batch([Record(0, NOW, b"k", b"v" * 500)], codec=codec), NOW)
    stored, at = read_all(log), 0
    for offset in range(len(Codec)):
        header = parse(stored, at)
        assert (header.codec, header.base_offset) == (wanted, offset)
        assert [r.value for r in decode_records(stored[at : at + header.size])] == [b"v" * 500]
        at += header.size


def test_waiters_hear_of_each_publish(tmp_path: Path) -> None:
    class Ear:
        heard = 0

        def notify(self) -> None:
            self.heard += 1
            log.waiters.discard(self)

    log, ear = make_log(tmp_path), Ear()
    log.waiters.add(ear)
    log.stage(memoryview(batch()), Origin.CLIENT, now_ms=NOW)
    assert not ear.heard
    write_now(log)
    append(log, batch(), NOW)
    assert ear.heard == 1


def test_the_stored_crc_is_named(tmp_path: Path) -> None:
    error = refusal(tmp_path, patched(GOOD, ">I", 17, 1234, crc=False))
    assert error is not None and "stored crc = 1234" in str(error)
    assert struct.unpack_from(">I", GOOD, 17)[0] != 1234


fields = st.sampled_from(
    [(">q", 0), (">i", 8), (">i", 12), (">b", 16), (">h", 21), (">i", 23), (">q", 27), (">q", 35), (">q", 43),
     (">h", 51), (">i", 53), (">i", 57), (">q", 61), (">b", 70)]
)  # fmt: skip


@settings(max_examples=sampled(200), deadline=None)
@given(
    st.lists(st.tuples(fields, st.integers(-(2**63), 2**63 - 1)), max_size=3),
    st.integers(0, 130),
    st.booleans(),
)
def test_whatever_is_taken_can_be_read_again(
    changes: list[tuple[tuple[str, int], int]], length: int, whole: bool
) -> None:
    data = bytearray(GOOD)
    for (form, at), value in changes:
        bits = 8 * struct.calcsize(form)
        data = patched(data, form, at, (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1))
    data = data if whole else data[:length]
    with TemporaryDirectory() as folder:
        log = make_log(Path(folder))
        try:
            append(log, data, NOW)
        except BrokerError:
            assert log.log_end_offset == log.next_offset == log.size == 0
        else:
            ((_, header),) = log.segments[0].scan(check_crc=True)
            assert (header.base_offset, header.next_offset) == (0, log.log_end_offset)
            assert len(read_all(log)) == log.size
        assert append(log, batch(), NOW) == log.log_end_offset - 1
        assert [h.next_offset for s in log.segments for _, h in s.scan(check_crc=True)][
            -1
        ] == log.log_end_offset
        log.close()


@settings(max_examples=sampled(200), deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_with_a_code(data: bytes) -> None:
    with TemporaryDirectory() as folder, pytest.raises(BrokerError):
        append(make_log(Path(folder)), data, NOW)

"""`lc.records.check`: what of the records of a batch is looked at before it is stored, and what is not.

The error codes are those that a real Apache Kafka 4.3.1 gives for the same bytes (`tests/parity/scenarios/records.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leafcuttr.errors import BrokerError
from leafcuttr.log.append import conversion as convert
from leafcuttr.log.append import stage as append
from leafcuttr.log.append.check import CHECKED_AT_ONCE
from leafcuttr.log.append.preparation import LongWork
from leafcuttr.log.append.rules import LARGE, Origin
from leafcuttr.log.log import Log
from leafcuttr.wire.batch import parse, sealed
from leafcuttr.wire.compression import Codec, compress
from leafcuttr.wire.records import Record, decode_records, encode_batch, encode_records
from support.chains import TestChain, keep
from support.logs import NOW, batch, make_log, read_all, stage_here, write_now

TEN_YEARS = 3650 * 86_400_000
GOOD = bytes(encode_records([Record(0, NOW, b"k", b"v")], base_offset=0, base_timestamp=NOW))
SECOND = bytes(encode_records([Record(1, NOW, b"k", b"w")], base_offset=0, base_timestamp=NOW))


def of(body: bytes, *, count: int = 1, codec: Codec = Codec.NONE, **fields: Any) -> bytearray:
    """A batch with a sound header and CRC around these bytes."""
    header = parse(encode_batch([Record(i, NOW, b"k", b"v") for i in range(count)], codec=codec))
    return sealed(header._replace(**fields), body if codec is Codec.NONE else bytes(compress(codec, body)))


def inside(fields: bytes) -> bytes:
    """A record of these bytes whose length is right."""
    return bytes([len(fields) << 1]) + fields


ENDS = {
    "ones": (of(b"\xff" * 40), -1),
    "junk behind the last": (of(GOOD + b"junk"), 87),
    "a record too many": (of(GOOD + SECOND), 87),
    "a record too few": (of(GOOD + bytes(7), count=2), 87),
    "a length of more than is left": (of(b"\x7e" + GOOD[1:]), 87),
    "a negative length": (of(b"\x0f" + GOOD[1:]), 87),
}
INSIDE = {
    "ten years ahead of its header": (
        of(encode_records([Record(0, NOW + TEN_YEARS, b"k", b"v")], base_offset=0, base_timestamp=NOW)),
        32,
    ),
    "a key of more than the record": (of(inside(b"\0\0\0\x7ek\2v\0")), 87),
    "a value of more than the record": (of(inside(b"\0\0\0\2k\x7ev\0")), 87),
    "bytes behind the headers": (of(inside(b"\0\0\0\2k\2v\0junk")), 87),
    "another offset delta": (of(inside(b"\0\0\4\2k\2v\0")), 87),
    "the same offset delta twice": (of(GOOD + GOOD, count=2), 87),
    "minus one headers": (of(inside(b"\0\0\0\2k\2v\1")), 87),
    "a header without a key": (of(inside(b"\0\0\0\2k\2v\2\1\2h")), 87),
    "a header's value of more than the record": (of(inside(b"\0\0\0\2k\2v\2\2h\x7ex")), 87),
}
COMPRESSED = {
    **{
        f"{name}, {codec.name}": (of(b"\xff" * 40, codec=codec), 87)
        for codec in list(Codec)[1:]
        for name in ("ones",)
    },
    "junk behind the last, gzip": (of(GOOD + b"junk", codec=Codec.GZIP), 87),
    "no gzip at all": (of(b"\xff" * 40, attributes=int(Codec.GZIP)), -1),
}


def refusal(log: Log, data: bytes | bytearray, origin: Origin = Origin.CLIENT) -> int | None:
    """The code with which a log refuses a batch, which has left nothing behind then."""
    before = log.next_offset
    try:
        stage_here(log, memoryview(bytearray(data)), NOW, origin)
    except BrokerError as error:
        assert not log.busy
        assert log.next_offset == before
        return int(error.code)
    write_now(log)
    return None


@pytest.mark.parametrize("check", ["ends", "full", "off"])
@pytest.mark.parametrize("case", [*ENDS, *INSIDE, *COMPRESSED])
def test_what_is_refused(tmp_path: Path, check: str, case: str) -> None:
    data, code = {**ENDS, **INSIDE, **COMPRESSED}[case]
    seen = {"ends": ENDS, "full": {**ENDS, **INSIDE, **COMPRESSED}, "off": {}}[check]
    log = make_log(tmp_path, lc_records_check=check)
    assert refusal(log, data) == (code if case in seen else None)
    assert refusal(log, batch(3)) is None


def test_ends_is_the_default(tmp_path: Path) -> None:
    assert refusal(make_log(tmp_path), ENDS["ones"][0]) == -1


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"message_timestamp_type": "LogAppendTime"},
        {"compression_type": "gzip"},
        {"compression_type": "uncompressed"},
        {"cleanup_policy": ("compact",)},
        {"message_timestamp_before_max_ms": TEN_YEARS},
    ],
    ids=str,
)
@pytest.mark.parametrize("case", ENDS)
def test_other_settings_do_not_get_around_it(tmp_path: Path, settings: dict[str, Any], case: str) -> None:
    data, code = ENDS[case]
    assert refusal(make_log(tmp_path, **settings), data) == code


def test_a_batch_that_is_compressed_anew_is_checked_once_it_is_decompressed(tmp_path: Path) -> None:
    data, _ = COMPRESSED["junk behind the last, gzip"]
    assert refusal(make_log(tmp_path / "ends", compression_type="zstd"), data) == 87
    assert refusal(make_log(tmp_path / "same", compression_type="gzip"), data) is None
    assert refusal(make_log(tmp_path / "off", compression_type="zstd", lc_records_check="off"), data) is None


def test_a_topic_with_filters_takes_its_batches_apart_anyway(tmp_path: Path) -> None:
    for check in ("ends", "full"):
        log = make_log(tmp_path / check, lc_records_check=check)
        log.use_chain(TestChain(keep).chain)
        assert {case: refusal(log, data) for case, (data, _) in ENDS.items()} == {
            case: code for case, (_, code) in ENDS.items()
        }


def test_what_this_broker_has_encoded_itself_is_not_walked(tmp_path: Path) -> None:
    for check in ("ends", "full"):
        log = make_log(tmp_path / check, lc_records_check=check)
        assert refusal(log, ENDS["ones"][0], Origin.ENCODER) is None
    append_time = make_log(tmp_path / "time", message_timestamp_type="LogAppendTime", lc_records_check="full")
    staged = append_time.stage(memoryview(batch(2)), Origin.ENCODER, now_ms=NOW + 9)
    assert staged.log_append_time == NOW + 9  # what else its topic asks for is done


@pytest.mark.parametrize("off", [-3, 0, 5])
def test_the_largest_timestamp_is_put_right(tmp_path: Path, off: int) -> None:
    records = [Record(at, NOW - 100 + 10 * at, b"k", b"v") for at in range(4)]
    sound = encode_batch(records)
    header = parse(sound)
    claimed = sealed(header._replace(max_timestamp=header.max_timestamp + off), bytes(sound[61:]))
    log = make_log(tmp_path / "full", lc_records_check="full")
    assert refusal(log, claimed) is None
    stored = bytes(read_all(log))
    assert parse(stored).max_timestamp == NOW - 70
    assert parse(stored).crc == parse(sound).crc
    assert [record.timestamp for record in decode_records(stored)] == [record.timestamp for record in records]
    log = make_log(tmp_path / "ends")
    assert refusal(log, claimed) is None
    assert parse(bytes(read_all(log))).max_timestamp == NOW - 70 + off  # opaque to the header's word


def test_very_many_records_are_left_to_a_worker(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    for count in (CHECKED_AT_ONCE, CHECKED_AT_ONCE + 1):
        data = memoryview(batch(count, size=0))
        if count <= CHECKED_AT_ONCE:
            log.stage(data, Origin.CLIENT, now_ms=NOW)
        else:
            with pytest.raises(LongWork) as long:
                log.stage(data, Origin.CLIENT, now_ms=NOW)
            log.stage(data, Origin.CLIENT, now_ms=NOW, prepared=long.value.work.do())
    write_now(log)
    assert log.next_offset == 2 * CHECKED_AT_ONCE + 1


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_only_full_opens_what_is_compressed_and_large_ones_in_a_worker(tmp_path: Path, codec: Codec) -> None:
    """Small on the wire, a megabyte once it is open."""
    whole = encode_batch([Record(at, NOW, b"k", bytes(100_000)) for at in range(10)], codec=codec)
    assert len(whole) < 64 * 1024
    for check in ("ends", "off"):
        make_log(tmp_path / check, lc_records_check=check).stage(memoryview(whole), Origin.CLIENT, now_ms=NOW)
    log = make_log(tmp_path / "full", lc_records_check="full")
    with pytest.raises(LongWork) as long:
        log.stage(memoryview(whole), Origin.CLIENT, now_ms=NOW)
    assert long.value.work.limiter is None, "a thread of those that decode"
    log.stage(memoryview(whole), Origin.CLIENT, now_ms=NOW, prepared=long.value.work.do())
    write_now(log)
    assert log.next_offset == 10


@pytest.mark.one_in(2)
@pytest.mark.parametrize("count", [CHECKED_AT_ONCE + 1, 100])
@pytest.mark.parametrize("check", ["ends", "off"])
def test_the_worker_finds_what_the_loop_would_have_found(tmp_path: Path, count: int, check: str) -> None:
    """Of many records, and of a batch whose size alone makes it long work."""
    size = 0 if count > CHECKED_AT_ONCE else LARGE // 100 + 100
    whole = batch(count, size=size)
    junk = sealed(parse(whole), bytes(whole[61:]) + b"junk")
    log = make_log(tmp_path, lc_records_check=check, max_message_bytes=2 * LARGE)
    assert refusal(log, whole) is None
    assert refusal(log, junk) == (87 if check == "ends" else None)


def test_a_batch_is_walked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[int] = []
    check = append.check_lengths

    def counted(records: memoryview, count: int, *, compressed: bool = False) -> None:
        walks.append(count)
        check(records, count, compressed=compressed)

    monkeypatch.setattr(append, "check_lengths", counted)
    monkeypatch.setattr(convert, "check_lengths", counted)
    for number, settings in enumerate(
        ({}, {"compression_type": "gzip"}, {"message_timestamp_type": "LogAppendTime"})
    ):
        walks.clear()
        log = make_log(tmp_path / str(number), **settings)
        assert refusal(log, batch(3)) is None
        assert walks == [3]
        assert refusal(log, batch(CHECKED_AT_ONCE + 5, size=0)) is None
        assert walks == [3, CHECKED_AT_ONCE + 5]
    for number, settings in enumerate(
        ({"cleanup_policy": ("compact",)}, {"lc_records_check": "full"}, {"lc_records_check": "off"}), 10
    ):
        walks.clear()
        log = make_log(tmp_path / str(number), **settings)
        assert refusal(log, batch(3, key=b"k")) is None
        assert walks == []
    log = make_log(tmp_path / "filtered")
    log.use_chain(TestChain(keep).chain)
    assert refusal(log, batch(3)) is None
    assert walks == []

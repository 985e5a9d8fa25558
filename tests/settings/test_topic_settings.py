"""Each topic setting is changed by a real client while the broker runs, and acts: as the topic's own, as a default
of this broker, as a default of all brokers.

What is stored is read from the files, not from what a client makes of it. Time is the broker's clock, which these
tests move. One module, though longer than most, because the three places are gone through by one fixture.
"""

from __future__ import annotations

import fcntl
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.wire.compression import Codec
from parity.batches import batch as raw_batch
from parity.batches import record
from support import librdkafka
from support.live_broker import LiveBroker, batches_of
from support.logs import batch
from support.wire_client import WireClient

DAY = 86_400_000
MIB = 1 << 20
CODECS = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


def text(size: int) -> bytes:
    """Something that compresses, the better the more is spent on it."""
    rng = random.Random(7)
    words = [bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(400)]
    return b" ".join(rng.choice(words) for _ in range(size // 5))[:size]


def send(live: LiveBroker, topic: str, *values: bytes, **more: Any) -> list[int | str]:
    """Produce records by librdkafka, with the broker's time."""
    more.setdefault("timestamp", live.clock.ms)
    return librdkafka.send(live.address, topic, values, **more)


def put(
    live: LiveBroker, topic: str, *, size: int = 10, timestamp: int | None = None, partition: int = 0
) -> None:
    """Produce one batch of one record of `size` bytes."""
    at = live.clock.ms if timestamp is None else timestamp
    with WireClient(live.address) as client:
        assert client.produce(topic, batch(size=size, timestamp=at), partition=partition).error_code == 0


def daily_segments(live: LiveBroker, topic: str, change: Any, days: int) -> None:
    """One segment a day, the last of them today's. Nothing goes by itself."""
    change.topic(segment_ms="1000")
    for day in range(days):
        put(live, topic, timestamp=live.clock.ms - (days - 1 - day) * DAY)
    assert len(live.files(topic)) == days


@pytest.mark.setting("cleanup.policy")
def test_cleanup_policy(live: LiveBroker, topic: str, change: Any) -> None:
    change.topic(retention_ms=str(DAY))
    assert send(live, topic, b"no key") == [0]
    change(cleanup_policy="compact")
    assert send(live, topic, b"no key") == ["INVALID_RECORD"]
    assert send(live, topic, b"with a key", key=b"k") == [1]
    live.pass_time(100 * DAY)
    assert librdkafka.watermarks(live.address, topic) == (0, 2)
    change(cleanup_policy="delete")
    live.pass_time(0)
    assert librdkafka.watermarks(live.address, topic) == (2, 2)
    assert send(live, topic, b"no key") == [2]


def test_both_policies(live: LiveBroker, topic: str, change: Any) -> None:
    change.topic(retention_ms=str(DAY))
    change(cleanup_policy="compact,delete")
    assert send(live, topic, b"no key") == ["INVALID_RECORD"]
    assert send(live, topic, b"with a key", key=b"k") == [0]
    live.pass_time(2 * DAY)
    assert librdkafka.watermarks(live.address, topic) == (1, 1)


SENT = {"none": Codec.NONE, "zstd": Codec.ZSTD}
TO_ANOTHER = [(sent, name) for sent in SENT for name in CODECS if CODECS[name] is not SENT[sent]]
TO_THE_SAME = [(sent, name) for sent in SENT for name in CODECS if CODECS[name] is SENT[sent]]


@pytest.mark.one_in(4)
@pytest.mark.setting("compression.type")
@pytest.mark.parametrize(("sent", "name"), TO_ANOTHER)
def test_compression_type(live: LiveBroker, topic: str, change: Any, name: str, sent: str) -> None:
    stored_in(live, topic, change, name, sent)


@pytest.mark.parametrize(("sent", "name"), TO_THE_SAME)
def test_what_comes_as_it_is_stored(live: LiveBroker, topic: str, change: Any, name: str, sent: str) -> None:
    stored_in(live, topic, change, name, sent)


def stored_in(live: LiveBroker, topic: str, change: Any, name: str, sent: str) -> None:
    """Of three batches the second is stored by the setting's codec, the others as they are sent."""
    value = text(20_000)
    send(live, topic, value, compression_type=sent)
    change(compression_type=name)
    assert send(live, topic, value, compression_type=sent) == [1]
    change(compression_type="producer")
    assert send(live, topic, value, compression_type=sent) == [2]
    codecs = [header.codec for header in live.stored(topic)]
    assert codecs == [SENT[sent], CODECS[name], SENT[sent]]
    got = librdkafka.read(live.address, topic, 3, check_crcs=True)
    assert [message.value() for message in got] == [value] * 3


def level_acts(live: LiveBroker, topic: str, change: Any, codec: str, low: int, high: int) -> None:
    """The higher level makes the same records smaller."""
    change.topic(compression_type=codec)
    value = text(200_000)
    for level in (low, high):
        change(**{f"compression_{codec}_level": str(level)})
        send(live, topic, value)
    stored = live.stored(topic)
    assert [header.codec for header in stored] == [CODECS[codec]] * 2
    assert stored[1].size < stored[0].size < len(value)
    assert [message.value() for message in librdkafka.read(live.address, topic, 2)] == [value] * 2


@pytest.mark.setting("compression.gzip.level")
def test_compression_gzip_level(live: LiveBroker, topic: str, change: Any) -> None:
    level_acts(live, topic, change, "gzip", 1, 9)


@pytest.mark.setting("compression.lz4.level")
def test_compression_lz4_level(live: LiveBroker, topic: str, change: Any) -> None:
    level_acts(live, topic, change, "lz4", 1, 12)


@pytest.mark.one_in(2)
@pytest.mark.setting("compression.zstd.level")
def test_compression_zstd_level(live: LiveBroker, topic: str, change: Any) -> None:
    level_acts(live, topic, change, "zstd", -50, 19)


@pytest.mark.setting("file.delete.delay.ms")
def test_file_delete_delay_ms(live: LiveBroker, topic: str, change: Any) -> None:
    daily_segments(live, topic, change, 3)
    change(file_delete_delay_ms="5000")
    change.topic(retention_ms=str(DAY * 3 // 2))
    live.pass_time(0)
    assert librdkafka.watermarks(live.address, topic) == (1, 3)
    names = {path.name for path in live.files(topic, ".deleted")}
    assert {f"{0:020d}.log.deleted", f"{0:020d}.index.deleted", f"{0:020d}.timeindex.deleted"} <= names
    live.pass_time(4999)
    assert {path.name for path in live.files(topic, ".deleted")} == names
    live.pass_time(1)
    assert not live.files(topic, ".deleted")


def test_file_delete_delay_ms_of_a_deleted_topic(live: LiveBroker, topic: str, change: Any) -> None:
    put(live, topic)
    change(file_delete_delay_ms="5000")
    librdkafka.delete(live.address, topic)
    directory = live.broker.logs.directory

    def left() -> list[str]:
        return [path.name for path in directory.iterdir() if path.name.startswith(f"{topic}-")]

    (name,) = left()
    assert name.startswith(f"{topic}-0.")
    assert name.endswith("-delete")
    live.pass_time(4999)
    assert left() == [name]
    live.pass_time(1)
    assert left() == []


@pytest.mark.setting("flush.messages")
def test_flush_messages(live: LiveBroker, topic: str, change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []

    def fdatasync(fd: int, call: Callable[[int], None] = os.fdatasync) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        if path.parent.name == f"{topic}-0" and path.suffix == ".log":
            synced.append(path)
        call(fd)

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    with WireClient(live.address) as client:

        def syncs(records: int) -> int:
            before = len(synced)
            assert client.produce(topic, batch(records, timestamp=live.clock.ms)).error_code == 0
            return len(synced) - before

        assert syncs(3) == 0
        change(flush_messages="4")
        assert [syncs(1) for _ in range(5)] == [1, 0, 0, 0, 1]
        change(flush_messages="1")
        assert [syncs(1), syncs(1)] == [1, 1]
        change(flush_messages=None)
        assert [syncs(1), syncs(1)] == [0, 0]


@pytest.mark.setting("lc.log.sync.always")
def test_sync_always(live: LiveBroker, topic: str, change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []

    def fdatasync(fd: int, call: Callable[[int], None] = os.fdatasync) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        if path.parent.name == f"{topic}-0" and path.suffix == ".log":
            synced.append(path.name)
        call(fd)

    monkeypatch.setattr(os, "fdatasync", fdatasync)

    def opened_with_dsync() -> bool:
        put(live, topic)
        file = live.call(live.log(topic).segments[-1].open_file)
        return bool(fcntl.fcntl(file.fd, fcntl.F_GETFL) & os.O_DSYNC)

    assert not opened_with_dsync()
    assert synced == []
    change(lc_log_sync_always="true")
    assert opened_with_dsync()
    assert synced == [f"{0:020d}.log"]  # what was there before
    assert opened_with_dsync()
    assert len(synced) == 1
    change(lc_log_sync_always=None)
    assert not opened_with_dsync()


@pytest.mark.setting("lc.records.check")
def test_records_check(live: LiveBroker, topic: str, change: Any) -> None:
    now = live.clock.ms
    ahead = {"time": now, "max_time": now, "body": record(0, b"k", b"v", time_delta=3650 * DAY)}
    junk = {"time": now, "body": record(0, b"k", b"v") + b"junk"}

    def codes() -> list[int]:
        with WireClient(live.address) as client:
            return [client.produce(topic, raw_batch(["x"], **parts)).error_code for parts in (ahead, junk)]

    assert codes() == [0, 87]
    change(lc_records_check="full")
    assert codes() == [32, 87]
    change(lc_records_check="off")
    assert codes() == [0, 0]
    change(lc_records_check=None)
    assert codes() == [0, 87]


@pytest.mark.setting("flush.ms")
def test_flush_ms(live: LiveBroker, topic: str, change: Any) -> None:
    def synced_up_to() -> int:
        return live.call(lambda: live.log(topic).recovery_point)

    put(live, topic)
    live.pass_time(0)
    live.pass_time(DAY)
    assert synced_up_to() == 0
    change(flush_ms="1000")
    live.pass_time(0)
    assert synced_up_to() == 1
    put(live, topic)
    live.pass_time(0)
    live.pass_time(999)
    assert synced_up_to() == 1
    live.pass_time(1)
    assert synced_up_to() == 2


@pytest.mark.setting("index.interval.bytes")
def test_index_interval_bytes(live: LiveBroker, topic: str, change: Any) -> None:
    def entries_after(batches: int) -> int:
        with WireClient(live.address) as client:
            for _ in range(batches):
                assert client.produce(topic, batch(timestamp=live.clock.ms)).error_code == 0
        live.call(live.log(topic).segments[-1].flush_indexes)
        return live.files(topic, ".index")[0].stat().st_size // 8

    assert entries_after(10) == 0
    change(index_interval_bytes="0")
    assert entries_after(10) == 10
    change(index_interval_bytes="4096")
    assert entries_after(10) == 10


@pytest.mark.setting("max.message.bytes")
def test_max_message_bytes(live: LiveBroker, topic: str, change: Any) -> None:
    large = {"message_max_bytes": 4 * MIB}
    assert send(live, topic, b"x" * 2 * MIB, **large) == ["MSG_SIZE_TOO_LARGE"]
    change(max_message_bytes=str(3 * MIB))
    assert send(live, topic, b"x" * 2 * MIB, **large) == [0]
    change(max_message_bytes="1000")
    assert send(live, topic, b"x" * 1000) == ["MSG_SIZE_TOO_LARGE"]
    assert send(live, topic, b"x" * 900) == [1]


@pytest.mark.setting("message.timestamp.type")
def test_message_timestamp_type(live: LiveBroker, topic: str, change: Any) -> None:
    from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME

    sent, now = live.clock.ms - 5 * DAY, live.clock.ms
    send(live, topic, b"", timestamp=sent)
    change(message_timestamp_type="LogAppendTime")
    send(live, topic, b"", timestamp=sent)
    change(message_timestamp_type="CreateTime")
    send(live, topic, b"", timestamp=sent)
    got = [message.timestamp() for message in librdkafka.read(live.address, topic, 3)]
    assert got == [
        (TIMESTAMP_CREATE_TIME, sent),
        (TIMESTAMP_LOG_APPEND_TIME, now),
        (TIMESTAMP_CREATE_TIME, sent),
    ]
    assert [header.max_timestamp for header in live.stored(topic)] == [sent, now, sent]


@pytest.mark.setting("message.timestamp.before.max.ms")
def test_message_timestamp_before_max_ms(live: LiveBroker, topic: str, change: Any) -> None:
    now = live.clock.ms
    assert send(live, topic, b"", timestamp=now - 1000 * DAY) == [0]
    change(message_timestamp_before_max_ms="1000")
    assert send(live, topic, b"", timestamp=now - 1001) == ["INVALID_TIMESTAMP"]
    assert send(live, topic, b"", timestamp=now - 1000) == [1]
    change(message_timestamp_before_max_ms=None)
    assert send(live, topic, b"", timestamp=now - 1001) == [2]


@pytest.mark.setting("message.timestamp.after.max.ms")
def test_message_timestamp_after_max_ms(live: LiveBroker, topic: str, change: Any) -> None:
    now = live.clock.ms
    assert send(live, topic, b"", timestamp=now + DAY) == ["INVALID_TIMESTAMP"]
    change(message_timestamp_after_max_ms=str(DAY))
    assert send(live, topic, b"", timestamp=now + DAY) == [0]
    assert send(live, topic, b"", timestamp=now + DAY + 1) == ["INVALID_TIMESTAMP"]
    change(message_timestamp_after_max_ms="0")
    assert send(live, topic, b"", timestamp=now + 1) == ["INVALID_TIMESTAMP"]


@pytest.mark.setting("preallocate")
def test_preallocate(live: LiveBroker, topic: str, change: Any) -> None:
    change.topic(segment_bytes=str(MIB))

    def sizes() -> list[int]:
        return [path.stat().st_size for path in live.files(topic)]

    put(live, topic, size=600_000)
    change(preallocate="true")
    put(live, topic, size=600_000)
    first, second = sizes()
    assert first < second == MIB
    change(preallocate="false")
    put(live, topic, size=600_000)
    assert sizes()[1] == first, "what is not used is given back when the segment is closed"
    assert sizes()[2] == first
    assert [len(batches_of(path)) for path in live.files(topic)] == [1, 1, 1]


@pytest.mark.setting("retention.bytes")
def test_retention_bytes(live: LiveBroker, topic: str, change: Any) -> None:
    daily_segments(live, topic, change, 5)
    size = live.files(topic)[0].stat().st_size
    live.pass_time(0)
    assert librdkafka.watermarks(live.address, topic) == (0, 5)
    change(retention_bytes=str(3 * size))
    live.pass_time(0)
    assert librdkafka.watermarks(live.address, topic) == (2, 5)
    change(retention_bytes=str(3 * size - 1))
    live.pass_time(0)
    assert librdkafka.watermarks(live.address, topic) == (2, 5), "a segment goes when what remains is enough"
    change(retention_bytes="0")
    live.pass_time(0)
    assert librdkafka.watermarks(live.address, topic) == (5, 5)


@pytest.mark.setting("retention.ms")
def test_retention_ms(live: LiveBroker, topic: str, change: Any) -> None:
    daily_segments(live, topic, change, 5)
    live.pass_time(0)
    assert librdkafka.watermarks(live.address, topic) == (0, 5)
    change(retention_ms=str(2 * DAY))
    live.pass_time(0)
    assert librdkafka.watermarks(live.address, topic) == (2, 5)
    assert [message.offset() for message in librdkafka.read(live.address, topic, 3, offset=2)] == [2, 3, 4]
    live.pass_time(1)
    assert librdkafka.watermarks(live.address, topic) == (3, 5)
    change(retention_ms="-1")
    live.pass_time(1000 * DAY)
    assert librdkafka.watermarks(live.address, topic) == (3, 5)
    change(retention_ms=str(DAY))
    live.pass_time(0)
    assert librdkafka.watermarks(live.address, topic) == (5, 5)


@pytest.mark.setting("segment.bytes")
def test_segment_bytes(live: LiveBroker, topic: str, change: Any) -> None:
    for _ in range(4):
        put(live, topic, size=400_000)
    assert len(live.files(topic)) == 1
    change(segment_bytes=str(MIB))
    for _ in range(4):
        put(live, topic, size=400_000)
    assert [len(batches_of(path)) for path in live.files(topic)] == [4, 2, 2]
    change(segment_bytes=None)
    for _ in range(2):
        put(live, topic, size=400_000)
    assert [len(batches_of(path)) for path in live.files(topic)] == [4, 2, 4]


@pytest.mark.setting("segment.ms")
def test_segment_ms(live: LiveBroker, topic: str, change: Any) -> None:
    put(live, topic)
    live.pass_time(2 * DAY)
    put(live, topic)
    assert len(live.files(topic)) == 1
    change(segment_ms=str(DAY))
    put(live, topic)
    assert len(live.files(topic)) == 2
    live.pass_time(DAY)
    put(live, topic)
    assert len(live.files(topic)) == 2
    live.pass_time(1)
    put(live, topic)
    assert len(live.files(topic)) == 3


@pytest.mark.one_in(3)
@pytest.mark.setting("segment.jitter.ms")
def test_segment_jitter_ms(live: LiveBroker, topic: str, change: Any) -> None:
    partitions = 48
    librdkafka.create(live.address, wide := f"{topic}-wide", partitions, segment_ms=str(10 * DAY))
    begin = live.clock.ms

    def rolled(after_ms: int) -> int:
        live.clock.ms = begin + after_ms
        for partition in range(partitions):
            put(live, wide, partition=partition)
        return sum(len(live.files(wide, partition=partition)) > 1 for partition in range(partitions))

    assert rolled(0) == 0
    assert rolled(5 * DAY) == 0
    change.of(wide)
    change(segment_jitter_ms=str(10 * DAY))
    assert 0 < rolled(5 * DAY + 1) < partitions, "some at half the time, each by itself"
    change(segment_jitter_ms="0")
    begin, before = live.clock.ms, rolled(1)
    assert before == rolled(2), "each on time again"


@pytest.mark.setting("segment.index.bytes")
def test_segment_index_bytes(live: LiveBroker, topic: str, change: Any) -> None:
    change.topic(index_interval_bytes="0")
    with WireClient(live.address) as client:

        def produce(batches: int) -> None:
            for at in range(batches):
                stamp = live.clock.ms - 1000 + at
                assert client.produce(topic, batch(timestamp=stamp)).error_code == 0

        produce(20)
        assert len(live.files(topic)) == 1
        change(segment_index_bytes="80")
        produce(20)
    assert len(live.files(topic)) > 2
    assert all(path.stat().st_size <= 80 for path in live.files(topic, ".index")[1:])

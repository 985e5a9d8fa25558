"""Kafka's own DumpLogSegments reads every file of a log, and finds nothing to complain of."""

import subprocess
from pathlib import Path

import pytest

from leafcuttr.log.log import Log
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record, encode_batch
from support import jars
from support.logs import NOW, append, append_marker, make_log

COMPLAINTS = (
    "mismatch",
    "invalid",
    "isvalid: false",
    "out of order",
    "not consecutive",
    "exception",
    "corrupt",
)

pytestmark = pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three segments: every codec, idempotent producers, times that go back, soft flushes in between, reopened once."""
    path = tmp_path_factory.mktemp("t") / "t-0"
    log = make_log(path, segment_bytes=60_000)
    sequence = 0
    for number in range(240):
        count = 1 + number % 5
        stamp = NOW + number - (number % 7) * 10
        records = [
            Record(i, stamp + i, b"key", b"%d" % i * (50 + number), (("h", None),)) for i in range(count)
        ]
        append(log, encode_batch(records, codec=Codec(number % 5)), NOW)
        fields = {"producer_id": 7 + number % 2, "producer_epoch": 0, "base_sequence": sequence}
        append(log, encode_batch(records[:1], **fields), NOW)
        sequence += number % 2
        if number % 20 == 0:
            log.flush_indexes()
    log.seal()
    again = Log(
        log.topic_partition, path, log.config, segments=log.segments, log_end_offset=log.log_end_offset,
        producers=log.producers, resources=log.resources,
    )  # fmt: skip
    for number in range(30):
        append(again, encode_batch([Record(0, NOW + number, None, b"v" * 300)]), NOW)
    again.roll()
    append(again, encode_batch([Record(0, NOW, None, b"v")]), NOW)
    again.close()
    assert len(again.segments) >= 3
    return path


@pytest.fixture(scope="module")
def transactions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Transactions of three producers over several segments, committed and aborted, one left open."""
    path = tmp_path_factory.mktemp("t") / "t-0"
    log = make_log(path, segment_bytes=4000)
    for number in range(90):
        producer = 1 + number % 3
        records = [Record(0, NOW + number, b"key", b"v" * 100)]
        fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": number // 3}
        append(log, encode_batch(records, transactional=True, **fields), NOW + number)
        if number % 4 == 0:
            append_marker(log, producer, 0, commit=number % 8 == 0, coordinator_epoch=5, now_ms=NOW + number)
    assert log.last_stable_offset < log.log_end_offset
    log.seal()
    assert len(list(path.glob("*.txnindex"))) >= 2
    return path


def dump(folder: Path, suffix: str, *options: str) -> str:
    files = ",".join(str(path) for path in sorted(folder.glob(f"*{suffix}")))
    command = jars.java("4.3.1", "org.apache.kafka.tools.DumpLogSegments", "--files", files, *options)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert not [line for line in output.splitlines() if any(word in line.lower() for word in COMPLAINTS)]
    return done.stdout


@pytest.mark.long
def test_log_files(folder: Path) -> None:
    printed = dump(folder, ".log", "--deep-iteration", "--print-data-log")
    assert printed.count("isvalid: true") == 511
    assert printed.count("| offset: ") == sum(1 + n % 5 for n in range(240)) + 240 + 31
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        assert f"compresscodec: {codec}" in printed


@pytest.mark.one_in(5)
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("option", [None, "--index-sanity-check", "--verify-index-only"])
def test_indexes(folder: Path, suffix: str, option: str | None) -> None:
    printed = dump(folder, suffix, *([option] if option else []))
    assert printed.count("Dumping") == len(list(folder.glob(f"*{suffix}")))
    if option is None:
        assert printed.count("offset: ") >= 10
    if option == "--index-sanity-check":
        assert printed.count("passed sanity check") + printed.count("is empty") == len(
            list(folder.glob(f"*{suffix}"))
        )


def test_snapshots(folder: Path) -> None:
    printed = dump(folder, ".snapshot")
    assert "producerId: 7 " in printed
    assert "producerId: 8 " in printed


@pytest.mark.long
def test_transactions(transactions: Path) -> None:
    printed = dump(transactions, ".log", "--deep-iteration")
    assert printed.count("endTxnMarker: COMMIT coordinatorEpoch: 5") == 12
    assert printed.count("endTxnMarker: ABORT coordinatorEpoch: 5") == 11
    assert "producerId: 1 " in dump(transactions, ".snapshot")


@pytest.mark.long
def test_transaction_indexes(transactions: Path) -> None:
    printed = dump(transactions, ".txnindex")
    assert printed.count("version: 0 producerId: ") == 11
    assert printed.count("Dumping") == len(list(transactions.glob("*.txnindex")))

"""The files of a partition, read by software that is not ours: kio, and Kafka's DumpLogSegments.

kio parses what is in a batch; it believes every length and decompresses nothing, so it gets only files that our broker
has written, and what Python's own codecs (not those of the broker) have inflated. DumpLogSegments does all of it by
Kafka's classes. No broker may be writing meanwhile. What is not a whole batch at the end of a log ends the reading: to
complain of it is for `verify`, and what it has cost is seen by the comparison with what was acknowledged.
"""

from __future__ import annotations

import gzip
import re
import struct
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import lz4.frame
import snappy
import zstandard
from crc32c import crc32c
from kio.records.readers import read_batch
from kio.records.schema import RecordBatch

from support import jars

KAFKA: Final = "4.3.1"
_HEADER: Final = 61
_LENGTH: Final = struct.Struct(">i")  # at 8: of what follows it
_LENGTH_AT, _BEHIND_LENGTH = 8, 12
_CRC: Final = struct.Struct(">I")  # at 17: of what follows it
_CRC_AT, _BEHIND_CRC = 17, 21
_ATTRIBUTES: Final = struct.Struct(">h")  # at 21
_CODEC, _TRANSACTIONAL, _CONTROL = 0x07, 0x10, 0x20
_XERIAL: Final = b"\x82SNAPPY\x00"
_COMMAND_LINE: Final = 100_000  # bytes in one argument; Linux takes 128 KiB


class Record(NamedTuple):
    """A record as the reader has given it. `commits` is what a control record says of the producer's transaction, None
    for data. `producer_epoch` and `header_names` are for the checks that need them."""

    offset: int
    key: bytes | None
    value: bytes | None
    producer_id: int
    producer_epoch: int
    transactional: bool
    commits: bool | None
    header_names: tuple[str, ...] = ()


def unsnappy(data: bytes) -> bytes:
    """Raw, or in the frames of snappy-java, as Java clients and brokers write it."""
    if not data.startswith(_XERIAL):
        return bytes(snappy.uncompress(data))
    at, found = 16, []
    while at < len(data):
        (size,) = _LENGTH.unpack_from(data, at)
        at += 4
        found.append(bytes(snappy.uncompress(data[at : at + size])))
        at += size
    return b"".join(found)


def _unzstd(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


_INFLATE: Final[Mapping[int, Callable[[bytes], bytes]]] = {
    1: gzip.decompress,
    2: unsnappy,
    3: lz4.frame.decompress,
    4: _unzstd,
}


def _inflated(batch: bytes) -> bytes:
    """The batch without compression, for kio. Raises ValueError for one whose CRC is wrong."""
    (attributes,) = _ATTRIBUTES.unpack_from(batch, _BEHIND_CRC)
    if not attributes & _CODEC:
        return batch
    if _CRC.unpack_from(batch, _CRC_AT)[0] != crc32c(batch[_BEHIND_CRC:]):
        raise ValueError("Checksum mismatch when reading record batch")
    plain = bytearray(batch[:_HEADER] + _INFLATE[attributes & _CODEC](batch[_HEADER:]))
    _ATTRIBUTES.pack_into(plain, _BEHIND_CRC, attributes & ~_CODEC)
    _LENGTH.pack_into(plain, _LENGTH_AT, len(plain) - _BEHIND_LENGTH)
    _CRC.pack_into(plain, _CRC_AT, crc32c(bytes(plain[_BEHIND_CRC:])))
    return bytes(plain)


def log_files(folder: Path) -> list[Path]:
    """Of a partition, by base offset."""
    return sorted(folder.glob("*.log"))


def batches(folder: Path) -> Iterator[RecordBatch]:
    """Every batch in a partition's folder, in order, by kio. Raises AssertionError that names file and position."""
    for path in log_files(folder):
        data, at = path.read_bytes(), 0
        while at + _HEADER <= len(data):
            (length,) = _LENGTH.unpack_from(data, at + _LENGTH_AT)
            end = at + _BEHIND_LENGTH + length
            if not length or end > len(data):
                break
            try:
                batch, _ = read_batch(_inflated(data[at:end]), 0)
            except Exception as error:
                raise AssertionError(f"{path}: byte {at}: kio cannot read the batch: {error}") from error
            yield batch
            at = end


def by_kio(folder: Path) -> list[Record]:
    """All records of a partition's folder in the order of the log."""
    return [record for batch in batches(folder) for record in _records(batch)]


def _records(batch: RecordBatch) -> Iterator[Record]:
    transactional = bool(batch.attributes & _TRANSACTIONAL)
    control = bool(batch.attributes & _CONTROL)
    for one in batch.records:
        commits = one.key is not None and one.key[3] == 1 if control else None
        names = tuple((header.key or b"").decode() for header in one.headers)
        yield Record(
            one.offset, one.key, one.value, batch.producer_id, batch.producer_epoch, transactional, commits, names
        )  # fmt: skip


# What coordinators keep, by Kafka's definitions of OffsetCommitKey and -Value, TransactionLogKey and -Value

_VERSION: Final = struct.Struct(">h")
_STATES: Final = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
)  # fmt: skip


def _string(data: bytes, at: int) -> tuple[str, int]:
    (size,) = _VERSION.unpack_from(data, at)
    return data[at + 2 : at + 2 + size].decode(), at + 2 + size


def offset_commit(record: Record) -> tuple[str, str, int, int] | None:
    """Group, topic, partition and committed offset; None for anything else that is in that log. A tombstone has the
    offset -1."""
    key = record.key
    if record.commits is not None or key is None or _VERSION.unpack_from(key)[0] > 1:
        return None
    group, at = _string(key, 2)
    topic, at = _string(key, at)
    (partition,) = struct.unpack_from(">i", key, at)
    offset = -1 if record.value is None else struct.unpack_from(">q", record.value, 2)[0]
    return group, topic, partition, offset


def transaction_state(record: Record) -> tuple[str, str] | None:
    """Transactional id and state; None for anything else."""
    key, value = record.key, record.value
    if record.commits is not None or key is None or value is None or _VERSION.unpack_from(key)[0] != 0:
        return None
    # Version, producer id, epoch and timeout come before the state.
    return _string(key, 2)[0], _STATES[value[2 + 8 + 2 + 4]]


# Kafka's tool

_BATCH_LINE: Final = re.compile(
    r"baseOffset: \d+ .* producerId: (-?\d+) producerEpoch: (-?\d+) .*isTransactional: (\w+) .*isvalid: (\w+)"
)
_RECORD_LINE: Final = re.compile(
    r"\| offset: (\d+) .*?keySize: (-?\d+) valueSize: (-?\d+) .*?headerKeys: \[([^\]]*)\]"
)
_CONTROL_LINE: Final = re.compile(r"\| offset: (\d+) .*?endTxnMarker: (\w+) ")


def by_kafka(folders: Sequence[Path]) -> dict[str, list[Record]]:
    """The same by DumpLogSegments, of many partitions at once, by the names of their folders. Keys and values have to
    be text of one line. Of a control record the key and value are not known. Raises AssertionError with its words where
    it complains."""
    found: dict[str, list[Record]] = {folder.name: [] for folder in folders}
    for files in _portions([path for folder in folders for path in log_files(folder)]):
        _take(_dumped(files), found)
    return found


def _portions(paths: Iterable[Path]) -> Iterator[str]:
    portion: list[str] = []
    size = 0
    for path in map(str, paths):
        if portion and size + len(path) > _COMMAND_LINE:
            yield ",".join(portion)
            portion, size = [], 0
        portion.append(path)
        size += len(path) + 1
    if portion:
        yield ",".join(portion)


def _dumped(files: str) -> str:
    tool = "org.apache.kafka.tools.DumpLogSegments"
    command = jars.java(KAFKA, tool, "--deep-iteration", "--print-data-log", "--files", files)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, f"DumpLogSegments: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def _take(printed: str, found: Mapping[str, list[Record]]) -> None:
    path, producer_id, epoch, transactional = Path(), -1, -1, False
    for line in printed.splitlines():
        if line.startswith("Dumping "):
            path = Path(line.removeprefix("Dumping "))
        elif batch := _BATCH_LINE.match(line):
            assert batch[4] == "true", f"{path}: DumpLogSegments: {line}"
            producer_id, epoch, transactional = int(batch[1]), int(batch[2]), batch[3] == "true"
        elif marker := _CONTROL_LINE.match(line):
            commits = marker[2] == "COMMIT"
            found[path.parent.name].append(
                Record(int(marker[1]), None, None, producer_id, epoch, transactional, commits)
            )
        elif record := _RECORD_LINE.match(line):
            key, value = _content(line[record.end() :], int(record[2]), int(record[3]))
            names = tuple(record[4].split(",")) if record[4] else ()
            found[path.parent.name].append(
                Record(int(record[1]), key, value, producer_id, epoch, transactional, None, names)
            )


def _content(rest: str, key_size: int, value_size: int) -> tuple[bytes | None, bytes | None]:
    key = value = None
    if key_size >= 0:
        rest = rest.removeprefix(" key: ")
        key, rest = rest[:key_size].encode(), rest[key_size:]
    if value_size >= 0:
        rest = rest.removeprefix(" payload: ")
        value, rest = rest[:value_size].encode(), rest[value_size:]
    assert not rest, f"DumpLogSegments: more than a key and a value: {rest!r}"
    return key, value

"""The `.snapshot` file: producer state as of the offset in its name, in Kafka's format, version 1.

    version i16 | CRC-32C u32 of what follows | entry count i32 | entries:
    producer id i64, epoch i16, last sequence i32, last offset i64, offset delta i32, timestamp i64,
    coordinator epoch i32, first offset of the current transaction i64

It keeps the last batch of each producer only, so after a recovery from it only that one is known as a duplicate.
"""

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from leafcuttr.log.files.atomic import replace_file
from leafcuttr.log.producers.state import BatchMetadata, ProducerEntry, ProducerStateTable
from leafcuttr.wire.batch import MAX_SEQUENCE
from leafcuttr_sdk.batches.checksum import crc32c

VERSION: Final = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")


class DamagedSnapshotError(ValueError):
    """Not a producer snapshot, or one that does not match its CRC."""


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """The content of a snapshot file."""
    packed = []
    for entry in entries:
        last = entry.batches[-1] if entry.batches else BatchMetadata(-1, -1, -1, 0, -1)
        packed.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.current_txn_first_offset,
            )
        )
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEAD.pack(VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    """The entries of a snapshot file. Raises DamagedSnapshotError."""
    if len(data) < _HEAD.size + _COUNT.size:
        raise DamagedSnapshotError(f"{len(data)} bytes are too few for a producer snapshot")
    version, crc = _HEAD.unpack_from(data)
    if version != VERSION:
        raise DamagedSnapshotError(f"version {version} of the producer snapshot is not known, {VERSION} is")
    body = memoryview(data)[_HEAD.size :]
    if crc32c(body) != crc:
        raise DamagedSnapshotError("the CRC of the producer snapshot does not match")
    (count,) = _COUNT.unpack_from(body)
    if count < 0 or len(body) != _COUNT.size + count * _ENTRY.size:
        raise DamagedSnapshotError(f"{count} entries do not make {len(body)} bytes")
    return [_entry(*fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]


def _entry(
    producer_id: int, epoch: int, last_sequence: int, last_offset: int, delta: int, timestamp: int,
    coordinator_epoch: int, txn_first: int,
) -> ProducerEntry:  # fmt: skip
    batches: tuple[BatchMetadata, ...] = ()
    if 0 <= delta <= last_offset:  # else it is no batch that a log could have
        first = last_sequence if last_sequence < 0 else (last_sequence - delta) & MAX_SEQUENCE
        batches = (BatchMetadata(first, last_sequence, last_offset, delta, timestamp),)
    return ProducerEntry(producer_id, epoch, batches, timestamp, coordinator_epoch, txn_first)


def write_snapshot(path: Path, table: ProducerStateTable, *, sync: bool = False) -> None:
    """Write the published entries, in one step: a crash leaves no half of them. Raises OSError."""
    replace_file(path, encode_snapshot(table), sync=sync, points="producer-snapshot")


def read_snapshot(path: Path) -> ProducerStateTable:
    """The table of a snapshot file. Raises OSError, DamagedSnapshotError."""
    return ProducerStateTable(decode_snapshot(path.read_bytes()))


def is_sound(path: Path) -> bool:
    """Whether a snapshot file can be read. Raises OSError."""
    try:
        decode_snapshot(path.read_bytes())
    except DamagedSnapshotError:
        return False
    return True

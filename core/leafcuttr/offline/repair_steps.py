"""The steps of a repair: what each writes. Which of them a directory needs, and in which order, is decided in
`leafcuttr.offline.repair`.

Bytes that are taken out of a log are kept beside it as `<segment>.log.damaged`.
"""

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from leafcuttr.log.files.atomic import TEMPORARY
from leafcuttr.log.files.failed_sync import is_marked, sync_directory, sync_file
from leafcuttr.log.files.open_file import OpenFile
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.layout.checkpoints import (
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    DamagedCheckpointError,
    read_offsets,
    write_leader_epochs,
    write_offsets,
)
from leafcuttr.log.layout.epochs import epoch_due
from leafcuttr.log.layout.folders import make_folder
from leafcuttr.log.layout.partition_state import STATE_FILE
from leafcuttr.log.layout.suffixes import DAMAGED
from leafcuttr.log.recovery.displaced import put_right
from leafcuttr.log.recovery.replay import producers_at, replay
from leafcuttr.log.segment.rebuild import rebuild_indexes as rebuild_indexes_of
from leafcuttr.log.segment.scan import SCAN_CHUNK, headers
from leafcuttr.log.segment.segment import Segment
from leafcuttr.log.segment.sync import sync_segment
from leafcuttr.offline.placing import Placed
from leafcuttr.offline.sound_ranges import SoundRange, sound_ranges
from leafcuttr.offline.verify import partition_folders, segment_offsets
from leafcuttr.offline.verify_segment import Holder
from leafcuttr.wire.batch import LEADER_EPOCH_AT
from leafcuttr.wire.records import encode_batch
from leafcuttr_sdk import TopicPartition

INDEX_INTERVAL: Final = 4096  # Kafka's default; a topic's own is not needed for an index that works


def settle_checkpoints(directory: Path) -> None:
    """Sync all, then make recovery points and log start offsets fit the logs; remove the state file.

    The recovery point of a partition becomes its log end: the caller has read all of it. Where a sync has failed it
    stays, because what was read may have come from memory; the next start reads on from there, from the disk.
    Raises OSError.
    """
    os.sync()
    ends: dict[TopicPartition, int] = {}
    points: dict[TopicPartition, int] = {}
    before = readable_offsets(directory / RECOVERY_POINTS)
    starts = readable_offsets(directory / LOG_START_OFFSETS)
    for key, folder in partition_folders(directory).items():
        bases = segment_offsets(folder)
        if bases:
            ranges = sound_ranges(folder / f"{bases[-1]:020d}.log", bases[-1], check_crc=False)
            ends[key] = ranges[-1].next_offset if ranges else bases[-1]
            points[key] = min(before.get(key, 0), ends[key]) if is_marked(folder) else ends[key]
    write_offsets(directory / RECOVERY_POINTS, points)
    write_offsets(
        directory / LOG_START_OFFSETS,
        {key: min(start, ends[key]) for key, start in starts.items() if key in ends},
    )
    (directory / STATE_FILE).unlink(missing_ok=True)
    sync_directory(directory)


def readable_offsets(path: Path) -> dict[TopicPartition, int]:
    """What an offset checkpoint says; nothing where it is damaged. Raises OSError."""
    try:
        return read_offsets(path)
    except DamagedCheckpointError:
        return {}


def restore_base_offsets(log: Path, displaced: Iterable[Placed]) -> None:
    """Write the base offsets of sound batches that have others; no CRC covers them. Raises OSError."""
    file = OpenFile(str(log), os.O_RDWR, Holder())
    for position, header, _ in displaced:
        put_right(file, position, header.base_offset)
    sync_file(log)


def stamp_epochs(folder: Path, epochs: list[tuple[int, int]]) -> None:
    """Give every batch the leader epoch that is due; no CRC covers it. The logs are sound. Raises OSError,
    DamagedSegmentError."""
    for base in segment_offsets(folder):
        log = folder / f"{base:020d}.log"
        file = OpenFile(str(log), os.O_RDWR, Holder())
        for position, header in headers(file, 0, os.fstat(file.fd).st_size, chunk=SCAN_CHUNK):
            due = epoch_due(epochs, header.base_offset, header.leader_epoch)
            if due != header.leader_epoch:
                os.pwrite(file.fd, due.to_bytes(4, "big"), position + LEADER_EPOCH_AT)
        sync_file(log)


def write_epochs(folder: Path, epochs: list[tuple[int, int]]) -> None:
    """Write the checkpoint, up to where the log now ends."""
    bases = segment_offsets(folder)
    ranges = sound_ranges(folder / f"{bases[-1]:020d}.log", bases[-1], check_crc=False) if bases else []
    end = ranges[-1].next_offset if ranges else max(bases, default=0)
    write_leader_epochs(folder / LEADER_EPOCHS, [each for each in epochs if each[1] <= end])


def rewrite_log(log: Path, base: int, ranges: list[SoundRange], following: int | None) -> None:
    """Write the sound ranges into a new file, with empty batches over the holes, and put it in place."""
    beside, aside = log.with_name(log.name + TEMPORARY), log.with_name(log.name + DAMAGED)
    with (
        log.open("rb") as old,
        beside.open("wb") as new,
        aside.open("ab") as damaged,
    ):
        position, offset, epoch = 0, base, 0
        for one in ranges:
            _copy(old, damaged, position, one.start)
            if one.first_offset > offset and one.start > position:
                new.write(_filler(offset, one.first_offset, one.leader_epoch))
            _copy(old, new, one.start, one.end)
            position, offset, epoch = one.end, one.next_offset, one.leader_epoch
        size = os.fstat(old.fileno()).st_size
        _copy(old, damaged, position, size)
        if following is not None and following > offset:
            new.write(_filler(offset, following, epoch))
        for file in (new, damaged):
            file.flush()
            os.fsync(file.fileno())
    beside.replace(log)
    if not aside.stat().st_size:
        aside.unlink()
    sync_directory(log.parent)


def _filler(first: int, after: int, leader_epoch: int) -> bytes:
    """An empty batch for the offsets [first, after)."""
    last = after - first - 1
    return bytes(
        encode_batch([], base_offset=first, last_offset_delta=last, partition_leader_epoch=leader_epoch)
    )


def _copy(old: BinaryIO, new: BinaryIO, start: int, end: int) -> None:
    old.seek(start)
    while start < end:
        piece = old.read(min(SCAN_CHUNK, end - start))
        if not piece:
            return
        new.write(piece)
        start += len(piece)


def rebuild_indexes(folder: Path, base: int) -> None:
    """Write the indexes of a sound segment anew, synced; the segments before it are sound. Raises OSError,
    DamagedSegmentError."""
    for suffix in (".index", ".timeindex"):
        (folder / f"{base:020d}{suffix}").write_bytes(b"")
    (folder / f"{base:020d}.txnindex").unlink(missing_ok=True)
    pool = FilePool(4)
    before = [Segment.open(str(folder), each, pool=pool) for each in segment_offsets(folder) if each < base]
    producers = producers_at(folder, before, base)
    segment = Segment(str(folder), base, pool=pool, size=0)
    rebuilt = rebuild_indexes_of(segment, INDEX_INTERVAL, observe=partial(replay, producers))
    segment.seal()
    sync_segment(segment)
    for each in (*before, segment):
        each.close()
    if rebuilt.damage is not None:
        raise rebuilt.damage


def make_segment(folder: Path, base: int) -> None:
    """Make the files of an empty segment. Raises OSError."""
    Segment.create(str(folder), base, pool=FilePool(4)).close()


def make_partition(folder: Path, topic_id: bytes, offset: int) -> None:
    """Make the folder of an empty partition that begins at `offset`. Raises OSError."""
    make_folder(folder, topic_id)
    make_segment(folder, offset)

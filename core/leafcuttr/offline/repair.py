"""`leafcuttr repair`: makes a damaged data directory whole again, as far as that is possible, and says what it does.

A plan first, from a full verification; nothing is written before it is executed. Nothing is thrown away silently:
bytes that come out of a log are kept beside it as `<segment>.log.damaged`. What is lost in the middle of a log is
covered by an empty batch, as compaction leaves them, so that offsets go on without a hole.

Topics come in from the caller, because the metadata belongs to a higher layer. Taking in foreign folders is
`leafcuttr.offline.adopt`. One module, because each step of a plan reckons with what the others leave.
"""

import os
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from leafcuttr.log.files.failed_sync import is_marked, sync_directory, sync_file
from leafcuttr.log.files.open_file import OpenFile
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.layout.checkpoints import (
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    DamagedCheckpointError,
    read_offsets,
    read_topic_id,
    write_leader_epochs,
    write_offsets,
    write_topic_id,
)
from leafcuttr.log.layout.epochs import epoch_due
from leafcuttr.log.layout.folders import make_folder
from leafcuttr.log.layout.partition_state import STATE_FILE
from leafcuttr.log.recovery.displaced import put_right
from leafcuttr.log.recovery.replay import producers_at, replay
from leafcuttr.log.segment.scan import SCAN_CHUNK, DamagedSegmentError, headers
from leafcuttr.log.segment.segment import Segment
from leafcuttr.offline.placing import Placed, Placing, placed
from leafcuttr.offline.verify import (
    KnownTopic,
    Verified,
    partition_folders,
    segment_offsets,
    verify_directory,
)
from leafcuttr.offline.verify_segment import Holder, resume_after
from leafcuttr.wire.batch import LEADER_EPOCH_AT
from leafcuttr.wire.records import encode_batch
from leafcuttr_sdk import TopicPartition

KEPT: Final = ".damaged"
_INDEXES: Final = (".index", ".timeindex", ".txnindex")
INDEX_INTERVAL: Final = 4096  # Kafka's default; a topic's own is not needed for an index that works


class Action(NamedTuple):
    """One step of a repair: the file it is about, what it does, and the doing of it."""

    path: Path
    text: str
    apply: Callable[[], None]

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


class SoundRange(NamedTuple):
    """A run of sound batches: bytes, and the offsets it covers."""

    start: int
    end: int
    first_offset: int
    next_offset: int
    leader_epoch: int


class Plan(NamedTuple):
    """What was found, what can be done about it, and what cannot."""

    verified: Verified
    actions: list[Action]
    beyond: list[str]


def plan_repair(
    directory: Path,
    *,
    topics: Mapping[str, KnownTopic] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Plan:
    """Verify the directory and plan what makes it sound. Writes nothing. Raises OSError."""
    verified = verify_directory(directory, topics=topics, progress=progress)
    faulty = {finding.path for finding in verified.findings}
    problems = {finding.path for finding in verified.problems}
    actions: list[Action] = []
    beyond: list[str] = []
    folders = partition_folders(directory)
    for key, folder in folders.items():
        known = topics.get(key.topic) if topics is not None else None
        placing = Placing(None, known is None or known.compact, verified.sure_below.get(key, 0))
        actions += _repair_partition(folder, known, placing, faulty, problems, beyond)
        actions += _mend_epochs(folder, verified, problems)
    for name, topic in (topics or {}).items():
        for partition in range(topic.partitions):
            if TopicPartition(name, partition) not in folders:
                actions.append(_make_missing(directory, TopicPartition(name, partition), topic.id))
    checkpoints = {directory / name for name in (RECOVERY_POINTS, LOG_START_OFFSETS, STATE_FILE)}
    if actions or problems & checkpoints:
        actions.append(
            Action(
                directory,
                "bring the checkpoints in line with the logs",
                lambda: settle_checkpoints(directory),
            )
        )
    return Plan(verified, actions, beyond)


def settle_checkpoints(directory: Path) -> None:
    """Sync all, then make recovery points and log start offsets fit the logs; the state file goes.

    The recovery point of a partition becomes its log end: the caller has read all of it. Where a sync has failed it
    stays, because what was read may have come from memory; the next start reads on from there, from the disk.
    Raises OSError.
    """
    os.sync()
    ends: dict[TopicPartition, int] = {}
    points: dict[TopicPartition, int] = {}
    before = _offsets(directory / RECOVERY_POINTS)
    starts = _offsets(directory / LOG_START_OFFSETS)
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


def _offsets(path: Path) -> dict[TopicPartition, int]:
    try:
        return read_offsets(path)
    except DamagedCheckpointError:
        return {}


def sound_ranges(
    log: Path,
    base_offset: int,
    *,
    check_crc: bool = True,
    placing: Placing | None = None,
    displaced: list[Placed] | None = None,
) -> list[SoundRange]:
    """The runs of sound batches in a log file, in order, as they are when those that join `displaced` have been given
    their base offsets back. Raises OSError."""
    file = OpenFile(str(log), os.O_RDONLY, Holder())
    end = os.fstat(file.fd).st_size
    ranges: list[SoundRange] = []
    position, expected, after_damage = 0, base_offset, False
    while position < end:
        start, first, reached, epoch = position, expected, position, -1
        try:
            walked = placed(
                file, position, end, expected, placing or Placing(),
                after_damage=after_damage, check_crc=check_crc,
            )  # fmt: skip
            for at, header, claimed in walked:
                if claimed != header.base_offset and displaced is not None:
                    displaced.append(Placed(at, header, claimed))
                first = header.base_offset if at == start else first
                reached, expected, epoch = at + header.size, header.next_offset, header.leader_epoch
            position = end
        except DamagedSegmentError as error:
            position, after_damage = resume_after(file, error.position, end, base_offset), True
        if reached > start:
            ranges.append(SoundRange(start, reached, first, expected, epoch))
    return ranges


def _repair_partition(
    folder: Path,
    known: KnownTopic | None,
    placing: Placing,
    faulty: set[Path],
    problems: set[Path],
    beyond: list[str],
) -> list[Action]:
    actions: list[Action] = []
    bases = segment_offsets(folder)
    for number, base in enumerate(bases):
        log = folder / f"{base:020d}.log"
        following = bases[number + 1] if number + 1 < len(bases) else None
        hole = following is not None and folder / f"{following:020d}.log" in problems
        mended = None
        if log in faulty or hole:
            displaced: list[Placed] = []
            ranges = sound_ranges(
                log, base, placing=placing._replace(following=following), displaced=displaced
            )
            actions += _give_back(log, displaced)
            mended = _mend_log(log, base, following, hole, ranges)
        if mended is not None:
            actions.append(mended)
        if mended is not None or {log.with_suffix(suffix) for suffix in _INDEXES} & faulty:
            actions.append(
                Action(log.with_suffix(".index"), "build the indexes anew", _rebuilder(folder, base))
            )
    if not bases and folder in problems:
        actions.append(Action(folder, "make an empty segment", _segment_maker(folder, 0)))
    for path in sorted(folder.glob("*.snapshot")):
        if path in problems:
            actions.append(Action(path, "remove it; the next start makes a new one", path.unlink))
    actions += _mend_topic_id(folder / PARTITION_METADATA, known, problems, beyond)
    return actions


def _mend_topic_id(
    path: Path, known: KnownTopic | None, problems: set[Path], beyond: list[str]
) -> list[Action]:
    if path not in problems:
        return []
    if known is None:
        beyond.append(
            f"{path}: the metadata does not know the topic either; give the file back from elsewhere"
        )
        return []
    try:
        other = read_topic_id(path)
    except DamagedCheckpointError:
        other = None
    if other is not None:
        beyond.append(f"{path}: the folder belongs to another topic; move it out of the directory")
        return []
    topic_id = known.id
    return [Action(path, "write it anew from the metadata", lambda: write_topic_id(path, topic_id))]


def _give_back(log: Path, displaced: list[Placed]) -> list[Action]:
    """Give sound batches the base offsets back that were damaged. It comes before all that reads the file again."""
    if not displaced:
        return []
    first, more = displaced[0], len(displaced) - 1
    text = f"give the batch at byte {first.position} its base offset {first.header.base_offset} back"
    text += f" (it says {first.claimed})" + (f", and {more} more theirs" if more else "")

    def apply() -> None:
        file = OpenFile(str(log), os.O_RDWR, Holder())
        for position, header, _ in displaced:
            put_right(file, position, header.base_offset)
        sync_file(log)

    return [Action(log, text, apply)]


def _mend_epochs(folder: Path, verified: Verified, problems: set[Path]) -> list[Action]:
    """What puts leader epochs right, of batches and then of the checkpoint."""
    actions: list[Action] = []
    epochs = verified.leader_epochs.get(folder, [])
    if folder in verified.wrong_epochs:
        text = "give batches the leader epoch back that the checkpoint and their neighbours have"
        actions.append(Action(folder, text, lambda: _stamp_epochs(folder, epochs)))
    path = folder / LEADER_EPOCHS
    if path in problems:
        actions.append(Action(path, "write it anew from the batches", lambda: _write_epochs(folder, epochs)))
    return actions


def _stamp_epochs(folder: Path, epochs: list[tuple[int, int]]) -> None:
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


def _write_epochs(folder: Path, epochs: list[tuple[int, int]]) -> None:
    """Write the checkpoint, up to where the log now ends."""
    bases = segment_offsets(folder)
    ranges = sound_ranges(folder / f"{bases[-1]:020d}.log", bases[-1], check_crc=False) if bases else []
    end = ranges[-1].next_offset if ranges else max(bases, default=0)
    write_leader_epochs(folder / LEADER_EPOCHS, [each for each in epochs if each[1] <= end])


def _mend_log(
    log: Path, base: int, following: int | None, hole: bool, ranges: list[SoundRange]
) -> Action | None:
    """What puts the sound batches of the file behind each other; None if the file is sound, gaps apart.

    `hole`: there may be one before the segment `following`, which compaction has not made.
    """
    size = log.stat().st_size
    kept = sum(one.end - one.start for one in ranges)
    next_offset = ranges[-1].next_offset if ranges else base
    if kept == size and not (hole and following is not None and next_offset < following):
        return None
    holes = [(a.next_offset, b.first_offset) for a, b in pairwise(ranges)]
    if ranges and ranges[0].start:
        holes.insert(0, (base, ranges[0].first_offset))
    if following is not None:
        holes.append((next_offset, following))
    lost = sum(after - first for first, after in holes)
    if holes:
        text = f"take {size - kept} damaged bytes out; {lost} offsets in the middle become an empty batch"
    else:
        text = f"cut the last {size - kept} bytes; the log then ends at offset {next_offset}"
    return Action(log, f"{text} (kept in {log.name}{KEPT})", lambda: _rewrite(log, base, ranges, following))


def _rewrite(log: Path, base: int, ranges: list[SoundRange], following: int | None) -> None:
    """Write the sound ranges into a new file, with empty batches over the holes, and put it in place."""
    beside, aside = log.with_name(log.name + ".tmp"), log.with_name(log.name + KEPT)
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
    rebuilt = segment.rebuild_indexes(INDEX_INTERVAL, observe=partial(replay, producers))
    segment.seal()
    segment.sync()
    for each in (*before, segment):
        each.close()
    if rebuilt.damage is not None:
        raise rebuilt.damage


def _rebuilder(folder: Path, base: int) -> Callable[[], None]:
    return lambda: rebuild_indexes(folder, base)


def _segment_maker(folder: Path, base: int) -> Callable[[], None]:
    return lambda: Segment.create(str(folder), base, pool=FilePool(4)).close()


def _make_missing(directory: Path, key: TopicPartition, topic_id: bytes) -> Action:
    """The data are gone; an empty partition that goes on at the last offset that is known of it."""
    folder = directory / f"{key.topic}-{key.partition}"
    offset = _offsets(directory / RECOVERY_POINTS).get(key, 0)

    def make() -> None:
        make_folder(folder, topic_id)
        _segment_maker(folder, offset)()

    return Action(folder, f"make the missing folder again, empty, beginning at offset {offset}", make)

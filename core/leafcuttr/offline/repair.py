"""`leafcuttr repair`: makes a damaged data directory whole again, as far as that is possible, and says what it does.

A plan first, from a full verification; nothing is written before it is executed. Nothing is thrown away silently:
bytes that come out of a log are kept beside it as `<segment>.log.damaged`. What is lost in the middle of a log is
covered by an empty batch, as compaction leaves them, so that offsets go on without a hole.

Topics come in from the caller, because the metadata belongs to a higher layer. Taking in foreign folders is
`leafcuttr.offline.adopt`. The steps themselves are `leafcuttr.offline.repair_steps`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from leafcuttr.log.layout.checkpoints import (
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    DamagedCheckpointError,
    read_topic_id,
    write_topic_id,
)
from leafcuttr.log.layout.partition_state import STATE_FILE
from leafcuttr.log.layout.suffixes import DAMAGED
from leafcuttr.offline.placing import Placed, Placing
from leafcuttr.offline.repair_steps import (
    make_partition,
    make_segment,
    readable_offsets,
    rebuild_indexes,
    restore_base_offsets,
    rewrite_log,
    settle_checkpoints,
    stamp_epochs,
    write_epochs,
)
from leafcuttr.offline.sound_ranges import SoundRange, sound_ranges
from leafcuttr.offline.verify import (
    KnownTopic,
    Verified,
    partition_folders,
    segment_offsets,
    verify_directory,
)
from leafcuttr_sdk import TopicPartition

_INDEXES: Final = (".index", ".timeindex", ".txnindex")


class Action(NamedTuple):
    """One step of a repair: the file it is about, what it does in words, and the function that does it."""

    path: Path
    text: str
    apply: Callable[[], None]

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


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
                partial(settle_checkpoints, directory),
            )
        )
    return Plan(verified, actions, beyond)


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
            actions += _restore_base_offsets(log, displaced)
            mended = _mend_log(log, base, following, hole, ranges)
        if mended is not None:
            actions.append(mended)
        if mended is not None or {log.with_suffix(suffix) for suffix in _INDEXES} & faulty:
            actions.append(
                Action(
                    log.with_suffix(".index"),
                    "build the indexes anew",
                    partial(rebuild_indexes, folder, base),
                )
            )
    if not bases and folder in problems:
        actions.append(Action(folder, "make an empty segment", partial(make_segment, folder, 0)))
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
    return [Action(path, "write it anew from the metadata", partial(write_topic_id, path, known.id))]


def _restore_base_offsets(log: Path, displaced: list[Placed]) -> list[Action]:
    """Give sound batches the base offsets back that were damaged. It comes before all that reads the file again."""
    if not displaced:
        return []
    first, more = displaced[0], len(displaced) - 1
    text = f"give the batch at byte {first.position} its base offset {first.header.base_offset} back"
    text += f" (it says {first.claimed})" + (f", and {more} more theirs" if more else "")
    return [Action(log, text, partial(restore_base_offsets, log, displaced))]


def _mend_epochs(folder: Path, verified: Verified, problems: set[Path]) -> list[Action]:
    """What puts leader epochs right, of batches and then of the checkpoint."""
    actions: list[Action] = []
    epochs = verified.leader_epochs.get(folder, [])
    if folder in verified.wrong_epochs:
        text = "give batches the leader epoch back that the checkpoint and their neighbours have"
        actions.append(Action(folder, text, partial(stamp_epochs, folder, epochs)))
    path = folder / LEADER_EPOCHS
    if path in problems:
        actions.append(Action(path, "write it anew from the batches", partial(write_epochs, folder, epochs)))
    return actions


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
    return Action(
        log, f"{text} (kept in {log.name}{DAMAGED})", partial(rewrite_log, log, base, ranges, following)
    )


def _make_missing(directory: Path, key: TopicPartition, topic_id: bytes) -> Action:
    """The data are gone; an empty partition that goes on at the last offset that is known of it."""
    folder = directory / f"{key.topic}-{key.partition}"
    offset = readable_offsets(directory / RECOVERY_POINTS).get(key, 0)
    return Action(
        folder,
        f"make the missing folder again, empty, beginning at offset {offset}",
        partial(make_partition, folder, topic_id, offset),
    )

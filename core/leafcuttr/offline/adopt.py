"""`leafcuttr repair --adopt`: takes in topic folders that Apache Kafka 4.x, or another LeafCuttr, has written.

Here the folders are found, read whole and brought into the data directory; the caller puts the topics into the metadata
afterwards. So a crash in between leaves folders that the metadata does not know, and running it again continues.

A topic is taken whole or not at all: all its partitions must be there, with one topic id, and every batch sound.
Its settings are not in its folders (Kafka keeps them in its metadata log).
"""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from leafcuttr.log.files.atomic import TEMPORARY
from leafcuttr.log.layout.checkpoints import (
    LOG_START_OFFSETS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    DamagedCheckpointError,
    read_topic_id,
    uuid_text,
    write_offsets,
)
from leafcuttr.log.layout.folders import DELETE
from leafcuttr.log.layout.suffixes import CLEANED, DELETED, SWAP
from leafcuttr.offline.findings import FileFinding, Severity
from leafcuttr.offline.repair_steps import readable_offsets, rebuild_indexes
from leafcuttr.offline.sound_ranges import sound_ranges
from leafcuttr.offline.verify import KnownTopic, partition_folders, segment_offsets
from leafcuttr.offline.verify_segment import SegmentRules, check_segment
from leafcuttr_sdk import TopicPartition

INTERNAL: Final = "__"
_LEFT_BEHIND: Final = (DELETED, TEMPORARY, CLEANED, SWAP, DELETE)


class Adoptable(NamedTuple):
    """A topic that can be taken in."""

    name: str
    id: bytes
    folders: Mapping[int, Path]
    ends: Mapping[int, int]
    """The log end offset of each partition."""
    records: int
    bytes: int
    gaps: bool
    """Offsets are missing, as compaction leaves them: the topic must not become one that is deleted by age."""
    stale_indexes: tuple[tuple[Path, int], ...]
    """(folder, base offset) of segments whose indexes are missing, damaged or not trimmed."""
    ragged: tuple[tuple[Path, int, int], ...]
    """(folder, base offset, position) of logs that end in half a batch, where they are to be cut."""


class Adoption(NamedTuple):
    """What can be taken in, and why the rest cannot."""

    topics: list[Adoptable]
    refused: list[str]


def plan_adoption(source: Path, topics: Mapping[str, KnownTopic], only: Iterable[str] = ()) -> Adoption:
    """Examine the topics in the directory `source` that `topics` (the metadata) does not have.

    `only` names the topics to examine; without it, all but internal ones. Writes nothing. Raises OSError.
    """
    wanted = set(only)
    found: dict[str, dict[int, Path]] = {}
    for (topic, partition), folder in partition_folders(source).items():
        if topic in wanted or (not wanted and not topic.startswith(INTERNAL)):
            found.setdefault(topic, {})[partition] = folder
    refused = [f"{name}: no folder of it in {source}" for name in sorted(wanted - found.keys())]
    adoptable: list[Adoptable] = []
    for name, folders in found.items():
        try:
            topic_id = _one_topic_id(folders)
            known = topics.get(name)
            if known is not None and known.id == topic_id:
                continue
            if known is not None:
                raise _Refused(
                    f"the broker has another topic of that name (id {uuid_text(known.id)}, the folder says "
                    f"{uuid_text(topic_id)}); delete that topic, or rename the folders and remove partition.metadata"
                )
            taken = next((other for other, one in topics.items() if one.id == topic_id), None)
            if taken is not None:
                raise _Refused(f"its id {uuid_text(topic_id)} belongs to the topic {taken}")
            if sorted(folders) != list(range(len(folders))):
                raise _Refused(f"partitions {sorted(folders)} are there, 0 to {max(folders)} are needed")
            adoptable.append(_read(name, topic_id, folders))
        except (_Refused, DamagedCheckpointError) as error:
            refused.append(f"{name}: {error}")
    return Adoption(adoptable, refused)


class _Refused(Exception):
    """Why a topic cannot be taken in."""


def _one_topic_id(folders: Mapping[int, Path]) -> bytes:
    ids = {partition: read_topic_id(folder / PARTITION_METADATA) for partition, folder in folders.items()}
    if None in ids.values():
        partition = next(number for number, one in ids.items() if one is None)
        raise _Refused(f"{folders[partition] / PARTITION_METADATA} is missing, so its topic id is not known")
    different = {one for one in ids.values() if one is not None}
    if len(different) > 1:
        texts = ", ".join(sorted(uuid_text(one) for one in different))
        raise _Refused(f"its partitions have different topic ids: {texts}")
    return different.pop()


def _read(name: str, topic_id: bytes, folders: Mapping[int, Path]) -> Adoptable:
    """Read every segment. Raises _Refused at the first damage that is not the ragged end of a killed broker."""
    records = size = 0
    ends: dict[int, int] = {}
    gaps = False
    stale: list[tuple[Path, int]] = []
    ragged: list[tuple[Path, int, int]] = []
    for partition, folder in folders.items():
        bases = segment_offsets(folder)
        if not bases:
            raise _Refused(f"{folder} has no segment")
        expected = -1
        for base in bases:
            log = folder / f"{base:020d}.log"
            findings: list[FileFinding] = []
            rules = SegmentRules(expected, Severity.NOTE, 0 if base == bases[-1] else None, False)
            checked = check_segment(log, base, rules, findings.append, lambda read: None)
            gaps = gaps or 0 <= expected < base
            expected = checked.next_offset
            records += checked.records
            size += checked.end_position
            for finding in findings:
                if finding.path != log:
                    stale.append((folder, base))
                elif finding.severity is Severity.PROBLEM:
                    raise _Refused(f"{log} at byte {finding.position}: {finding.text}")
                elif checked.end_position < log.stat().st_size:
                    _check_tail(log, base, checked.end_position)
                    ragged.append((folder, base, checked.end_position))
                    stale.append((folder, base))
                else:
                    gaps = True
        ends[partition] = expected
    unique = tuple(dict.fromkeys(stale))
    return Adoptable(name, topic_id, folders, ends, records, size, gaps, unique, tuple(dict.fromkeys(ragged)))


def _check_tail(log: Path, base: int, end: int) -> None:
    """What is cut must be a last batch that was not finished: nothing sound may follow it."""
    ranges = sound_ranges(log, base)
    if ranges and ranges[-1].end > end:
        raise _Refused(f"{log} at byte {end}: a damaged batch, and sound ones behind it")


def take_in(
    adoption: Adoption, source: Path, target: Path, report: Callable[[str], None] = lambda text: None
) -> None:
    """Copy the folders into `target` (or leave them, if that is `source`), mend their indexes and ends, and write
    checkpoints by which the next start knows that all of it is sound and synced. Raises OSError."""
    starts, points = readable_offsets(target / LOG_START_OFFSETS), readable_offsets(target / RECOVERY_POINTS)
    foreign = readable_offsets(source / LOG_START_OFFSETS)
    for topic in adoption.topics:
        moved: dict[Path, Path] = {}
        for partition, folder in topic.folders.items():
            moved[folder] = folder if source == target else _copy(folder, target / folder.name)
            key = TopicPartition(topic.name, partition)
            points[key] = topic.ends[partition]
            if key in foreign:
                starts[key] = min(foreign[key], topic.ends[partition])
        for folder, base, end in topic.ragged:
            with (moved[folder] / f"{base:020d}.log").open("r+b") as file:
                file.truncate(end)
        for folder, base in topic.stale_indexes:
            rebuild_indexes(moved[folder], base)
        report(topic.name)
    os.sync()
    write_offsets(target / LOG_START_OFFSETS, starts)
    write_offsets(target / RECOVERY_POINTS, points)


def _copy(folder: Path, target: Path) -> Path:
    """Under a name that is no partition's until the copy is whole; one that was left half-way is done again."""
    beside = target.with_name(f"{target.name}.adopting")
    if beside.exists():
        shutil.rmtree(beside)
    ignored = shutil.ignore_patterns(*(f"*{suffix}" for suffix in _LEFT_BEHIND))
    shutil.copytree(folder, beside, ignore=ignored)
    beside.rename(target)
    return target

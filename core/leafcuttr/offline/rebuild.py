"""`leafcuttr repair --metadata`: what the partition folders say about the topics, when the metadata file is lost.

Here the folders are read and nothing is written but, where the caller wants it, the topic ids that some of them lack;
the caller makes the new file. Names, numbers of partitions and ids are in the folders. Settings are not, so that what a
default could harm is set: nothing is deleted by age or size until its owner says so, and a topic with gaps
between its offsets has been compacted.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from leafcuttr.log.files.open_file import OpenFile
from leafcuttr.log.layout.checkpoints import (
    PARTITION_METADATA,
    DamagedCheckpointError,
    read_topic_id,
    uuid_text,
    write_topic_id,
)
from leafcuttr.log.producers.snapshot import DamagedSnapshotError, read_snapshot
from leafcuttr.log.segment.scan import SCAN_CHUNK, DamagedSegmentError, headers
from leafcuttr.offline.verify import partition_folders, segment_offsets
from leafcuttr.offline.verify_segment import Holder

KEEP_ALL: Final[Mapping[str, str]] = {"retention.ms": "-1", "retention.bytes": "-1"}
COMPACTED: Final[Mapping[str, str]] = {"cleanup.policy": "compact"}

# Ids that were handed out and not used in any batch that is still there must not be handed out again.
_PRODUCER_ID_MARGIN: Final = 100_000


class FoundTopic(NamedTuple):
    """A topic as its folders describe it. `unmarked` are the folders without a topic id."""

    name: str
    id: bytes
    partitions: int
    missing: tuple[int, ...]
    compacted: bool
    unmarked: tuple[Path, ...]

    def __str__(self) -> str:
        text = f"{self.name}: {self.partitions} partitions, id {uuid_text(self.id)}"
        if self.missing:
            text += f"; without a folder, and made anew: {', '.join(map(str, self.missing))}"
        if self.unmarked:
            text += f"; the id is written into {len(self.unmarked)} folders that lack it"
        return text + ("; it has been compacted" if self.compacted else "")


class RebuiltMetadata(NamedTuple):
    """The topics that were found, the first producer id that is safe to hand out, and why other topics are refused."""

    topics: list[FoundTopic]
    next_producer_id: int
    refused: list[str]


def read_topics(
    directory: Path,
    *,
    new_topic_id: Callable[[], bytes],
    progress: Callable[[int, int], None] | None = None,
) -> RebuiltMetadata:
    """Read every partition folder of a directory, with the headers of all batches. Raises OSError."""
    by_topic: dict[str, dict[int, Path]] = {}
    for (topic, partition), folder in partition_folders(directory).items():
        by_topic.setdefault(topic, {})[partition] = folder
    logs = [
        log for folders in by_topic.values() for folder in folders.values() for log in folder.glob("*.log")
    ]
    total, done, highest = sum(log.stat().st_size for log in logs), 0, -1
    topics: list[FoundTopic] = []
    refused: list[str] = []
    for name, folders in by_topic.items():
        ids = {partition: _topic_id(folder) for partition, folder in folders.items()}
        known = Counter(one for one in ids.values() if one is not None)
        gaps = False
        for folder in folders.values():
            size, producer_id, has_gaps = _read(folder)
            done, highest, gaps = done + size, max(highest, producer_id), gaps or has_gaps
            if progress is not None:
                progress(done, total)
        if len(known) > 1:
            texts = ", ".join(sorted(uuid_text(one) for one in known))
            refused.append(f"{name}: its folders have different topic ids: {texts}")
            continue
        topics.append(
            FoundTopic(
                name,
                next(iter(known)) if known else new_topic_id(),
                max(folders) + 1,
                tuple(number for number in range(max(folders)) if number not in folders),
                gaps,
                tuple(folder for partition, folder in folders.items() if ids[partition] is None),
            )
        )
    return RebuiltMetadata(topics, highest + 1 + _PRODUCER_ID_MARGIN if highest >= 0 else 0, refused)


def mark_folders(topic: FoundTopic) -> None:
    """Write the topic's id where it is missing, durably. Raises OSError."""
    for folder in topic.unmarked:
        write_topic_id(folder / PARTITION_METADATA, topic.id)


def _given(producer_id: int) -> int:
    """Brokers give ids from 0 up: one in the upper half of a long is a client's invention, behind which there would be
    none left. -1 for such a one."""
    return producer_id if producer_id < 1 << 62 else -1


def _topic_id(folder: Path) -> bytes | None:
    try:
        return read_topic_id(folder / PARTITION_METADATA)
    except DamagedCheckpointError:
        return None


def _read(folder: Path) -> tuple[int, int, bool]:
    """Bytes, the highest producer id (-1 without), and whether there are gaps between the batches."""
    size, highest, gaps, expected = 0, -1, False, -1
    for base in segment_offsets(folder):
        file = OpenFile(str(folder / f"{base:020d}.log"), os.O_RDONLY, Holder())
        end = os.fstat(file.fd).st_size
        size += end
        try:
            for _, header in headers(file, 0, end, chunk=SCAN_CHUNK):
                gaps = gaps or 0 <= expected < header.base_offset
                expected = header.next_offset
                highest = max(highest, _given(header.producer_id))
        except DamagedSegmentError:
            expected = -1  # left to the start, or to `repair`; what follows is not a gap
    for path in folder.glob("*.snapshot"):
        try:
            highest = max([highest, *(_given(entry.producer_id) for entry in read_snapshot(path))])
        except DamagedSnapshotError:
            continue
    return size, highest, gaps

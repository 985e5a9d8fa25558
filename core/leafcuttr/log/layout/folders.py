"""The folders of partitions: their names, how one is made and removed.

    <topic>-<partition>                      a partition
    <topic>-<partition>.<32 hex>-delete      deleted, or not yet made: its files go in the background, or at start
    <topic>-<partition>.<32 hex>-stray       set aside: another topic's data, in the way of a new one

A folder that the metadata does not name is never taken for a partition: it stays as it is until a topic of
that name is created. Then it is removed if it holds no records (a creation that a crash has cut short), and is set
aside if it does.
"""

import os
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from leafcuttr.config.topic import TopicConfig
from leafcuttr.log.layout.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    write_leader_epochs,
    write_topic_id,
)
from leafcuttr_sdk import TopicPartition

DELETE: Final = "-delete"
STRAY: Final = "-stray"
_PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>0|[1-9][0-9]{0,9})")
_SEGMENT = re.compile(r"([0-9]{20})\.log")
_NAME_MAX: Final = 255
_HEAD: Final = 4096  # bytes, of which a batch would fill some


class LogSpec(NamedTuple):
    """A partition as the metadata knows it. `topic_id` is 16 bytes."""

    topic: str
    partition: int
    topic_id: bytes
    config: TopicConfig

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


def partition_of(name: str) -> TopicPartition | None:
    """The partition whose folder has this name."""
    found = _PARTITION.fullmatch(name)
    return TopicPartition(found["topic"], int(found["partition"])) if found else None


def renamed(topic_partition: TopicPartition, suffix: str) -> str:
    """A new name for a folder that is deleted or set aside. A long topic name is cut: names have at most 255 bytes."""
    tail = f"-{topic_partition.partition}.{uuid.uuid4().hex}{suffix}"
    return topic_partition.topic[: _NAME_MAX - len(tail)] + tail


def segments_in(folder: Path) -> list[int]:
    """The base offsets of the segments in a folder, in order. Raises OSError."""
    found = (_SEGMENT.fullmatch(name) for name in os.listdir(folder))  # noqa: PTH208
    return sorted(int(match[1]) for match in found if match)


def holds_records(folder: Path) -> bool:
    """Whether any segment in the folder has a byte; zeros at its beginning, as a preallocation or the loss of power
    leaves them, are none. Raises OSError."""
    return any(_begins(folder / f"{base:020d}.log") for base in segments_in(folder))


def _begins(path: Path) -> bool:
    with path.open("rb") as file:
        return bool(file.read(_HEAD).strip(b"\0"))


def make_folder(folder: Path, topic_id: bytes) -> None:
    """Make the folder of a new partition with what Kafka keeps there beside the log.

    Nothing is synced: a folder that the loss of power takes away is made again at start, as long as nothing
    was in it. Raises OSError.
    """
    folder.mkdir()
    write_folder_files(folder, topic_id)


def write_folder_files(folder: Path, topic_id: bytes) -> None:
    """What Kafka keeps beside the log of a new partition. Nothing is synced. Raises OSError; then it can be called
    again."""
    write_topic_id(folder / PARTITION_METADATA, topic_id, sync=False)
    write_leader_epochs(folder / LEADER_EPOCHS, [(0, 0)], sync=False)


def remove_in_steps(folder: Path) -> Iterator[None]:
    """Remove a folder and all in it, one file between two steps. Raises OSError."""
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except FileNotFoundError:
        return
    for name in names:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        yield
    folder.rmdir()

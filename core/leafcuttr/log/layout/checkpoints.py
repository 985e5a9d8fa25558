"""Kafka's small text files: offset checkpoints, `leader-epoch-checkpoint`, `partition.metadata`.

Only their formats live here, each as a pair of functions, and the text form of a topic id. A file that does
not parse raises `DamagedCheckpointError`, whose text names the file, the line and the fault; what that means
for a partition is decided by recovery. A missing file is an empty checkpoint, because Kafka creates them
late.

Formats: `storage/.../checkpoint/` and `PartitionMetadataFile` of Apache Kafka 4.3. All carry version 0.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from leafcuttr.log.files.atomic import replace_file
from leafcuttr.wire.primitives import LONG_MAX
from leafcuttr_sdk import TopicPartition

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"

_COUNT: Final = re.compile(r"[0-9]{1,10}")
_LAST_EPOCH: Final = 2**31 - 1
_SHOWN: Final = 200  # characters of what was found


class DamagedCheckpointError(ValueError):
    """A checkpoint that cannot be read as what it should be."""

    def __init__(self, path: Path, fault: str) -> None:
        super().__init__(f"{path}: {fault[:_SHOWN]}")


def uuid_text(uuid: bytes) -> str:
    """The 22 characters by which Kafka prints 16 bytes: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode("ascii")


def uuid_bytes(text: str) -> bytes:
    """The 16 bytes behind Kafka's text form. Raises ValueError."""
    try:
        uuid = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(f"{text!r} is not a Kafka UUID") from error
    if len(uuid) != 16:
        raise ValueError(f"{text!r} is not a Kafka UUID")
    return uuid


def _read_rows(path: Path, fields: int) -> list[list[str]]:
    """The rows under the two head lines (version, count), each of `fields` words."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as error:
        raise DamagedCheckpointError(path, "is not text") from error
    lines = text.splitlines()
    if not lines:
        return []
    if lines[0].strip() != "0":
        raise DamagedCheckpointError(path, f"line 1 says version {lines[0][:40]!r}, 0 is known")
    if len(lines) < 2 or not _COUNT.fullmatch(lines[1].strip()):
        raise DamagedCheckpointError(path, "line 2 is not a count of entries")
    rows = [line.split() for line in lines[2:] if line.strip()]
    if len(rows) != int(lines[1]):
        raise DamagedCheckpointError(path, f"holds {len(rows)} entries, line 2 promises {int(lines[1])}")
    for number, row in enumerate(rows, start=3):
        if len(row) != fields:
            raise DamagedCheckpointError(path, f"line {number} has {len(row)} fields instead of {fields}")
    return rows


def _is_lost(text: str) -> bool:
    """Whether a file has its name but not what was written to it, as the loss of power may leave one that was not
    synced: empty, or zeros."""
    return not text.strip("\0")


def _rows(rows: Iterable[str]) -> bytes:
    lines = list(rows)
    return "".join(["0\n", f"{len(lines)}\n", *(f"{line}\n" for line in lines)]).encode()


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """An offset checkpoint: one offset per partition. Raises DamagedCheckpointError, OSError."""
    offsets: dict[TopicPartition, int] = {}
    for topic, partition, offset in _read_rows(path, 3):
        try:
            key = TopicPartition(topic, int(partition))
            offsets[key] = int(offset)
        except ValueError as error:
            raise DamagedCheckpointError(
                path, f"{topic} {partition} {offset} is not a topic with two numbers"
            ) from error
        if key.partition < 0 or offsets[key] < 0:
            raise DamagedCheckpointError(path, f"{topic} {partition} {offset} has a negative number")
        if offsets[key] > LONG_MAX:
            raise DamagedCheckpointError(path, f"{topic} {partition} {offset}: no offset is above {LONG_MAX}")
    return offsets


def write_offsets(path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Put an offset checkpoint in place, durably. Raises OSError."""
    rows = (f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())
    replace_file(path, _rows(rows), points="checkpoint")


def read_leader_epochs(path: Path) -> list[tuple[int, int]]:
    """The pairs (leader epoch, its first offset), both rising. Raises DamagedCheckpointError, OSError."""
    epochs: list[tuple[int, int]] = []
    for epoch, start in _read_rows(path, 2):
        try:
            entry = (int(epoch), int(start))
        except ValueError as error:
            raise DamagedCheckpointError(path, f"{epoch} {start} is not a pair of numbers") from error
        if (
            entry[0] < 0
            or entry[1] < 0
            or (epochs and (entry[0] <= epochs[-1][0] or entry[1] < epochs[-1][1]))
        ):
            raise DamagedCheckpointError(path, f"{epoch} {start} goes back")
        if entry[0] > _LAST_EPOCH:
            raise DamagedCheckpointError(path, f"{epoch} {start}: no epoch is above {_LAST_EPOCH}")
        if entry[1] > LONG_MAX:
            raise DamagedCheckpointError(path, f"{epoch} {start}: no offset is above {LONG_MAX}")
        epochs.append(entry)
    return epochs


def write_leader_epochs(path: Path, epochs: Iterable[tuple[int, int]], *, sync: bool = True) -> None:
    """Put a `leader-epoch-checkpoint` in place. Raises OSError."""
    replace_file(
        path, _rows(f"{epoch} {start}" for epoch, start in epochs), sync=sync, points="leader-epochs"
    )


def read_topic_id(path: Path) -> bytes | None:
    """The topic id (16 bytes) in a `partition.metadata`, None without that file, or without anything in it.

    Raises DamagedCheckpointError, OSError.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise DamagedCheckpointError(path, "is not text") from error
    if _is_lost(text):
        return None
    lines = text.splitlines()
    pairs = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if pairs.get("version") != "0":
        raise DamagedCheckpointError(path, f"says version {pairs.get('version', 'nothing')!r}, 0 is known")
    try:
        return uuid_bytes(pairs.get("topic_id", ""))
    except ValueError as error:
        raise DamagedCheckpointError(path, f"topic_id: {error}") from error


def write_topic_id(path: Path, topic_id: bytes, *, sync: bool = True) -> None:
    """Write a `partition.metadata`. Raises OSError."""
    content = f"version: 0\ntopic_id: {uuid_text(topic_id)}\n".encode()
    replace_file(path, content, sync=sync, points="partition-metadata")

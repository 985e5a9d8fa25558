"""Where every partition stood: the one file that spares a start the reading of every folder.

`leafcuttr.partitions` is the soft checkpoint while the broker runs (about once a second, not synced) and the
record of a clean stop after it (synced). It is text: a head line, a line per partition, a last line with the
count and CRC32C of what is before it. The head carries the boot id of the machine, because what a running
broker has written without syncing is only there as long as the machine has not been restarted.

A file that is damaged, or of another version, counts as none: recovery then starts from the synced recovery
points. Which parts of it hold is decided by recovery; here is only the format.
"""

import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from leafcuttr.log.files.atomic import replace_file
from leafcuttr.log.layout.checkpoints import uuid_bytes, uuid_text
from leafcuttr_sdk import TopicPartition
from leafcuttr_sdk.batches.checksum import crc32c

STATE_FILE: Final = "leafcuttr.partitions"
VERSION: Final = 1
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")

_log = logging.getLogger(__name__)
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class SegmentState(NamedTuple):
    """One segment: base offset, bytes of its .log file, largest timestamp in it (-1: none)."""

    base_offset: int
    size: int
    max_timestamp: int


class PartitionState(NamedTuple):
    """One partition at one moment.

    `segments` are in order, the last is the active one; the log ends at `log_end_offset` behind the last byte
    of it. What is before `recovery_point` was synced. `producers` is the producer state in the form of
    `ProducerStateTable.dump`, with all batches a duplicate may be of (a .snapshot keeps only the last).
    """

    topic_id: bytes
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    leader_epoch: int
    segments: tuple[SegmentState, ...]
    producers: list[Any]


class StateFile(NamedTuple):
    """What was read: the boot it was written in, whether the broker stopped cleanly, and the partitions."""

    boot_id: str
    clean: bool
    partitions: dict[TopicPartition, PartitionState]


def boot_id() -> str:
    """The id the kernel gave this boot of the machine; empty where the kernel has none."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return ""


def encode_entry(topic_partition: TopicPartition, state: PartitionState) -> bytes:
    """The line of one partition."""
    topic, partition = topic_partition
    fields = (
        topic,
        partition,
        uuid_text(state.topic_id),
        state.log_start_offset,
        state.log_end_offset,
        state.recovery_point,
        state.leader_epoch,
        state.segments,
        state.producers,
    )
    return f"{_encode(fields)}\n".encode()


def _decode_entry(line: bytes) -> tuple[TopicPartition, PartitionState]:
    topic, partition, topic_id, start, end, point, epoch, segments, producers = json.loads(line)
    return TopicPartition(topic, partition), PartitionState(
        topic_id=uuid_bytes(topic_id),
        log_start_offset=start,
        log_end_offset=end,
        recovery_point=point,
        leader_epoch=epoch,
        segments=tuple(SegmentState(*segment) for segment in segments),
        producers=producers,
    )


def write_state(directory: Path, entries: Iterable[bytes], *, clean: bool, sync: bool) -> None:
    """Put the state file in place. Callable in a worker thread. Raises OSError."""
    head = f"{_encode({'version': VERSION, 'boot_id': boot_id(), 'clean': clean})}\n".encode()
    lines = [head, *entries]
    body = b"".join(lines)
    tail = f"{_encode({'partitions': len(lines) - 1, 'crc32c': crc32c(body)})}\n".encode()
    points = "checkpoint" if sync else "soft-checkpoint"
    replace_file(directory / STATE_FILE, [body, tail], sync=sync, points=points)


def read_state(directory: Path) -> StateFile | None:
    """The state file of `directory`, or None if there is none that can be used. Raises OSError."""
    path = directory / STATE_FILE
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return _parse(content)
    except (ValueError, TypeError, KeyError) as error:
        _log.warning("%s is not used, recovery starts from the recovery points: %s", path, error)
        return None


def _parse(content: bytes) -> StateFile:
    at = content.rfind(b"\n", 0, -1) + 1
    tail = json.loads(content[at:])
    if tail["crc32c"] != crc32c(memoryview(content)[:at]):
        raise ValueError("its CRC does not match")
    lines = content[:at].splitlines()
    head = json.loads(lines[0])
    if head["version"] != VERSION:
        raise ValueError(f"it has version {head['version']}, {VERSION} is known")
    return StateFile(head["boot_id"], head["clean"], dict(map(_decode_entry, lines[1:])))

"""Checks of what a start has taken as recorded: sizes, indexes, and the chain of headers behind the last index entry.

A start after a clean stop reads no folder, so that ten thousand partitions are up at once. The checks follow in the
background, in worker threads, a few logs at a time; a partition that fails it goes offline with one line, and the
others serve on. They read a few kilobytes a segment and no record: CRCs are compared by `leafcuttr verify`.
"""

import logging
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import trio

from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.layout.checkpoints import (
    PARTITION_METADATA,
    DamagedCheckpointError,
    read_topic_id,
    uuid_text,
    write_topic_id,
)
from leafcuttr.log.log import Log
from leafcuttr.log.recovery.epoch_checkpoint import EpochCheckpoint
from leafcuttr.log.segment.index import OffsetIndex, TimeIndex
from leafcuttr.log.segment.scan import DamagedSegmentError
from leafcuttr.log.segment.segment import Segment, segment_name
from leafcuttr.log.segment.txn_index import TransactionIndex
from leafcuttr.runtime.descriptors import NO_DESCRIPTORS
from leafcuttr_sdk import TopicPartition

_log = logging.getLogger(__name__)

_LOGS_A_STEP: Final = 64
_ROUND_S: Final = 0.2
_CHAIN: Final = 1024 * 1024  # how far headers are followed where the index is that sparse


class _NoDescriptorError(Exception):
    """The process may open no file now. That says nothing about the partition."""


class _Recorded(NamedTuple):
    """A segment as it was when the check began. The active one may have grown since."""

    segment: Segment
    base_offset: int
    size: int
    active: bool


class Inspection:
    """The logs that have not been checked yet."""

    def __init__(self) -> None:
        self._waiting: deque[TopicPartition] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, names: Iterable[TopicPartition]) -> None:
        """Check these logs, in this order."""
        self._waiting.extend(names)

    async def go_on(
        self,
        logs: Mapping[TopicPartition, Log],
        ids: Mapping[TopicPartition, bytes],
        *,
        seconds: float = _ROUND_S,
    ) -> None:
        """Check logs for about `seconds`; take damaged ones offline. Where the process has no descriptor left, the
        rest is checked the next time."""
        until = time.monotonic() + seconds
        while self._waiting and time.monotonic() < until:
            for _ in range(min(_LOGS_A_STEP, len(self._waiting))):
                name = self._waiting.popleft()
                log = logs.get(name)
                if log is not None and log.offline is None:
                    try:
                        await self._inspect(name, log, ids[name])
                    except _NoDescriptorError:
                        self._waiting.append(name)
                        return

    async def _inspect(self, name: TopicPartition, log: Log, topic_id: bytes) -> None:
        last = log.segments[-1]
        recorded = [_Recorded(s, s.base_offset, s.size, s is last) for s in log.segments]
        end, epoch = log.log_end_offset, log.leader_epoch
        fault = await trio.to_thread.run_sync(_inspect, log.directory, recorded, topic_id, end, epoch)
        if fault is None or _has_moved_on(log, fault[0]):
            return
        log.take_offline(fault[1])


def _has_moved_on(log: Log, segment: Segment | None) -> bool:
    """Whether the log or the segment was deleted during the check: then nothing is wrong."""
    return log.offline is not None or (segment is not None and segment not in log.segments)


def _inspect(
    folder: Path, recorded: Sequence[_Recorded], topic_id: bytes, end: int, leader_epoch: int
) -> tuple[Segment | None, str] | None:
    """`_fault_of`; in a sound partition also correct the leader epochs, and write the topic id where the loss of power
    has taken it: damage to these two files does not take the partition offline."""
    fault = _fault_of(folder, recorded, topic_id)
    if fault is None:
        pool = FilePool(8)
        segments = [Segment(str(folder), each.base_offset, pool=pool, size=each.size) for each in recorded]
        try:
            EpochCheckpoint(folder).settle(segments, end, current=leader_epoch)
            if read_topic_id(folder / PARTITION_METADATA) is None:
                write_topic_id(folder / PARTITION_METADATA, topic_id)
        except FileNotFoundError:
            pass  # the topic or a segment has gone meanwhile
        except (OSError, DamagedSegmentError) as error:
            _log.warning("the small files in %s cannot be put right: %s", folder, error)
        finally:
            for segment in segments:
                segment.close()
    return fault


def _fault_of(
    folder: Path, recorded: Iterable[_Recorded], topic_id: bytes
) -> tuple[Segment | None, str] | None:
    """The first fault: its segment, if it is one's, and the line that names it."""
    try:
        found = read_topic_id(folder / PARTITION_METADATA)
    except (DamagedCheckpointError, OSError) as error:
        _raise_if_full(error)
        return None, str(error)
    if found is not None and found != topic_id:
        return (
            None,
            f"{folder} holds data of another topic (id {uuid_text(found)}, not {uuid_text(topic_id)})",
        )
    for each in recorded:
        try:
            fault = _fault_in(folder, each)
        except (OSError, DamagedSegmentError) as error:
            _raise_if_full(error)
            fault = str(error)
        if fault is not None:
            return each.segment, fault
    return None


def _raise_if_full(error: Exception) -> None:
    if isinstance(error, OSError) and error.errno in NO_DESCRIPTORS:
        raise _NoDescriptorError from error


def _fault_in(folder: Path, recorded: _Recorded) -> str | None:
    stem, size = folder / segment_name(recorded.base_offset), recorded.size
    path = stem.with_suffix(".log")
    there = path.stat().st_size
    if there < size or (there > size and not recorded.active):
        return f"{path} has {there} bytes, {size} were written"
    for suffix, entry in ((".index", OffsetIndex.ENTRY.size), (".timeindex", TimeIndex.ENTRY.size)):
        index = stem.with_suffix(suffix)
        if index.stat().st_size % entry:
            return f"{index} does not consist of whole entries of {entry} bytes"
    aborted = stem.with_suffix(".txnindex")
    if aborted.exists() and aborted.stat().st_size % TransactionIndex.ENTRY.size:
        return f"{aborted} does not consist of whole entries of {TransactionIndex.ENTRY.size} bytes"
    return _fault_of_chain(folder, recorded)


def _fault_of_chain(folder: Path, recorded: _Recorded) -> str | None:
    pool = FilePool(8)
    segment = Segment(str(folder), recorded.base_offset, pool=pool, size=recorded.size)
    try:
        last, last_time = segment.index.last(), segment.time_index.last()
        position = int(last[1]) if last is not None else 0
        if position >= recorded.size and position:
            # The active segment's index may have grown meanwhile.
            return (
                None if recorded.active else f"{segment.path('.index')} points behind the end of its segment"
            )
        if last_time is not None and last_time[1] < 0:
            return f"{segment.path('.timeindex')} points before its segment"
        for at, header in segment.scan(position):
            if at == position and last is not None and header.last_offset - recorded.base_offset != last[0]:
                return f"{segment.path('.index')} says offset {last[0]} at byte {at}, which is another batch"
            if header.base_offset < recorded.base_offset:
                return f"{segment.path('.log')}: base offset {header.base_offset} is before the segment"
            if at - position > _CHAIN:
                break
        return None
    finally:
        segment.close()

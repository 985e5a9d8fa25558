"""How far behind a pipeline is in time: the age of the oldest record that was not read, which is read for it."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from leafcuttr_sdk.errors import BrokerError, PluginError
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.blocking_peers import BlockingPeer, BlockingReader
    from leafcuttr_sdk.peers import PeerRead

_MOST: Final = 16
"""Partitions that are read from: those with the largest lag."""
_BYTES: Final = 64 << 10
_WAIT_S: Final = 2.0


def oldest_ms(
    peer: "BlockingPeer", positions: Mapping[TopicPartition, int], wait_s: float = _WAIT_S
) -> int | None:
    """The time of the oldest record at or behind these positions, by the first record of each partition; None where
    none could be read in time. Blocks."""
    left = dict(positions)
    found: list[int] = []
    try:
        with peer.reader(committed=True, max_bytes=_MOST * _BYTES, partition_bytes=_BYTES) as reader:
            reader.assign(left)
            for read in _reads(reader, left, wait_s):
                time = _first_time(read, positions[read.partition])
                if time is not None:
                    found.append(time)
                if time is not None or read.error is not None:
                    left.pop(read.partition, None)
    except (BrokerError, PluginError):
        return None
    return min(found, default=None)


def _reads(
    reader: "BlockingReader", left: Mapping[TopicPartition, int], wait_s: float
) -> "Iterable[PeerRead]":
    while left and (reads := reader.read(wait_s)):
        yield from reads


def _first_time(read: "PeerRead", position: int) -> int | None:
    from leafcuttr_sdk.batches import batches_in

    for batch in batches_in(read.data):
        if batch.header.is_control or batch.is_aborted(read.aborted):
            continue
        for record in batch.records():
            if record.offset >= position:
                return int(record.timestamp)
    return None


def lag_s(
    lag: Mapping[TopicPartition, int],
    read: Mapping[TopicPartition, int],
    now_ms: int,
    oldest: Callable[[Mapping[TopicPartition, int]], int | None],
) -> float | None:
    """In seconds; 0 where there is no lag, None where `oldest` finds nothing. `read` is where each partition was read
    up to."""
    if not lag:
        return 0.0
    behind = sorted(lag, key=lambda one: lag[one], reverse=True)[:_MOST]
    found = oldest({one: read.get(one, 0) for one in behind})
    return None if found is None else max(0.0, (now_ms - found) / 1000)

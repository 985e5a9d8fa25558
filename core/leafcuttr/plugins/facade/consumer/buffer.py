"""What has been read and not been handed out yet. Pure.

A fetch brings whole batches; a poll may want one record. Decoding the batch anew for each would cost its square.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from leafcuttr_sdk import TopicPartition
from leafcuttr_sdk.records import StoredRecord


class _Chunk:
    """The records of one partition from one fetch; `after` is where to read on behind them."""

    __slots__ = ("after", "at", "partition", "records")

    def __init__(self, partition: TopicPartition, records: Sequence[StoredRecord], after: int) -> None:
        self.partition = partition
        self.records = records
        self.after = after
        self.at = 0


def size_of(record: StoredRecord) -> int:
    """The bytes of key, value and headers."""
    size = len(record.key or b"") + len(record.value or b"")
    for key, value in record.headers:
        size += len(key) + len(value or b"")
    return size


def _by_partition(
    records: Sequence[StoredRecord],
) -> Iterator[tuple[TopicPartition, Sequence[StoredRecord]]]:
    """Where each partition's records end is searched for: to look at every record would take a tenth of its fetch."""
    start = 0
    while start < len(records):
        first = records[start][:2]
        end = bisect_left(records, True, start, key=lambda record: record[:2] != first)
        yield TopicPartition(*first), records[start:end]
        start = end


class RecordBuffer:
    """Records by partition, in the order in which they came. `moved` is called with each new position."""

    def __init__(self, moved: Callable[[TopicPartition, int], None]) -> None:
        self._moved = moved
        self._chunks: deque[_Chunk] = deque()

    def __bool__(self) -> bool:
        return bool(self._chunks)

    def put(self, records: Sequence[StoredRecord], positions: Mapping[TopicPartition, int]) -> None:
        """What a fetch has found: the records of each partition together. Where it found none, as behind an aborted
        transaction, only the position moves."""
        found = dict(_by_partition(records))
        for partition, after in positions.items():
            if partition in found:
                self._chunks.append(_Chunk(partition, found[partition], after))
            else:
                self._moved(partition, after)

    def take(self, max_records: int | None = None, max_bytes: int | None = None) -> list[StoredRecord]:
        """The next ones within both limits, but one at least if there is any."""
        taken: list[StoredRecord] = []
        limit = len(self) if max_records is None else max_records
        while self._chunks and len(taken) < limit:
            chunk = self._chunks[0]
            start = chunk.at
            end = min(len(chunk.records), start + limit - len(taken))
            if max_bytes is not None:
                end, max_bytes = self._within(chunk, end, max_bytes, at_least_one=not taken)
            taken += chunk.records[start:end]
            if end > start:
                self._advance(chunk, end)
            if end < len(chunk.records):
                break
        return taken

    def __len__(self) -> int:
        return sum(len(chunk.records) - chunk.at for chunk in self._chunks)

    def drop(self, partition: TopicPartition) -> None:
        """Forget what is here of a partition."""
        if any(chunk.partition == partition for chunk in self._chunks):
            self._chunks = deque(chunk for chunk in self._chunks if chunk.partition != partition)

    def clear(self) -> None:
        self._chunks.clear()

    @staticmethod
    def _within(chunk: _Chunk, end: int, max_bytes: int, *, at_least_one: bool) -> tuple[int, int]:
        at = chunk.at
        while at < end:
            size = size_of(chunk.records[at])
            if size > max_bytes and not (at_least_one and at == chunk.at):
                break
            max_bytes -= size
            at += 1
        return at, max_bytes

    def _advance(self, chunk: _Chunk, end: int) -> None:
        chunk.at = end
        if end == len(chunk.records):
            self._chunks.popleft()
            self._moved(chunk.partition, chunk.after)
        else:
            self._moved(chunk.partition, chunk.records[end].offset)

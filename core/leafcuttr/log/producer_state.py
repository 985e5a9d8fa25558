"""What a partition remembers of its idempotent producers: epochs, and the last five batches of each.

A producer numbers its records (KIP-98). A batch that comes again is recognised by its first and last sequence number
and answered with the offset it has; one that leaves a gap is refused. Rules as Kafka's `ProducerAppendInfo`:

- an epoch below the known one: INVALID_PRODUCER_EPOCH;
- a new epoch begins at sequence 0, unless nothing is known of the producer;
- a producer of whom nothing is known (never seen, expired, or its records are deleted) may begin anywhere;
- otherwise the first sequence follows the last one; after 2**31 - 1 comes 0.

Entries are immutable, so staged state is an overlay of newer entries: publishing moves an entry into the table,
failure forgets the overlay. How entries look on disk is `leafcuttr.log.producer_snapshot`.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from leafcuttr.errors import InvalidProducerEpoch, OutOfOrderSequence
from leafcuttr.wire.batch import MAX_SEQUENCE, BatchHeader, sequence_after

RETAINED: Final = 5  # as many requests as a client may have in flight and still be idempotent
NO_EPOCH: Final = -1


class BatchMetadata(NamedTuple):
    """One appended batch: its sequence range, its last offset, and the largest timestamp in it (ms)."""

    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry(NamedTuple):
    """One producer. `batches` holds at most five, the newest last."""

    producer_id: int
    epoch: int
    batches: tuple[BatchMetadata, ...]
    last_timestamp: int
    coordinator_epoch: int = -1
    current_txn_first_offset: int = -1

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1


class ProducerStateTable:
    """The producers of one partition, published and staged."""

    __slots__ = ("_entries", "_staged")

    def __init__(self, entries: Iterable[ProducerEntry] = ()) -> None:
        self._entries = {entry.producer_id: entry for entry in entries}
        self._staged: dict[int, ProducerEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ProducerEntry]:
        """The published entries (DescribeProducers)."""
        return iter(tuple(self._entries.values()))

    def get(self, producer_id: int) -> ProducerEntry | None:
        """The published entry."""
        return self._entries.get(producer_id)

    def follows(self, producer_id: int, epoch: int, sequence: int) -> bool:
        """Whether a batch that begins like this simply comes next: then it is no duplicate, and `check` has nothing
        against it. The usual case, made cheap."""
        entry = self._staged.get(producer_id) or self._entries.get(producer_id)
        return (
            entry is not None
            and entry.epoch == epoch
            and bool(entry.batches)
            and (entry.batches[-1].last_sequence + 1) & MAX_SEQUENCE == sequence
        )

    def duplicate_of(self, header: BatchHeader) -> BatchMetadata | None:
        """The batch, appended or staged, that this one repeats."""
        entry = self._staged.get(header.producer_id) or self._entries.get(header.producer_id)
        if entry is None or entry.epoch != header.producer_epoch:
            return None
        first, last = header.base_sequence, header.last_sequence
        for batch in entry.batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                return batch
        return None

    def check(self, header: BatchHeader) -> None:
        """Raises InvalidProducerEpoch, OutOfOrderSequence if the batch may not follow what is there."""
        producer_id, epoch, sequence = header.producer_id, header.producer_epoch, header.base_sequence
        entry = self._staged.get(producer_id) or self._entries.get(producer_id)
        if entry is None or entry.epoch == NO_EPOCH:
            return
        if epoch < entry.epoch:
            raise InvalidProducerEpoch(
                f"Epoch of producer {producer_id} is {epoch}, which is smaller than the last seen epoch {entry.epoch}"
            )
        if epoch > entry.epoch:
            if sequence != 0:
                raise OutOfOrderSequence(
                    f"Invalid sequence number for new epoch of producer {producer_id}: {epoch} (request epoch), "
                    f"{sequence} (seq. number), {entry.epoch} (current producer epoch)"
                )
            return
        last = entry.last_sequence
        if sequence != (0 if last < 0 else sequence_after(last, 1)):
            raise OutOfOrderSequence(
                f"Out of order sequence number for producer {producer_id}: {sequence} (incoming seq. number), "
                f"{last} (current end sequence number)"
            )

    def stage(
        self, producer_id: int, epoch: int, sequence: int, delta: int, timestamp: int, base_offset: int
    ) -> ProducerEntry:
        """The entry after a batch of `delta + 1` records, kept in the overlay until `publish` or `forget_staged`."""
        known = self._staged.get(producer_id) or self._entries.get(producer_id)
        entry = entry_after(known, producer_id, epoch, sequence, delta, timestamp, base_offset)
        self._staged[producer_id] = entry
        return entry

    def publish(self, entry: ProducerEntry) -> None:
        """The batch that led to `entry` is in the log."""
        self._entries[entry.producer_id] = entry
        if self._staged.get(entry.producer_id) is entry:
            del self._staged[entry.producer_id]

    def forget_staged(self) -> None:
        """Nothing of what was staged came into the log."""
        self._staged.clear()

    def replay(self, header: BatchHeader) -> None:
        """Take up a batch that recovery found in the log: it is there, so it is not questioned."""
        if header.producer_id >= 0 and not header.is_control:
            known = self._entries.get(header.producer_id)
            self._entries[header.producer_id] = _after(known, header, header.base_offset)

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers silent for `expiration_ms` (producer.id.expiration.ms); returns how many."""
        gone = [
            entry.producer_id
            for entry in self._entries.values()
            if now_ms - entry.last_timestamp >= expiration_ms
            and entry.current_txn_first_offset < 0
            and entry.producer_id not in self._staged
        ]
        for producer_id in gone:
            del self._entries[producer_id]
        return len(gone)

    def dump(self) -> list[Any]:
        """All published entries as plain lists of numbers, with every batch a duplicate may be of."""
        return [
            [e.producer_id, e.epoch, e.last_timestamp, e.coordinator_epoch, e.current_txn_first_offset,
             [list(batch) for batch in e.batches]]
            for e in self._entries.values()
        ]  # fmt: skip

    @classmethod
    def from_dump(cls, dump: Iterable[Any]) -> "ProducerStateTable":
        """The table that `dump` described. Raises ValueError, TypeError on other data."""
        return cls(
            ProducerEntry(
                producer_id,
                epoch,
                tuple(BatchMetadata(*batch) for batch in batches),
                timestamp,
                coordinator,
                txn,
            )
            for producer_id, epoch, timestamp, coordinator, txn, batches in dump
        )


def _after(known: ProducerEntry | None, header: BatchHeader, base_offset: int) -> ProducerEntry:
    return entry_after(
        known,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.last_offset_delta,
        header.max_timestamp,
        base_offset,
    )


def entry_after(
    known: ProducerEntry | None,
    producer_id: int,
    epoch: int,
    sequence: int,
    delta: int,
    timestamp: int,
    base_offset: int,
) -> ProducerEntry:
    """The entry of a producer after one more batch of `delta + 1` records at `base_offset`."""
    last_sequence = sequence_after(sequence, delta)
    batch = BatchMetadata(sequence, last_sequence, base_offset + delta, delta, timestamp)
    if known is None:
        return ProducerEntry(producer_id, epoch, (batch,), timestamp)
    earlier = known.batches[1 - RETAINED :] if known.epoch == epoch else ()
    return ProducerEntry(
        producer_id,
        epoch,
        (*earlier, batch),
        timestamp,
        known.coordinator_epoch,
        known.current_txn_first_offset,
    )

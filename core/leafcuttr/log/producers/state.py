"""What a partition remembers of its idempotent and transactional producers: epochs, the last five batches of each,
and where its open transaction began.

A producer numbers its records (KIP-98). A batch that comes again is recognised by its first and last sequence number
and answered with the offset it has; one that leaves a gap is refused. Rules as Kafka's `ProducerAppendInfo`:

- an epoch below the known one: INVALID_PRODUCER_EPOCH;
- a new epoch begins at sequence 0, unless nothing is known of the producer;
- a producer of whom nothing is known (never seen, expired, or its records are deleted) may begin anywhere;
- otherwise the first sequence follows the last one; after 2**31 - 1 comes 0; what the broker's own coordinators
  write has no sequence;
- while a transaction is open its producer writes nothing else: INVALID_TXN_STATE;
- a marker ends the transaction. Its epoch is not below the known one, with transaction version 2 it is above it
  (KIP-890), unless it repeats a marker that is there; its coordinator's epoch does not go back
  (TRANSACTION_COORDINATOR_FENCED). It may raise the epoch, and then the next sequence is 0.

The first open transaction bounds what read_committed readers see (`first_unstable`).

Entries are immutable, so staged state is an overlay of newer entries: publishing moves an entry into the table,
failure forgets the overlay. The format of entries on disk is `leafcuttr.log.producers.snapshot`.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from leafcuttr.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from leafcuttr.log.segment.txn_index import AbortedTransaction
from leafcuttr.wire.batch import MAX_SEQUENCE, BatchHeader, sequence_after
from leafcuttr.wire.markers import Marker

RETAINED: Final = 5  # as many requests as a client may have in flight and still be idempotent
NO_EPOCH: Final = -1
EPOCH_BUMPED: Final = 2  # the first transaction version whose markers carry a new epoch (KIP-890)
_LAST_EPOCH: Final = 2**15 - 1


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
    """One producer. `batches` holds at most five, the newest last; those of the coordinators have sequence -1."""

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

    __slots__ = ("_entries", "_open", "_staged", "first_unstable")

    def __init__(self, entries: Iterable[ProducerEntry] = ()) -> None:
        self._entries = {entry.producer_id: entry for entry in entries}
        self._staged: dict[int, ProducerEntry] = {}
        # Published open transactions, by producer: where each began, in this order.
        self._open: dict[int, int] = {}
        self.first_unstable = -1
        """Where the first open transaction began, -1 if none is open."""
        self._find_open()

    def _find_open(self) -> None:
        begun = sorted(
            (entry.current_txn_first_offset, entry.producer_id)
            for entry in self._entries.values()
            if entry.current_txn_first_offset >= 0
        )
        self._open = {producer_id: first for first, producer_id in begun}
        self.first_unstable = begun[0][0] if begun else -1

    def replace(self, other: "ProducerStateTable") -> None:
        """Be as `other`, with nothing staged."""
        self._entries = dict(other._entries)
        self._staged = {}
        self._find_open()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ProducerEntry]:
        """The published entries (DescribeProducers)."""
        return iter(tuple(self._entries.values()))

    def get(self, producer_id: int) -> ProducerEntry | None:
        """The published entry."""
        return self._entries.get(producer_id)

    def ongoing(self, producer_id: int, epoch: int | None = None) -> int:
        """Where the producer's open transaction began, staged batches and markers counted; -1 if it has none (or,
        with `epoch`, none of that epoch)."""
        entry = self._staged.get(producer_id) or self._entries.get(producer_id)
        if entry is None or (epoch is not None and entry.epoch != epoch):
            return -1
        return entry.current_txn_first_offset

    def follows(self, producer_id: int, epoch: int, sequence: int, transactional: bool = False) -> bool:
        """Whether a batch that begins like this simply comes next: then it is no duplicate, and `check` has nothing
        against it. The usual case, made cheap."""
        entry = self._staged.get(producer_id) or self._entries.get(producer_id)
        return (
            entry is not None
            and entry.epoch == epoch
            and (transactional or entry.current_txn_first_offset < 0)
            and bool(entry.batches)
            and (entry.batches[-1].last_sequence + 1) & MAX_SEQUENCE == sequence
        )

    def duplicate_of(self, header: BatchHeader) -> BatchMetadata | None:
        """The batch, appended or staged, that this one repeats."""
        entry = self._staged.get(header.producer_id) or self._entries.get(header.producer_id)
        if entry is None or entry.epoch != header.producer_epoch or header.base_sequence < 0:
            return None
        first, last = header.base_sequence, header.last_sequence
        for batch in entry.batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                return batch
        return None

    def check(self, header: BatchHeader) -> None:
        """Raises InvalidProducerEpoch, OutOfOrderSequence, InvalidTxnState if the batch may not follow what is there.
        A batch without sequence numbers has a coordinator for its author."""
        producer_id, epoch, sequence = header.producer_id, header.producer_epoch, header.base_sequence
        entry = self._staged.get(producer_id) or self._entries.get(producer_id)
        if entry is None:
            return
        if epoch < entry.epoch:
            raise InvalidProducerEpoch(
                f"Epoch of producer {producer_id} is {epoch}, which is smaller than the last seen epoch {entry.epoch}"
            )
        if sequence >= 0 and entry.epoch != NO_EPOCH:
            _check_sequence(entry, epoch, sequence)
        if entry.current_txn_first_offset >= 0 and not header.is_transactional:
            raise InvalidTxnState(
                f"Expected a transactional write from producer {producer_id}, its transaction began at offset "
                f"{entry.current_txn_first_offset}"
            )

    def stage(
        self,
        producer_id: int,
        epoch: int,
        sequence: int,
        delta: int,
        timestamp: int,
        base_offset: int,
        transactional: bool = False,
    ) -> ProducerEntry:
        """The entry after a batch of `delta + 1` records, kept in the overlay until `publish` or `forget_staged`."""
        known = self._staged.get(producer_id) or self._entries.get(producer_id)
        entry = entry_after(known, producer_id, epoch, sequence, delta, timestamp, base_offset, transactional)
        self._staged[producer_id] = entry
        return entry

    def check_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> None:
        """Raises InvalidProducerEpoch, TransactionCoordinatorFenced if a marker may not follow what is there."""
        entry = self._staged.get(producer_id) or self._entries.get(producer_id)
        if entry is None:
            return
        if transaction_version >= EPOCH_BUMPED and epoch <= entry.epoch:
            # The epoch of a marker that is there already: the coordinator has not got the answer and writes it again.
            again = epoch == entry.epoch and (entry.current_txn_first_offset < 0 or epoch == _LAST_EPOCH)
            if not again:
                raise InvalidProducerEpoch(
                    f"Epoch of the marker for producer {producer_id} is {epoch}, which is not above the last seen "
                    f"epoch {entry.epoch} (transaction version {transaction_version})"
                )
        if epoch < entry.epoch:
            raise InvalidProducerEpoch(
                f"Epoch of the marker for producer {producer_id} is {epoch}, which is smaller than the last seen "
                f"epoch {entry.epoch}"
            )
        if coordinator_epoch < entry.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"Invalid coordinator epoch for producer {producer_id}: {coordinator_epoch} (zombie), "
                f"{entry.coordinator_epoch} (current)"
            )

    def stage_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, timestamp: int
    ) -> ProducerEntry:
        """The entry after a marker, kept in the overlay until `publish` or `forget_staged`."""
        known = self._staged.get(producer_id) or self._entries.get(producer_id)
        entry = self._staged[producer_id] = _ended(known, producer_id, epoch, coordinator_epoch, timestamp)
        return entry

    def aborted(self, producer_id: int, marker_offset: int) -> AbortedTransaction | None:
        """What the transaction index says of the published open transaction that a marker at this offset, about to be
        published, aborts; None if none is open, then nothing has to be skipped."""
        first = self._open.get(producer_id)
        if first is None:
            return None
        others = (begun for other, begun in self._open.items() if other != producer_id)
        return AbortedTransaction(producer_id, first, marker_offset, next(others, marker_offset + 1))

    def publish(self, entry: ProducerEntry) -> None:
        """The batch that led to `entry` is in the log."""
        producer_id = entry.producer_id
        self._entries[producer_id] = entry
        if self._staged.get(producer_id) is entry:
            del self._staged[producer_id]
        if entry.current_txn_first_offset >= 0 or self._open:
            self._follow(entry)

    def _follow(self, entry: ProducerEntry) -> None:
        """Keep count of what is open; transactions begin in the order of their offsets."""
        if entry.current_txn_first_offset >= 0:
            self._open.setdefault(entry.producer_id, entry.current_txn_first_offset)
        else:
            self._open.pop(entry.producer_id, None)
        self.first_unstable = next(iter(self._open.values()), -1)

    def forget_staged(self) -> None:
        """Nothing of what was staged came into the log."""
        self._staged.clear()

    def replay(self, header: BatchHeader, marker: Marker | None = None) -> AbortedTransaction | None:
        """Take up a batch that recovery found in the log: it is there, so it is not questioned. `marker` is what a
        control batch says; returns what the transaction index has to say of it, if anything."""
        producer_id = header.producer_id
        if producer_id < 0 or (header.is_control and marker is None):
            return None
        known, aborted = self._entries.get(producer_id), None
        if marker is None:
            entry = _after(known, header)
        else:
            if not marker.commit:
                aborted = self.aborted(producer_id, header.base_offset)
            epoch, timestamp = header.producer_epoch, header.max_timestamp
            entry = _ended(known, producer_id, epoch, marker.coordinator_epoch, timestamp)
        self.publish(entry)
        return aborted

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


def _check_sequence(entry: ProducerEntry, epoch: int, sequence: int) -> None:
    producer_id, last = entry.producer_id, entry.last_sequence
    if epoch > entry.epoch:
        if sequence != 0:
            raise OutOfOrderSequence(
                f"Invalid sequence number for new epoch of producer {producer_id}: {epoch} (request epoch), "
                f"{sequence} (seq. number), {entry.epoch} (current producer epoch)"
            )
    elif sequence != (0 if last < 0 else sequence_after(last, 1)):
        raise OutOfOrderSequence(
            f"Out of order sequence number for producer {producer_id}: {sequence} (incoming seq. number), "
            f"{last} (current end sequence number)"
        )


def _after(known: ProducerEntry | None, header: BatchHeader) -> ProducerEntry:
    timestamp = header.max_timestamp
    if timestamp < 0 and not header.count and known is not None:
        timestamp = known.last_timestamp  # a filter has taken all its records, and the time with them
    return entry_after(
        known,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.last_offset_delta,
        timestamp,
        header.base_offset,
        header.is_transactional,
    )


def entry_after(
    known: ProducerEntry | None,
    producer_id: int,
    epoch: int,
    sequence: int,
    delta: int,
    timestamp: int,
    base_offset: int,
    transactional: bool = False,
) -> ProducerEntry:
    """The entry of a producer after one more batch of `delta + 1` records at `base_offset`."""
    last_sequence = sequence_after(sequence, delta)
    batch = BatchMetadata(sequence, last_sequence, base_offset + delta, delta, timestamp)
    begun = base_offset if transactional else -1
    if known is None:
        return ProducerEntry(producer_id, epoch, (batch,), timestamp, -1, begun)
    earlier = known.batches[1 - RETAINED :] if known.epoch == epoch else ()
    if known.current_txn_first_offset >= 0:
        begun = known.current_txn_first_offset
    return ProducerEntry(
        producer_id,
        epoch,
        (*earlier, batch),
        timestamp,
        known.coordinator_epoch,
        begun,
    )


def _ended(
    known: ProducerEntry | None, producer_id: int, epoch: int, coordinator_epoch: int, timestamp: int
) -> ProducerEntry:
    """The entry of a producer after a marker."""
    batches = known.batches if known is not None and known.epoch == epoch else ()
    return ProducerEntry(producer_id, epoch, batches, timestamp, coordinator_epoch, -1)

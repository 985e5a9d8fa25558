"""What compaction has to know of transactions: which data were aborted, and which markers are still needed.

The rules are Kafka's (KIP-98, KIP-534): aborted data go; a marker stays until nothing of its transaction is left, and
then until its delete horizon; an entry of the index of aborted transactions stays as long as data of it have been met.
A marker without a record in it has been cleaned before and may go.

Batches are shown in the order of their offsets. Each of the two passes of a round needs an object of its own. The
first pass begins at what is dirty, so it may be shown no batch, and no marker, of transactions whose entries it has:
the offsets of an entry decide where its transaction ends.
"""

from collections.abc import Iterable

from leafcuttr.log.segment.txn_index import AbortedTransaction
from leafcuttr.wire.batch import BatchHeader
from leafcuttr.wire.markers import ABORT, COMMIT
from leafcuttr.wire.records import control_record, decode_records


class Transactions:
    """See the module's docstring. `index` gathers the entries that have to be kept."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self.index: list[AbortedTransaction] = []
        self._aborted = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._open_aborted: dict[int, AbortedTransaction] = {}
        self._met: set[int] = set()  # producers of whose open aborted transaction data were there
        self._open_committed: set[int] = set()

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether this batch of data belongs to an aborted transaction."""
        self._open_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        entry = self._open_aborted.get(header.producer_id)
        if entry is not None and header.base_offset <= entry.last_offset:
            self._met.add(header.producer_id)
            return True
        self._open_committed.add(header.producer_id)
        return False

    def is_spent(self, header: BatchHeader, batch: bytes) -> bool:
        """Whether this control batch marks the end of a transaction of which nothing was there. Raises WireError."""
        self._open_up_to(header.last_offset)
        record = next(iter(decode_records(batch)), None)
        if record is None:
            return True
        kind, producer = control_record(record).type, header.producer_id
        if kind == ABORT:
            entry = self._open_aborted.pop(producer, None)
            if entry is not None and producer in self._met:
                self._met.discard(producer)
                self.index.append(entry)
                return False
            return True
        if kind == COMMIT:
            spent = producer not in self._open_committed
            self._open_committed.discard(producer)
            return spent
        return False

    def _open_up_to(self, offset: int) -> None:
        while self._aborted and self._aborted[-1].first_offset <= offset:
            entry = self._aborted.pop()
            # The producer's transaction before this one has ended, whether or not its marker was shown.
            self._open_aborted[entry.producer_id] = entry

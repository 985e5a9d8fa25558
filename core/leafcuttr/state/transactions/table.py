"""Which transactional ids there are, and which of them are loaded."""

from collections.abc import Iterator

from leafcuttr.errors import CoordinatorLoadInProgress, CoordinatorNotAvailable
from leafcuttr.state.transactions.machine import Snapshot, Transaction
from leafcuttr.state.transactions.store import TransactionLog


class TransactionTable:
    """Transactions by id. `loading` and `failed` are the partitions whose ids are not known, yet or at all."""

    def __init__(self, log: TransactionLog) -> None:
        self.log = log
        self.loading: set[int] = set()
        self.failed: set[int] = set()
        self._entries: dict[str, Transaction] = {}

    def __iter__(self) -> Iterator[Transaction]:
        return iter(list(self._entries.values()))

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, transactional_id: str) -> Transaction | None:
        """Raises CoordinatorLoadInProgress, CoordinatorNotAvailable (its log is damaged)."""
        if self.loading or self.failed:
            partition = self.log.partition_of(transactional_id)
            if partition in self.loading:
                raise CoordinatorLoadInProgress
            if partition in self.failed:
                raise CoordinatorNotAvailable
        return self._entries.get(transactional_id)

    def find_or_create(self, transactional_id: str, snapshot: Snapshot) -> Transaction:
        """Raises as `find`."""
        found = self.find(transactional_id)
        return self.adopt(Transaction(transactional_id, snapshot)) if found is None else found

    def holds(self, transaction: Transaction) -> bool:
        """Whether it has not been forgotten meanwhile."""
        return self._entries.get(transaction.transactional_id) is transaction

    def adopt(self, transaction: Transaction) -> Transaction:
        self._entries[transaction.transactional_id] = transaction
        return transaction

    def forget(self, transaction: Transaction) -> None:
        if self.holds(transaction):
            del self._entries[transaction.transactional_id]

    def clear(self) -> None:
        self._entries.clear()

"""Which transactional ids a ListTransactions request asks for (KIP-664, KIP-994, KIP-1152)."""

from collections.abc import Callable, Iterable, Set
from typing import Final, NamedTuple

from leafcuttr.state.transactions.machine import Transaction
from leafcuttr.state.transactions.states import State

BY_TITLE: Final = {state.title: state for state in State}


class Filter(NamedTuple):
    """Empty sets, a negative duration (ms) and no pattern let everything through."""

    states: Set[State] | None = None
    producer_ids: Set[int] = frozenset()
    longer_than_ms: int = -1
    matches: Callable[[str], bool] | None = None

    def select(self, transactions: Iterable[Transaction], now_ms: int) -> list[Transaction]:
        return [each for each in transactions if self._takes(each, now_ms)]

    def _takes(self, transaction: Transaction, now_ms: int) -> bool:
        now = transaction.now
        if now.state is State.DEAD:
            return False
        if self.producer_ids and now.producer_id not in self.producer_ids:
            return False
        if self.states is not None and now.state not in self.states:
            return False
        if self.longer_than_ms >= 0 and now_ms - now.started_ms <= self.longer_than_ms:
            return False
        return self.matches is None or self.matches(transaction.transactional_id)

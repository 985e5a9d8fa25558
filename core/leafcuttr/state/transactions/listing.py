"""Which transactional ids a ListTransactions request means (KIP-664, KIP-994, KIP-1152)."""

from collections.abc import Iterable, Set
from typing import Final, NamedTuple

import trio

from leafcuttr.state.patterns import Pattern
from leafcuttr.state.transactions.machine import Transaction
from leafcuttr.state.transactions.states import TransactionState

_STEP: Final = 100

BY_TITLE: Final = {state.title: state for state in TransactionState}


class Filter(NamedTuple):
    """Empty sets, a negative duration (ms) and no pattern let everything through."""

    states: Set[TransactionState] | None = None
    producer_ids: Set[int] = frozenset()
    longer_than_ms: int = -1
    pattern: Pattern | None = None

    async def select(self, transactions: Iterable[Transaction], now_ms: int) -> list[Transaction]:
        found = []
        for number, transaction in enumerate(transactions):
            if number % _STEP == _STEP - 1:
                await trio.lowlevel.checkpoint()
            if self._takes(transaction, now_ms) and (
                self.pattern is None or await self.pattern.matches(transaction.transactional_id)
            ):
                found.append(transaction)
        return found

    def _takes(self, transaction: Transaction, now_ms: int) -> bool:
        now = transaction.now
        if now.state is TransactionState.DEAD:
            return False
        if self.producer_ids and now.producer_id not in self.producer_ids:
            return False
        if self.states is not None and now.state not in self.states:
            return False
        return self.longer_than_ms < 0 or now_ms - now.started_ms > self.longer_than_ms

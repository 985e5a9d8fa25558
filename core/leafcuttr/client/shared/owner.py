"""The owner of transactions that several processes write to: see `leafcuttr_sdk.blocking_peers.TransactionOwner`.

It is a `RemoteProducer` that writes nothing itself. Each of its transactions has an epoch of its own, since each
process that joins one numbers its records from 0 on, and so that what a process of an earlier one still sends is
refused: by the newer version of the protocol (KIP-890) the end of a transaction answers with the next epoch, by the
older one InitProducerId raises it.
"""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from math import inf, isfinite
from typing import Any, Final

import trio

from leafcuttr.client.calls import Calls
from leafcuttr.client.enlisting import TransactionVersions, add_group, commit_with_it
from leafcuttr.client.producing.stamp import ProducerIdentity
from leafcuttr.client.shared.written import described, partitions_of, records_written
from leafcuttr.client.transactional import NOT_OURS
from leafcuttr.client.transactions import RemoteProducer
from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.runtime.block_nursery import open_block_nursery
from leafcuttr_sdk.blocking_peers import SharedTransaction
from leafcuttr_sdk.errors import TransactionAborted
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.types import Clock, TopicPartition

_SEQUENCES: Final = 1 << 31
_EMPTY: Final = frozenset({"Empty"})
"""The state of an epoch in which nothing was added to a transaction."""
_UNUSED: Final = _EMPTY | {"CompleteCommit", "CompleteAbort"}
"""Where the end of a transaction raises the epoch, that of the last one stands beside the new epoch."""


@asynccontextmanager
async def open_owner(
    calls: Calls, clock: Clock, logger: logging.Logger, transaction: str | SharedTransaction, timeout_ms: int
) -> AsyncIterator["SharedProducer"]:
    """See `leafcuttr_sdk.blocking_peers.BlockingPeer.owner`. Its end leaves an open transaction as it is."""
    name = transaction if isinstance(transaction, str) else transaction.transactional_id
    timeout_ms = timeout_ms if isinstance(transaction, str) else transaction.timeout_ms
    async with open_block_nursery() as nursery:
        owner = SharedProducer(calls, clock, logger, nursery, name, timeout_ms)
        if isinstance(transaction, str):
            await owner.open()
        else:
            owner.resume(transaction)
        yield owner


class SharedProducer(RemoteProducer):
    """One task at a time uses it."""

    _groups: set[str]
    _shared: SharedTransaction | None = None
    _began_at = 0.0
    _failure: BrokerError | None = None
    _lost: BrokerError | None = None

    def resume(self, transaction: SharedTransaction) -> None:
        """Go on with this one, which another owner has begun."""
        self._check_id()
        self.identity = ProducerIdentity(transaction.producer_id, transaction.epoch)
        self.versions = TransactionVersions(transaction.version)
        self._opened(transaction, -inf)

    @property
    def shared(self) -> SharedTransaction | None:
        return self._shared

    async def begin_shared(self) -> SharedTransaction:
        if self._shared is not None:
            raise RuntimeError("This owner has a transaction open.")
        if self._lost is not None:
            raise self._lost
        await self._make_ready()
        begun = SharedTransaction(
            self.transactional_id,
            self.identity.producer_id,
            self.identity.epoch,
            self.versions.level,
            self.timeout_ms,
        )
        self._opened(begun, trio.current_time())
        return begun

    async def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        self._check_shared()
        if not offsets:
            return
        try:
            if not self.versions.adds_by_itself and group not in self._groups:
                await add_group(self.calls, self.transactional_id, self.identity, group)
                self._groups.add(group)
            await commit_with_it(
                self.calls, self.transactional_id, self.identity, self.versions, group, offsets
            )
        except BrokerError as error:
            raise await self._failed(error) from error.__cause__

    async def commit(self, written: Mapping[TopicPartition, int] | None) -> None:
        self._check_shared()
        if written is not None:
            await self._check_written(written)
        try:
            await self.end(commit=True, timeout_s=self.calls.settings.delivery_timeout_s)
        except BrokerError as error:
            if error.code is ErrorCode.INVALID_TXN_STATE and await self._is_empty():
                self._shared = None
                return
            explained = await self._failed(error)
            if explained.code is ErrorCode.REQUEST_TIMED_OUT:
                self._shared = None  # nobody knows: there is nothing to abort, or the next begin does
            raise explained from error.__cause__
        self._shared = None

    async def abort(self, timeout_s: float | None = None) -> None:
        if self._shared is None:
            return
        self._shared = None
        try:
            await self.end(
                commit=False,
                timeout_s=self.calls.settings.request_timeout_s if timeout_s is None else timeout_s,
            )
        except BrokerError as error:
            if error.code not in NOT_OURS:
                raise

    async def end(self, *, commit: bool, timeout_s: float) -> None:
        await super().end(commit=commit, timeout_s=timeout_s)
        self._takes_epoch = not self.versions.adds_by_itself

    # --- how ------------------------------------------------------------------------------------------------

    def _opened(self, transaction: SharedTransaction, began_at: float) -> None:
        self._shared, self._began_at, self._failure = transaction, began_at, None
        self._groups = set()

    def _check_shared(self) -> None:
        """Raises RuntimeError, TransactionAborted."""
        if self._lost is not None:
            raise self._lost
        if self._shared is None:
            raise RuntimeError("This owner has no transaction open.")
        if self._failure is not None:
            raise TransactionAborted(
                f"The transaction of {self.transactional_id!r} can only be aborted: a call failed: {self._failure}"
            ) from self._failure

    async def _failed(self, error: BrokerError) -> BrokerError:
        """What an error means; after it the transaction can only be aborted, or is over."""
        self._failure = error
        if error.code not in NOT_OURS:
            return error
        state = await described(self.calls, self.transactional_id)
        return error if state is not None and self._is_ours(state) else self._gone(state)

    def _gone(self, state: Any | None) -> BrokerError:
        """The coordinator has another epoch, or says that it has.

        An owner that has lost its epoch does not take another one, whatever the reason: where nothing was written yet,
        nobody can tell a transaction that was aborted for its time from an id that another owner has taken."""
        self._shared = None
        overdue = trio.current_time() - self._began_at >= self.timeout_ms / 1000
        known = self._is_abort_of_ours(state) if state is not None else isfinite(self._began_at)
        self._lost = self.timed_out() if overdue and known else self.fenced()
        return self._lost

    def _is_ours(self, state: Any) -> bool:
        return (state.producer_id, state.producer_epoch) == self.identity

    async def _check_written(self, written: Mapping[TopicPartition, int]) -> None:
        """Raises TransactionAborted, unless each partition has as many records of this epoch as it is to have."""
        state = await described(self.calls, self.transactional_id)
        if state is not None and not self._is_ours(state):
            raise self._gone(state)
        partitions = set(written) | (set() if state is None else partitions_of(state))
        try:
            found = await records_written(self.calls, self.identity, partitions)
        except BrokerError as error:
            raise await self._failed(error) from error.__cause__
        if found is None:
            return
        for tp in sorted(partitions):
            wanted, there = written.get(tp, 0), found.get(tp, 0)
            if wanted % _SEQUENCES != there % _SEQUENCES:
                self._failure = TransactionAborted(
                    f"The transaction of {self.transactional_id!r} has {there} records in {tp}, not the {wanted} that "
                    "were reported: a part was written twice, or is missing"
                )
                raise self._failure

    async def _is_empty(self) -> bool:
        """Whether nothing was added to the transaction, which is still ours: that has no end (KIP-98)."""
        state = await described(self.calls, self.transactional_id)
        unused = _UNUSED if self.versions.adds_by_itself else _EMPTY
        return state is not None and self._is_ours(state) and state.transaction_state in unused

"""What a transactional producer is, whatever its coordinator is reached by: one transaction at a time, aborted unless
its block ends well, and nothing committed after a call that failed.

The requests are not here: `transactions` sends them; `plugins.facade.transactions` calls the coordinator of this
process.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Generic, TypeVar

import trio

from leafcuttr.client.errors import ClientError
from leafcuttr.errors import BrokerError, ErrorCode, InvalidRequest
from leafcuttr_sdk.errors import ProducerFenced, TransactionAborted, TransactionTimedOut

PATIENCE_S: Final = 5.0
"""How long an abort holds up a cancelled block; what is not over by then is aborted at the next begin, or by its
timeout."""
NOT_OURS: Final = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
    }
)
"""What coordinators answer where the transaction, or the id, is not the producer's any more."""
_LONGEST_ID: Final = 32767
"""Bytes of a string in Kafka's protocol."""


class TransactionBase(ABC):
    """The part of `leafcuttr_sdk.OpenTransaction` that is about its end."""

    def __init__(self, transactional_id: str, logger: logging.Logger) -> None:
        self._transactional_id = transactional_id
        self._logger = logger
        self._one_at_a_time = trio.Lock()
        self._begun = False  # as far as the coordinator may know
        self._over = False
        self._failed = False
        self._failure: Exception | None = None

    @abstractmethod
    async def _end_with_commit(self) -> None:
        """Have the coordinator commit it. May say by `_over` that an abort would be none of this transaction."""

    @abstractmethod
    async def _end_with_abort(self) -> None:
        """Drop what is not sent, and have the coordinator abort it if it has begun."""

    async def abort(self) -> None:
        reason = f"it took longer than {PATIENCE_S:g} s"
        try:
            with trio.move_on_after(PATIENCE_S, shield=True):
                async with self._one_at_a_time:
                    if self._over:
                        return
                    self._over = True
                    await self._end_with_abort()
                return
        except (BrokerError, ClientError) as error:
            code = error.code if isinstance(error, BrokerError) else ErrorCode.NETWORK_EXCEPTION
            if code in NOT_OURS:
                return  # others have aborted it
            reason = str(error) or code.name
        finally:
            self._over = True
        self._logger.warning(
            "the transaction of %r is left to its timeout, aborting it failed: %s",
            self._transactional_id,
            reason,
        )

    async def commit(self) -> None:
        """At the end of the block. Raises TransactionAborted, if it is to be aborted."""
        async with self._one_at_a_time:
            if self._over:
                return
            self._check()
            if self._begun:
                await self._end_with_commit()
            self._over = True

    def _check(self) -> None:
        if self._over:
            raise RuntimeError("This transaction has ended.")
        if self._failed:
            why = "a call was cancelled" if self._failure is None else f"a call failed: {self._failure}"
            raise TransactionAborted(
                f"The transaction of {self._transactional_id!r} can only be aborted: {why}"
            ) from self._failure


T = TypeVar("T", bound=TransactionBase)


class TransactionalProducerBase(ABC, Generic[T]):
    """The part of `leafcuttr_sdk.TransactionalProducer` that is about its transactions."""

    def __init__(self, transactional_id: str, timeout_ms: int, logger: logging.Logger) -> None:
        self.transactional_id: Final = transactional_id
        self.timeout_ms: Final = timeout_ms
        self.logger = logger
        self._open: T | None = None
        self._began = False
        self._closed = False

    @abstractmethod
    async def _make_ready(self) -> None:
        """The last transaction is over, and the epoch is the id's. Raises ProducerFenced, BrokerError."""

    @abstractmethod
    def _transaction(self) -> T:
        """A new one, which begins now."""

    async def close(self) -> None:
        """No transaction begins after this; one that another task has open is aborted."""
        self._closed = True
        if self._open is not None:
            await self._open.abort()

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[T]:
        """See `leafcuttr_sdk.TransactionalProducer.begin`."""
        self._check_open()
        if self._began:
            raise trio.BusyResourceError("This producer has another transaction open.")
        self._began = True
        try:
            await self._make_ready()
            self._check_open()  # it may have been closed meanwhile
            transaction = self._open = self._transaction()
            try:
                yield transaction
                await transaction.commit()
            finally:
                await transaction.abort()
        finally:
            self._began, self._open = False, None

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("This producer is closed.")

    def _check_id(self) -> None:
        """Raises InvalidRequest for an id that no client can send: a coordinator could not write it either, and would
        stay at it."""
        if not self.transactional_id:
            raise InvalidRequest("A transactional id is not empty.")
        try:
            size = len(self.transactional_id.encode())
        except UnicodeEncodeError as error:
            raise InvalidRequest(f"The transactional id cannot be written in UTF-8: {error}") from None
        if size > _LONGEST_ID:
            raise InvalidRequest(f"A transactional id has at most {_LONGEST_ID} bytes, not {size}.")

    def fenced(self) -> ProducerFenced:
        return ProducerFenced(f"Another producer has taken the transactional id {self.transactional_id!r}.")

    def timed_out(self) -> TransactionTimedOut:
        return TransactionTimedOut(
            f"The transaction of {self.transactional_id!r} took longer than {self.timeout_ms} ms and was aborted."
        )

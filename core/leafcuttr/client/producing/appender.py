"""A `PeerAppender` over the network: idempotent where the cluster hands out producer ids (KIP-98)."""

from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Final

import trio

from leafcuttr.client.calls import Calls
from leafcuttr.client.errors import ApiNotOffered, refusal
from leafcuttr.client.producing.sender import BatchSender
from leafcuttr.client.producing.stamp import ProducerIdentity
from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.runtime.block_nursery import open_block_nursery
from leafcuttr.wire.messages.init_producer_id import InitProducerIdRequest
from leafcuttr_sdk.records import Appended, NewBatch

_NOT_ALLOWED: Final = frozenset({ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNSUPPORTED_VERSION})
"""The cluster hands out no producer ids, or not to us: Kafka before 3.0 wants IDEMPOTENT_WRITE for it."""


@asynccontextmanager
async def open_appender(calls: Calls) -> AsyncIterator["RemoteAppender"]:
    """See `leafcuttr_sdk.peers.Peer.appender`."""
    with ExitStack() as behind:
        async with open_block_nursery() as nursery:
            appender = RemoteAppender(calls, nursery)
            behind.callback(appender.close)
            yield appender


class RemoteAppender:
    """See `leafcuttr_sdk.peers.PeerAppender`."""

    def __init__(self, calls: Calls, nursery: trio.Nursery) -> None:
        self._calls = calls
        self._nursery = nursery
        self._sender = BatchSender(calls, nursery, new_identity=self._new_identity)
        self._identity: ProducerIdentity | None = None
        self._beginning = trio.Lock()

    async def append(self, batches: Sequence[NewBatch]) -> "list[Appended | BrokerError]":
        # Calls that wait for the producer id go on in their order, and no later one overtakes them.
        if self._identity is None or self._beginning.locked():
            try:
                await self._begin()
            except BrokerError as error:
                return [error] * len(batches)
        assert self._identity is not None
        return await self._sender.append(batches, self._identity)

    def close(self) -> None:
        """Once its tasks have ended."""
        self._sender.close()

    async def _begin(self) -> None:
        async with self._beginning:
            if self._identity is None:
                self._identity = await self._new_identity()
                self._nursery.start_soon(self._sender.run)

    async def _new_identity(self) -> ProducerIdentity:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        try:
            answer = await self._calls.any_broker(
                request,
                lambda response: (response.error_code, None),
                timeout_s=self._calls.settings.delivery_timeout_s,
            )
        except BrokerError as error:
            if error.code in _NOT_ALLOWED or isinstance(error.__cause__, ApiNotOffered):
                return ProducerIdentity()
            raise
        if answer.producer_id < 0:
            raise refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "the cluster handed out no producer id")
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

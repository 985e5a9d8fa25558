"""A transactional producer of transaction version 2 (KIP-890), which librdkafka does not have yet: partitions join by
being written to, and every end raises the epoch. Each request is repeated, as it was, until it has an answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Event
from typing import Any, Final

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.end_txn import EndTxnRequest
from leafcuttr.wire.messages.init_producer_id import InitProducerIdRequest
from leafcuttr.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from leafcuttr.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from leafcuttr.wire.records import Record, encode_batch
from support.wire_client import WireClient

_AGAIN: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,  # of a Produce whose coordinator is not there yet
    }
)
_PAUSE_S: Final = 0.02


class FatalAnswer(Exception):
    """The producer is of no more use: the broker has said so."""


class RawProducer:
    """See the module's docstring. Raises FatalAnswer."""

    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self._bootstrap = bootstrap
        self._id = transactional_id
        self._client: WireClient | None = None
        self._producer = (-1, -1)
        self._sequences: dict[tuple[str, int], int] = {}

    def init(self) -> None:
        request = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=60_000)
        answer = self._insist(request, 5, lambda found: found.error_code)
        self._renew(answer.producer_id, answer.producer_epoch)

    def produce(self, topic: str, partition: int, values: Sequence[bytes]) -> int:
        """Returns the offset of the first."""
        now_ms = int(time.time() * 1000)
        sequence = self._sequences.get((topic, partition), 0)
        batch = encode_batch(
            [Record(number, now_ms, None, value) for number, value in enumerate(values)],
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=sequence,
            transactional=True,
        )
        data = PartitionProduceData(index=partition, records=memoryview(batch))
        request = ProduceRequest(
            transactional_id=self._id,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        answer = self._insist(request, 12, lambda found: found.responses[0].partition_responses[0].error_code)
        self._sequences[topic, partition] = sequence + len(values)
        return int(answer.responses[0].partition_responses[0].base_offset)

    def commit_offset(self, group: str, topic: str, offset: int) -> None:
        """For partition 0 of the topic."""
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=group,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        self._insist(request, 5, lambda found: found.topics[0].partitions[0].error_code)

    def end(self, *, commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            committed=commit,
        )
        answer = self._insist(request, 5, lambda found: found.error_code)
        self._renew(answer.producer_id, answer.producer_epoch)

    def _renew(self, producer_id: int, epoch: int) -> None:
        self._producer = producer_id, epoch
        self._sequences.clear()

    def _insist(self, request: Any, version: int, code_of: Callable[[Any], int]) -> Any:
        while True:
            try:
                if self._client is None:
                    self._client = WireClient(self._bootstrap)
                answer = self._client.ask(request, version)
            except OSError:
                self._client = None
            else:
                code = ErrorCode(code_of(answer))
                if not code:
                    return answer
                if code not in _AGAIN:
                    raise FatalAnswer(f"{type(request).__name__}: {code.name}")
            Event().wait(_PAUSE_S)

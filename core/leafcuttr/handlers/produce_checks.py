"""Why a Produce request is refused before its batches are staged: all of it, or one partition.

Kafka's order holds: first what begins no batch, or is transactional without a transactional id, which refuses the whole
request; then each partition by itself. The checks of the batch as such are `leafcuttr.log.append.stage`'s.
"""

from typing import Final

from leafcuttr.errors import BrokerError, ErrorCode, InvalidRecordSet, UnsupportedCompressionType
from leafcuttr.handlers.access import WRITE_TRANSACTION, may
from leafcuttr.handlers.context import RequestContext
from leafcuttr.log.log import Log
from leafcuttr.state.broker import Broker
from leafcuttr.wire.batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    HEADER_SIZE,
    MAGIC,
    MAGIC_AT,
    TRANSACTIONAL,
    CorruptBatch,
    batch_size,
    parse,
)
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.messages.produce import PartitionProduceData, ProduceRequest

_KNOWS_ABORTABLE: Final = 11
ADDS_PARTITIONS: Final = 12
_ZSTD: Final = 7  # the first version that may carry it (KIP-110)


def refusal_of(
    broker: Broker, context: RequestContext, request: ProduceRequest
) -> tuple[ErrorCode, str | None] | None:
    """Why nothing of the request is taken, whatever the partitions: a transactional batch without a transactional id,
    or with one that the client may not use; or, before such a batch is found, bytes that cannot begin a batch. A batch
    that is cut off counts as none."""
    for topic in request.topic_data:
        for item in topic.partition_data:
            records = item.records
            if not records:
                continue
            try:
                size = batch_size(records)
            except CorruptBatch as error:
                return ErrorCode.CORRUPT_MESSAGE, str(error)
            if size is not None and records[MAGIC_AT] == MAGIC and records[ATTRIBUTES_AT + 1] & TRANSACTIONAL:
                name = request.transactional_id
                if name is None or not may(broker, context, WRITE_TRANSACTION, name):
                    return WRITE_TRANSACTION.error, None
                return None
    return None


def records_of(item: PartitionProduceData, version: int) -> memoryview:
    """The record set of a partition. Raises InvalidRecordSet if there is none, UnsupportedCompressionType."""
    records = item.records
    if records is None:
        raise InvalidRecordSet(
            "a Produce request carries exactly one record batch for a partition, this one has none"
        )
    if (
        version < _ZSTD
        and len(records) > HEADER_SIZE
        and records[ATTRIBUTES_AT + 1] & CODEC_MASK == Codec.ZSTD
    ):
        raise UnsupportedCompressionType
    return records


def admit(broker: Broker, version: int, transactional_id: str, log: Log, batch: memoryview) -> ErrorCode:
    """Whether a transactional batch may be written: NONE, or the error of its partition."""
    header = parse(batch)
    known = log.producers.get(header.producer_id)
    if known is not None and known.epoch == header.producer_epoch and known.current_txn_first_offset >= 0:
        return ErrorCode.NONE
    try:
        admitted = broker.transactions.admit(
            transactional_id,
            header.producer_id,
            header.producer_epoch,
            log.topic_partition,
            adds=version >= ADDS_PARTITIONS,
            knows_abortable=version >= _KNOWS_ABORTABLE,
        )
    except BrokerError as error:
        return error.code
    return admitted if isinstance(admitted, ErrorCode) else ErrorCode.CONCURRENT_TRANSACTIONS

"""The records of `__transaction_state`.

Values of version 1 are flexible; they carry the producer ids of before and after, and the client's transaction
version (KIP-890, part 2), all as tagged fields.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT8, INT16, INT32, INT64, STRING, array, field, message, struct


@message("0")
class TransactionLogKey:
    transactional_id: str = field(STRING, "0")


@struct
class PartitionsSchema:
    topic: str = field(STRING, "0+")
    partition_ids: Sequence[int] = field(array(INT32), "0+")


@message("0-1", flexible="1+")
class TransactionLogValue:
    producer_id: int = field(INT64, "0+")
    previous_producer_id: int = field(INT64, "1+", default=-1, tag=0, tagged="1+")
    next_producer_id: int = field(INT64, "1+", default=-1, tag=1, tagged="1+")
    producer_epoch: int = field(INT16, "0+")
    next_producer_epoch: int = field(INT16, "1+", default=-1, tag=3, tagged="1+")
    transaction_timeout_ms: int = field(INT32, "0+")
    transaction_status: int = field(INT8, "0+")
    transaction_partitions: Sequence[PartitionsSchema] | None = field(
        array(PartitionsSchema), "0+", nullable="0+"
    )
    transaction_last_update_timestamp_ms: int = field(INT64, "0+")
    transaction_start_timestamp_ms: int = field(INT64, "0+")
    client_transaction_version: int = field(INT16, "1+", tag=2, tagged="1+")

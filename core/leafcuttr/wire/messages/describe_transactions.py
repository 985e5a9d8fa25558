"""What the coordinator knows of some transactional ids (KIP-664). Flexible from version 0."""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT16, INT32, INT64, STRING, array, field, message, struct


@message("0", flexible="0+")
class DescribeTransactionsRequest:
    transactional_ids: Sequence[str] = field(array(STRING), "0+")


@struct
class TopicData:
    topic: str = field(STRING, "0+")
    partitions: Sequence[int] = field(array(INT32), "0+")


@struct
class TransactionState:
    error_code: int = field(INT16, "0+")
    transactional_id: str = field(STRING, "0+")
    transaction_state: str = field(STRING, "0+")
    transaction_timeout_ms: int = field(INT32, "0+")
    transaction_start_time_ms: int = field(INT64, "0+")
    producer_id: int = field(INT64, "0+")
    producer_epoch: int = field(INT16, "0+")
    topics: Sequence[TopicData] = field(array(TopicData), "0+")


@message("0", flexible="0+")
class DescribeTransactionsResponse:
    throttle_time_ms: int = field(INT32, "0+")
    transaction_states: Sequence[TransactionState] = field(array(TransactionState), "0+")

"""Add partitions to a transaction, or check whether they are in it (KIP-98, KIP-890).

Versions:
- 2: PRODUCER_FENCED may be answered.
- 3: flexible.
- 4: many transactions at once, `verify_only`; used between brokers, while clients stay at 3.
- 5: TRANSACTION_ABORTABLE may be answered (KIP-890).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BOOL, INT16, INT32, INT64, STRING, array, field, message, struct


@struct
class AddPartitionsToTxnTopic:
    name: str = field(STRING, "0+")
    partitions: Sequence[int] = field(array(INT32), "0+")


@struct
class AddPartitionsToTxnTransaction:
    transactional_id: str = field(STRING, "4+")
    producer_id: int = field(INT64, "4+")
    producer_epoch: int = field(INT16, "4+")
    verify_only: bool = field(BOOL, "4+")
    topics: Sequence[AddPartitionsToTxnTopic] = field(array(AddPartitionsToTxnTopic), "4+")


@message("0-5", flexible="3+")
class AddPartitionsToTxnRequest:
    transactions: Sequence[AddPartitionsToTxnTransaction] = field(array(AddPartitionsToTxnTransaction), "4+")
    v3_and_below_transactional_id: str = field(STRING, "0-3")
    v3_and_below_producer_id: int = field(INT64, "0-3")
    v3_and_below_producer_epoch: int = field(INT16, "0-3")
    v3_and_below_topics: Sequence[AddPartitionsToTxnTopic] = field(array(AddPartitionsToTxnTopic), "0-3")


@struct
class AddPartitionsToTxnPartitionResult:
    partition_index: int = field(INT32, "0+")
    partition_error_code: int = field(INT16, "0+")


@struct
class AddPartitionsToTxnTopicResult:
    name: str = field(STRING, "0+")
    results_by_partition: Sequence[AddPartitionsToTxnPartitionResult] = field(
        array(AddPartitionsToTxnPartitionResult), "0+"
    )


@struct
class AddPartitionsToTxnResult:
    transactional_id: str = field(STRING, "4+")
    topic_results: Sequence[AddPartitionsToTxnTopicResult] = field(array(AddPartitionsToTxnTopicResult), "4+")


@message("0-5", flexible="3+")
class AddPartitionsToTxnResponse:
    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "4+", ignorable=True)
    results_by_transaction: Sequence[AddPartitionsToTxnResult] = field(array(AddPartitionsToTxnResult), "4+")
    results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult] = field(
        array(AddPartitionsToTxnTopicResult), "0-3"
    )

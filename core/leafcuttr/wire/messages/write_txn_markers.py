"""The ends of transactions, written into partitions (KIP-98). A coordinator sends it to leaders of partitions, the
admin client to end a hanging transaction (KIP-664).

Versions: 1 flexible, 2 the transaction version (KIP-1228).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BOOL, INT8, INT16, INT32, INT64, STRING, array, field, message, struct


@struct
class WritableTxnMarkerTopic:
    name: str = field(STRING, "0+")
    partition_indexes: Sequence[int] = field(array(INT32), "0+")


@struct
class WritableTxnMarker:
    producer_id: int = field(INT64, "0+")
    producer_epoch: int = field(INT16, "0+")
    transaction_result: bool = field(BOOL, "0+")
    topics: Sequence[WritableTxnMarkerTopic] = field(array(WritableTxnMarkerTopic), "0+")
    coordinator_epoch: int = field(INT32, "0+")
    transaction_version: int = field(INT8, "2+", ignorable=True)


@message("1-2", flexible="1+")
class WriteTxnMarkersRequest:
    markers: Sequence[WritableTxnMarker] = field(array(WritableTxnMarker), "0+")


@struct
class WritableTxnMarkerPartitionResult:
    partition_index: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")


@struct
class WritableTxnMarkerTopicResult:
    name: str = field(STRING, "0+")
    partitions: Sequence[WritableTxnMarkerPartitionResult] = field(
        array(WritableTxnMarkerPartitionResult), "0+"
    )


@struct
class WritableTxnMarkerResult:
    producer_id: int = field(INT64, "0+")
    topics: Sequence[WritableTxnMarkerTopicResult] = field(array(WritableTxnMarkerTopicResult), "0+")


@message("1-2", flexible="1+")
class WriteTxnMarkersResponse:
    markers: Sequence[WritableTxnMarkerResult] = field(array(WritableTxnMarkerResult), "0+")

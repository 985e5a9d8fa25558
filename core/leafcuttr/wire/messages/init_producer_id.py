"""Hand out a producer id and epoch, for idempotence and transactions (KIP-98).

Versions:
- 2: flexible.
- 3: the present id and epoch, to resume after an error (KIP-360).
- 4: PRODUCER_FENCED may be answered.
- 5: TRANSACTION_ABORTABLE may be answered (KIP-890).
- 6: two-phase commit (KIP-939), declared but not yet stable in Kafka and not served.
"""

from leafcuttr.wire.schema import BOOL, INT16, INT32, INT64, STRING, field, message


@message("0-6", flexible="2+")
class InitProducerIdRequest:
    transactional_id: str | None = field(STRING, "0+", nullable="0+")
    transaction_timeout_ms: int = field(INT32, "0+")
    producer_id: int = field(INT64, "3+", default=-1)
    producer_epoch: int = field(INT16, "3+", default=-1)
    enable2_pc: bool = field(BOOL, "6+")
    keep_prepared_txn: bool = field(BOOL, "6+")


@message("0-6", flexible="2+")
class InitProducerIdResponse:
    throttle_time_ms: int = field(INT32, "0+", ignorable=True)
    error_code: int = field(INT16, "0+")
    producer_id: int = field(INT64, "0+", default=-1)
    producer_epoch: int = field(INT16, "0+")
    ongoing_txn_producer_id: int = field(INT64, "6+", default=-1)
    ongoing_txn_producer_epoch: int = field(INT16, "6+", default=-1)

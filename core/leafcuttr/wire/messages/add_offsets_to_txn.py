"""Add the offsets of a group to a transaction (KIP-98).

Versions:
- 2: PRODUCER_FENCED may be answered.
- 3: flexible.
- 4: TRANSACTION_ABORTABLE may be answered (KIP-890).
"""

from leafcuttr.wire.schema import INT16, INT32, INT64, STRING, field, message


@message("0-4", flexible="3+")
class AddOffsetsToTxnRequest:
    transactional_id: str = field(STRING, "0+")
    producer_id: int = field(INT64, "0+")
    producer_epoch: int = field(INT16, "0+")
    group_id: str = field(STRING, "0+")


@message("0-4", flexible="3+")
class AddOffsetsToTxnResponse:
    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")

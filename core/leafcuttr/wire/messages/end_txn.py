"""Commit or abort a transaction (KIP-98).

Versions:
- 2: PRODUCER_FENCED may be answered.
- 3: flexible.
- 4: TRANSACTION_ABORTABLE may be answered (KIP-890).
- 5: every transaction ends with a new epoch, which is in the answer (KIP-890, part 2).
"""

from leafcuttr.wire.schema import BOOL, INT16, INT32, INT64, STRING, field, message


@message("0-5", flexible="3+")
class EndTxnRequest:
    transactional_id: str = field(STRING, "0+")
    producer_id: int = field(INT64, "0+")
    producer_epoch: int = field(INT16, "0+")
    committed: bool = field(BOOL, "0+")


@message("0-5", flexible="3+")
class EndTxnResponse:
    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    producer_id: int = field(INT64, "5+", default=-1, ignorable=True)
    producer_epoch: int = field(INT16, "5+", default=-1, ignorable=True)

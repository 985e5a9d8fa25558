"""The transactional ids that this coordinator knows (KIP-664). Flexible from version 0.

Versions:
- 1: filter by duration (KIP-994).
- 2: filter by a pattern of the transactional id (KIP-1152).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT16, INT32, INT64, STRING, array, field, message, struct


@message("0-2", flexible="0+")
class ListTransactionsRequest:
    state_filters: Sequence[str] = field(array(STRING), "0+")
    producer_id_filters: Sequence[int] = field(array(INT64), "0+")
    duration_filter: int = field(INT64, "1+", default=-1)
    transactional_id_pattern: str | None = field(STRING, "2+", nullable="2+", default=None)


@struct
class TransactionState:
    transactional_id: str = field(STRING, "0+")
    producer_id: int = field(INT64, "0+")
    transaction_state: str = field(STRING, "0+")


@message("0-2", flexible="0+")
class ListTransactionsResponse:
    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    unknown_state_filters: Sequence[str] = field(array(STRING), "0+")
    transaction_states: Sequence[TransactionState] = field(array(TransactionState), "0+")

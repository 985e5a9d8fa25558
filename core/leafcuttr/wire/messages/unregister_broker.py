"""Remove a broker from a cluster (KIP-500).

Flexible from version 0.
"""

from leafcuttr.wire.schema import INT16, INT32, STRING, field, message


@message("0", flexible="0+")
class UnregisterBrokerRequest:
    broker_id: int = field(INT32, "0+")


@message("0", flexible="0+")
class UnregisterBrokerResponse:
    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")

"""Have a delegation token end sooner, or at once (KIP-48)."""

from leafcuttr.wire.schema import BYTES, INT16, INT32, INT64, field, message


@message("1-2", flexible="2+")
class ExpireDelegationTokenRequest:
    hmac: bytes = field(BYTES, "0+")
    expiry_time_period_ms: int = field(INT64, "0+")


@message("1-2", flexible="2+")
class ExpireDelegationTokenResponse:
    error_code: int = field(INT16, "0+")
    expiry_timestamp_ms: int = field(INT64, "0+")
    throttle_time_ms: int = field(INT32, "0+")

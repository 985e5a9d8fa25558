"""Have a delegation token last longer, up to its last time (KIP-48)."""

from leafcuttr.wire.schema import BYTES, INT16, INT32, INT64, field, message


@message("1-2", flexible="2+")
class RenewDelegationTokenRequest:
    hmac: bytes = field(BYTES, "0+")
    renew_period_ms: int = field(INT64, "0+")


@message("1-2", flexible="2+")
class RenewDelegationTokenResponse:
    error_code: int = field(INT16, "0+")
    expiry_timestamp_ms: int = field(INT64, "0+")
    throttle_time_ms: int = field(INT32, "0+")

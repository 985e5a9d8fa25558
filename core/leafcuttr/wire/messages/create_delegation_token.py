"""Make a delegation token: what programs log in with for its owner (KIP-48).

Version 3 may name another owner, and answers who has made it (KIP-373).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BYTES, INT16, INT32, INT64, STRING, array, field, message, struct


@struct
class CreatableRenewers:
    principal_type: str = field(STRING, "0+")
    principal_name: str = field(STRING, "0+")


@message("1-3", flexible="2+")
class CreateDelegationTokenRequest:
    owner_principal_type: str | None = field(STRING, "3+", nullable="3+")
    owner_principal_name: str | None = field(STRING, "3+", nullable="3+")
    renewers: Sequence[CreatableRenewers] = field(array(CreatableRenewers), "0+")
    max_lifetime_ms: int = field(INT64, "0+")


@message("1-3", flexible="2+")
class CreateDelegationTokenResponse:
    error_code: int = field(INT16, "0+")
    principal_type: str = field(STRING, "0+")
    principal_name: str = field(STRING, "0+")
    token_requester_principal_type: str = field(STRING, "3+")
    token_requester_principal_name: str = field(STRING, "3+")
    issue_timestamp_ms: int = field(INT64, "0+")
    expiry_timestamp_ms: int = field(INT64, "0+")
    max_timestamp_ms: int = field(INT64, "0+")
    token_id: str = field(STRING, "0+")
    hmac: bytes = field(BYTES, "0+")
    throttle_time_ms: int = field(INT32, "0+")

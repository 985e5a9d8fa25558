"""Delegation tokens with their HMACs, of all owners or of some (KIP-48).

Version 3 says who has made them (KIP-373).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BYTES, INT16, INT32, INT64, STRING, array, field, message, struct


@struct
class DescribeDelegationTokenOwner:
    principal_type: str = field(STRING, "1+")
    principal_name: str = field(STRING, "1+")


@message("1-3", flexible="2+")
class DescribeDelegationTokenRequest:
    owners: Sequence[DescribeDelegationTokenOwner] | None = field(
        array(DescribeDelegationTokenOwner), "1+", nullable="1+"
    )


@struct
class DescribedDelegationTokenRenewer:
    principal_type: str = field(STRING, "1+")
    principal_name: str = field(STRING, "1+")


@struct
class DescribedDelegationToken:
    principal_type: str = field(STRING, "1+")
    principal_name: str = field(STRING, "1+")
    token_requester_principal_type: str = field(STRING, "3+")
    token_requester_principal_name: str = field(STRING, "3+")
    issue_timestamp: int = field(INT64, "1+")
    expiry_timestamp: int = field(INT64, "1+")
    max_timestamp: int = field(INT64, "1+")
    token_id: str = field(STRING, "1+")
    hmac: bytes = field(BYTES, "1+")
    renewers: Sequence[DescribedDelegationTokenRenewer] = field(array(DescribedDelegationTokenRenewer), "1+")


@message("1-3", flexible="2+")
class DescribeDelegationTokenResponse:
    error_code: int = field(INT16, "1+")
    tokens: Sequence[DescribedDelegationToken] = field(array(DescribedDelegationToken), "1+")
    throttle_time_ms: int = field(INT32, "1+")

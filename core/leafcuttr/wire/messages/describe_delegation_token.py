"""Delegation tokens with their HMACs, of all owners or of some (KIP-48).

Version 3 says who has made them (KIP-373).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BYTES, INT16, INT32, INT64, STRING, array, field, message, struct


@struct
class DescribeDelegationTokenOwner:
    principal_type: str = field(STRING, "0+")
    principal_name: str = field(STRING, "0+")


@message("1-3", flexible="2+")
class DescribeDelegationTokenRequest:
    owners: Sequence[DescribeDelegationTokenOwner] | None = field(
        array(DescribeDelegationTokenOwner), "0+", nullable="0+"
    )


@struct
class DescribedDelegationTokenRenewer:
    principal_type: str = field(STRING, "0+")
    principal_name: str = field(STRING, "0+")


@struct
class DescribedDelegationToken:
    principal_type: str = field(STRING, "0+")
    principal_name: str = field(STRING, "0+")
    token_requester_principal_type: str = field(STRING, "3+")
    token_requester_principal_name: str = field(STRING, "3+")
    issue_timestamp: int = field(INT64, "0+")
    expiry_timestamp: int = field(INT64, "0+")
    max_timestamp: int = field(INT64, "0+")
    token_id: str = field(STRING, "0+")
    hmac: bytes = field(BYTES, "0+")
    renewers: Sequence[DescribedDelegationTokenRenewer] = field(array(DescribedDelegationTokenRenewer), "0+")


@message("1-3", flexible="2+")
class DescribeDelegationTokenResponse:
    error_code: int = field(INT16, "0+")
    tokens: Sequence[DescribedDelegationToken] = field(array(DescribedDelegationToken), "0+")
    throttle_time_ms: int = field(INT32, "0+")

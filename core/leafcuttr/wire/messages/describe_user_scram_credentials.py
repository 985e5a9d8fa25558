"""The SCRAM credentials of users: which mechanisms each has, with how many iterations (KIP-554).

Salts and keys are never told.

No users, or null, are all of them.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT8, INT16, INT32, STRING, array, field, message, struct


@struct
class UserName:
    name: str = field(STRING, "0+")


@message("0", flexible="0+")
class DescribeUserScramCredentialsRequest:
    users: Sequence[UserName] | None = field(array(UserName), "0+", nullable="0+")


@struct
class CredentialInfo:
    mechanism: int = field(INT8, "0+")
    iterations: int = field(INT32, "0+")


@struct
class DescribeUserScramCredentialsResult:
    user: str = field(STRING, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    credential_infos: Sequence[CredentialInfo] = field(array(CredentialInfo), "0+")


@message("0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    results: Sequence[DescribeUserScramCredentialsResult] = field(
        array(DescribeUserScramCredentialsResult), "0+"
    )

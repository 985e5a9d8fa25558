"""Set and delete SCRAM credentials of users (KIP-554).

The client salts and hashes the password; the broker makes the keys that it stores of what comes.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BYTES, INT8, INT16, INT32, STRING, array, field, message, struct


@struct
class ScramCredentialDeletion:
    name: str = field(STRING, "0+")
    mechanism: int = field(INT8, "0+")


@struct
class ScramCredentialUpsertion:
    name: str = field(STRING, "0+")
    mechanism: int = field(INT8, "0+")
    iterations: int = field(INT32, "0+")
    salt: bytes = field(BYTES, "0+")
    salted_password: bytes = field(BYTES, "0+")


@message("0", flexible="0+")
class AlterUserScramCredentialsRequest:
    deletions: Sequence[ScramCredentialDeletion] = field(array(ScramCredentialDeletion), "0+")
    upsertions: Sequence[ScramCredentialUpsertion] = field(array(ScramCredentialUpsertion), "0+")


@struct
class AlterUserScramCredentialsResult:
    user: str = field(STRING, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")


@message("0", flexible="0+")
class AlterUserScramCredentialsResponse:
    throttle_time_ms: int = field(INT32, "0+")
    results: Sequence[AlterUserScramCredentialsResult] = field(array(AlterUserScramCredentialsResult), "0+")

"""Users are told by mechanism and iterations; those that there are not, and those that are named twice, by an error."""

from __future__ import annotations

from typing import Any

from leafcuttr.errors import ErrorCode
from leafcuttr.state.security.credentials import ScramCredential, ScramMechanism
from leafcuttr.state.security.users import CredentialUpsertion
from leafcuttr.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)


async def test_users(send: Any, broker: Any) -> None:
    secret = ScramCredential(b"salt", b"stored", b"server", 4096)
    await broker.users.alter([CredentialUpsertion("a", ScramMechanism.SCRAM_SHA_512, secret)], [])
    for users in (None, []):
        answer = await send(DescribeUserScramCredentialsRequest(users=users), 0)
        assert [one.user for one in answer.results] == ["a"]
    names = [UserName(name=one) for one in ("a", "b", "c", "c")]
    answer = await send(DescribeUserScramCredentialsRequest(users=names), 0)
    found, missing, twice = answer.results
    assert (answer.error_code, answer.error_message) == (0, "")
    assert (found.error_code, found.error_message) == (0, "")
    assert [(one.mechanism, one.iterations) for one in found.credential_infos] == [(2, 4096)]
    assert missing.error_code == ErrorCode.RESOURCE_NOT_FOUND
    assert missing.error_message == "Attempt to describe a user credential that does not exist: b"
    assert twice.error_code == ErrorCode.DUPLICATE_RESOURCE
    assert twice.error_message == (
        "Cannot describe SCRAM credentials for the same user twice in a single request: c"
    )

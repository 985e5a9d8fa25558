"""Users are set and deleted, in the words of Kafka's controller."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.security.credentials import ScramMechanism
from leafcuttr.state.security.scram import fits, salted
from leafcuttr.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from leafcuttr.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)

SHA_256, SHA_512 = ScramMechanism


def upsertion(name: str = "alice", mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
    kind = ScramMechanism(mechanism) if mechanism in list(ScramMechanism) else SHA_256
    return ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=b"salt",
        salted_password=salted(kind, b"secret", b"salt", max(iterations, 1)),
    )


def deletion(name: str = "alice", mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


async def alter(send: Any, *changes: Any) -> dict[str, tuple[int, str | None]]:
    request = AlterUserScramCredentialsRequest(
        deletions=[one for one in changes if isinstance(one, ScramCredentialDeletion)],
        upsertions=[one for one in changes if isinstance(one, ScramCredentialUpsertion)],
    )
    answer = await send(request, 0)
    return {one.user: (one.error_code, one.error_message) for one in answer.results}


async def described(send: Any, *names: str) -> dict[str, Any]:
    answer = await send(DescribeUserScramCredentialsRequest(users=[UserName(name=one) for one in names]), 0)
    assert (answer.error_code, answer.error_message) == (0, "")
    return {
        one.user: [(info.mechanism, info.iterations) for info in one.credential_infos]
        or (one.error_code, one.error_message)
        for one in answer.results
    }


async def test_users_come_and_go(send: Any, broker: Any) -> None:
    assert await described(send) == {}
    done = await alter(send, upsertion(), upsertion(mechanism=2, iterations=8192), upsertion("bob"))
    assert done == {"alice": (0, None), "bob": (0, None)}
    assert await described(send) == {"alice": [(1, 4096), (2, 8192)], "bob": [(1, 4096)]}
    stored = broker.users.credentials("alice")
    assert all(fits(mechanism, one, b"secret") for mechanism, one in stored.items())
    assert await alter(send, deletion(), deletion("bob")) == {"alice": (0, None), "bob": (0, None)}
    assert await described(send, "alice") == {"alice": [(2, 8192)]}


@pytest.mark.parametrize(
    ("changes", "code", "text"),
    [
        ([upsertion("")], ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        ([deletion("")], ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        ([upsertion(mechanism=3)], ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        ([deletion(mechanism=0)], ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        ([upsertion(iterations=4095)], ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        ([upsertion(iterations=16_385)], ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (
            [deletion("nobody")],
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        ),
        (
            [upsertion(), upsertion()],
            ErrorCode.DUPLICATE_RESOURCE,
            "A user credential cannot be altered twice in the same request",
        ),
        (
            [upsertion(), deletion()],
            ErrorCode.DUPLICATE_RESOURCE,
            "A user credential cannot be altered twice in the same request",
        ),
    ],
)
async def test_what_is_refused_changes_nothing_of_that_user(
    send: Any, changes: list[Any], code: ErrorCode, text: str
) -> None:
    name = changes[0].name
    done = await alter(send, *changes, upsertion("other"))
    assert done == {name: (code, text), "other": (0, None)}
    assert await described(send) == {"other": [(1, 4096)]}

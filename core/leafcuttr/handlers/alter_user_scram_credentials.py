"""AlterUserScramCredentials, version 0: set and delete credentials of users (KIP-554).

The words of the refusals are those of Kafka's controller. A user with one refusal is left as it is; the others are
changed, all together. Connections that have logged in with what is changed end after the request at hand.
"""

from collections import Counter
from collections.abc import Iterator

import trio

from leafcuttr.errors import ErrorCode, StorageError
from leafcuttr.handlers.access import ALTER_CLUSTER, refusal
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.credentials import ScramMechanism
from leafcuttr.state.security.users import CredentialDeletion, CredentialUpsertion, Users
from leafcuttr.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

Refusal = tuple[ErrorCode, str]


async def handle(
    broker: Broker, context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    if (denied := refusal(broker, context, ALTER_CLUSTER)) is not None:
        all_names = sorted(
            {*(one.name for one in request.deletions), *(one.name for one in request.upsertions)}
        )
        return AlterUserScramCredentialsResponse(
            results=[_result(name, (denied.code, denied.message or "")) for name in all_names]
        )
    refused = dict(_refusals(broker.users, request))
    deletions = [
        CredentialDeletion(one.name, ScramMechanism(one.mechanism))
        for one in request.deletions
        if one.name not in refused
    ]
    requested = [one for one in request.upsertions if one.name not in refused]
    if deletions or requested:
        upsertions = await trio.to_thread.run_sync(_upsertions, requested)
        try:
            await broker.users.alter(upsertions, deletions)
        except StorageError as error:
            for name in (*(one.name for one in deletions), *(one.name for one in upsertions)):
                refused[name] = (error.code, error.message or "")
    names = dict.fromkeys(
        (*(one.name for one in request.deletions), *(one.name for one in request.upsertions))
    )
    return AlterUserScramCredentialsResponse(results=[_result(name, refused.get(name)) for name in names])


def _upsertions(requested: list[ScramCredentialUpsertion]) -> list[CredentialUpsertion]:
    from leafcuttr.state.security.scram import credential_of

    return [
        CredentialUpsertion(
            one.name,
            mechanism := ScramMechanism(one.mechanism),
            credential_of(mechanism, bytes(one.salt), bytes(one.salted_password), one.iterations),
        )
        for one in requested
    ]


def _refusals(users: Users, request: AlterUserScramCredentialsRequest) -> Iterator[tuple[str, Refusal]]:
    """Of several for one user the last one counts."""
    for one in request.upsertions:
        if (refusal := _of_upsertion(one)) is not None:
            yield one.name, refusal
    for gone in request.deletions:
        if (refusal := _of_any(gone)) is not None:
            yield gone.name, refusal
        elif ScramMechanism(gone.mechanism) not in users.credentials(gone.name):
            text = "Attempt to delete a user credential that does not exist"
            yield gone.name, (ErrorCode.RESOURCE_NOT_FOUND, text)
    times = Counter(
        (
            *((one.name, one.mechanism) for one in request.deletions),
            *((one.name, one.mechanism) for one in request.upsertions),
        )
    )
    for (name, _), count in times.items():
        if count > 1:
            text = "A user credential cannot be altered twice in the same request"
            yield name, (ErrorCode.DUPLICATE_RESOURCE, text)


def _of_any(one: ScramCredentialDeletion | ScramCredentialUpsertion) -> Refusal | None:
    if not one.name:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    if one.mechanism not in list(ScramMechanism):
        return ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
    return None


def _of_upsertion(one: ScramCredentialUpsertion) -> Refusal | None:
    from leafcuttr.state.security.scram import LEAST_ITERATIONS, MOST_ITERATIONS

    if (refusal := _of_any(one)) is not None:
        return refusal
    if one.iterations < LEAST_ITERATIONS:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"
    if one.iterations > MOST_ITERATIONS:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"
    return None


def _result(name: str, refusal: Refusal | None) -> AlterUserScramCredentialsResult:
    code, text = refusal or (ErrorCode.NONE, None)
    return AlterUserScramCredentialsResult(user=name, error_code=code, error_message=text)

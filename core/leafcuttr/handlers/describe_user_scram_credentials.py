"""DescribeUserScramCredentials, version 0: which SCRAM mechanisms users have, with how many iterations (KIP-554).

A user without credentials is a RESOURCE_NOT_FOUND, one that is named twice a DUPLICATE_RESOURCE, in the words of
Kafka's controller.
"""

from collections import Counter

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.access import DESCRIBE_CLUSTER, refusal
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


async def handle(
    broker: Broker, context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    if (refused := refusal(broker, context, DESCRIBE_CLUSTER)) is not None:
        one = DescribeUserScramCredentialsResult(error_code=refused.code, error_message=None)
        return DescribeUserScramCredentialsResponse(
            error_code=refused.code,
            error_message=None,
            results=[one] * len(request.users or ()),
        )
    named = Counter(user.name for user in request.users or ())
    if not named:
        named = Counter(broker.users.names())
    return DescribeUserScramCredentialsResponse(
        error_message="",
        results=[_result(broker, name, times) async for name, times in Pace().over(named.items())],
    )


def _result(broker: Broker, name: str, times: int) -> DescribeUserScramCredentialsResult:
    if times > 1:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message=f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}",
        )
    credentials = broker.users.credentials(name)
    if not credentials:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {name}",
        )
    return DescribeUserScramCredentialsResult(
        user=name,
        error_message="",
        credential_infos=[
            CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
            for mechanism, credential in sorted(credentials.items())
        ],
    )

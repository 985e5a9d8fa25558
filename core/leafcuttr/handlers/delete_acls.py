"""DeleteAcls, versions 1 to 3: all ACLs that some filter takes, together.

Version 1 brought prefixed patterns (KIP-290), 2 is flexible, 3 knows the type USER (KIP-373). One that several filters
take is in the answer to each of them. Without an authorizer all are SECURITY_DISABLED.
"""

from collections.abc import Sequence

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.access import ALTER_CLUSTER, refusal
from leafcuttr.handlers.acl_filters import filter_of
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.acl import Acl
from leafcuttr.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


async def handle(broker: Broker, context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    pace = Pace()
    count = len(request.filters)
    refused: BrokerError | None = refusal(broker, context, ALTER_CLUSTER)
    if refused is not None:
        return _all(count, refused.code, refused.message)
    acls = None if broker.authorizer is None else broker.authorizer.acls
    if acls is None:
        return _all(count, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    try:
        filters = [filter_of(each) async for each in pace.over(request.filters)]
        found = await acls.delete(filters)
    except BrokerError as error:
        return _all(count, error.code, error.message)
    return DeleteAclsResponse(filter_results=[await _result(acls, pace) for acls in found])


async def _result(acls: Sequence[Acl], pace: Pace) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        error_message=None,
        matching_acls=[
            DeleteAclsMatchingAcl(
                error_message=None,
                resource_type=acl.resource_type,
                resource_name=acl.name,
                pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            async for acl in pace.over(acls)
        ],
    )


def _all(count: int, code: ErrorCode, message: str | None) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[DeleteAclsFilterResult(error_code=code, error_message=message)] * count
    )

"""DescribeAcls, versions 1 to 3: the ACLs that a filter takes.

Version 1 brought prefixed patterns (KIP-290), 2 is flexible, 3 knows the type USER (KIP-373). Without an authorizer it
is SECURITY_DISABLED.
"""

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.access import DESCRIBE_CLUSTER, refusal
from leafcuttr.handlers.acl_filters import filter_of
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.acl import Acl, AclResourceType, PatternType
from leafcuttr.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


async def handle(
    broker: Broker, context: RequestContext, request: DescribeAclsRequest
) -> DescribeAclsResponse:
    if (refused := refusal(broker, context, DESCRIBE_CLUSTER)) is not None:
        return DescribeAclsResponse(error_code=refused.code, error_message=refused.message)
    acls = None if broker.authorizer is None else broker.authorizer.acls
    if acls is None:
        return DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured on the broker"
        )
    try:
        wanted = filter_of(request)
    except BrokerError as error:
        return DescribeAclsResponse(error_code=error.code, error_message=error.message)
    pace = Pace()
    by_pattern: dict[tuple[AclResourceType, str, PatternType], list[Acl]] = {}
    for acl in await acls.matching(wanted):
        by_pattern.setdefault(acl[:3], []).append(acl)
    return DescribeAclsResponse(
        error_message="",
        resources=[
            DescribeAclsResource(
                resource_type=resource_type,
                resource_name=name,
                pattern_type=pattern_type,
                acls=[
                    AclDescription(
                        principal=acl.principal,
                        host=acl.host,
                        operation=acl.operation,
                        permission_type=acl.permission,
                    )
                    for acl in acls
                ],
            )
            async for (resource_type, name, pattern_type), acls in pace.over(by_pattern.items())
        ],
    )

"""CreateAcls, versions 1 to 3: new ACLs; one that there is already stays.

Version 1 brought prefixed patterns (KIP-290), 2 is flexible, 3 knows the type USER (KIP-373). Each is refused by
itself, in the words of Kafka's controller; the others are stored together. Without an authorizer all are
SECURITY_DISABLED.
"""

from leafcuttr.errors import BrokerError, ErrorCode, InvalidRequest, PolicyViolation
from leafcuttr.handlers.access import ALTER_CLUSTER, refusal
from leafcuttr.handlers.acl_filters import known
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.acl import (
    CLUSTER_NAME,
    Acl,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)
from leafcuttr.state.security.acls import MOST_AT_ONCE, Acls
from leafcuttr.wire.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


async def handle(broker: Broker, context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    pace = Pace()
    refused: BrokerError | None = refusal(broker, context, ALTER_CLUSTER)
    if refused is not None:
        return _all(len(request.creations), refused.code, refused.message)
    acls = None if broker.authorizer is None else broker.authorizer.acls
    if acls is None:
        return _all(len(request.creations), ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    checked = [_checked(creation) async for creation in pace.over(request.creations)]
    failure = await _create(acls, [one for one in checked if isinstance(one, Acl)])
    return CreateAclsResponse(results=[_result(failure if isinstance(one, Acl) else one) for one in checked])


async def _create(acls: Acls, sound: list[Acl]) -> BrokerError | None:
    try:
        if len(sound) > MOST_AT_ONCE:
            raise PolicyViolation("Unable to perform excessively large batch operation.")
        await acls.create(sound)
    except BrokerError as error:
        return error.with_traceback(None)
    return None


def _checked(creation: AclCreation) -> Acl | BrokerError:
    """The ACL, or why it cannot be one."""
    try:
        acl = _acl_of(creation)
    except InvalidRequest as error:
        return error.with_traceback(None)
    why = _wrong_with(acl)
    return acl if why is None else InvalidRequest(why)


def _acl_of(creation: AclCreation) -> Acl:
    """Raises InvalidRequest."""
    return Acl(
        known(AclResourceType, creation.resource_type),
        creation.resource_name,
        known(PatternType, creation.resource_pattern_type),
        creation.principal,
        creation.host,
        known(AclOperation, creation.operation),
        known(AclPermission, creation.permission_type),
    )


def _wrong_with(acl: Acl) -> str | None:
    if acl.resource_type == AclResourceType.CLUSTER and acl.name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not acl.name:
        return "Invalid empty resource name"
    if acl.resource_type == AclResourceType.ANY:
        return f"Invalid resourceType {acl.resource_type.name}"
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return f"Invalid patternType {acl.pattern_type.name}"
    if acl.operation == AclOperation.ANY:
        return f"Invalid operation {acl.operation.name}"
    if acl.permission == AclPermission.ANY:
        return f"Invalid permissionType {acl.permission.name}"
    if ":" not in acl.principal:
        return (
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the principal type "
            "from the principal name)"
        )
    return None


def _result(error: BrokerError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult(error_message=None)
    return AclCreationResult(error_code=error.code, error_message=error.message)


def _all(count: int, code: ErrorCode, message: str | None) -> CreateAclsResponse:
    return CreateAclsResponse(results=[AclCreationResult(error_code=code, error_message=message)] * count)

"""SyncGroup, versions 0 to 5: the leader sends the assignments of all members, and each member gets its own.

Version 3 added static membership (KIP-345), 4 is flexible, 5 names protocol type and name, which must be
there and be the group's (KIP-559). The rules are in `leafcuttr.state.groups`.
"""

from typing import Final

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.access import READ_GROUP, may
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.events import Sync, SyncAnswer
from leafcuttr.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_NAMES_PROTOCOL: Final = 5


async def handle(broker: Broker, context: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
    answer = await _sync(broker, context, request)
    return SyncGroupResponse(
        error_code=answer.error,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol_name,
        assignment=answer.assignment,
    )


async def _sync(broker: Broker, context: RequestContext, request: SyncGroupRequest) -> SyncAnswer:
    unnamed = request.protocol_type is None or request.protocol_name is None
    if unnamed and context.api_version >= _NAMES_PROTOCOL:
        return SyncAnswer(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not may(broker, context, READ_GROUP, request.group_id):
        return SyncAnswer(error=READ_GROUP.error)
    if not request.group_id:
        return SyncAnswer(error=ErrorCode.INVALID_GROUP_ID)
    event = Sync(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments={each.member_id: each.assignment for each in request.assignments},
    )
    try:
        waiter = broker.groups.sync(request.group_id, event)
    except BrokerError as error:
        # While groups are loaded nothing is known of the generation: the client joins again.
        loading = error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return SyncAnswer(error=ErrorCode.REBALANCE_IN_PROGRESS if loading else error.code)
    if waiter.answer is None:
        broker.delayed_requests.add(waiter)
        try:
            await waiter.wait()
        finally:
            broker.delayed_requests.discard(waiter)
    if isinstance(waiter.answer, SyncAnswer):
        return waiter.answer
    return SyncAnswer(error=ErrorCode.NOT_COORDINATOR)

"""Heartbeat, versions 0 to 4: a member lives, and learns whether a round has begun (REBALANCE_IN_PROGRESS).

Version 3 added static membership (KIP-345), 4 is flexible. While groups are loaded the answer is NONE: the
member gets a whole session when its group is there.
"""

from leafcuttr.errors import BrokerError, CoordinatorLoadInProgress, ErrorCode
from leafcuttr.handlers.access import READ_GROUP, may
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(broker: Broker, context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    if not may(broker, context, READ_GROUP, request.group_id):
        return HeartbeatResponse(error_code=READ_GROUP.error)
    if not request.group_id:
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        error = broker.groups.heartbeat(
            request.group_id, request.member_id, request.group_instance_id, request.generation_id
        )
    except CoordinatorLoadInProgress:
        error = ErrorCode.NONE
    except BrokerError as failure:
        error = failure.code
    return HeartbeatResponse(error_code=error)

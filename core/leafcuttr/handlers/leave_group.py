"""LeaveGroup, versions 0 to 5: members go, or an administrator removes static ones by their instance ids.

Version 3 takes many members at once and answers each (KIP-345), 4 is flexible, 5 takes reasons (KIP-800).
"""

from typing import Final

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.access import READ_GROUP, may
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.events import Leaver
from leafcuttr.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

_BATCH: Final = 3
# Members that leave together; more are several steps, and the group may go on in between.
_AT_ONCE: Final = 500


async def handle(broker: Broker, context: RequestContext, request: LeaveGroupRequest) -> LeaveGroupResponse:
    if not may(broker, context, READ_GROUP, request.group_id):
        return LeaveGroupResponse(error_code=READ_GROUP.error)
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    pace = Pace()
    many = context.api_version >= _BATCH
    leavers = (
        [
            Leaver(each.member_id, each.group_instance_id, each.reason)
            async for each in pace.over(request.members)
        ]
        if many
        else [Leaver(request.member_id)]
    )
    errors: list[ErrorCode] = []
    try:
        # A request without members still gets an error if there is no such group.
        for at in range(0, len(leavers) or 1, _AT_ONCE):
            await pace.turn()
            errors += broker.groups.leave(request.group_id, leavers[at : at + _AT_ONCE])
    except BrokerError as error:
        return LeaveGroupResponse(error_code=error.code)
    if not many:
        return LeaveGroupResponse(error_code=errors[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(member_id=leaver.member_id, group_instance_id=leaver.instance_id, error_code=error)
            async for leaver, error in pace.over(zip(leavers, errors, strict=True))
        ]
    )

"""DescribeGroups, versions 0 to 6: state, protocol and members of groups.

Version 3 added authorized operations (KIP-430), 4 instance ids (KIP-345), 5 is flexible, 6 added a message
and GROUP_ID_NOT_FOUND (KIP-1043): before, a group that does not exist is described as Dead. Members' metadata
and assignments are shown in Stable alone, as in Kafka. Unlike there, of a group that is named again and again only the
first few are answered.
"""

from typing import Final

from leafcuttr.errors import BrokerError, GroupIdNotFound
from leafcuttr.handlers.access import DESCRIBE_GROUP, may, operations
from leafcuttr.handlers.answers import NOT_REQUESTED, FewRepeated
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.machine import Group
from leafcuttr.state.groups.states import GroupState
from leafcuttr.state.security.acl import AclResourceType
from leafcuttr.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_NOT_FOUND_IS_AN_ERROR: Final = 6


async def handle(
    broker: Broker, context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    refused: list[DescribedGroup] = []
    groups: list[DescribedGroup] = []
    few = FewRepeated()
    async for group_id in Pace().over(request.groups):
        if not few.answers(group_id):
            continue
        if not may(broker, context, DESCRIBE_GROUP, group_id):
            refused.append(DescribedGroup(error_code=DESCRIBE_GROUP.error, group_id=group_id))
            continue
        allowed = (
            operations(broker, context, AclResourceType.GROUP, group_id)
            if request.include_authorized_operations
            else NOT_REQUESTED
        )
        try:
            groups.append(_describe(broker.groups.find(group_id), allowed))
        except GroupIdNotFound as error:
            reported = context.api_version >= _NOT_FOUND_IS_AN_ERROR
            groups.append(
                DescribedGroup(
                    error_code=error.code if reported else 0,
                    error_message=error.message if reported else None,
                    group_id=group_id,
                    group_state=GroupState.DEAD.value,
                    authorized_operations=NOT_REQUESTED if reported else allowed,
                )
            )
        except BrokerError as error:
            groups.append(DescribedGroup(error_code=error.code, group_id=group_id))
    return DescribeGroupsResponse(groups=refused + groups)


def _describe(group: Group, allowed: int) -> DescribedGroup:
    stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if stable else b"",
                member_assignment=member.assignment if stable else b"",
            )
            for member in group.members
        ],
        authorized_operations=allowed,
    )

"""ListGroups, versions 0 to 5: every group, also those of simple consumers that only commit.

Version 3 is flexible, 4 added states and a filter by them (KIP-518), 5 types and a filter by them (KIP-848).
Filters ignore case; a state or type that does not exist matches nothing. All groups here are classic.
"""

from typing import Final

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.access import DESCRIBE_CLUSTER, DESCRIBE_GROUP, may
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

_CLASSIC: Final = "classic"


def handle(broker: Broker, context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    if broker.groups.loading:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    if types and _CLASSIC not in types:
        return ListGroupsResponse()
    every = may(broker, context, DESCRIBE_CLUSTER, quietly=True)
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type=_CLASSIC,
            )
            for group in broker.groups.all()
            if (not states or group.state.value.lower() in states)
            and (every or may(broker, context, DESCRIBE_GROUP, group.group_id, quietly=True))
        ]
    )

"""DeleteGroups, versions 0 to 2: empty groups go, with their offsets.

Version 2 is flexible. NON_EMPTY_GROUP if members are left, GROUP_ID_NOT_FOUND if there is no such group. A
group that is named twice is answered once, as in Kafka.
"""

from collections.abc import Awaitable

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.access import DELETE_GROUP, may
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


async def handle(
    broker: Broker, context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    # All are staged before the first is waited for: on a slow disk they share its writes.
    outcomes: list[tuple[str, ErrorCode | Awaitable[ErrorCode]]] = []
    refused: list[tuple[str, ErrorCode | Awaitable[ErrorCode]]] = []
    async for group_id in Pace().over(dict.fromkeys(request.groups_names)):
        if may(broker, context, DELETE_GROUP, group_id):
            outcomes.append((group_id, _delete(broker, group_id)))
        else:
            refused.append((group_id, DELETE_GROUP.error))
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(
                group_id=group_id, error_code=coming if isinstance(coming, ErrorCode) else await coming
            )
            for group_id, coming in outcomes + refused
        ]
    )


def _delete(broker: Broker, group_id: str) -> ErrorCode | Awaitable[ErrorCode]:
    try:
        return broker.groups.delete(group_id)
    except BrokerError as error:
        return error.code

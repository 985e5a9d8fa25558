"""ListPartitionReassignments: none is in progress."""

from typing import Any

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)


async def test_none_is_in_progress(broker: Broker, send: Any) -> None:
    await broker.topics.create("orders", 1, {})
    requested = [ListPartitionReassignmentsTopics(name="orders", partition_indexes=[0])]
    for topics in (None, requested):
        answer = await send(ListPartitionReassignmentsRequest(topics=topics), 0)
        assert (answer.error_code, answer.error_message, list(answer.topics)) == (ErrorCode.NONE, None, [])

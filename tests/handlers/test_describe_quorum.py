"""DescribeQuorum: one voter, of the metadata only."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)


def quorum(*topics: tuple[str, list[int]]) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=[
            RequestTopicData(
                topic_name=name, partitions=[RequestPartitionData(partition_index=i) for i in indexes]
            )
            for name, indexes in topics
        ]
    )


@pytest.mark.parametrize("version", range(3))
async def test_one_voter_that_moves_on_with_the_metadata(broker: Broker, send: Any, version: int) -> None:
    ends = []
    for name in ("orders", "events"):
        await broker.topics.create(name, 1, {})
        answer = await send(quorum(("__cluster_metadata", [0])), version)
        ((part,),) = [topic.partitions for topic in answer.topics]
        (voter,) = part.current_voters
        assert (answer.error_code, part.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
        assert (part.leader_id, part.leader_epoch, voter.replica_id, list(part.observers)) == (1, 1, 1, [])
        assert voter.log_end_offset == part.high_watermark
        assert voter.last_caught_up_timestamp == (broker.clock.now_ms() if version >= 1 else -1)
        assert len(answer.nodes) == (version >= 2)
        ends.append(part.high_watermark)
    assert ends[0] < ends[1]


@pytest.mark.parametrize(
    "requested",
    [
        [("orders", [0])],
        [("__cluster_metadata", [1])],
        [("__cluster_metadata", [0, 1])],
        [("__cluster_metadata", [])],
        [("__cluster_metadata", [0]), ("orders", [])],
        [],
    ],
)
async def test_other_logs_have_no_quorum(send: Any, requested: list[tuple[str, list[int]]]) -> None:
    answer = await send(quorum(*requested), 2)
    assert (answer.error_code, answer.error_message, list(answer.nodes)) == (ErrorCode.NONE, "", [])
    assert [(t.topic_name, [p.partition_index for p in t.partitions]) for t in answer.topics] == requested
    assert {part.error_code for topic in answer.topics for part in topic.partitions} <= {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }

"""DescribeQuorum, versions 0 to 2: the state of the metadata log (KIP-595).

There is no Raft log. The one voter and leader is this broker, and the count of committed metadata changes
stands for its offsets, so that tools that watch them see them grow. Version 1 added timestamps (KIP-836), 2
messages, the directory and the voters' endpoints (KIP-853); the endpoint is the listener of the request. Only
partition 0 of `__cluster_metadata`, alone in a request, is known.
"""

from typing import Final

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.access import DESCRIBE_CLUSTER, refusal
from leafcuttr.handlers.answers import WORDS, address
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.state.topic_names import METADATA_TOPIC
from leafcuttr.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)

LEADER_EPOCH: Final = 1


def handle(broker: Broker, context: RequestContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    if (refused := refusal(broker, context, DESCRIBE_CLUSTER)) is not None:
        return DescribeQuorumResponse(error_code=refused.code, error_message=DESCRIBE_CLUSTER.words)
    requested = [
        (topic.topic_name, [part.partition_index for part in topic.partitions]) for topic in request.topics
    ]
    if requested != [(METADATA_TOPIC, [0])]:
        return DescribeQuorumResponse(
            error_message="",
            topics=[
                TopicData(topic_name=name, partitions=[_unknown(index) for index in indexes])
                for name, indexes in requested
            ],
        )
    host, port = address(context)
    return DescribeQuorumResponse(
        error_message="",
        topics=[TopicData(topic_name=METADATA_TOPIC, partitions=[_metadata_log(broker)])],
        nodes=[
            Node(
                node_id=broker.node_id, listeners=[Listener(name=context.listener.name, host=host, port=port)]
            )
        ],
    )


def _unknown(index: int) -> PartitionData:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return PartitionData(partition_index=index, error_code=code, error_message=WORDS[code])


def _metadata_log(broker: Broker) -> PartitionData:
    end = broker.metadata.changes
    now = broker.clock.now_ms()
    itself = ReplicaState(
        replica_id=broker.node_id, log_end_offset=end, last_fetch_timestamp=now, last_caught_up_timestamp=now
    )
    return PartitionData(
        partition_index=0,
        error_message="",
        leader_id=broker.node_id,
        leader_epoch=LEADER_EPOCH,
        high_watermark=end,
        current_voters=[itself],
    )

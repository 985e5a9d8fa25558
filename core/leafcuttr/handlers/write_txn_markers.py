"""WriteTxnMarkers, versions 1 and 2: end transactions in partitions (KIP-98). Version 1 is flexible, 2 carries the
transaction version (KIP-1228).

Here the coordinator writes its markers itself; the request comes from an administrator who ends a hanging transaction
(`kafka-transactions.sh abort`, KIP-664). Epochs are the log's to judge.
"""

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.access import ALTER_CLUSTER, CLUSTER_ACTION, refusal
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.state.topic_names import CONSUMER_OFFSETS
from leafcuttr.state.transactions.markers import End, stage_marker
from leafcuttr.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from leafcuttr_sdk import TopicPartition


async def handle(
    broker: Broker, context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    # A producer is in the answer once, as in Kafka, whose last word on a partition counts.
    refused = refusal(broker, context, ALTER_CLUSTER, CLUSTER_ACTION)
    results: dict[int, dict[str, dict[int, int]]] = {}
    pace = Pace()
    async for marker in pace.over(request.markers):
        topics = results.setdefault(marker.producer_id, {})
        for topic in marker.topics:
            partitions = topics.setdefault(topic.name, {})
            for index in topic.partition_indexes:
                await pace.turn()
                partitions[index] = (
                    await _write(broker, TopicPartition(topic.name, index), marker)
                    if refused is None
                    else refused.code
                )
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            async for index, code in pace.over(partitions.items())
                        ],
                    )
                    async for name, partitions in pace.over(topics.items())
                ],
            )
            async for producer_id, topics in pace.over(results.items())
        ]
    )


async def _write(broker: Broker, topic_partition: TopicPartition, marker: WritableTxnMarker) -> ErrorCode:
    try:
        log = broker.topics.partition(topic_partition).log
        end = End(
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.coordinator_epoch,
            marker.transaction_version,
        )
        staged = stage_marker(log, end, broker.clock.now_ms())
        await log.write().confirm(staged)
        if topic_partition.topic == CONSUMER_OFFSETS:
            broker.groups.offsets.transaction_ended(
                topic_partition.partition,
                marker.producer_id,
                commit=marker.transaction_result,
                marker_at=staged.base_offset,
            )
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE

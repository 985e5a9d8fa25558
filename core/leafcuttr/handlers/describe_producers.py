"""DescribeProducers, version 0 (KIP-664): the producers whose sequences a partition keeps.

Unlike in Kafka, of a partition that is named again and again only the first few are answered.
"""

from leafcuttr.errors import BrokerError, StorageError, UnknownTopicOrPartition
from leafcuttr.handlers.access import READ_TOPIC, denied, may
from leafcuttr.handlers.answers import FewRepeated, words
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state import topic_names
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)
from leafcuttr_sdk import TopicPartition


async def handle(
    broker: Broker, context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    pace = Pace()
    few = FewRepeated()
    return DescribeProducersResponse(
        topics=[await _topic(broker, context, topic, few, pace) for topic in request.topics]
    )


async def _topic(
    broker: Broker, context: RequestContext, requested: TopicRequest, few: FewRepeated, pace: Pace
) -> TopicResponse:
    try:
        topic_names.check(requested.name)
        if not may(broker, context, READ_TOPIC, requested.name):
            raise denied(READ_TOPIC, READ_TOPIC.words)
        if broker.topics.find(requested.name) is None:
            raise UnknownTopicOrPartition
    except BrokerError as error:
        partitions = [
            PartitionResponse(partition_index=i, error_code=error.code, error_message=words(error))
            async for i in pace.over(requested.partition_indexes)
        ]
    else:
        partitions = [
            _partition(broker, TopicPartition(requested.name, i))
            async for i in pace.over(requested.partition_indexes)
            if few.answers((requested.name, i))
        ]
    return TopicResponse(name=requested.name, partitions=partitions)


def _partition(broker: Broker, topic_partition: TopicPartition) -> PartitionResponse:
    try:
        log = broker.topics.partition(topic_partition).log
        if log.offline is not None:
            raise StorageError
    except BrokerError as error:
        # No words: where the topic is known, Kafka gives none.
        return PartitionResponse(
            partition_index=topic_partition.partition, error_code=error.code, error_message=error.message
        )
    return PartitionResponse(
        partition_index=topic_partition.partition,
        active_producers=[
            ProducerState(
                producer_id=entry.producer_id,
                producer_epoch=entry.epoch,
                last_sequence=entry.last_sequence,
                last_timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=entry.current_txn_first_offset,
            )
            for entry in log.producers
        ],
    )

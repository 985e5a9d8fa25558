"""Who leads which partition, with leader epochs and topic ids, by one look at the metadata."""

from collections.abc import Iterable
from typing import NamedTuple

from leafcuttr.client.calls import Calls
from leafcuttr.client.errors import refusal
from leafcuttr.client.rights import topic_refusal
from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.wire.primitives import ZERO_UUID
from leafcuttr_sdk.security import Operation
from leafcuttr_sdk.types import TopicPartition


class Led(NamedTuple):
    """The leader of a partition."""

    node: int
    leader_epoch: int
    """-1 where the cluster does not tell (Kafka before 2.1)."""
    topic_id: bytes = ZERO_UUID
    """Zeros where the cluster has no ids of topics (Kafka before 2.8)."""


async def look_up(
    calls: Calls, partitions: Iterable[TopicPartition], needs: Operation = Operation.DESCRIBE
) -> dict[TopicPartition, Led | BrokerError]:
    """For each partition its leader, or why there is none now: UnknownTopicOrPartition, LEADER_NOT_AVAILABLE,
    TopicAuthorizationFailed. What is done with them `needs` this right, of which that to see them is a part. Raises
    ClientError, BrokerError where no broker tells."""
    wanted = list(partitions)
    response = await calls.cluster.metadata(sorted({tp.topic for tp in wanted}))
    topics = {topic.name: topic for topic in response.topics}
    found: dict[TopicPartition, Led | BrokerError] = {}
    for tp in wanted:
        topic = topics.get(tp.topic)
        if topic is None or topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            found[tp] = refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {tp.topic}")
            continue
        if topic.error_code:
            found[tp] = topic_refusal(topic.error_code, tp.topic, tp.topic, needs)
            continue
        part = next((one for one in topic.partitions if one.partition_index == tp.partition), None)
        if part is None:
            found[tp] = refusal(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{tp.topic} has no partition {tp.partition}"
            )
        elif part.leader_id < 0:
            found[tp] = refusal(ErrorCode.LEADER_NOT_AVAILABLE, f"{tp} has no leader now")
        else:
            found[tp] = Led(part.leader_id, part.leader_epoch, topic.topic_id)
    return found

"""Consumer groups of a cluster and their offsets, from their coordinators."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from leafcuttr.client.calls import Calls, by_topic
from leafcuttr.client.coordinators import CoordinatorKind
from leafcuttr.client.errors import ApiNotOffered
from leafcuttr.client.rights import said_of_partition, topic_refusal
from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.wire.messages.describe_groups import DescribeGroupsRequest
from leafcuttr.wire.messages.list_groups import ListGroupsRequest
from leafcuttr.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from leafcuttr.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.security import Operation
from leafcuttr_sdk.types import TopicPartition

T = TypeVar("T")

_GROUP: Final = CoordinatorKind.GROUP
_NAMES_NOT_IDS: Final = 9
"""From version 10 on OffsetFetch and OffsetCommit name topics by id, which offsets of deleted topics do not have."""
_STABLE: Final = 7
"""The first version of OffsetFetch that can wait for transactions."""
_CONSUMERS: Final = ("consumer", "")
"""Protocol types: that of consumers, and that of groups which have offsets only."""
_OF_CONSUMERS: Final = ("consumer", "classic", "")
"""Types of groups; the last is what brokers before Kafka 3.8 say."""


async def group_ids(calls: Calls) -> list[str]:
    """See `leafcuttr_sdk.peers.Peer.groups`."""
    found: set[str] = set()
    for broker in (await calls.metadata([])).brokers:
        response = await calls.broker(
            broker.node_id, ListGroupsRequest(), lambda response: (response.error_code, None)
        )
        found |= {
            each.group_id
            for each in response.groups
            if each.protocol_type in _CONSUMERS and each.group_type.lower() in _OF_CONSUMERS
        }
    return sorted(found)


async def group_is_active(calls: Calls, group: str) -> bool:
    """See `leafcuttr_sdk.peers.Peer.group_is_active`."""
    request = DescribeGroupsRequest(groups=[group])
    response = await calls.coordinator(_GROUP, group, request, _described)
    (described,) = response.groups
    if described.error_code != ErrorCode.GROUP_ID_NOT_FOUND and described.group_state != "Dead":
        return str(described.group_state) != "Empty"
    # A group of the newer protocol (KIP-848) is none that DescribeGroups knows.
    try:
        listed = await calls.coordinator(
            _GROUP,
            group,
            ListGroupsRequest(types_filter=["consumer"]),
            lambda response: (response.error_code, None),
            at_least=5,
        )
    except BrokerError as error:
        if isinstance(error.__cause__, ApiNotOffered):
            return False
        raise
    states = {each.group_id: each.group_state for each in listed.groups}
    return states.get(group, "Dead") not in ("Empty", "Dead")


def _described(response: Any) -> tuple[int, str | None]:
    (group,) = response.groups
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return 0, None
    return group.error_code, group.error_message


async def committed_offsets(
    calls: Calls, group: str, *, stable: Sequence[TopicPartition] | None = None
) -> dict[TopicPartition, CommittedOffset]:
    """See `leafcuttr_sdk.peers.Peer.committed`, and for `stable` (KIP-447) `leafcuttr_sdk.blocking_peers`."""

    def wanted(of: Callable[..., T]) -> list[T] | None:
        """All there are, or those that are to be stable. Before version 8 topics are of another class."""
        if stable is None:
            return None
        return [of(name=name, partition_indexes=numbers) for name, numbers in by_topic(stable).items()]

    request = OffsetFetchRequest(
        group_id=group,
        topics=wanted(OffsetFetchRequestTopic),
        groups=[OffsetFetchRequestGroup(group_id=group, topics=wanted(OffsetFetchRequestTopics))],
        require_stable=stable is not None,
    )
    response = await calls.coordinator(
        _GROUP,
        group,
        request,
        _fetched,
        at_least=2 if stable is None else _STABLE,
        at_most=_NAMES_NOT_IDS,
    )
    topics = response.groups[0].topics if response.groups else response.topics
    found: dict[TopicPartition, CommittedOffset] = {}
    for topic in topics:
        for each in topic.partitions:
            if each.error_code:
                raise topic_refusal(
                    each.error_code, f"{topic.name}-{each.partition_index}", topic.name, Operation.DESCRIBE
                )
            if each.committed_offset >= 0:
                found[TopicPartition(topic.name, each.partition_index)] = CommittedOffset(
                    each.committed_offset, each.metadata or ""
                )
    return found


def _fetched(response: Any) -> tuple[int, str | None]:
    found = response.groups[0] if response.groups else response
    code = found.error_code
    if any(
        each.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
        for topic in found.topics
        for each in topic.partitions
    ):
        return ErrorCode.UNSTABLE_OFFSET_COMMIT, "a transaction with offsets of the group is not over"
    # What a broker answers for a group that it does not have (KIP-1043), has no offsets either.
    return (0 if code == ErrorCode.GROUP_ID_NOT_FOUND else code), None


async def commit_offsets(calls: Calls, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
    """See `leafcuttr_sdk.peers.Peer.commit`."""
    if not offsets:
        return
    topics = to_commit(offsets, OffsetCommitRequestPartition)
    request = OffsetCommitRequest(
        group_id=group,
        topics=[OffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in topics.items()],
    )
    await calls.coordinator(_GROUP, group, request, committed_code, at_most=_NAMES_NOT_IDS)


def to_commit(
    offsets: Mapping[TopicPartition, CommittedOffset], partition: Callable[..., T]
) -> dict[str, list[T]]:
    """The partitions of a request that commits offsets, of its own class, by topic."""
    topics: dict[str, list[T]] = {}
    for (topic, number), committed in offsets.items():
        topics.setdefault(topic, []).append(
            partition(
                partition_index=number,
                committed_offset=committed.offset,
                committed_metadata=committed.metadata,
            )
        )
    return topics


def committed_code(response: Any) -> tuple[int, str | None]:
    """The first error of the partitions, one that does not pass before one that does."""
    for topic in response.topics:
        for each in topic.partitions:
            if each.error_code:
                place = f"committing {topic.name}-{each.partition_index}"
                return each.error_code, said_of_partition(each.error_code, place, topic.name, Operation.READ)
    return 0, None

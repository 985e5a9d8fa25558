"""Offsets by time, and where leader epochs end, from the leaders of partitions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leafcuttr.client.calls import Calls
from leafcuttr.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from leafcuttr.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from leafcuttr_sdk.broker import EARLIEST, LATEST
from leafcuttr_sdk.types import TopicPartition


async def offsets_at(
    calls: Calls, times: Mapping[TopicPartition, int], *, committed: bool
) -> dict[TopicPartition, int]:
    """See `leafcuttr_sdk.peers.Peer.offsets`."""
    wanted = {tp: time if time in (EARLIEST, LATEST) else max(time, 0) for tp, time in times.items()}
    found = await _listed(calls, wanted, committed)
    # A time behind the last record has no offset: the end is where later ones come.
    ends = await _listed(calls, {tp: LATEST for tp, offset in found.items() if offset < 0}, committed)
    return found | ends


async def _listed(
    calls: Calls, times: Mapping[TopicPartition, int], committed: bool
) -> dict[TopicPartition, int]:
    if not times:
        return {}

    def build(topics: Mapping[str, Sequence[int]]) -> ListOffsetsRequest:
        return ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(committed),
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=number, timestamp=times[TopicPartition(topic, number)]
                        )
                        for number in numbers
                    ],
                )
                for topic, numbers in topics.items()
            ],
            timeout_ms=int(calls.settings.request_timeout_s * 1000),
        )

    def answers(response: Any) -> Iterator[tuple[TopicPartition, int, int]]:
        for topic in response.topics:
            for each in topic.partitions:
                yield TopicPartition(topic.name, each.partition_index), each.error_code, each.offset

    return await calls.leaders(times, build, answers, at_least=2 if committed else 1)


async def epoch_ends(
    calls: Calls, epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, tuple[int, int]]:
    """See `leafcuttr_sdk.peers.Peer.epoch_end`."""
    if not epochs:
        return {}

    def build(topics: Mapping[str, Sequence[int]]) -> OffsetForLeaderEpochRequest:
        return epoch_request(
            {TopicPartition(t, n): (epochs[TopicPartition(t, n)], -1) for t in topics for n in topics[t]}
        )

    return await calls.leaders(epochs, build, epoch_answers)


def epoch_request(epochs: Mapping[TopicPartition, tuple[int, int]]) -> OffsetForLeaderEpochRequest:
    """For each partition the epoch, and the current epoch of its leader or -1."""
    topics: dict[str, list[OffsetForLeaderPartition]] = {}
    for tp, (epoch, current) in epochs.items():
        topics.setdefault(tp.topic, []).append(
            OffsetForLeaderPartition(partition=tp.partition, current_leader_epoch=current, leader_epoch=epoch)
        )
    return OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[OffsetForLeaderTopic(topic=name, partitions=parts) for name, parts in topics.items()],
    )


def epoch_answers(response: Any) -> Iterator[tuple[TopicPartition, int, tuple[int, int]]]:
    """Error code, epoch and end of each partition."""
    for topic in response.topics:
        for each in topic.partitions:
            yield (
                TopicPartition(topic.topic, each.partition),
                each.error_code,
                (each.leader_epoch, each.end_offset),
            )

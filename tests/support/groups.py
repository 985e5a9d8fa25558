"""A group's requests in their usual form, for tests that drive handlers through `send`."""

from collections.abc import Sequence
from typing import Any

from leafcuttr.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from leafcuttr.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from leafcuttr.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)


def subscription(*topics: str) -> bytes:
    """Metadata as Kafka's consumers send it (ConsumerProtocolSubscription, version 0)."""
    out = b"\0\0" + len(topics).to_bytes(4, "big")
    for topic in topics:
        out += len(topic).to_bytes(2, "big") + topic.encode()
    return out + b"\xff\xff\xff\xff"


def join_request(group: str, member_id: str = "", *topics: str, **changes: Any) -> JoinGroupRequest:
    fields: dict[str, Any] = {
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=subscription(*topics))],
    }
    return JoinGroupRequest(group_id=group, member_id=member_id, **{**fields, **changes})


async def join_alone(send: Any, group: str, *topics: str, **changes: Any) -> JoinGroupResponse:
    """Join a group without members by both steps."""
    first = await send(join_request(group, "", *topics, **changes), 9)
    if first.error_code == 0:
        return first  # type: ignore[no-any-return]
    answer = await send(join_request(group, first.member_id, *topics, **changes), 9)
    assert answer.error_code == 0
    return answer  # type: ignore[no-any-return]


async def sync(
    send: Any,
    group: str,
    joined: JoinGroupResponse,
    assignments: dict[str, bytes] | None = None,
    **changes: Any,
) -> SyncGroupResponse:
    fields: dict[str, Any] = {
        "generation_id": joined.generation_id,
        "member_id": joined.member_id,
        "protocol_type": joined.protocol_type,
        "protocol_name": joined.protocol_name,
        "assignments": [
            SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
            for member_id, assignment in (assignments or {}).items()
        ],
    }
    return await send(SyncGroupRequest(group_id=group, **{**fields, **changes}), 5)  # type: ignore[no-any-return]


async def stable(send: Any, group: str, *topics: str) -> JoinGroupResponse:
    """Bring a group of one member to Stable."""
    joined = await join_alone(send, group, *topics)
    assert (await sync(send, group, joined, {joined.member_id: b"mine"})).assignment == b"mine"
    return joined


def commit_request(
    group: str,
    offsets: dict[int, int],
    joined: JoinGroupResponse | None = None,
    *,
    topic: str = "t",
    metadata: str | None = "m",
    **changes: Any,
) -> OffsetCommitRequest:
    fields: dict[str, Any] = {}
    if joined is not None:
        fields = {"generation_id_or_member_epoch": joined.generation_id, "member_id": joined.member_id}
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=offset,
            committed_leader_epoch=2,
            committed_metadata=metadata,
        )
        for index, offset in offsets.items()
    ]
    topics = [OffsetCommitRequestTopic(name=topic, partitions=partitions)]
    return OffsetCommitRequest(group_id=group, **{"topics": topics, **fields, **changes})


def codes(topics: Sequence[Any]) -> dict[tuple[str, int], int]:
    """Error code by topic and partition of an answer."""
    return {
        (topic.name, each.partition_index): each.error_code for topic in topics for each in topic.partitions
    }

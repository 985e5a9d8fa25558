"""Broker settings about groups, offsets and topics: each with another value than the default, seen by a client."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from leafcuttr.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from leafcuttr.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from leafcuttr.wire.messages.offset_fetch import OffsetFetchRequest
from support import librdkafka
from support.groups import commit_request, join_request
from support.logs import NOW, batch
from support.waiting import until
from support.wire_client import WireClient

MINUTE = 60_000
NONE = -1001  # librdkafka's word for no committed offset


def joined(client: WireClient, group: str, **changes: Any) -> Any:
    """Join by both steps; the last answer."""
    first = client.ask(join_request(group, "", "t", **changes), 9)
    if first.error_code != ErrorCode.MEMBER_ID_REQUIRED:
        return first
    return client.ask(join_request(group, first.member_id, "t", **changes), 9)


@pytest.mark.setting("group.min.session.timeout.ms", "group.max.session.timeout.ms")
def test_session_timeouts(serve: Any) -> None:
    limits = {"group.min.session.timeout.ms": "2000", "group.max.session.timeout.ms": "3000"}
    with serve(limits) as broker, WireClient(broker.address) as client:
        codes = [
            joined(client, f"g{ms}", session_timeout_ms=ms).error_code for ms in (1999, 2000, 3000, 3001)
        ]
        refused = ErrorCode.INVALID_SESSION_TIMEOUT
        assert codes == [refused, 0, 0, refused]


def test_session_timeouts_by_default(serve: Any) -> None:
    with serve({}) as broker, WireClient(broker.address) as client:
        asked = (5999, 6000, 1_800_000, 1_800_001)
        codes = [joined(client, f"g{ms}", session_timeout_ms=ms).error_code for ms in asked]
        refused = ErrorCode.INVALID_SESSION_TIMEOUT
        assert codes == [refused, 0, 0, refused]


@pytest.mark.setting("group.max.size")
def test_group_max_size(serve: Any) -> None:
    with (
        serve({"group.max.size": "1"}, real_time=True) as broker,
        WireClient(broker.address) as client,
    ):
        # A second one that is let in is answered soon, because the first does not join again.
        member = joined(client, "g", rebalance_timeout_ms=500)
        assert member.error_code == 0
        assert joined(client, "g").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        leaving = [MemberIdentity(member_id=member.member_id)]
        client.ask(LeaveGroupRequest(group_id="g", members=leaving), 4)
        assert joined(client, "g").error_code == 0


def test_no_initial_rebalance_delay(serve: Any) -> None:
    """A member alone has its answer at once, with the clock standing still."""
    with serve({"group.initial.rebalance.delay.ms": "0"}) as broker, WireClient(broker.address) as client:
        assert joined(client, "g").error_code == 0


def test_initial_rebalance_delay(serve: Any) -> None:
    """The first round waits for a second member, so that both are in generation 1."""
    with (
        serve({"group.initial.rebalance.delay.ms": "1000"}, real_time=True) as broker,
        WireClient(broker.address) as one,
        WireClient(broker.address) as other,
    ):
        asked = []
        for client in (one, other):
            first = client.ask(join_request("g", "", "t"), 9)
            request = join_request("g", first.member_id, "t")
            client.send(request, 9)
            asked.append((client, request))
        answers = [client.take(request, 9) for client, request in asked]
        assert [answer.generation_id for answer in answers] == [1, 1]
        assert sorted(len(answer.members) for answer in answers) == [0, 2]


@pytest.mark.setting("offset.metadata.max.bytes")
def test_offset_metadata_max_bytes(serve: Any) -> None:
    """By the wire: librdkafka's Python client counts a byte more than it was given."""
    with serve({"offset.metadata.max.bytes": "10"}) as broker, WireClient(broker.address) as client:
        librdkafka.create(broker.address, "t")

        def commit(offset: int, metadata: str) -> int:
            request = commit_request("g", {0: offset}, metadata=metadata)
            return int(client.ask(request, 8).topics[0].partitions[0].error_code)

        until(lambda: commit(4, "") == 0, "the coordinator")
        assert commit(5, "x" * 10) == 0
        assert commit(6, "x" * 11) == ErrorCode.OFFSET_METADATA_TOO_LARGE
        (kept,) = client.ask(OffsetFetchRequest(group_id="g", topics=None), 7).topics
        assert [(each.committed_offset, each.metadata) for each in kept.partitions] == [(5, "x" * 10)]


@pytest.mark.setting("offsets.retention.minutes")
def test_offsets_retention_minutes(serve: Any) -> None:
    """Offsets of a group without members go after that time; the clock is the broker's."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {"offsets.retention.minutes": "10", "offsets.retention.check.interval.ms": "1"}
    with serve(settings) as broker:
        librdkafka.create(broker.address, "t")
        consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "g"})

        def committed() -> int:
            (found,) = consumer.committed([TopicPartition("t", 0)], librdkafka.PATIENCE_S)
            return int(found.offset)

        consumer.commit(offsets=[TopicPartition("t", 0, 5)], asynchronous=False)
        broker.clock.ms += 9 * MINUTE
        assert [committed() for _ in range(20)] == [5] * 20
        broker.clock.ms += 2 * MINUTE
        until(lambda: committed() == NONE, "the end of the offset")
        consumer.close()


def topic_answer(client: WireClient, name: str, *, create: bool = True) -> Any:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=create)
    return client.ask(request, 9).topics[0]


@pytest.mark.setting("auto.create.topics.enable")
def test_auto_create_topics_enable(serve: Any) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with serve({"auto.create.topics.enable": "false"}) as broker:
        with WireClient(broker.address) as client:
            assert [topic_answer(client, "t").error_code for _ in range(2)] == [unknown, unknown]
        assert librdkafka.send(broker.address, "t", [b"x"], timestamp=NOW, message_timeout_ms=500) != [0]
    with serve({}) as broker:
        with WireClient(broker.address) as client:
            assert topic_answer(client, "other", create=False).error_code == unknown
            assert topic_answer(client, "other", create=False).error_code == unknown
        assert librdkafka.send(broker.address, "t", [b"x"], timestamp=NOW) == [0]


@pytest.mark.setting("num.partitions")
def test_num_partitions(serve: Any) -> None:
    with serve({"num.partitions": "3"}) as broker:
        assert librdkafka.send(broker.address, "auto", [b"x"], timestamp=NOW) == [0]
        with WireClient(broker.address) as client:
            assert len(topic_answer(client, "auto").partitions) == 3
            topics = [CreatableTopic(name="asked", num_partitions=-1, replication_factor=-1)]
            answer = client.ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7).topics[0]
            assert (answer.error_code, answer.num_partitions) == (0, 3)


@pytest.mark.setting("delete.topic.enable")
def test_delete_topic_enable(serve: Any) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=10_000)
    with serve({"delete.topic.enable": "false"}) as broker, WireClient(broker.address) as client:
        librdkafka.create(broker.address, "t")
        assert client.ask(request, 6).responses[0].error_code == ErrorCode.TOPIC_DELETION_DISABLED
        assert client.produce("t", batch()).base_offset == 0
    with serve({}) as broker, WireClient(broker.address) as client:
        assert client.ask(request, 6).responses[0].error_code == 0


@pytest.mark.setting("message.max.bytes")
def test_message_max_bytes(serve: Any) -> None:
    """The broker's default for max.message.bytes, given at start; a topic's own value counts more."""
    with serve({"message.max.bytes": "5000"}) as broker:
        librdkafka.create(broker.address, "t")
        librdkafka.create(broker.address, "wide", max_message_bytes="20000")
        large = [b"x" * 10_000]
        assert librdkafka.send(broker.address, "t", large, timestamp=NOW) == ["MSG_SIZE_TOO_LARGE"]
        assert librdkafka.send(broker.address, "t", [b"x" * 4000], timestamp=NOW) == [0]
        assert librdkafka.send(broker.address, "wide", large, timestamp=NOW) == [0]

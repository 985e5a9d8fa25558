"""Metadata: topics by all, by name, by id; creation by asking; what each version says."""

from collections.abc import Callable
from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

VERSIONS = range(14)


def names(answer: MetadataResponse) -> list[tuple[str | None, int]]:
    return [(topic.name, topic.error_code) for topic in answer.topics]


def by_name(*requested: str, **known: Any) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in requested], **known)


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_version_names_the_broker_and_the_topics(broker: Broker, send: Any, version: int) -> None:
    topic = await broker.topics.create("orders", 2, {})
    answer = await send(MetadataRequest(topics=None if version else ()), version)

    (node,) = answer.brokers
    assert (node.node_id, node.host, node.port, node.rack) == (1, "broker.test", 19092, None)
    assert answer.controller_id == (1 if version >= 1 else -1)
    assert answer.cluster_id == (broker.cluster_id if version >= 2 else None)
    assert answer.error_code == ErrorCode.NONE
    (found,) = answer.topics
    assert (found.name, found.error_code, found.is_internal) == ("orders", ErrorCode.NONE, False)
    assert found.topic_id == (topic.id if version >= 10 else bytes(16))
    assert found.topic_authorized_operations == answer.cluster_authorized_operations == -(2**31)
    for index, part in enumerate(found.partitions):
        assert (part.error_code, part.partition_index, part.leader_id) == (ErrorCode.NONE, index, 1)
        assert list(part.replica_nodes) == list(part.isr_nodes) == [1]
        assert list(part.offline_replicas) == []
        assert part.leader_epoch == (
            broker.topics.by_name["orders"].partitions[index].leader_epoch if version >= 7 else -1
        )


@pytest.mark.parametrize("version", range(1, 14))
async def test_an_empty_list_names_no_topics(broker: Broker, send: Any, version: int) -> None:
    await broker.topics.create("orders", 1, {})
    assert names(await send(MetadataRequest(topics=()), version)) == []


async def test_each_listener_tells_its_own_address(send: Any) -> None:
    from leafcuttr.config.listeners import Listener

    outside = Listener("EXTERNAL", "127.0.0.1", 9093, "public.test", 29092)
    answer = await send(MetadataRequest(topics=()), 12, listener=outside)
    assert [(node.host, node.port) for node in answer.brokers] == [("public.test", 29092)]


async def test_existing_topics_come_first_and_once(broker: Broker, send: Any) -> None:
    await broker.topics.create("orders", 1, {})
    answer = await send(
        by_name("bad name", "missing", "orders", "orders", allow_auto_topic_creation=False), 9
    )
    assert names(answer) == [
        ("orders", ErrorCode.NONE),
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


@pytest.mark.parametrize(("version", "creates"), [(3, False), (4, True), (13, True)])
async def test_topics_are_created_by_requesting_their_metadata(
    broker: Broker, send: Any, version: int, creates: bool
) -> None:
    """Before version 4 there is no choice."""
    answer = await send(by_name("new", "__consumer_offsets", allow_auto_topic_creation=creates), version)
    assert names(answer) == [("new", ErrorCode.NONE), ("__consumer_offsets", ErrorCode.NONE)]
    assert [topic.is_internal for topic in answer.topics] == [False, True]
    assert len(answer.topics[0].partitions) == broker.settings.int("num.partitions")
    assert len(answer.topics[1].partitions) == broker.settings.int("offsets.topic.num.partitions")


async def test_topics_that_cannot_be_created_automatically(broker: Broker, send: Any) -> None:
    await broker.topics.create("a.b", 1, {})
    answer = await send(by_name("a_b", "bad name", ""), 12)
    assert names(answer) == [
        ("a_b", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]


async def test_automatic_creation_can_be_switched_off(
    open_test_broker: Callable[..., Broker], sender_of: Callable[[Broker], Any]
) -> None:
    broker = open_test_broker({"auto.create.topics.enable": "false", "broker.rack": "r1"})
    answer = await sender_of(broker)(by_name("new"), 9)
    assert names(answer) == [("new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert answer.brokers[0].rack == "r1"
    assert broker.topics.by_name == {}


async def test_topics_by_id(broker: Broker, send: Any) -> None:
    orders = await broker.topics.create("orders", 1, {})
    await broker.topics.create("events", 1, {})
    requested = [
        MetadataRequestTopic(name=None, topic_id=orders.id),
        MetadataRequestTopic(name=None, topic_id=b"?" * 16),
        MetadataRequestTopic(name="events"),
    ]
    for version in (12, 13):
        answer = await send(MetadataRequest(topics=requested), version)
        assert [(topic.name, topic.topic_id, topic.error_code) for topic in answer.topics] == [
            (None, b"?" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
            ("orders", orders.id, ErrorCode.NONE),
        ]


@pytest.mark.parametrize(
    ("version", "topic", "code"),
    [
        (10, MetadataRequestTopic(name=None), ErrorCode.INVALID_REQUEST),
        (11, MetadataRequestTopic(name="orders", topic_id=b"?" * 16), ErrorCode.INVALID_REQUEST),
        (12, MetadataRequestTopic(name=None), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_requests_that_cannot_be_meant(
    send: Any, version: int, topic: MetadataRequestTopic, code: ErrorCode
) -> None:
    answer = await send(MetadataRequest(topics=[topic]), version)
    assert names(answer) == [(topic.name or "", code)]
    assert (len(answer.brokers), answer.cluster_id, answer.controller_id) == (0, None, -1)


async def test_authorized_operations_on_request(broker: Broker, send: Any) -> None:
    await broker.topics.create("orders", 1, {})
    request = MetadataRequest(
        topics=None, include_topic_authorized_operations=True, include_cluster_authorized_operations=True
    )
    answer = await send(request, 9)
    assert answer.topics[0].topic_authorized_operations == 3576
    assert answer.cluster_authorized_operations == 8096
    # A topic that belongs to a plugin: all but WRITE, by its name and by its id.
    owned = await broker.topics.create("owned", 1, {}, internal=True, owner="tables")
    for named in (MetadataRequestTopic(name="owned"), MetadataRequestTopic(name=None, topic_id=owned.id)):
        answer = await send(MetadataRequest(topics=[named], include_topic_authorized_operations=True), 12)
        assert [topic.topic_authorized_operations for topic in answer.topics] == [3576 - (1 << 4)]
        answer = await send(MetadataRequest(topics=[named]), 12)
        assert [topic.topic_authorized_operations for topic in answer.topics] == [-(2**31)]


async def test_a_partition_whose_log_is_offline_has_no_leader(broker: Broker, send: Any) -> None:
    topic = await broker.topics.create("orders", 2, {})
    topic.partitions[1].log.offline = "damaged"
    (found,) = (await send(by_name("orders"), 9)).topics
    assert [(part.error_code, part.leader_id) for part in found.partitions] == [
        (ErrorCode.NONE, 1),
        (ErrorCode.LEADER_NOT_AVAILABLE, -1),
    ]
    assert list(found.partitions[1].offline_replicas) == [1]
    assert list(found.partitions[1].isr_nodes) == []

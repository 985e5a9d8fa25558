"""DeleteTopics: by name and by id, twice, disabled."""

from collections.abc import Callable
from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

ZERO = bytes(16)
UNKNOWN_NAME = "This server does not host this topic-partition."
UNKNOWN_ID = "This server does not host this topic ID."


def request(version: int, *names: str, timeout_ms: int = 1000) -> DeleteTopicsRequest:
    if version < 6:
        return DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms)
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=timeout_ms)


@pytest.mark.parametrize("version", range(1, 7))
async def test_every_version_deletes_by_name(broker: Broker, send: Any, version: int) -> None:
    topic = await broker.topics.create("orders", 2, {})
    answer = await send(request(version, "orders", "missing", "bad name"), version)
    message = UNKNOWN_NAME if version >= 5 else None
    assert [(r.name, r.topic_id, r.error_code, r.error_message) for r in answer.responses] == [
        ("orders", topic.id if version >= 6 else ZERO, ErrorCode.NONE, None),
        ("missing", ZERO, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message),
        ("bad name", ZERO, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message),
    ]
    assert broker.topics.by_name == {}


async def test_deleting_by_id(broker: Broker, send: Any) -> None:
    topic = await broker.topics.create("orders", 1, {})
    requested = [DeleteTopicState(topic_id=topic.id), DeleteTopicState(topic_id=b"?" * 16)]
    answer = await send(DeleteTopicsRequest(topics=requested, timeout_ms=1000), 6)
    assert [(r.name, r.topic_id, r.error_code, r.error_message) for r in answer.responses] == [
        ("orders", topic.id, ErrorCode.NONE, None),
        (None, b"?" * 16, ErrorCode.UNKNOWN_TOPIC_ID, UNKNOWN_ID),
    ]
    assert broker.topics.by_name == {}


async def test_what_cannot_be_meant(broker: Broker, send: Any) -> None:
    kept = {
        name: (await broker.topics.create(name, 1, {})).id for name in ("both", "twice", "by.id", "mixed")
    }
    requested = [
        DeleteTopicState(name="both", topic_id=kept["both"]),
        DeleteTopicState(),
        DeleteTopicState(name="twice"),
        DeleteTopicState(name="twice"),
        DeleteTopicState(topic_id=kept["by.id"]),
        DeleteTopicState(topic_id=kept["by.id"]),
        DeleteTopicState(name="mixed"),
        DeleteTopicState(topic_id=kept["mixed"]),
    ]
    answer = await send(DeleteTopicsRequest(topics=requested, timeout_ms=1000), 6)
    assert {(r.name, r.topic_id, r.error_message) for r in answer.responses} == {
        ("both", kept["both"], "You may not specify both topic name and topic id."),
        (None, ZERO, "Neither topic name nor id were specified."),
        ("twice", ZERO, "Duplicate topic name."),
        (None, kept["by.id"], "Duplicate topic id."),
        ("mixed", kept["mixed"], "The provided topic name maps to an ID that was already supplied."),
    }
    assert {r.error_code for r in answer.responses} == {ErrorCode.INVALID_REQUEST}
    assert sorted(broker.topics.by_name) == sorted(kept)


@pytest.mark.parametrize("version", range(1, 7))
async def test_deletion_can_be_switched_off(
    open_test_broker: Callable[..., Broker], sender_of: Callable[[Broker], Any], version: int
) -> None:
    broker = open_test_broker({"delete.topic.enable": "false"})
    await broker.topics.create("orders", 1, {})
    answer = await sender_of(broker)(request(version, "orders", "missing"), version)
    code = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
    assert [(r.name, r.error_code) for r in answer.responses] == [("orders", code), ("missing", code)]
    assert list(broker.topics.by_name) == ["orders"]


@pytest.mark.parametrize("timeout", [0, -1])
async def test_no_time_nothing_deleted(broker: Broker, send: Any, timeout: int) -> None:
    await broker.topics.create("orders", 1, {})
    answer = await send(request(4, "orders", timeout_ms=timeout), 4)
    assert [(r.name, r.error_code) for r in answer.responses] == [("orders", ErrorCode.REQUEST_TIMED_OUT)]
    assert list(broker.topics.by_name) == ["orders"]

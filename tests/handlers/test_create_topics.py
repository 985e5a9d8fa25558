"""CreateTopics: what is created, what is refused and in which words, topic by topic."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

NONE = (ErrorCode.NONE, None)


def topic(name: str, partitions: int = 1, replicas: int = 1, **known: Any) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, **known)


def assigned(name: str, *replicas: tuple[int, list[int]], **counts: int) -> CreatableTopic:
    known = {"num_partitions": -1, "replication_factor": -1, **counts}
    assignments = [CreatableReplicaAssignment(partition_index=i, broker_ids=ids) for i, ids in replicas]
    return CreatableTopic(name=name, assignments=assignments, **known)


def configured(name: str, **settings: str | None) -> CreatableTopic:
    configs = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()
    ]
    return topic(name, configs=configs)


def results(answer: CreateTopicsResponse) -> dict[str, tuple[int, str | None]]:
    return {result.name: (result.error_code, result.error_message) for result in answer.topics}


@pytest.mark.parametrize("version", range(2, 8))
async def test_every_version_creates(broker: Broker, send: Any, version: int) -> None:
    answer = await send(CreateTopicsRequest(topics=[topic("orders", 3), topic("own", -1, -1)]), version)

    assert results(answer) == {"orders": NONE, "own": NONE}
    orders = broker.topics.by_name["orders"]
    assert len(orders.partitions) == 3
    assert len(broker.topics.by_name["own"].partitions) == broker.settings.int("num.partitions")
    result = answer.topics[0]
    assert (result.num_partitions, result.replication_factor) == ((3, 1) if version >= 5 else (-1, -1))
    assert result.topic_id == (orders.id if version >= 7 else bytes(16))


async def test_the_answer_has_the_settings_in_order_with_their_source(broker: Broker, send: Any) -> None:
    broker.settings.replace_dynamic({"log.retention.bytes": "777"}, cluster=True)
    answer = await send(CreateTopicsRequest(topics=[configured("orders", segment_ms="12345")]), 7)
    configs = answer.topics[0].configs
    assert [config.name for config in configs] == sorted(config.name for config in configs)
    found = {config.name: (config.value, config.config_source, config.is_sensitive) for config in configs}
    assert found["segment.ms"] == ("12345", 1, False)
    assert found["retention.bytes"] == ("777", 3, False)
    assert found["cleanup.policy"] == ("delete", 5, False)
    assert broker.topics.by_name["orders"].config.segment_ms == 12345


async def test_validation_creates_nothing(broker: Broker, send: Any) -> None:
    answer = await send(
        CreateTopicsRequest(topics=[topic("orders", 3), topic("bad name")], validate_only=True), 7
    )
    assert results(answer)["orders"] == NONE
    assert results(answer)["bad name"][0] == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert (answer.topics[0].num_partitions, bool(answer.topics[0].configs)) == (3, True)
    assert broker.topics.by_name == {}


NO_PARTITIONS = "Number of partitions was set to an invalid non-positive value."
NO_REPLICAS = "Replication factor must be larger than 0, or -1 to use the default value."


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("requested", "code", "message"),
    [
        (topic("t", 0), ErrorCode.INVALID_PARTITIONS, NO_PARTITIONS),
        (topic("t", -2), ErrorCode.INVALID_PARTITIONS, NO_PARTITIONS),
        (topic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR, NO_REPLICAS),
        (topic("t", 0, 0), ErrorCode.INVALID_REPLICATION_FACTOR, NO_REPLICAS),
        (topic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR, NO_REPLICAS),
        (
            topic("t", 1, 3),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached "
            "because only 1 broker(s) are registered or some brokers have all their log directories cordoned.",
        ),
        (topic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: '..' is not allowed"),
        (topic("is.there"), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'is.there' already exists."),
        (topic("is.there", 0), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'is.there' already exists."),
        (
            topic("is_there"),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic 'is_there' collides with existing topic: is.there",
        ),
        (
            configured("t", retention_ms="abc"),
            ErrorCode.INVALID_CONFIG,
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        (configured("t", nope="1"), ErrorCode.INVALID_CONFIG, "Unknown topic config name: nope"),
        (
            configured("t", retention_ms=None),
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs: retention.ms",
        ),
        (
            configured("t", cleanup_policy="foo"),
            ErrorCode.INVALID_CONFIG,
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            assigned("t", (0, [2])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 2, but no such broker is registered.",
        ),
        (
            assigned("t", (0, [1, 2])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 2, but no such broker is registered.",
        ),
        (
            assigned("t", (0, [1, 1])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            assigned("t", (0, [])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            assigned("t", (0, [1]), (0, [1])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            assigned("t", (0, [1]), (2, [1])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            assigned("t", (0, [1]), replication_factor=1),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ),
        (
            assigned("t", (0, [1]), num_partitions=1),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
    ],
)
async def test_refusals(
    broker: Broker, send: Any, requested: CreatableTopic, code: ErrorCode, message: str
) -> None:
    await broker.topics.create("is.there", 1, {})
    answer = await send(CreateTopicsRequest(topics=[requested, topic("good")]), 7)
    assert results(answer) == {requested.name: (code, message), "good": NONE}
    refused = answer.topics[0]
    assert (refused.num_partitions, refused.replication_factor, list(refused.configs)) == (-1, -1, [])
    assert sorted(broker.topics.by_name) == ["good", "is.there"]


async def test_an_assignment_to_this_broker(broker: Broker, send: Any) -> None:
    answer = await send(CreateTopicsRequest(topics=[assigned("orders", (1, [1]), (0, [1]))]), 4)
    assert results(answer) == {"orders": NONE}
    assert len(broker.topics.by_name["orders"].partitions) == 2


async def test_a_name_twice_fails_for_all(broker: Broker, send: Any) -> None:
    answer = await send(CreateTopicsRequest(topics=[topic("a"), topic("a", 2), topic("b")]), 4)
    assert results(answer) == {"a": (ErrorCode.INVALID_REQUEST, "Duplicate topic name."), "b": NONE}
    assert list(broker.topics.by_name) == ["b"]


async def test_too_many_partitions_in_a_request(broker: Broker, send: Any) -> None:
    requested = [topic("a", 10_000), topic("b", 1)]
    answer = await send(CreateTopicsRequest(topics=requested, validate_only=True), 4)
    refusal = (ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    assert results(answer) == {"a": refusal, "b": refusal}
    answer = await send(CreateTopicsRequest(topics=requested[:1], validate_only=True), 4)
    assert results(answer) == {"a": NONE}


@pytest.mark.parametrize("timeout", [0, -1])
async def test_no_time_no_topics(broker: Broker, send: Any, timeout: int) -> None:
    requested = [topic("a"), topic("b"), topic("b")]
    answer = await send(CreateTopicsRequest(topics=requested, timeout_ms=timeout), 4)
    assert [(result.name, result.error_code) for result in answer.topics] == [
        (name, ErrorCode.REQUEST_TIMED_OUT) for name in ("a", "b", "b")
    ]
    assert broker.topics.by_name == {}


async def test_internal_topics_can_be_created(broker: Broker, send: Any) -> None:
    answer = await send(CreateTopicsRequest(topics=[topic("__consumer_offsets", 5)]), 7)
    assert results(answer) == {"__consumer_offsets": NONE}
    assert broker.topics.by_name["__consumer_offsets"].internal

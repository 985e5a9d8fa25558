"""CreateTopics, versions 2 to 7.

Version 4 made -1 mean the broker's own number of partitions and replicas (KIP-464), 5 answers with the
settings and counts of the new topic (KIP-525), 6 may refuse what is above a quota (KIP-599), 7 answers with its id
(KIP-516). `validate_only` does everything but
the creation. Each topic succeeds or fails by itself; a name that is in the request twice fails for all.
Nothing is done if the timeout is not positive, and all is done before the answer, however long the timeout.

There is one broker, so a replication factor above 1 is refused with Kafka's words, and an assignment may name
this broker only. Unlike in Kafka, two names of one request that differ only in `.` and `_` collide.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import trio

from leafcuttr.config.describe import describe_topic
from leafcuttr.config.settings import Settings
from leafcuttr.config.topic import topic_config, validate_overrides
from leafcuttr.errors import (
    BrokerError,
    ErrorCode,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    PolicyViolation,
)
from leafcuttr.handlers.access import CREATE_ON_CLUSTER, CREATE_TOPIC, DESCRIBE_TOPIC_CONFIGS, may
from leafcuttr.handlers.answers import words
from leafcuttr.handlers.assignments import check_replicas
from leafcuttr.handlers.context import RequestContext
from leafcuttr.handlers.mutation_quota import MutationQuota
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.state.topic_names import METADATA_TOPIC
from leafcuttr.state.topics import new_topic_id
from leafcuttr.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

# More partitions than this in one request are refused, as by Kafka's controller.
MAX_PARTITIONS: Final = 10_000


async def handle(
    broker: Broker, context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    pace = Pace()
    if request.timeout_ms <= 0:
        late = [
            _refused(topic.name, ErrorCode.REQUEST_TIMED_OUT) async for topic in pace.over(request.topics)
        ]
        return CreateTopicsResponse(topics=late)
    times = Counter(topic.name for topic in request.topics)
    once, partitions = [], 0
    denied: list[CreatableTopicResult] = []
    every = may(broker, context, CREATE_ON_CLUSTER, quietly=True)
    async for topic in pace.over(request.topics):
        if times[topic.name] > 1:
            continue
        if every or topic.name == METADATA_TOPIC or may(broker, context, CREATE_TOPIC, topic.name):
            once.append(topic)
            partitions += _count(broker, topic)
        else:
            denied.append(_refused(topic.name, CREATE_TOPIC.error, "Authorization failed."))
    too_many = partitions > MAX_PARTITIONS
    quota = MutationQuota(broker, context, strict_from=6)
    results: list[CreatableTopicResult] = []
    for topic in once:
        await trio.lowlevel.checkpoint()  # to check and describe one takes a third of a millisecond
        try:
            if too_many:
                raise PolicyViolation("Excessively large number of partitions per request.")
            result = await _create(broker, topic, quota, validate_only=request.validate_only)
            shown = may(broker, context, DESCRIBE_TOPIC_CONFIGS, topic.name, quietly=True)
            results.append(result if shown else _without_settings(result))
        except BrokerError as error:
            results.append(
                CreatableTopicResult(name=topic.name, error_code=error.code, error_message=words(error))
            )
    twice = [
        _refused(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        async for name in pace.over(times)
        if times[name] > 1
    ]
    return CreateTopicsResponse(throttle_time_ms=quota.throttle_time_ms, topics=results + twice + denied)


def _refused(name: str, code: ErrorCode, message: str | None = None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message)


def _without_settings(result: CreatableTopicResult) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=result.name,
        topic_id=result.topic_id,
        error_message=None,
        topic_config_error_code=DESCRIBE_TOPIC_CONFIGS.error,
    )


async def _create(
    broker: Broker, topic: CreatableTopic, quota: MutationQuota, *, validate_only: bool
) -> CreatableTopicResult:
    broker.topics.check_creatable(topic.name)
    given = {config.name: config.value for config in topic.configs}
    validate_overrides(broker.settings, given, topic.name)
    overrides: Mapping[str, str] = {name: value for name, value in given.items() if value is not None}
    broker.topics.vetted(topic.name, {}, overrides)
    partitions = _checked_count(broker, topic)
    quota.take(partitions)
    if validate_only:
        topic_id = new_topic_id()
    else:
        topic_id = (await broker.topics.create(topic.name, partitions, overrides)).id
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=partitions,
        replication_factor=1,
        configs=_effective(broker.settings, topic.name, overrides),
    )


def _count(broker: Broker, topic: CreatableTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return (
        broker.settings.int("num.partitions") if topic.num_partitions == -1 else max(topic.num_partitions, 0)
    )


def _checked_count(broker: Broker, topic: CreatableTopic) -> int:
    """How many partitions are requested. Raises what is wrong with them or with their replicas."""
    if topic.assignments:
        _check_assignments(broker.node_id, topic)
        return len(topic.assignments)
    factor = topic.replication_factor
    if factor < -1 or factor == 0:
        raise InvalidReplicationFactor(
            "Replication factor must be larger than 0, or -1 to use the default value."
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise InvalidPartitions("Number of partitions was set to an invalid non-positive value.")
    if factor > 1:
        raise InvalidReplicationFactor(
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot "
            "be reached because only 1 broker(s) are registered or some brokers have all their log directories "
            "cordoned."
        )
    return _count(broker, topic)


def _check_assignments(node_id: int, topic: CreatableTopic) -> None:
    for field, value in (
        ("replication factor", topic.replication_factor),
        ("numPartitions", topic.num_partitions),
    ):
        if value != -1:
            raise InvalidRequest(
                f"A manual partition assignment was specified, but {field} was not set to -1."
            )
    seen: set[int] = set()
    for assignment in topic.assignments:
        if assignment.partition_index in seen:
            raise InvalidReplicaAssignment(
                f"Found multiple manual partition assignments for partition {assignment.partition_index}"
            )
        seen.add(assignment.partition_index)
        check_replicas(node_id, assignment.broker_ids)
    if seen != set(range(len(seen))):
        raise InvalidReplicaAssignment("partitions should be a consecutive 0-based integer sequence")


def _effective(settings: Settings, topic: str, overrides: Mapping[str, str]) -> list[CreatableTopicConfigs]:
    """Every setting of the new topic, in order of name, with where its value comes from."""
    described = describe_topic(settings, topic, overrides, topic_config(settings, overrides, topic=topic))
    return [
        CreatableTopicConfigs(
            name=setting.name,
            value=setting.value,
            read_only=setting.read_only,
            config_source=setting.source,
            is_sensitive=setting.sensitive,
        )
        for setting in sorted(described, key=lambda setting: setting.name)
    ]

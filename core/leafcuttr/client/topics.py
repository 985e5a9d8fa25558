"""Topics of a cluster: what there is, their settings, creating and changing them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import trio

from leafcuttr.client.calls import Calls
from leafcuttr.client.errors import ApiNotOffered, refusal
from leafcuttr.client.retrying import RetryPauses
from leafcuttr.client.rights import said, topic_refusal
from leafcuttr.errors import BrokerError, ErrorCode, RequestTimedOut
from leafcuttr.wire.messages.alter_configs import AlterableConfig as WholeConfig
from leafcuttr.wire.messages.alter_configs import AlterConfigsRequest
from leafcuttr.wire.messages.alter_configs import AlterConfigsResource as WholeResource
from leafcuttr.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from leafcuttr.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from leafcuttr.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from leafcuttr.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from leafcuttr_sdk.peers import PeerTopic
from leafcuttr_sdk.security import Operation

_TOPIC: Final = 2
_BROKER: Final = 4
_DYNAMIC_TOPIC_CONFIG: Final = 1
"""The source of a setting that was given for the topic itself (KIP-226)."""
_SET: Final = 0
_DELETE: Final = 1
_NOT_YET: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})
_PROPAGATION_S: Final = 3.0
"""How long a topic that is created is waited for; clients with librdkafka set another time."""
_AT_ONCE: Final = 500
"""Topics in one request."""


async def describe_topics(calls: Calls, names: Sequence[str] | None) -> dict[str, PeerTopic]:
    """See `leafcuttr_sdk.peers.Peer.topics`."""
    if names is None:
        return _topics(await calls.metadata(None))
    found: dict[str, PeerTopic] = {}
    for some in _pieces(names):
        found |= _topics(await calls.metadata(some))
    return found


def _topics(response: Any) -> dict[str, PeerTopic]:
    return _topics_of(response.topics)


def _topics_of(topics: Sequence[Any]) -> dict[str, PeerTopic]:
    found: dict[str, PeerTopic] = {}
    for topic in topics:
        if topic.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
            continue
        if topic.error_code and topic.error_code != ErrorCode.LEADER_NOT_AVAILABLE:
            raise topic_refusal(topic.error_code, topic.name, topic.name, Operation.DESCRIBE)
        parts = sorted(topic.partitions, key=lambda part: part.partition_index)
        found[topic.name] = PeerTopic(
            topic.name, topic.topic_id, [part.leader_epoch for part in parts], topic.is_internal
        )
    return found


async def ensure_topic(calls: Calls, name: str) -> PeerTopic:
    """See `leafcuttr_sdk.peers.Peer.ensure_topic`. A broker that creates a topic says for a while that there is none,
    as one does that creates none."""
    given = calls.settings.other.get("topic.metadata.propagation.max.ms", "")
    until = trio.current_time() + (int(given) / 1000 if given.isdigit() else _PROPAGATION_S)
    backoff = RetryPauses(calls.settings)
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    while True:
        (topic,) = (await calls.any_broker(request, at_least=4)).topics
        if not topic.error_code and topic.partitions:
            return _topics_of([topic])[name]
        pause = backoff.next_s()
        if topic.error_code not in _NOT_YET or trio.current_time() + pause > until:
            raise topic_refusal(topic.error_code, name, name, Operation.DESCRIBE, Operation.CREATE)
        await trio.sleep(pause)


async def topic_configs(calls: Calls, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """See `leafcuttr_sdk.peers.Peer.topic_configs`."""
    found: dict[str, dict[str, str]] = {}
    for some in _pieces(names):
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=_TOPIC, resource_name=name, configuration_keys=None)
                for name in some
            ]
        )
        response = await calls.any_broker(request)
        for result in response.results:
            if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                continue
            if result.error_code:
                raise refusal(
                    result.error_code,
                    said(
                        result.error_code,
                        result.error_message,
                        result.resource_name,
                        Operation.DESCRIBE_CONFIGS,
                    ),
                )
            found[result.resource_name] = {
                each.name: each.value
                for each in result.configs
                if each.config_source == _DYNAMIC_TOPIC_CONFIG and each.value is not None
            }
    return found


async def create_topic(
    calls: Calls, name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]
) -> None:
    """See `leafcuttr_sdk.peers.Peer.create_topic`."""
    try:
        await _create(calls, name, partitions, replication_factor, configs)
    except BrokerError as error:
        if not isinstance(error.__cause__, ApiNotOffered) or replication_factor != -1:
            raise
        # Before Kafka 2.4 a request cannot leave the factor to the cluster (KIP-464).
        await _create(calls, name, partitions, await _default_factor(calls), configs)
    await _until_writable(calls, name, partitions)


async def _create(
    calls: Calls, name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]
) -> None:
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=replication_factor,
                assignments=[],
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
            )
        ],
        timeout_ms=_timeout_ms(calls),
    )
    await calls.controller(
        request,
        lambda response: (response.topics[0].error_code, response.topics[0].error_message),
        at_least=4 if replication_factor == -1 else 2,
    )


async def _default_factor(calls: Calls) -> int:
    node = await calls.cluster.controller()
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=_BROKER,
                resource_name=str(node),
                configuration_keys=["default.replication.factor"],
            )
        ]
    )
    response = await calls.broker(node, request)
    for result in response.results:
        for each in result.configs:
            if each.value:
                return int(each.value)
    return 1


async def _until_writable(calls: Calls, name: str, partitions: int) -> None:
    """Each partition has a leader. Raises RequestTimedOut."""
    backoff = RetryPauses(calls.settings)
    deadline = trio.current_time() + calls.settings.request_timeout_s
    while True:
        found = [topic for topic in (await calls.metadata([name])).topics if topic.name == name]
        led = [
            part
            for topic in found
            for part in topic.partitions
            if part.leader_id >= 0 and not part.error_code
        ]
        if len(led) >= partitions:
            return
        pause = backoff.next_s()
        if trio.current_time() + pause > deadline:
            raise RequestTimedOut(
                f"topic {name} was created, but {len(led)} of {partitions} partitions have a leader"
            )
        await trio.sleep(pause)


async def alter_topic(calls: Calls, name: str, configs: Mapping[str, str | None]) -> None:
    """See `leafcuttr_sdk.peers.Peer.alter_topic`."""
    if not configs:
        return
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=_TOPIC,
                resource_name=name,
                configs=[
                    AlterableConfig(
                        name=key, config_operation=_DELETE if value is None else _SET, value=value
                    )
                    for key, value in configs.items()
                ],
            )
        ]
    )
    try:
        await calls.controller(request, _altered)
    except BrokerError as error:
        if not isinstance(error.__cause__, ApiNotOffered):
            raise
        await _alter_as_a_whole(calls, name, configs)


async def _alter_as_a_whole(calls: Calls, name: str, configs: Mapping[str, str | None]) -> None:
    """Before Kafka 2.3 a request names all settings of a topic (KIP-339)."""
    known = (await topic_configs(calls, [name])).get(name)
    if known is None:
        raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    kept = {key: value for key, value in {**known, **configs}.items() if value is not None}
    resource = WholeResource(
        resource_type=_TOPIC,
        resource_name=name,
        configs=[WholeConfig(name=key, value=value) for key, value in kept.items()],
    )
    await calls.controller(AlterConfigsRequest(resources=[resource]), _altered)


def _altered(response: Any) -> tuple[int, str | None]:
    (result,) = response.responses
    return result.error_code, result.error_message


async def add_partitions(calls: Calls, name: str, total: int) -> None:
    """See `leafcuttr_sdk.peers.Peer.add_partitions`."""
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=total, assignments=None)],
        timeout_ms=_timeout_ms(calls),
    )
    await calls.controller(
        request, lambda response: (response.results[0].error_code, response.results[0].error_message)
    )
    await _until_writable(calls, name, total)


def _timeout_ms(calls: Calls) -> int:
    return int(calls.settings.request_timeout_s * 1000)


def _pieces(names: Sequence[str]) -> list[list[str]]:
    unique = list(dict.fromkeys(names))
    return [unique[at : at + _AT_ONCE] for at in range(0, len(unique), _AT_ONCE)]

"""Metadata, versions 0 to 13: the brokers, the topics, and the leaders of their partitions.

No topics means all of them in version 0; from version 1 on null means all and none means none. Version 4
added the choice whether to create what is missing (KIP-204; before, always), 5 offline replicas (KIP-112), 7
the leader epoch (KIP-320), 8 authorized operations (KIP-430), 10 topic ids in answers (KIP-516), 12 requests by
topic id; as soon as one topic of a request has an id, only the ids count. Version 13 has an error code for
the whole answer that tells a client to bootstrap again (KIP-1102); one broker never needs it.

The address is that of the listener of the request. The controller is this broker. A topic that is created by
this request is in the same answer, where Kafka says UNKNOWN_TOPIC_OR_PARTITION once and lets the client try
again. One that would be above a quota is unknown (KIP-599), and the client is to wait.
"""

from collections.abc import Iterable
from functools import lru_cache

from leafcuttr.errors import BrokerError, ErrorCode, InvalidTopic, ThrottlingQuotaExceeded
from leafcuttr.handlers.access import (
    CREATE_ON_CLUSTER,
    CREATE_TOPIC,
    DESCRIBE_TOPIC,
    cluster_operations,
    may,
    operations,
)
from leafcuttr.handlers.answers import NOT_REQUESTED, address, operations_on, rack
from leafcuttr.handlers.context import RequestContext
from leafcuttr.handlers.mutation_quota import MutationQuota
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state import topic_names
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.acl import AclResourceType
from leafcuttr.state.topics import ZERO_ID, Topic
from leafcuttr.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


async def handle(broker: Broker, context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    refusal = _refusal(context.api_version, request)
    if refusal is not None:
        return _refused(request, refusal)
    host, port = address(context)
    quota = MutationQuota(broker, context, strict_from=0)
    topics = await _topics(broker, context, request, quota)
    return MetadataResponse(
        throttle_time_ms=quota.throttle_time_ms,
        brokers=[MetadataResponseBroker(node_id=broker.node_id, host=host, port=port, rack=rack(broker))],
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        topics=topics,
        cluster_authorized_operations=(
            cluster_operations(broker, context)
            if request.include_cluster_authorized_operations
            else NOT_REQUESTED
        ),
    )


def _refusal(version: int, request: MetadataRequest) -> ErrorCode | None:
    requested = request.topics or ()
    if version < 12 and any(topic.name is None or topic.topic_id != ZERO_ID for topic in requested):
        return ErrorCode.INVALID_REQUEST
    if any(topic.name is None and topic.topic_id == ZERO_ID for topic in requested):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return None


def _refused(request: MetadataRequest, code: ErrorCode) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ],
        error_code=code,
    )


async def _topics(
    broker: Broker, context: RequestContext, request: MetadataRequest, quota: MutationQuota
) -> list[MetadataResponseTopic]:
    requested = request.topics
    allowed = request.include_topic_authorized_operations
    pace = Pace()
    if requested is None or (context.api_version == 0 and not requested):
        every: list[MetadataResponseTopic] = []
        for known in list(broker.topics.by_name.values()):
            await pace.turn()
            if may(broker, context, DESCRIBE_TOPIC, known.name, quietly=True):
                every.append(_found(broker, context, known, allowed=allowed))
        return every
    ids = dict.fromkeys(topic.topic_id for topic in requested if topic.topic_id != ZERO_ID)
    if ids:
        return _by_id(broker, context, ids, allowed=allowed)
    create = request.allow_auto_topic_creation and broker.settings.bool("auto.create.topics.enable")
    found: list[MetadataResponseTopic] = []
    missing: list[MetadataResponseTopic] = []
    uncreated: list[MetadataResponseTopic] = []
    unseen: list[MetadataResponseTopic] = []
    for name in dict.fromkeys(topic.name for topic in requested if topic.name is not None):
        await pace.turn()
        if not may(broker, context, DESCRIBE_TOPIC, name):
            # Whether it exists is not said.
            unseen.append(MetadataResponseTopic(error_code=DESCRIBE_TOPIC.error, name=name))
            continue
        topic = broker.topics.find(name)
        internal = name in topic_names.INTERNAL
        if topic is None and create and not _may_create(broker, context, name):
            uncreated.append(
                MetadataResponseTopic(error_code=CREATE_TOPIC.error, name=name, is_internal=internal)
            )
            continue
        code = ErrorCode.NONE
        if topic is None:
            topic, code = await _missing(broker, name, create, quota)
        if topic is not None:
            found.append(_found(broker, context, topic, allowed=allowed))
        else:
            missing.append(
                MetadataResponseTopic(
                    error_code=code,
                    name=name,
                    is_internal=internal,
                    topic_authorized_operations=(
                        operations(broker, context, AclResourceType.TOPIC, name) if allowed else NOT_REQUESTED
                    ),
                )
            )
    return found + missing + uncreated + unseen


def _may_create(broker: Broker, context: RequestContext, name: str) -> bool:
    return may(broker, context, CREATE_ON_CLUSTER, quietly=True) or may(broker, context, CREATE_TOPIC, name)


async def _missing(
    broker: Broker, name: str, create: bool, quota: MutationQuota
) -> tuple[Topic | None, ErrorCode]:
    if not topic_names.is_valid(name):
        return None, ErrorCode.INVALID_TOPIC_EXCEPTION
    if create:
        try:
            quota.take(broker.topics.partitions_to_be(name))
            return await broker.topics.ensure(name), ErrorCode.NONE
        except (InvalidTopic, ThrottlingQuotaExceeded):
            # It collides with the name of another, or may not be created now: Kafka calls it unknown too.
            pass
        except BrokerError as error:
            return None, error.code
    return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _by_id(
    broker: Broker, context: RequestContext, ids: Iterable[bytes], *, allowed: bool
) -> list[MetadataResponseTopic]:
    found: list[MetadataResponseTopic] = []
    unseen: list[MetadataResponseTopic] = []
    unknown: list[MetadataResponseTopic] = []
    for topic_id in ids:
        topic = broker.topics.by_id.get(topic_id)
        if topic is None:
            unknown.append(
                MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
            )
        elif not may(broker, context, DESCRIBE_TOPIC, topic.name):
            unseen.append(
                MetadataResponseTopic(error_code=DESCRIBE_TOPIC.error, name=None, topic_id=topic_id)
            )
        else:
            found.append(_found(broker, context, topic, allowed=allowed))
    return unknown + found + unseen


def _found(broker: Broker, context: RequestContext, topic: Topic, *, allowed: bool) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.internal,
        partitions=[
            _partition(broker.node_id, part.index, part.leader_epoch, part.log.offline is not None)
            for part in topic.partitions
        ],
        topic_authorized_operations=operations_on(broker, context, topic) if allowed else NOT_REQUESTED,
    )


# Most partitions of a broker look like those of another topic, and a list of all topics is long.
@lru_cache(maxsize=4096)
def _partition(node_id: int, index: int, leader_epoch: int, offline: bool) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE if offline else ErrorCode.NONE,
        partition_index=index,
        leader_id=-1 if offline else node_id,
        leader_epoch=leader_epoch,
        replica_nodes=(node_id,),
        isr_nodes=() if offline else (node_id,),
        offline_replicas=(node_id,) if offline else (),
    )

"""Brokers, controller, topics and where their partitions are led; may create a topic that is named.

In version 0 an empty array of topics means all; from 1 on null means all and an empty array none.

Versions:
- 1: racks, controller, internal topics.
- 2: cluster id.
- 4: `allow_auto_topic_creation`.
- 5: offline replicas.
- 7: leader epoch (KIP-320).
- 8: authorized operations (KIP-430).
- 9: flexible.
- 10: topic ids in the answer (KIP-516).
- 11: no cluster operations any more (KIP-700).
- 12: a topic may be named by its id alone, with a null name.
- 13: a top-level error.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BOOL, INT16, INT32, STRING, UUID, array, field, message, struct


@struct
class MetadataRequestTopic:
    topic_id: bytes = field(UUID, "10+", ignorable=True)
    name: str | None = field(STRING, "0+", nullable="10+")


@message("0-13", flexible="9+")
class MetadataRequest:
    topics: Sequence[MetadataRequestTopic] | None = field(array(MetadataRequestTopic), "0+", nullable="1+")
    allow_auto_topic_creation: bool = field(BOOL, "4+", default=True)
    include_cluster_authorized_operations: bool = field(BOOL, "8-10")
    include_topic_authorized_operations: bool = field(BOOL, "8+")


@struct
class MetadataResponseBroker:
    node_id: int = field(INT32, "0+")
    host: str = field(STRING, "0+")
    port: int = field(INT32, "0+")
    rack: str | None = field(STRING, "1+", nullable="1+", default=None, ignorable=True)


@struct
class MetadataResponsePartition:
    error_code: int = field(INT16, "0+")
    partition_index: int = field(INT32, "0+")
    leader_id: int = field(INT32, "0+")
    leader_epoch: int = field(INT32, "7+", default=-1, ignorable=True)
    replica_nodes: Sequence[int] = field(array(INT32), "0+")
    isr_nodes: Sequence[int] = field(array(INT32), "0+")
    offline_replicas: Sequence[int] = field(array(INT32), "5+", ignorable=True)


@struct
class MetadataResponseTopic:
    error_code: int = field(INT16, "0+")
    name: str | None = field(STRING, "0+", nullable="12+")
    topic_id: bytes = field(UUID, "10+", ignorable=True)
    is_internal: bool = field(BOOL, "1+", ignorable=True)
    partitions: Sequence[MetadataResponsePartition] = field(array(MetadataResponsePartition), "0+")
    topic_authorized_operations: int = field(INT32, "8+", default=-2147483648)


@message("0-13", flexible="9+")
class MetadataResponse:
    throttle_time_ms: int = field(INT32, "3+", ignorable=True)
    brokers: Sequence[MetadataResponseBroker] = field(array(MetadataResponseBroker), "0+")
    cluster_id: str | None = field(STRING, "2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = field(INT32, "1+", default=-1, ignorable=True)
    topics: Sequence[MetadataResponseTopic] = field(array(MetadataResponseTopic), "0+")
    cluster_authorized_operations: int = field(INT32, "8-10", default=-2147483648)
    error_code: int = field(INT16, "13+", ignorable=True)

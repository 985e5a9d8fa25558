"""Cluster id, controller and brokers (KIP-700).

Flexible from version 0.

Versions:
- 1: brokers or controllers (KIP-919).
- 2: fenced brokers on request (KIP-1073).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BOOL, INT8, INT16, INT32, STRING, array, field, message, struct


@message("0-2", flexible="0+")
class DescribeClusterRequest:
    include_cluster_authorized_operations: bool = field(BOOL, "0+")
    endpoint_type: int = field(INT8, "1+", default=1)
    include_fenced_brokers: bool = field(BOOL, "2+")


@struct
class DescribeClusterBroker:
    broker_id: int = field(INT32, "0+")
    host: str = field(STRING, "0+")
    port: int = field(INT32, "0+")
    rack: str | None = field(STRING, "0+", nullable="0+", default=None)
    is_fenced: bool = field(BOOL, "2+")


@message("0-2", flexible="0+")
class DescribeClusterResponse:
    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)
    endpoint_type: int = field(INT8, "1+", default=1)
    cluster_id: str = field(STRING, "0+")
    controller_id: int = field(INT32, "0+", default=-1)
    brokers: Sequence[DescribeClusterBroker] = field(array(DescribeClusterBroker), "0+")
    cluster_authorized_operations: int = field(INT32, "0+", default=-2147483648)

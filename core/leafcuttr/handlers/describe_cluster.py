"""DescribeCluster, versions 0 to 2: the brokers and the controller (KIP-700).

Version 1 added the type of the endpoint (KIP-919): this is a broker's; there is none of a
controller. Version 2 added fenced brokers (KIP-1073); this one serves, so it is not fenced.
"""

from typing import Final

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.access import cluster_operations
from leafcuttr.handlers.answers import NOT_REQUESTED, address, rack
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS: Final = 1
CONTROLLERS: Final = 2


def handle(
    broker: Broker, context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
            "CONTROLLER",
        )
    if request.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    host, port = address(context)
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        brokers=[DescribeClusterBroker(broker_id=broker.node_id, host=host, port=port, rack=rack(broker))],
        cluster_authorized_operations=(
            cluster_operations(broker, context)
            if request.include_cluster_authorized_operations
            else NOT_REQUESTED
        ),
    )

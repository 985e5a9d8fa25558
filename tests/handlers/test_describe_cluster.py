"""DescribeCluster: a cluster of one broker."""

from typing import Any

import pytest

from leafcuttr.config.listeners import Listener
from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.describe_cluster import DescribeClusterRequest

OUTSIDE = Listener("EXTERNAL", "127.0.0.1", 9093, "public.test", 29092)


@pytest.mark.parametrize("version", range(3))
async def test_every_version_describes_the_cluster(broker: Broker, send: Any, version: int) -> None:
    answer = await send(DescribeClusterRequest(), version, listener=OUTSIDE)
    assert (answer.error_code, answer.error_message, answer.endpoint_type) == (ErrorCode.NONE, None, 1)
    assert (answer.cluster_id, answer.controller_id) == (broker.cluster_id, 1)
    (node,) = answer.brokers
    assert (node.broker_id, node.host, node.port, node.is_fenced) == (1, "public.test", 29092, False)
    assert answer.cluster_authorized_operations == -(2**31)
    answer = await send(DescribeClusterRequest(include_cluster_authorized_operations=True), version)
    assert answer.cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("endpoint", "code", "message"),
    [
        (
            2,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        ),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 0"),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 3"),
    ],
)
async def test_there_are_only_brokers_here(send: Any, endpoint: int, code: ErrorCode, message: str) -> None:
    answer = await send(DescribeClusterRequest(endpoint_type=endpoint), 1)
    assert (answer.error_code, answer.error_message, answer.endpoint_type) == (code, message, 1)
    assert (answer.cluster_id, answer.controller_id, list(answer.brokers)) == ("", -1, [])

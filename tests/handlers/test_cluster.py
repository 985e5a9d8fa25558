"""DescribeCluster, DescribeQuorum, UpdateFeatures and UnregisterBroker: a cluster of one."""

from typing import Any

import pytest

from leafcuttr.config.listeners import Listener
from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.describe_cluster import DescribeClusterRequest
from leafcuttr.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from leafcuttr.wire.messages.unregister_broker import UnregisterBrokerRequest
from leafcuttr.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

OUTSIDE = Listener("EXTERNAL", "127.0.0.1", 9093, "public.test", 29092)


@pytest.mark.parametrize("version", range(3))
async def test_every_version_describes_the_cluster(broker: Broker, ask: Any, version: int) -> None:
    answer = await ask(DescribeClusterRequest(), version, listener=OUTSIDE)
    assert (answer.error_code, answer.error_message, answer.endpoint_type) == (ErrorCode.NONE, None, 1)
    assert (answer.cluster_id, answer.controller_id) == (broker.cluster_id, 1)
    (node,) = answer.brokers
    assert (node.broker_id, node.host, node.port, node.is_fenced) == (1, "public.test", 29092, False)
    assert answer.cluster_authorized_operations == -(2**31)
    answer = await ask(DescribeClusterRequest(include_cluster_authorized_operations=True), version)
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
async def test_there_are_only_brokers_here(ask: Any, endpoint: int, code: ErrorCode, message: str) -> None:
    answer = await ask(DescribeClusterRequest(endpoint_type=endpoint), 1)
    assert (answer.error_code, answer.error_message, answer.endpoint_type) == (code, message, 1)
    assert (answer.cluster_id, answer.controller_id, list(answer.brokers)) == ("", -1, [])


def quorum(*topics: tuple[str, list[int]]) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=[
            RequestTopicData(
                topic_name=name, partitions=[RequestPartitionData(partition_index=i) for i in indexes]
            )
            for name, indexes in topics
        ]
    )


@pytest.mark.parametrize("version", range(3))
async def test_one_voter_that_moves_on_with_the_metadata(broker: Broker, ask: Any, version: int) -> None:
    ends = []
    for name in ("orders", "events"):
        await broker.topics.create(name, 1, {})
        answer = await ask(quorum(("__cluster_metadata", [0])), version)
        ((part,),) = [topic.partitions for topic in answer.topics]
        (voter,) = part.current_voters
        assert (answer.error_code, part.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
        assert (part.leader_id, part.leader_epoch, voter.replica_id, list(part.observers)) == (1, 1, 1, [])
        assert voter.log_end_offset == part.high_watermark
        assert voter.last_caught_up_timestamp == (broker.clock.now_ms() if version >= 1 else -1)
        assert len(answer.nodes) == (version >= 2)
        ends.append(part.high_watermark)
    assert ends[0] < ends[1]


@pytest.mark.parametrize(
    "asked",
    [
        [("orders", [0])],
        [("__cluster_metadata", [1])],
        [("__cluster_metadata", [0, 1])],
        [("__cluster_metadata", [])],
        [("__cluster_metadata", [0]), ("orders", [])],
        [],
    ],
)
async def test_other_logs_have_no_quorum(ask: Any, asked: list[tuple[str, list[int]]]) -> None:
    answer = await ask(quorum(*asked), 2)
    assert (answer.error_code, answer.error_message, list(answer.nodes)) == (ErrorCode.NONE, "", [])
    assert [(t.topic_name, [p.partition_index for p in t.partitions]) for t in answer.topics] == asked
    assert {part.error_code for topic in answer.topics for part in topic.partitions} <= {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }


@pytest.mark.parametrize(
    ("version", "level", "kind", "reason"),
    [
        (0, 1, 1, "Local controller 1 does not support this feature."),
        (1, 1, 1, "Local controller 1 does not support this feature."),
        (2, 1, 2, "Local controller 1 does not support this feature."),
        (2, 0, 1, "Feature nope not found."),
        (2, -1, 1, "A feature version cannot be less than 0."),
        (2, 1, 9, "The controller does not support the given upgrade type."),
    ],
)
async def test_no_feature_can_be_updated(ask: Any, version: int, level: int, kind: int, reason: str) -> None:
    update = FeatureUpdateKey(feature="nope", max_version_level=level, upgrade_type=kind)
    answer = await ask(UpdateFeaturesRequest(feature_updates=[update]), version)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert answer.error_message == (
        "The update failed for all features since the following feature had an error: "
        f"Invalid update version {level} for feature nope. {reason}"
    )
    assert list(answer.results) == []


@pytest.mark.parametrize("version", range(3))
async def test_updating_nothing_succeeds(ask: Any, version: int) -> None:
    answer = await ask(UpdateFeaturesRequest(), version)
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)


@pytest.mark.parametrize(
    ("broker_id", "code", "message"),
    [
        (5, ErrorCode.BROKER_ID_NOT_REGISTERED, "Broker ID 5 is not currently registered"),
        (1, ErrorCode.INVALID_REQUEST, "Broker 1 is the only one and cannot be unregistered."),
    ],
)
async def test_no_broker_can_be_unregistered(ask: Any, broker_id: int, code: ErrorCode, message: str) -> None:
    answer = await ask(UnregisterBrokerRequest(broker_id=broker_id), 0)
    assert (answer.error_code, answer.error_message) == (code, message)

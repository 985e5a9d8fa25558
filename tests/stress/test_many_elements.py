"""A request about very many things leaves others their turn, whichever API it is. Turns are counted, not time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

import pytest
import trio

from leafcuttr.handlers.answers import REPEATED
from leafcuttr.runtime import pacing
from leafcuttr.state.broker import Broker
from support.peer import connect

Serve = Callable[..., Awaitable[Broker]]
MANY = 300
NAMES = [f"n{number}" for number in range(MANY)]
INDEXES = list(range(MANY))


def _make(api: str, class_name: str, /, **fields: Any) -> Any:
    return getattr(import_module(f"leafcuttr.wire.messages.{api}"), class_name)(**fields)


def _resources(api: str) -> list[Any]:
    return [_make(api, "AlterConfigsResource", resource_type=2, resource_name=name) for name in NAMES]


REQUESTS: dict[str, Callable[[], tuple[Any, int]]] = {
    "DeleteGroups": lambda: (_make("delete_groups", "DeleteGroupsRequest", groups_names=NAMES), 2),
    "DescribeGroups": lambda: (_make("describe_groups", "DescribeGroupsRequest", groups=NAMES), 6),
    "AlterConfigs": lambda: (
        _make("alter_configs", "AlterConfigsRequest", resources=_resources("alter_configs")),
        2,
    ),
    "IncrementalAlterConfigs": lambda: (
        _make(
            "incremental_alter_configs",
            "IncrementalAlterConfigsRequest",
            resources=_resources("incremental_alter_configs"),
        ),
        1,
    ),
    "DeleteTopics": lambda: (
        _make(
            "delete_topics",
            "DeleteTopicsRequest",
            topics=[_make("delete_topics", "DeleteTopicState", name=name) for name in NAMES],
            timeout_ms=1000,
        ),
        6,
    ),
    "CreatePartitions": lambda: (
        _make(
            "create_partitions",
            "CreatePartitionsRequest",
            topics=[_make("create_partitions", "CreatePartitionsTopic", name=n, count=2) for n in NAMES],
            timeout_ms=1000,
        ),
        3,
    ),
    "DeleteRecords": lambda: (
        _make(
            "delete_records",
            "DeleteRecordsRequest",
            topics=[
                _make(
                    "delete_records",
                    "DeleteRecordsTopic",
                    name="t",
                    partitions=[
                        _make("delete_records", "DeleteRecordsPartition", partition_index=index, offset=0)
                        for index in INDEXES
                    ],
                )
            ],
        ),
        2,
    ),
    "DescribeProducers": lambda: (
        _make(
            "describe_producers",
            "DescribeProducersRequest",
            topics=[_make("describe_producers", "TopicRequest", name="t", partition_indexes=INDEXES)],
        ),
        0,
    ),
    "OffsetForLeaderEpoch": lambda: (
        _make(
            "offset_for_leader_epoch",
            "OffsetForLeaderEpochRequest",
            topics=[
                _make(
                    "offset_for_leader_epoch",
                    "OffsetForLeaderTopic",
                    topic="t",
                    partitions=[
                        _make("offset_for_leader_epoch", "OffsetForLeaderPartition", partition=index)
                        for index in INDEXES
                    ],
                )
            ],
        ),
        4,
    ),
    "ElectLeaders": lambda: (
        _make(
            "elect_leaders",
            "ElectLeadersRequest",
            topic_partitions=[_make("elect_leaders", "TopicPartitions", topic="t", partitions=INDEXES)],
            timeout_ms=1000,
        ),
        2,
    ),
    "AlterPartitionReassignments": lambda: (
        _make(
            "alter_partition_reassignments",
            "AlterPartitionReassignmentsRequest",
            topics=[
                _make(
                    "alter_partition_reassignments",
                    "ReassignableTopic",
                    name="t",
                    partitions=[
                        _make(
                            "alter_partition_reassignments",
                            "ReassignablePartition",
                            partition_index=index,
                            replicas=None,
                        )
                        for index in INDEXES
                    ],
                )
            ],
            timeout_ms=1000,
        ),
        1,
    ),
}

REQUESTS |= {
    "OffsetFetch": lambda: (
        _make(
            "offset_fetch",
            "OffsetFetchRequest",
            groups=[
                _make(
                    "offset_fetch",
                    "OffsetFetchRequestGroup",
                    group_id="g",
                    topics=[
                        _make("offset_fetch", "OffsetFetchRequestTopics", name="t", partition_indexes=INDEXES)
                    ],
                )
            ],
        ),
        9,
    ),
    "OffsetFetch of many groups": lambda: (
        _make(
            "offset_fetch",
            "OffsetFetchRequest",
            groups=[
                _make("offset_fetch", "OffsetFetchRequestGroup", group_id=name, topics=None) for name in NAMES
            ],
        ),
        9,
    ),
    "OffsetFetch of old": lambda: (
        _make(
            "offset_fetch",
            "OffsetFetchRequest",
            group_id="g",
            topics=[_make("offset_fetch", "OffsetFetchRequestTopic", name="t", partition_indexes=INDEXES)],
        ),
        5,
    ),
    "LeaveGroup": lambda: (
        _make(
            "leave_group",
            "LeaveGroupRequest",
            group_id="g",
            members=[_make("leave_group", "MemberIdentity", member_id=name) for name in NAMES],
        ),
        5,
    ),
    "DescribeTopicPartitions": lambda: (
        _make(
            "describe_topic_partitions",
            "DescribeTopicPartitionsRequest",
            topics=[_make("describe_topic_partitions", "TopicRequest", name=name) for name in NAMES],
        ),
        0,
    ),
    "AlterReplicaLogDirs": lambda: (
        _make(
            "alter_replica_log_dirs",
            "AlterReplicaLogDirsRequest",
            dirs=[
                _make(
                    "alter_replica_log_dirs",
                    "AlterReplicaLogDir",
                    path="/somewhere",
                    topics=[
                        _make(
                            "alter_replica_log_dirs",
                            "AlterReplicaLogDirTopic",
                            name="t",
                            partitions=INDEXES,
                        )
                    ],
                )
            ],
        ),
        2,
    ),
    "FindCoordinator": lambda: (
        _make("find_coordinator", "FindCoordinatorRequest", key_type=0, coordinator_keys=NAMES),
        6,
    ),
    "ListOffsets": lambda: (
        _make(
            "list_offsets",
            "ListOffsetsRequest",
            topics=[
                _make(
                    "list_offsets",
                    "ListOffsetsTopic",
                    name="t",
                    partitions=[
                        _make("list_offsets", "ListOffsetsPartition", partition_index=index, timestamp=-1)
                        for index in INDEXES
                    ],
                )
            ],
        ),
        7,
    ),
    "WriteTxnMarkers": lambda: (
        _make(
            "write_txn_markers",
            "WriteTxnMarkersRequest",
            markers=[
                _make(
                    "write_txn_markers",
                    "WritableTxnMarker",
                    producer_id=5,
                    topics=[
                        _make(
                            "write_txn_markers",
                            "WritableTxnMarkerTopic",
                            name="unknown",
                            partition_indexes=INDEXES,
                        )
                    ],
                )
            ],
        ),
        1,
    ),
    "AddPartitionsToTxn": lambda: (
        _make(
            "add_partitions_to_txn",
            "AddPartitionsToTxnRequest",
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=1,
            v3_and_below_topics=[
                _make("add_partitions_to_txn", "AddPartitionsToTxnTopic", name="t", partitions=INDEXES)
            ],
        ),
        3,
    ),
    "CreateTopics": lambda: (
        _make(
            "create_topics",
            "CreateTopicsRequest",
            topics=[
                _make("create_topics", "CreatableTopic", name=name, num_partitions=1, replication_factor=1)
                for name in NAMES * 2
            ],
            timeout_ms=1000,
            validate_only=True,
        ),
        7,
    ),
    "DescribeConfigs": lambda: (
        _make(
            "describe_configs",
            "DescribeConfigsRequest",
            resources=[
                _make("describe_configs", "DescribeConfigsResource", resource_type=99, resource_name=name)
                for name in NAMES
            ],
        ),
        4,
    ),
}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", REQUESTS)
async def test_others_have_their_turn_between_the_elements(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    broker = await serve()
    await broker.topics.create("t", 2, {})
    request, version = REQUESTS[name]()
    monkeypatch.setattr(pacing, "TURN_S", 0.0)  # every turn is over at once, however fast the machine is
    turns, answered = 0, trio.Event()
    async with await connect(broker) as peer:

        async def ask() -> None:
            await peer.ask(request, version)
            answered.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            while not answered.is_set():
                await trio.lowlevel.checkpoint()
                turns += 1
    assert turns > MANY / 2


AGAIN: dict[str, Callable[[], tuple[Any, int, Callable[[Any], int]]]] = {
    "DescribeGroups": lambda: (
        _make("describe_groups", "DescribeGroupsRequest", groups=["g"] * MANY),
        6,
        lambda answer: len(answer.groups),
    ),
    "DescribeTransactions": lambda: (
        _make("describe_transactions", "DescribeTransactionsRequest", transactional_ids=["x"] * MANY),
        0,
        lambda answer: len(answer.transaction_states),
    ),
    "DescribeProducers": lambda: (
        _make(
            "describe_producers",
            "DescribeProducersRequest",
            topics=[_make("describe_producers", "TopicRequest", name="t", partition_indexes=[0] * 30)] * 10,
        ),
        0,
        lambda answer: sum(len(topic.partitions) for topic in answer.topics),
    ),
    "DescribeConfigs": lambda: (
        _make(
            "describe_configs",
            "DescribeConfigsRequest",
            resources=[
                _make("describe_configs", "DescribeConfigsResource", resource_type=2, resource_name="t")
            ]
            * MANY,
        ),
        4,
        lambda answer: len(answer.results),
    ),
    "OffsetFetch": lambda: (
        _make(
            "offset_fetch",
            "OffsetFetchRequest",
            groups=[_make("offset_fetch", "OffsetFetchRequestGroup", group_id="g", topics=None)] * MANY,
        ),
        9,
        lambda answer: len(answer.groups),
    ),
}


@pytest.mark.parametrize("name", AGAIN)
async def test_the_same_question_again_and_again_has_a_few_answers(serve: Serve, name: str) -> None:
    """Where an answer may be thousands of times the size of its question."""
    broker = await serve()
    await broker.topics.create("t", 2, {})
    request, version, count = AGAIN[name]()
    async with await connect(broker) as peer:
        assert count(await peer.ask(request, version)) == 1 + REPEATED

"""WriteTxnMarkers: an administrator ends a hanging transaction, in a topic and among a group's offsets."""

from collections.abc import Callable
from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.state.topic_names import CONSUMER_OFFSETS
from leafcuttr.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from leafcuttr.wire.messages.init_producer_id import InitProducerIdRequest
from leafcuttr.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from leafcuttr.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from leafcuttr.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from support.groups import commit_request
from support.logs import append, batch

SETTINGS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}


@pytest.fixture(params=["false", "true"], ids=["", "sync"])
def broker(request: pytest.FixtureRequest, open_test_broker: Callable[..., Broker]) -> Broker:
    return open_test_broker({**SETTINGS, "lc.log.sync.always": request.param})


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [1, 2])
async def test_the_offsets_of_an_ended_transaction(send, broker: Broker, commit: bool, version: int) -> None:
    await broker.topics.create("t", 1, {})
    await send(commit_request("g", {0: 7}), 8)
    given = await send(InitProducerIdRequest(transactional_id="id", transaction_timeout_ms=60_000), 5)
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=9)
    pending = TxnOffsetCommitRequest(
        transactional_id="id",
        group_id="g",
        producer_id=given.producer_id,
        producer_epoch=given.producer_epoch,
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
    )

    async def fetched() -> tuple[int, int]:
        wanted = OffsetFetchRequestGroup(
            group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        )
        answer = await send(OffsetFetchRequest(groups=[wanted], require_stable=True), 8)
        (found,) = answer.groups[0].topics[0].partitions
        return found.error_code, found.committed_offset

    assert (await send(pending, 5)).topics[0].partitions[0].error_code == 0
    assert (await fetched())[0] == ErrorCode.UNSTABLE_OFFSET_COMMIT
    marker = WritableTxnMarker(
        producer_id=given.producer_id,
        producer_epoch=given.producer_epoch + (version == 2),
        transaction_result=commit,
        topics=[
            WritableTxnMarkerTopic(name=CONSUMER_OFFSETS, partition_indexes=[0, 9]),
            WritableTxnMarkerTopic(name="t", partition_indexes=[0]),
        ],
        coordinator_epoch=0,
        transaction_version=version,
    )
    answer = await send(WriteTxnMarkersRequest(markers=[marker]), version)
    assert [
        (topic.name, each.partition_index, each.error_code)
        for topic in answer.markers[0].topics
        for each in topic.partitions
    ] == [
        (CONSUMER_OFFSETS, 0, 0),
        (CONSUMER_OFFSETS, 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 0, 0),
    ]
    assert await fetched() == (0, 9 if commit else 7)
    assert broker.topics.by_name["t"].partitions[0].log.log_end_offset == 1
    assert not broker.groups.offsets.unstable("g")


async def test_each_partition_of_a_marker_has_a_code_of_its_own(broker: Broker, send: Any) -> None:
    log = (await broker.topics.create("t", 2, {})).partitions[0].log
    append(log, batch(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True))
    described = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])
    (producer,) = (await send(described, 0)).topics[0].partitions[0].active_producers
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (-1, 0)

    async def write(version: int = 1, **fields: Any) -> list[int]:
        topics = [
            WritableTxnMarkerTopic(name="t", partition_indexes=[0, 7]),
            WritableTxnMarkerTopic(name="gone", partition_indexes=[0]),
        ]
        marker = WritableTxnMarker(topics=topics, **{"producer_id": 1, "coordinator_epoch": 3, **fields})
        (result,) = (await send(WriteTxnMarkersRequest(markers=[marker]), version)).markers
        assert result.producer_id == 1
        return [part.error_code for topic in result.topics for part in topic.partitions]

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await write(2, transaction_version=2) == [ErrorCode.INVALID_PRODUCER_EPOCH, unknown, unknown]
    assert await write() == [0, unknown, unknown]
    assert await write(coordinator_epoch=2) == [ErrorCode.TRANSACTION_COORDINATOR_FENCED, unknown, unknown]
    (producer,) = (await send(described, 0)).topics[0].partitions[0].active_producers
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (3, -1)
    assert log.aborted_transactions(0, 9)[0].first_offset == 0

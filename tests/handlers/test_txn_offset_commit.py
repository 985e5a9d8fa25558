"""TxnOffsetCommit: offsets of a group that count once their transaction has committed."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from leafcuttr.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from support.transactional import Producer, end_request, init

NONE = ErrorCode.NONE


def request(producer: Producer, offsets: dict[int, int], group: str = "g") -> TxnOffsetCommitRequest:
    parts = [
        TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        for index, offset in offsets.items()
    ]
    topics = [TxnOffsetCommitRequestTopic(name="t", partitions=parts)]
    return TxnOffsetCommitRequest(**producer._asdict(), group_id=group, topics=topics)


def codes(answer: TxnOffsetCommitResponse) -> list[int]:
    return [part.error_code for topic in answer.topics for part in topic.partitions]


def committed(broker: Broker) -> dict[int, int]:
    found = broker.groups.offsets.fetch("g").get("t", {})
    return {index: each.offset for index, each in found.items()}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", range(6))
async def test_every_version_keeps_offsets_until_the_transaction_ends(
    broker: Broker, coordinators: None, send: Any, version: int, commit: bool
) -> None:
    await broker.topics.create("t", 2, {})
    producer = await init(send)
    if version < 5:
        await send(AddOffsetsToTxnRequest(**producer._asdict(), group_id="g"), 4)
    assert codes(await send(request(producer, {0: 7, 1: 8}), version)) == [NONE, NONE]
    assert committed(broker) == {}
    assert (await send(end_request(producer, commit=commit), 4)).error_code == NONE
    assert committed(broker) == ({0: 7, 1: 8} if commit else {})


async def test_a_partition_that_does_not_exist_has_an_error_of_its_own(
    broker: Broker, coordinators: None, send: Any
) -> None:
    await broker.topics.create("t", 1, {})
    producer = await init(send)
    answer = await send(request(producer, {0: 7, 5: 8}), 5)
    assert codes(answer) == [NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    await send(end_request(producer, commit=True), 4)
    assert committed(broker) == {0: 7}


async def test_offsets_of_a_group_that_was_not_added_are_refused(
    broker: Broker, coordinators: None, send: Any
) -> None:
    await broker.topics.create("t", 1, {})
    producer = await init(send)
    await send(AddOffsetsToTxnRequest(**producer._asdict(), group_id="g"), 4)
    await send(end_request(producer, commit=True), 4)
    assert codes(await send(request(producer, {0: 7}), 4)) == [ErrorCode.TRANSACTION_ABORTABLE]
    assert codes(await send(request(producer, {0: 7}), 3)) == [ErrorCode.INVALID_TXN_STATE]


async def test_refusals_of_the_whole_request(broker: Broker, send: Any) -> None:
    await broker.topics.create("t", 2, {})
    await init(send)
    producer = await init(send)
    for refused, code in (
        (request(producer, {0: 7, 1: 8}, group=""), ErrorCode.INVALID_GROUP_ID),
        (request(producer.fenced, {0: 7, 1: 8}), ErrorCode.INVALID_PRODUCER_EPOCH),
        (
            request(producer._replace(transactional_id="x"), {0: 7, 1: 8}),
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ),
    ):
        assert codes(await send(refused, 5)) == [code, code]
    assert committed(broker) == {}

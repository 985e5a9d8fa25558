"""Requests to leaders: pauses before what was refused is sent again. The rest is seen through appenders."""

from __future__ import annotations

import pytest
import trio

from leafcuttr.client.calls import Calls
from leafcuttr.client.cluster import open_cluster
from leafcuttr.client.producing.sender import BatchSender
from leafcuttr.client.producing.stamp import ProducerIdentity
from leafcuttr.client.properties import client_settings
from leafcuttr.errors import ErrorCode
from leafcuttr.runtime.clock import SystemClock
from leafcuttr.wire.api import ApiKey
from leafcuttr.wire.messages.metadata import MetadataResponse
from leafcuttr.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from leafcuttr_sdk.records import Appended
from leafcuttr_sdk.types import TopicPartition
from support.remote_peers import new_batch
from support.scripted_broker import Call, ScriptedBroker, metadata

TP = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("code", "least_s", "most_s"),
    [
        (ErrorCode.CONCURRENT_TRANSACTIONS, 0.0, 0.3),  # the markers of the last transaction are soon written
        (ErrorCode.NOT_ENOUGH_REPLICAS, 0.7, 30.0),
    ],
)
async def test_the_pause_depends_on_what_was_refused(
    nursery: trio.Nursery, code: ErrorCode, least_s: float, most_s: float
) -> None:
    codes = [code, ErrorCode.NONE]

    def produce(call: Call) -> ProduceResponse:
        answer = PartitionProduceResponse(index=0, error_code=codes.pop(0), base_offset=0)
        name = call.request.topic_data[0].name
        topic_id = call.request.topic_data[0].topic_id
        return ProduceResponse(
            responses=[TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=[answer])]
        )

    def described(call: Call) -> MetadataResponse:
        return metadata(call.broker, topics={"t": [call.broker.node]})

    broker = ScriptedBroker({ApiKey.METADATA: described, ApiKey.PRODUCE: produce})
    await broker.start(nursery)
    settings = client_settings({"bootstrap.servers": broker.address, "retry.backoff.ms": "1000"})
    async with open_cluster(settings, clock=SystemClock()) as cluster, trio.open_nursery() as sending:
        sender = BatchSender(Calls(cluster), sending, transactional_id="x")
        sending.start_soon(sender.run)
        began = trio.current_time()
        answers = await sender.append([new_batch(TP, b"value")], ProducerIdentity(1, 0))
        took = trio.current_time() - began
        sending.cancel_scope.cancel()
    assert answers == [Appended(0, 0)]
    assert broker.asked("ProduceRequest") == 2
    assert least_s <= took < most_s

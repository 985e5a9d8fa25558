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


class Leader:
    """A broker that leads `t` alone, and answers batches with these codes, then with none."""

    def __init__(self, *codes: ErrorCode) -> None:
        self._codes = list(codes)
        self.broker = ScriptedBroker(
            {
                ApiKey.METADATA: lambda call: metadata(call.broker, topics={"t": [call.broker.node]}),
                ApiKey.PRODUCE: self._produce,
            }
        )

    def _produce(self, call: Call) -> ProduceResponse:
        (topic,) = call.request.topic_data
        code = self._codes.pop(0) if self._codes else ErrorCode.NONE
        answer = PartitionProduceResponse(index=0, error_code=code, base_offset=0)
        return ProduceResponse(
            responses=[
                TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[answer])
            ]
        )

    async def took(self, nursery: trio.Nursery, batches: int) -> float:
        """How long it took until so many batches were appended, in seconds."""
        await self.broker.start(nursery)
        settings = client_settings(
            {
                "bootstrap.servers": self.broker.address,
                "retry.backoff.ms": "1000",
                "retry.backoff.max.ms": "60000",
            }
        )
        async with open_cluster(settings, clock=SystemClock()) as cluster, trio.open_nursery() as sending:
            sender = BatchSender(Calls(cluster), sending, transactional_id="x")
            sending.start_soon(sender.run)
            began = trio.current_time()
            wanted = [new_batch(TP, b"value") for _ in range(batches)]
            answers = await sender.append(wanted, ProducerIdentity(1, 0))
            sending.cancel_scope.cancel()
        assert answers == [Appended(0, 0)] * batches
        return trio.current_time() - began


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
    leader = Leader(code)
    assert least_s <= await leader.took(nursery, 1) < most_s
    assert leader.broker.asked("ProduceRequest") == 2


async def test_what_is_refused_together_makes_one_pause(nursery: trio.Nursery) -> None:
    """Four refusals one after the other would make pauses of 1, 2, 4 and 8 seconds."""
    leader = Leader(*[ErrorCode.NOT_ENOUGH_REPLICAS] * 4)
    assert 0.7 <= await leader.took(nursery, 4) < 5
    assert leader.broker.asked("ProduceRequest") == 8

"""Requests to leaders: pauses before what was refused is sent again. The rest is seen through appenders."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from leafcuttr.client.calls import Calls
from leafcuttr.client.cluster import open_cluster
from leafcuttr.client.producing.sender import BatchSender
from leafcuttr.client.producing.stamp import ProducerIdentity
from leafcuttr.client.properties import client_settings
from leafcuttr.errors import BrokerError, ErrorCode, RequestTimedOut
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

    @asynccontextmanager
    async def sender(self, nursery: trio.Nursery, properties: dict[str, str]) -> AsyncIterator[BatchSender]:
        """A sender of a transactional producer that runs, with this leader."""
        await self.broker.start(nursery)
        settings = client_settings({"bootstrap.servers": self.broker.address, **properties})
        async with open_cluster(settings, clock=SystemClock()) as cluster, trio.open_nursery() as sending:
            sender = BatchSender(Calls(cluster), sending, transactional_id="x")
            sending.start_soon(sender.run)
            yield sender
            sending.cancel_scope.cancel()

    async def took(self, nursery: trio.Nursery, batches: int) -> float:
        """How long it took until so many batches were appended, in seconds."""
        pauses = {"retry.backoff.ms": "1000", "retry.backoff.max.ms": "60000"}
        async with self.sender(nursery, pauses) as sender:
            began = trio.current_time()
            wanted = [new_batch(TP, b"value") for _ in range(batches)]
            answers = await sender.append(wanted, ProducerIdentity(1, 0))
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


class Turns(trio.abc.Instrument):
    """How often the tasks that wait for leaders have run."""

    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += task.name.endswith("BatchSender._serve")


@pytest.mark.parametrize("is_stopped", [False, True])
async def test_a_pause_with_nothing_to_be_sent_after_it_wakes_nobody(
    nursery: trio.Nursery, is_stopped: bool
) -> None:
    """The batch that the pause was made for is given up: it is too old, or the transaction is aborted."""
    leader = Leader(*[ErrorCode.NOT_ENOUGH_REPLICAS] * 1000)
    given = {
        "retry.backoff.ms": "10",
        "retry.backoff.max.ms": "20",
        "delivery.timeout.ms": "60000" if is_stopped else "100",
    }
    turns = Turns()
    async with leader.sender(nursery, given) as sender:
        answers: list[Appended | BrokerError] = []

        async def append() -> None:
            answers.extend(await sender.append([new_batch(TP, b"value")], ProducerIdentity(1, 0)))

        async with trio.open_nursery() as appending:
            appending.start_soon(append)
            if is_stopped:
                while leader.broker.asked("ProduceRequest") < 2:
                    await trio.sleep(0.001)
                await sender.stop(RequestTimedOut("it is aborted"))
        assert isinstance(answers[0], RequestTimedOut)
        trio.lowlevel.add_instrument(turns)
        await trio.sleep(0.2)  # the pause is of 24 ms at most
        trio.lowlevel.remove_instrument(turns)
    assert turns.count <= 3

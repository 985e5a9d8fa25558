"""A plugin in the broker that is killed: it copies committed input to its output topic in transactions of
`Broker.transaction`, with the consumed offsets, as the copiers of `txn_client` do in processes of their own.

Now and then it aborts; leaves a transaction to a second producer of the same id, and tries to go on as a zombie; or is
cancelled in the middle. What it does and hears is in a journal, as of the copiers. Its configuration is JSON in the
environment, `LEAFCUTTR_TEST_MOVER`.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trio

from crash.txn_plan import ABORTED, ASKED, BEGUN, COMMITTED, INPUT, Journal, copy_of
from leafcuttr_sdk import (
    Broker,
    Consumer,
    NewBatch,
    OpenTransaction,
    Plugin,
    Record,
    Service,
    ServiceSpec,
    StoredRecord,
    TopicPartition,
    TransactionalProducer,
)
from leafcuttr_sdk.errors import BrokerError, ProducerFenced

CONFIG = "LEAFCUTTR_TEST_MOVER"
PLUGIN = Plugin(name="mover", api_version=1, summary="Copies the input in transactions")


def leafcuttr_register_services() -> Sequence[ServiceSpec]:
    return [ServiceSpec("mover", Mover)]


class _OnPurposeError(Exception):
    """The transaction is to be aborted."""


class Mover(Service):
    def __init__(self, broker: Broker) -> None:
        config: dict[str, Any] = json.loads(os.environ[CONFIG])
        self.broker = broker
        self.name: str = config["name"]
        self.output: str = config["output"]
        self.anomalies = Path(config["anomalies"])
        self.journal = Journal(Path(config["journal"]))
        self.number = self.journal.first_of_a_life()
        self.chance = random.Random(f"{config['seed']} {self.name} life {self.number}")

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        async with self.broker.consumer(
            self.name,
            [INPUT],
            auto_offset_reset="earliest",
            session_timeout_ms=30_000,
            instance_id=self.name,  # one that comes back takes its partitions up again
            committed=True,
        ) as consumer:
            while True:
                try:
                    async with self.broker.transaction(self.name) as producer:
                        while True:
                            await self._step(consumer, producer)
                except BrokerError as error:
                    # Fenced by itself, below; or the disk, or the group, would not have it.
                    self.broker.logger.info("the mover begins anew: %r", error)
                    consumer.seek_to_committed()

    async def _step(self, consumer: Consumer, producer: TransactionalProducer) -> None:
        records = await consumer.poll(max_records=self.chance.randint(1, 60))
        if not records:
            return
        number, self.number = self.number, self.number + 1
        self.journal.note(BEGUN, number)
        chance = self.chance.random()
        try:
            with trio.CancelScope() as scope:
                async with producer.begin() as transaction:
                    await self._copy(number, transaction, records)
                    if chance < 0.1:
                        raise _OnPurposeError
                    if chance < 0.15:
                        scope.cancel()
                        await trio.lowlevel.checkpoint()
                    if chance < 0.2:
                        await self._haunt(transaction)
                    await transaction.commit_offsets(consumer)
                    await self._loiter()
                    self.journal.note(ASKED, number)
                self.journal.note(COMMITTED, number)
                return
        except _OnPurposeError:
            pass
        except BaseException:
            if chance < 0.2 and chance >= 0.15:
                self.journal.note(ABORTED, number)  # fenced before its commit was requested
            raise
        self.journal.note(ABORTED, number)
        consumer.seek_to_committed()

    async def _copy(self, number: int, transaction: OpenTransaction, records: Sequence[StoredRecord]) -> None:
        values = [
            (each.partition, each.offset, copy_of(each.partition, each.offset, each.value or b""))
            for each in records
        ]
        if self.chance.random() < 0.5:
            produced = await transaction.produce_batch(
                self.output,
                [Record(value) for *_, value in values],
                partitions=[partition for partition, *_ in values],
            )
            for (partition, offset, _), answer in zip(values, produced, strict=True):
                self.journal.note_place(number, partition, offset, answer.offset)
                await self._loiter()
            return
        from leafcuttr_sdk.batches import BatchBuilder

        by_partition: dict[int, BatchBuilder] = {}
        offsets: dict[int, list[int]] = {}
        for partition, offset, value in values:
            by_partition.setdefault(partition, BatchBuilder()).add(value, self.broker.clock.now_ms())
            offsets.setdefault(partition, []).append(offset)
        answers = await transaction.append(
            [
                NewBatch(TopicPartition(self.output, each), builder.finish())
                for each, builder in by_partition.items()
            ]
        )
        for partition, answer in zip(by_partition, answers, strict=True):
            for index, offset in enumerate(offsets[partition]):
                self.journal.note_place(number, partition, offset, answer.base_offset + index)
        await self._loiter()

    async def _haunt(self, transaction: OpenTransaction) -> None:
        """Another producer takes the id; then whatever is written here must be refused. Raises ProducerFenced."""
        async with self.broker.transaction(self.name):
            pass
        await transaction.produce_batch(self.output, [Record(b"zombie")], partitions=[0])
        self.anomalies.write_text(f"a zombie of {self.name} has written to {self.output}")
        raise ProducerFenced("It should have been.")

    async def _loiter(self) -> None:
        """Now and then, and for a moment: a kill is to meet every state of a transaction."""
        if self.chance.random() < 0.1:
            await trio.sleep(self.chance.uniform(0.0, 0.03))

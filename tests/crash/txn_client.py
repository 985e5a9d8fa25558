"""A transactional client in a process of its own, to be killed at any moment: `python txn_client.py '{...}'`.

A `writer` (librdkafka) and a `raw` one (transaction version 2, `txn_raw`) put planned transactions into the input
topic. A `copier` consumes committed input and produces it to its output topic, consumed offsets and records in one
transaction; as a static member of a group with others, or alone with partitions that it assigns itself. Each goes on
through every kill of the broker, and where its last life ended. SIGTERM ends it after the transaction at hand; a fatal
error ends it with status 3, and it is to be started again.
"""

from __future__ import annotations

import faulthandler
import json
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

from crash.txn_plan import (
    ABORTED,
    ASKED,
    BEGUN,
    COMMITTED,
    INPUT,
    PARTITIONS,
    Journal,
    Plan,
    copy_of,
    plan,
    value_of,
)
from crash.txn_raw import FatalAnswer, RawProducer
from crash.workload import KEEP_COORDINATORS, told_offset

CALL_S = 10.0  # one call of librdkafka; those that may be repeated are
_QUICK = {
    **KEEP_COORDINATORS,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "socket.timeout.ms": 10_000,
    "log_level": 0,
}


class Client:
    """What all have in common: a name, which is the transactional id, a journal, and the wish to go on."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.name: str = config["name"]
        self.seed: int = config["seed"]
        self.journal = Journal(Path(config["journal"]))
        self.number = self.journal.first_of_a_life()
        self.chance = random.Random(f"{self.seed} {self.name} life {self.number}")
        self.over = False
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, *_: object) -> None:
        self.over = True

    def begin(self) -> int:
        number, self.number = self.number, self.number + 1
        self.journal.note(BEGUN, number)
        return number

    def told(self, number: int, partition: int, index: int) -> Callable[[Any, Any], None]:
        """What to do at the acknowledgement of a record of that transaction."""

        def report(error: Any, message: Any) -> None:
            if error is None:
                self.journal.note_place(number, partition, index, told_offset(message))

        return report

    def loiter(self) -> None:
        """Now and then, and for a moment: a kill is to meet every state of a transaction."""
        if self.chance.random() < 0.3:
            Event().wait(self.chance.uniform(0.0, 0.03))


class Transactional(Client):
    """A client with a transactional producer of librdkafka."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        from confluent_kafka import Producer

        settings = {**_QUICK, "bootstrap.servers": config["bootstrap"], "transactional.id": self.name}
        self.producer = Producer({**settings, "linger.ms": 2, "compression.type": config["codec"]})
        self.insist(lambda: self.producer.init_transactions(CALL_S))

    def insist(self, call: Callable[[], Any]) -> Any:
        """Call it until it does not say that it may be called again. Raises KafkaException."""
        from confluent_kafka import KafkaException

        while True:
            try:
                return call()
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise

    def transaction(self, body: Callable[[], None], *, commits: bool) -> bool:
        """Whether it has been committed. Raises KafkaException where the producer is of no more use."""
        from confluent_kafka import KafkaException

        number = self.begin()
        self.producer.begin_transaction()
        try:
            body()
            self.loiter()
            if commits:
                self.journal.note(ASKED, number)
                self.insist(lambda: self.producer.commit_transaction(CALL_S))
                self.journal.note(COMMITTED, number)
                return True
            self.producer.flush(CALL_S)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
        self.insist(lambda: self.producer.abort_transaction(CALL_S))
        self.journal.note(ABORTED, number)
        return False


class Writer(Transactional):
    def step(self) -> None:
        number, due = self.number, plan(self.seed, self.name, self.number)
        self.transaction(lambda: self._produce(number, due), commits=due.commits)
        self.producer.poll(0.02)

    def _produce(self, number: int, due: Plan) -> None:
        for partition, count in due.counts.items():
            for index in range(count):
                self.producer.produce(
                    INPUT,
                    value_of(self.name, number, index, due.size),
                    partition=partition,
                    on_delivery=self.told(number, partition, index),
                )
            self.producer.poll(0)
            self.loiter()


class RawWriter(Client):
    """A writer that also keeps the number of its last transaction as the offset of a group of its own."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        self.producer = RawProducer(config["bootstrap"], self.name)
        self.producer.init()

    def step(self) -> None:
        number, due = self.begin(), plan(self.seed, self.name, self.number - 1)
        for partition, count in due.counts.items():
            values = [value_of(self.name, number, index, due.size) for index in range(count)]
            base = self.producer.produce(INPUT, partition, values)
            for index in range(count):
                self.journal.note_place(number, partition, index, base + index)
            self.loiter()
        self.producer.commit_offset(self.name, INPUT, number)
        self.loiter()
        if due.commits:
            self.journal.note(ASKED, number)
        self.producer.end(commit=due.commits)
        self.journal.note(COMMITTED if due.commits else ABORTED, number)


class Copier(Transactional):
    """`positions` are those of what has been taken but not yet copied. Which rebalance a batch belongs to is known by
    the group's metadata at that time: what was taken under another is dropped, and taken again by whose it is now."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        from confluent_kafka import Consumer

        settings = {
            **_QUICK,
            "bootstrap.servers": config["bootstrap"],
            "group.id": config["group"],
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
        }
        self.metadata: Any = None
        self.moved = False
        if config["member"]:
            # A member that comes back under its name within this time takes its partitions up again.
            settings |= {"group.instance.id": self.name, "session.timeout.ms": 30_000}
            settings |= {"heartbeat.interval.ms": 500}
        self.consumer = Consumer(settings)
        if config["member"]:
            self.consumer.subscribe(
                [INPUT], on_assign=self._assigned, on_revoke=self._moved, on_lost=self._moved
            )
        else:
            self.metadata = self.consumer.consumer_group_metadata()
            self.rewind([(INPUT, partition) for partition in range(PARTITIONS)])

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        self.moved = True
        self.metadata = consumer.consumer_group_metadata()

    def _moved(self, *_: object) -> None:
        self.moved = True
        self.metadata = None

    def rewind(self, partitions: list[tuple[str, int]]) -> None:
        """Go back to what is committed."""
        from confluent_kafka import TopicPartition

        if not partitions:
            return
        wanted = [TopicPartition(*each) for each in partitions]
        found = self.insist(lambda: self.consumer.committed(wanted, timeout=CALL_S))
        self.consumer.assign(
            [TopicPartition(each.topic, each.partition, max(each.offset, 0)) for each in found]
        )

    def step(self) -> None:
        self.moved = False
        taken = self._take()
        if self.moved and taken:
            self.rewind([(each.topic, each.partition) for each in self.consumer.assignment()])
        elif taken and self.metadata is not None:
            copied = self.transaction(lambda: self._copy(taken), commits=self.chance.random() < 0.85)
            if not copied:
                self.rewind([(each.topic, each.partition) for each in self.consumer.assignment()])

    def _take(self) -> list[Any]:
        """Some records; none if the broker is away. Raises KafkaException if the consumer is of no more use."""
        from confluent_kafka import KafkaError, KafkaException

        taken = []
        for _ in range(self.chance.randint(1, 60)):
            message = self.consumer.poll(0.1)
            if message is None:
                break
            if message.error() is None:
                taken.append(message)
            elif message.error().code() in (KafkaError._FATAL, KafkaError.FENCED_INSTANCE_ID):
                # Said once; `fatal()` is not set here. From then on nothing comes any more.
                raise KafkaException(message.error())
        return taken

    def _copy(self, taken: list[Any]) -> None:
        from confluent_kafka import TopicPartition

        ends: dict[int, int] = {}
        for message in taken:
            partition, offset = message.partition(), message.offset()
            self.producer.produce(
                self.config["output"],
                copy_of(partition, offset, message.value()),
                partition=partition,
                on_delivery=self.told(self.number - 1, partition, offset),
            )
            ends[partition] = offset + 1
        self.producer.poll(0)
        self.loiter()
        offsets = [TopicPartition(INPUT, partition, end) for partition, end in ends.items()]
        self.insist(lambda: self.producer.send_offsets_to_transaction(offsets, self.metadata, CALL_S))


KINDS: dict[str, type[Writer | RawWriter | Copier]] = {"writer": Writer, "raw": RawWriter, "copier": Copier}


def main(config: dict[str, Any]) -> int:
    from confluent_kafka import KafkaException

    faulthandler.register(signal.SIGUSR1)  # for one that does not come on: says where it stands
    try:
        client = KINDS[config["kind"]](config)
        while not client.over:
            client.step()
    except (KafkaException, FatalAnswer) as error:
        print(f"{config['name']}: {error!r}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))

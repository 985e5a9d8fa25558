"""What runs against the broker while it is killed: clients that note what was acknowledged to them, and nothing else.

Each client is a thread that goes on through every kill, as a real application would: librdkafka reconnects and sends
again. What they were told is compared with what the broker has by `crash.readback`.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterator
from typing import Any

from crash.acknowledged import NOT_TOLD, Due

DATA = "data"
TRANSACTIONS = "transactions"
GROUP = "commits"
TRANSACTIONAL_GROUP = "transactional-commits"
PARTITIONS = 2
VALUE_BYTES = 300

# librdkafka from 2.10 on forgets the broker when no connection is left, but its cache of coordinators does not, and
# send_offsets_to_transaction then waits for ever for the handle that is gone, past its own timeout and without a
# request on the wire (librdkafka issue 5511). There is one broker here, at one address: nothing has to be forgotten.
KEEP_COORDINATORS = {"metadata.recovery.strategy": "none"}

# Each wait of a worker is at most so long, in seconds. Nothing waits for it to pass: on a busy machine a broker needs
# seconds to start.
PATIENCE = 20


class Worker(ABC):
    """A thread that takes steps until it is stopped. What goes wrong in it is kept for the test.

    `pace` is how many times as long as usual it pauses.
    """

    pace = 1.0

    def __init__(self, name: str) -> None:
        self.failure: str | None = None
        self._over = threading.Event()
        self._abandoned = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end and wait until it has."""
        self._over.set()
        # The longest step is the transactor's: a new producer, offsets, a flush, the end; then what `finish` does.
        self._thread.join(6 * PATIENCE)
        if self._thread.is_alive():
            self.failure = self.failure or f"{self._thread.name} does not end"

    def abandon(self) -> None:
        """Ask it to end without finishing, and do not wait: the run has failed, or is over."""
        self._abandoned = True
        self._over.set()

    def pause(self, seconds: float) -> None:
        self._over.wait(seconds * self.pace)

    @property
    def over(self) -> bool:
        return self._over.is_set()

    def _run(self) -> None:
        try:
            while not self.over:
                self.step()
            if not self._abandoned:
                self.finish()
        except Exception as error:
            self.failure = f"{self._thread.name}: {error!r}"

    @abstractmethod
    def step(self) -> None:
        """A short piece of work."""

    def finish(self) -> None:  # noqa: B027 - most have nothing left to do
        """After the last step."""


class Sender(Worker):
    """Sends numbered records to one partition, with one librdkafka producer for the whole run.

    `acknowledged` is how many of them, from the first on, the broker has acknowledged: acknowledgements come in order
    (idempotent: however many are in flight; otherwise one request is in flight at a time).
    """

    def __init__(
        self,
        bootstrap: str,
        number: int,
        *,
        idempotent: bool,
        codec: str,
        burst: int,
        topic: str = DATA,
        partition: int,
    ) -> None:
        """`burst`: how many records it sends at once."""
        super().__init__(f"sender {number}")
        from confluent_kafka import Producer

        self.number = number
        self.topic = topic
        self.partition = partition
        self.idempotent = idempotent
        self._burst = burst
        self.sent = 0
        self.acknowledged = 0
        self._offsets = array("q")  # of the acknowledged, by number
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": idempotent,
                "max.in.flight.requests.per.connection": 5 if idempotent else 1,
                "message.timeout.ms": 300_000 if not idempotent else 0,
                "linger.ms": 1,
                "batch.num.messages": 20,
                "compression.type": codec,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "socket.timeout.ms": 5_000,
                "error_cb": self._error,
                "log_level": 0,
            }
        )

    def step(self) -> None:
        if self.sent - self.acknowledged < 500:
            for _ in range(self._burst):
                self._producer.produce(
                    self.topic,
                    self.value_of(self.sent),
                    partition=self.partition,
                    on_delivery=self._delivered(self.sent),
                )
                self.sent += 1
        self._producer.poll(0)
        self.pause(0.04)

    def finish(self) -> None:
        self._producer.flush(PATIENCE)

    def value_of(self, number: int) -> bytes:
        return f"{self.number}:{number}:".encode().ljust(VALUE_BYTES, b"x")

    def due(self) -> Iterator[Due]:
        """What was acknowledged, in order."""
        for number, offset in enumerate(self._offsets[:]):
            yield Due(offset, None, self.value_of(number))

    def _delivered(self, number: int) -> Callable[[Any, Any], None]:
        def report(error: Any, message: Any) -> None:
            if error is not None:
                self.failure = f"sender {self.number}: record {number} failed: {error}"
            elif number != self.acknowledged:
                self.failure = f"sender {self.number}: {number} acknowledged after {self.acknowledged - 1}"
            else:
                self._offsets.append(told_offset(message))
                self.acknowledged = number + 1

        return report

    def _error(self, error: Any) -> None:
        if error.fatal():
            self.failure = f"sender {self.number}: {error}"


class Committer(Worker):
    """Commits rising offsets for a group; `acknowledged` is the last that was answered without an error."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__("committer")
        self.tried = 0
        self.acknowledged = 0
        self._consumer = group_consumer(bootstrap)

    def step(self) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        self.tried += 1
        try:
            self._consumer.commit(offsets=[TopicPartition(DATA, 0, self.tried)], asynchronous=False)
        except KafkaException:
            self.pause(0.05)
        else:
            self.acknowledged = self.tried
            self.pause(0.01)

    def finish(self) -> None:
        self._consumer.close()


class Transactor(Worker):
    """Transactions: each writes its number to both partitions of a topic and commits it as a group's offset; every
    fourth is aborted. `committed` and `aborted` are those whose end was acknowledged, `tried` all that were begun.

    A producer that an error has ended is replaced by another with its transactional id; how the transaction at hand
    ended is then not known.
    """

    def __init__(self, bootstrap: str) -> None:
        super().__init__("transactor")
        self._bootstrap = bootstrap
        self._producer: Any = None
        self._group = group_consumer(bootstrap, TRANSACTIONAL_GROUP)
        self.tried = 0
        self.committed: list[int] = []
        self.aborted: list[int] = []
        self._offsets: dict[tuple[int, int], int] = {}  # by number and partition

    def step(self) -> None:
        from confluent_kafka import KafkaException

        try:
            if self._producer is None:
                self._producer = self._new()
            self._transaction(self._producer)
        except KafkaException:
            self._producer = None
        self.pause(0.01)

    def _transaction(self, producer: Any) -> None:
        from confluent_kafka import TopicPartition

        number, self.tried = self.tried, self.tried + 1
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(
                TRANSACTIONS,
                str(number).encode(),
                partition=partition,
                on_delivery=self._delivered(number, partition),
            )
        producer.send_offsets_to_transaction(
            [TopicPartition(DATA, 0, number)], self._group.consumer_group_metadata(), PATIENCE
        )
        if number % 4 == 3:
            producer.flush(PATIENCE)
            producer.abort_transaction(PATIENCE)
            self.aborted.append(number)
        else:
            producer.commit_transaction(PATIENCE)
            self.committed.append(number)

    def due(self, partition: int) -> Iterator[Due]:
        """What was committed, in order."""
        for number in self.committed.copy():
            yield Due(self._offsets.get((number, partition), NOT_TOLD), None, str(number).encode())

    def _delivered(self, number: int, partition: int) -> Callable[[Any, Any], None]:
        def report(error: Any, message: Any) -> None:
            if error is None:
                self._offsets[number, partition] = told_offset(message)

        return report

    def _new(self) -> Any:
        from confluent_kafka import Producer

        producer = Producer(
            {
                **KEEP_COORDINATORS,
                "bootstrap.servers": self._bootstrap,
                "transactional.id": "transactor",
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "socket.timeout.ms": 5_000,
                "log_level": 0,
            }
        )
        producer.init_transactions(PATIENCE)
        return producer

    def finish(self) -> None:
        self._producer = None
        self._group.close()


def told_offset(message: Any) -> int:
    """The offset in an acknowledgement of librdkafka."""
    offset = message.offset()
    return NOT_TOLD if offset is None or offset < 0 else int(offset)


def group_consumer(bootstrap: str, group: str = GROUP) -> Any:
    """A consumer of the group, for its commits."""
    from confluent_kafka import Consumer

    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "socket.timeout.ms": 3_000,
            # An offset that an open transaction may change is asked for again until none is open, for a moment.
            "retry.backoff.ms": 10,
            "retry.backoff.max.ms": 30,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
    )

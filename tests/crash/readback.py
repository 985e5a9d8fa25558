"""Reading back what the broker has after a start, and comparing it with what the clients were told.

The consumers live as long as the run, through every kill, as an application's do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from crash.keyed import TOPIC as KEYED
from crash.keyed import KeyedSender, check_latest
from crash.raw_workers import EARLIEST, LATEST, committed
from crash.workload import (
    DATA,
    GROUP,
    PARTITIONS,
    TRANSACTIONAL_GROUP,
    TRANSACTIONS,
    Committer,
    Transactor,
)
from leafcuttr.errors import ErrorCode
from support.wire_client import WireClient

PATIENCE_S = 60.0
"""For each answer of a broker that is up; nothing waits for it to pass."""


class Numbered(Protocol):
    """Who sends numbered records to one partition. `places` may say which offset a number has by the broker's word."""

    number: int
    topic: str
    partition: int
    idempotent: bool

    @property
    def acknowledged(self) -> int: ...


class Readback:
    """Reads each partition on from where the last reading ended, and the compacted topic whole.

    A fault is an AssertionError that says what was expected.
    """

    def __init__(self, bootstrap: str, senders: Sequence[Numbered], keyed: KeyedSender) -> None:
        self.records = 0
        self._bootstrap = bootstrap
        self._senders = {sender.number: sender for sender in senders}
        self._keyed = keyed
        self._plain = _consumer(bootstrap, {})
        self._stable = _consumer(bootstrap, {"isolation.level": "read_committed"})
        self.restart()

    def restart(self) -> None:
        """Forget what was read: the next reading is from the first offset on."""
        self._numbers = dict.fromkeys(self._senders, 0)
        self._offsets = {(each.topic, each.partition): 0 for each in self._senders.values()}
        self._found: dict[int, dict[int, int]] = {number: {} for number in self._senders}
        self._transactions: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self._transactions_at = [0] * PARTITIONS

    def close(self) -> None:
        self._plain.close()
        self._stable.close()

    # Numbered records

    def check_senders(self) -> None:
        """Every record that was acknowledged is there, in order, without a gap, and once where that was promised."""
        promised = {number: sender.acknowledged for number, sender in self._senders.items()}
        self._read_on()
        for number, acknowledged in promised.items():
            assert self._numbers[number] >= acknowledged, (
                f"sender {number}: {acknowledged} records were acknowledged, {self._numbers[number]} are there"
            )
            found = self._found[number]
            for first, offset in list(getattr(self._senders[number], "places", {}).items()):
                if first < acknowledged:
                    assert found[first] == offset, (
                        f"sender {number}: {first} is at offset {found[first]}, acknowledged was {offset}"
                    )

    def _read_on(self) -> None:
        from confluent_kafka import TopicPartition

        ends = {}
        for (topic, partition), next_offset in self._offsets.items():
            high = self._end_of(topic, partition)
            assert high >= next_offset, (
                f"{topic}-{partition} ends at {high}, {next_offset} records of it were read before"
            )
            if high > next_offset:
                ends[topic, partition] = high
        if not ends:
            return
        self._plain.assign([TopicPartition(*place, self._offsets[place]) for place in ends])
        while ends:
            for message in self._read(self._plain, ends):
                place = (message.topic(), message.partition())
                self._take(place, message.offset(), message.value())
                if place in ends and self._offsets[place] >= ends[place]:
                    del ends[place]
        self._plain.unassign()

    def _end_of(self, topic: str, partition: int) -> int:
        """The end of a partition from which nothing is deleted."""
        with WireClient(self._bootstrap) as client:
            low, high = (
                client.list_offset(topic, which, partition=partition) for which in (EARLIEST, LATEST)
            )
        for answer in (low, high):
            assert not answer.error_code, f"{topic}-{partition}: {ErrorCode(answer.error_code).name}"
        assert low.offset == 0, f"{topic}-{partition} begins at {low.offset}"
        return high.offset

    def _read(self, consumer: Any, due: object) -> list[Any]:
        """Some more messages, and ends of partitions."""
        from confluent_kafka import KafkaError

        first = consumer.poll(PATIENCE_S)
        assert first is not None, f"nothing comes any more, due is {due}"
        messages: list[Any] = [first, *consumer.consume(1000, 0)]
        for message in messages:
            error = message.error()
            assert error is None or error.code() == KafkaError._PARTITION_EOF, f"{message.topic()}: {error}"
        return [message for message in messages if message.error() is None or consumer is self._stable]

    def _take(self, place: tuple[str, int], offset: int, value: bytes) -> None:
        where, due = f"{place[0]}-{place[1]}", self._offsets[place]
        assert offset == due, f"{where}: offset {offset} after {due - 1}"
        self._offsets[place] = offset + 1
        self.records += 1
        words = value.split(b":")
        number = int(words[0]) if len(words) > 1 else _JAVA
        sequence = int(words[1] if len(words) > 1 else value)
        next_number = self._numbers[number]
        if self._senders[number].idempotent:
            assert sequence == next_number, (
                f"{where}: sender {number}: record {sequence} at offset {offset}, where {next_number} is due"
            )
        assert sequence <= next_number, (
            f"{where}: sender {number}: records {next_number} to {sequence - 1} are missing"
        )
        self._numbers[number] = max(next_number, sequence + 1)
        if hasattr(self._senders[number], "places"):
            self._found[number][sequence] = offset

    # The latest value of each key

    def check_keyed(self) -> None:
        """The compacted topic has for each key what was acknowledged last, or something newer."""
        from confluent_kafka import KafkaError, TopicPartition

        acknowledged = dict(self._keyed.acknowledged)
        high = self._end_of(KEYED, 0)
        self._stable.assign([TopicPartition(KEYED, 0, 0)])
        records: list[Any] = []
        while True:
            for message in self._read(self._stable, f"offset {high} of {KEYED}"):
                if message.error() is None:
                    records.append(message)
                elif message.error().code() == KafkaError._PARTITION_EOF and message.offset() >= high:
                    self._stable.unassign()
                    self.records += len(records)
                    check_latest(records, acknowledged, self._keyed)
                    return

    # Transactions

    def check_transactions(self, transactor: Transactor) -> None:
        """A read_committed reader sees every committed transaction, once, in both partitions or in none, and no aborted
        one; the group is at the last that committed."""
        aborted, done = set(transactor.aborted), set(transactor.committed)
        for partition in range(PARTITIONS):
            self._read_transactions(partition, done)
            numbers, where = self._transactions[partition], f"{TRANSACTIONS}-{partition}"
            assert numbers == sorted(set(numbers)), f"{where}: transactions out of order, or twice"
            assert not aborted & set(numbers), f"{where}: aborted and there: {aborted & set(numbers)}"
        # What was not acknowledged when the reading began may have been read in one partition only.
        first, second = map(set, self._transactions)
        for number in first ^ second:
            assert number >= max(done | aborted, default=0), f"transaction {number} is in one partition only"
        if done:
            with WireClient(self._bootstrap) as client:
                offset = committed(client, TRANSACTIONAL_GROUP, DATA)
            assert max(done) <= offset, f"the group is at {offset}, not {max(done)}"
            assert offset not in aborted, f"the group is at {offset}, which was aborted"

    def _read_transactions(self, partition: int, due: set[int]) -> None:
        """Read on, up to the last stable offset and all that is due."""
        from confluent_kafka import TopicPartition

        numbers = self._transactions[partition]
        missing = due - set(numbers)
        self._stable.assign([TopicPartition(TRANSACTIONS, partition, self._transactions_at[partition])])
        while True:
            for message in self._read(self._stable, f"{sorted(missing)[:5]} of {TRANSACTIONS}-{partition}"):
                self._transactions_at[partition] = message.offset() + (message.error() is None)
                if message.error() is None:
                    numbers.append(int(message.value()))
                    missing.discard(numbers[-1])
                    self.records += 1
                elif not missing:
                    self._stable.unassign()
                    return

    # Commits

    def check_commits(self, committer: Committer) -> None:
        """The group's offset is at least the last that was acknowledged, at most the last that was tried."""
        acknowledged = committer.acknowledged
        with WireClient(self._bootstrap) as client:
            offset = committed(client, GROUP, DATA)
        assert acknowledged <= offset <= committer.tried, (
            f"the group is at {offset}, {acknowledged} was acknowledged, {committer.tried} tried"
        )


_JAVA = 9


def _consumer(bootstrap: str, more: dict[str, Any]) -> Any:
    from confluent_kafka import Consumer

    return Consumer(
        {
            **more,
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": "isolation.level" in more,
            "check.crcs": True,
            "fetch.wait.max.ms": 50,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
    )

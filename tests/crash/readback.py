"""Reading back what the broker has after a start, and comparing it with what the clients were told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crash.workload import (
    DATA,
    PARTITIONS,
    TRANSACTIONAL_GROUP,
    TRANSACTIONS,
    Chores,
    Committer,
    Sender,
    Transactor,
    group_consumer,
)


class Reader:
    """Reads each partition of the data topic on from where the last reading ended.

    `numbers` is, for each sender, the number that comes next. A fault is an AssertionError that says what was
    expected.
    """

    def __init__(self, senders: Sequence[Sender]) -> None:
        self.senders = {sender.number: sender for sender in senders}
        self.restart()

    def restart(self) -> None:
        """Forget what was read: the next reading is from the first offset on."""
        self.numbers = dict.fromkeys(self.senders, 0)
        self.offsets = dict.fromkeys(range(PARTITIONS), 0)

    def read(self, bootstrap: str) -> int:
        """Read all there is now; returns how many records that was."""
        promised = {number: sender.acknowledged for number, sender in self.senders.items()}
        consumer = _consumer(bootstrap)
        try:
            count = sum(self._read_partition(consumer, partition) for partition in range(PARTITIONS))
        finally:
            consumer.close()
        for number, acknowledged in promised.items():
            assert self.numbers[number] >= acknowledged, (
                f"sender {number}: {acknowledged} records were acknowledged, {self.numbers[number]} are there"
            )
        return count

    def _read_partition(self, consumer: Any, partition: int) -> int:
        from confluent_kafka import TopicPartition

        where = TopicPartition(DATA, partition, self.offsets[partition])
        low, high = consumer.get_watermark_offsets(where, timeout=20)
        assert low == 0, f"{DATA}-{partition} begins at {low}"
        assert high >= self.offsets[partition], (
            f"{DATA}-{partition} ends at {high}, {self.offsets[partition]} records of it were read before"
        )
        first = self.offsets[partition]
        consumer.assign([where])
        while self.offsets[partition] < high:
            message = consumer.poll(20)
            assert message is not None, (
                f"{DATA}-{partition}: nothing comes after offset {self.offsets[partition]}"
            )
            assert message.error() is None, f"{DATA}-{partition}: {message.error()}"
            self._take(partition, message.offset(), message.value())
        return high - first

    def _take(self, partition: int, offset: int, value: bytes) -> None:
        due = self.offsets[partition]
        assert offset == due, f"{DATA}-{partition}: offset {offset} after {due - 1}"
        self.offsets[partition] = offset + 1
        number, sequence = (int(word) for word in value.split(b":")[:2])
        next_number = self.numbers[number]
        if self.senders[number].idempotent:
            assert sequence == next_number, (
                f"sender {number}: record {sequence} at offset {offset}, where {next_number} is due"
            )
        assert sequence <= next_number, (
            f"sender {number}: records {next_number} to {sequence - 1} are missing"
        )
        self.numbers[number] = max(next_number, sequence + 1)


def check_commits(bootstrap: str, committer: Committer) -> None:
    """The group's offset is at least the last that was acknowledged, at most the last that was tried."""
    from confluent_kafka import TopicPartition

    acknowledged = committer.acknowledged
    consumer = group_consumer(bootstrap)
    try:
        (found,) = consumer.committed([TopicPartition(DATA, 0)], timeout=20)
    finally:
        consumer.close()
    offset = max(found.offset, 0)
    assert acknowledged <= offset <= committer.tried, (
        f"the group is at {offset}, {acknowledged} was acknowledged, {committer.tried} tried"
    )


def check_transactions(bootstrap: str, transactor: Transactor) -> None:
    """A read_committed reader sees every committed transaction, once, in both partitions or in none, and no aborted
    one; the group is at the last that committed."""
    from confluent_kafka import TopicPartition

    committed, aborted = set(transactor.committed), set(transactor.aborted)
    consumer = _consumer(bootstrap, {"isolation.level": "read_committed", "enable.partition.eof": True})
    try:
        found = [_numbers(consumer, partition, committed) for partition in range(PARTITIONS)]
    finally:
        consumer.close()
    for partition, numbers in enumerate(found):
        where = f"{TRANSACTIONS}-{partition}"
        assert numbers == sorted(set(numbers)), f"{where}: transactions out of order, or twice"
        assert not aborted & set(numbers), f"{where}: aborted and there: {aborted & set(numbers)}"
        assert committed <= set(numbers), f"{where}: committed and missing: {committed - set(numbers)}"
    # What was not acknowledged when the reading began may have been read in one partition only.
    for number in set(found[0]) ^ set(found[1]):
        assert number >= max(committed | aborted, default=0), f"transaction {number} is in one partition only"
    if committed:
        group = group_consumer(bootstrap, TRANSACTIONAL_GROUP)
        try:
            (offset,) = group.committed([TopicPartition(DATA, 0)], timeout=30)
        finally:
            group.close()
        assert max(committed) <= offset.offset, f"the group is at {offset.offset}, not {max(committed)}"
        assert offset.offset not in aborted, f"the group is at {offset.offset}, which was aborted"


def _numbers(consumer: Any, partition: int, due: set[int]) -> list[int]:
    """The numbers in a partition, up to its last stable offset and all that is due."""
    from confluent_kafka import KafkaError, TopicPartition

    found: list[int] = []
    consumer.assign([TopicPartition(TRANSACTIONS, partition, 0)])
    while True:
        message = consumer.poll(20)
        assert message is not None, f"{TRANSACTIONS}-{partition}: missing {sorted(due - set(found))[:5]}"
        if message.error() is None:
            found.append(int(message.value()))
        elif message.error().code() == KafkaError._PARTITION_EOF:
            if due <= set(found):
                return found
        else:
            raise AssertionError(f"{TRANSACTIONS}-{partition}: {message.error()}")


def check_topics(bootstrap: str, chores: Chores) -> None:
    """Topics acknowledged as created are there, those acknowledged as deleted are not."""
    from confluent_kafka.admin import AdminClient

    gone, due = set(chores.must_not), set(chores.must_exist)
    there = set(AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=20).topics)
    due &= chores.must_exist
    assert due <= there, f"created and missing: {sorted(due - there)}"
    assert not gone & there, f"deleted and back: {sorted(gone & there)}"


def _consumer(bootstrap: str, more: dict[str, Any] | None = None) -> Any:
    from confluent_kafka import Consumer

    return Consumer(
        {
            **(more or {}),
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "check.crcs": True,
            "fetch.wait.max.ms": 50,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
    )

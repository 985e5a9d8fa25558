"""Reading back what the broker has after a start, and comparing it with what the clients were told.

The consumer lives as long as the run, through every kill, as an application's does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from crash.java_clients import NUMBER as JAVA
from crash.keyed import TOPIC as KEYED
from crash.keyed import KeyedSender, check_latest
from crash.raw_workers import committed
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
LOOK_S = 2.0
"""How long nothing may come of what is due before it is asked why."""


class Numbered(Protocol):
    """Who sends numbered records to one partition. `places` may say which offset a number has by the broker's word."""

    number: int
    topic: str
    partition: int
    idempotent: bool

    @property
    def acknowledged(self) -> int: ...


class Readback:
    """Reads each partition on from where the last reading ended, and the compacted topic whole, all at once.

    A fault is an AssertionError that says what was expected.
    """

    def __init__(
        self, bootstrap: str, senders: Sequence[Numbered], keyed: KeyedSender, transactor: Transactor
    ) -> None:
        self.records = 0
        self._bootstrap = bootstrap
        self._senders = {sender.number: sender for sender in senders}
        self._keyed = keyed
        self._transactor = transactor
        self._consumer = _consumer(bootstrap)
        self.restart()

    def restart(self) -> None:
        """Forget what was read: the next reading is from the first offset on."""
        self._numbers = dict.fromkeys(self._senders, 0)
        self._offsets = {(each.topic, each.partition): 0 for each in self._senders.values()}
        self._offsets |= {(TRANSACTIONS, partition): 0 for partition in range(PARTITIONS)}
        self._found: dict[int, dict[int, int]] = {number: {} for number in self._senders}
        self._transactions: list[list[int]] = [[] for _ in range(PARTITIONS)]

    def check(self) -> None:
        """Every numbered record that was acknowledged is there, in order, without a gap, and once where that was
        promised; the compacted topic has for each key what was acknowledged last, or something newer; of transactions
        see `_check_transactions`."""
        promised = {number: sender.acknowledged for number, sender in self._senders.items()}
        latest = dict(self._keyed.acknowledged)
        done, aborted = set(self._transactor.committed), set(self._transactor.aborted)
        keyed = self._read(done)
        for number, acknowledged in promised.items():
            assert self._numbers[number] >= acknowledged, (
                f"sender {number}: {acknowledged} records were acknowledged, {self._numbers[number]} are there"
            )
            self._check_places(number, acknowledged)
        check_latest(keyed, latest, self._keyed)
        self._check_transactions(done, aborted)

    def _check_places(self, number: int, acknowledged: int) -> None:
        found = self._found[number]
        # A copy is made in one go; the sender's thread adds to it meanwhile.
        for first, offset in getattr(self._senders[number], "places", {}).copy().items():
            if first < acknowledged:
                assert found[first] == offset, (
                    f"sender {number}: {first} is at offset {found[first]}, acknowledged was {offset}"
                )

    def _read(self, committed_numbers: set[int]) -> list[Any]:
        """Read on in every partition up to where it ends now, of transactions to the last stable offset behind the
        committed ones; returns all records of the compacted topic."""
        from confluent_kafka import KafkaError, TopicPartition

        places = [*self._offsets, (KEYED, 0)]
        self._consumer.assign([TopicPartition(*place, self._offsets.get(place, 0)) for place in places])
        ends = self._ends_of(places)
        for place, offset in self._offsets.items():
            assert ends[place] >= offset, f"{place} ends at {ends[place]}, {offset} were read before"
        missing = [committed_numbers - set(numbers) for numbers in self._transactions]
        keyed: list[Any] = []
        progress = time.monotonic()
        while ends:
            first = self._consumer.poll(LOOK_S)
            # Others go on sending to partitions that have been read: that something comes says nothing of the rest.
            if time.monotonic() - progress > LOOK_S:
                # A partition that cannot be read is gone for librdkafka, which tries for ever and says nothing.
                self._ends_of(ends)
                assert time.monotonic() - progress < PATIENCE_S, (
                    f"nothing comes any more, due are {ends}, transactions {missing}"
                )
            for message in [] if first is None else [first, *self._consumer.consume(1000, 0)]:
                topic, partition, error = message.topic(), message.partition(), message.error()
                assert error is None or error.code() == KafkaError._PARTITION_EOF, f"{topic}: {error}"
                if error is None:
                    self.records += 1
                    progress = time.monotonic() if (topic, partition) in ends else progress
                if topic == KEYED and error is None:
                    keyed.append(message)
                elif topic == TRANSACTIONS:
                    self._offsets[topic, partition] = message.offset() + (error is None)
                    if error is None:
                        self._transactions[partition].append(int(message.value()))
                        missing[partition].discard(int(message.value()))
                elif error is None:
                    self._take((topic, partition), message.offset(), message.value())
                if self._is_at_end(message, ends.get((topic, partition), 0), missing):
                    ends.pop((topic, partition), None)
        self._consumer.unassign()
        return keyed

    def _is_at_end(self, message: Any, end: int, missing: Sequence[set[int]]) -> bool:
        """Whether what is due of a partition has been read. Of transactions that is known only where nothing more comes
        for now; elsewhere more may come for ever, because others go on sending."""
        nothing_more = message.error() is not None
        if message.topic() == TRANSACTIONS:
            return nothing_more and not missing[message.partition()]
        return bool(message.offset() + (not nothing_more) >= end)

    def _ends_of(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """The ends of partitions from which nothing is deleted. Raises AssertionError for one that is not served."""
        ends: dict[tuple[str, int], int] = {}
        with WireClient(self._bootstrap) as client:
            for (topic, partition), (low, high) in client.list_both_ends(places).items():
                for answer in (low, high):
                    assert not answer.error_code, f"{topic}-{partition}: {ErrorCode(answer.error_code).name}"
                assert low.offset == 0, f"{topic}-{partition} begins at {low.offset}"
                ends[topic, partition] = high.offset
        return ends

    def _take(self, place: tuple[str, int], offset: int, value: bytes) -> None:
        where, due = f"{place[0]}-{place[1]}", self._offsets[place]
        assert offset == due, f"{where}: offset {offset} after {due - 1}"
        self._offsets[place] = offset + 1
        words = value.split(b":")
        number = int(words[0]) if len(words) > 1 else JAVA
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

    def _check_transactions(self, done: set[int], aborted: set[int]) -> None:
        """A read_committed reader sees every committed transaction, once, in both partitions or in none, and no aborted
        one; the group is at the last that committed."""
        for partition, numbers in enumerate(self._transactions):
            where = f"{TRANSACTIONS}-{partition}"
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

    # Commits

    def check_commits(self, committer: Committer) -> None:
        """The group's offset is at least the last that was acknowledged, at most the last that was tried."""
        acknowledged = committer.acknowledged
        with WireClient(self._bootstrap) as client:
            offset = committed(client, GROUP, DATA)
        assert acknowledged <= offset <= committer.tried, (
            f"the group is at {offset}, {acknowledged} was acknowledged, {committer.tried} tried"
        )


def _consumer(bootstrap: str) -> Any:
    from confluent_kafka import Consumer

    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # Hidden, and undocumented: connect when the broker is back, not when there is something to ask.
            "enable.sparse.connections": False,
            "check.crcs": True,
            "fetch.wait.max.ms": 50,
            "fetch.error.backoff.ms": 20,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
    )

"""Records with keys to a compacted topic whose cleaner is at work during the kills, and what has to be left of them.

The number of a record is in a header, so that a tombstone has one too. Each key's numbers rise; every seventh is a
tombstone, and those go after `delete.retention.ms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from crash import acknowledged
from crash.acknowledged import Due, Fault, Files
from crash.foreign import Record
from crash.workload import Worker, told_offset

TOPIC = "latest"
KEYS = 60
SETTINGS = {
    "cleanup_policy": "compact",
    "min_cleanable_dirty_ratio": "0.01",
    "delete_retention_ms": "300",
}


def is_tombstone(number: int) -> bool:
    return number % 7 == 6


def value_of(number: int) -> bytes | None:
    return None if is_tombstone(number) else b"%d:" % number + b"v" * 200


class KeyedSender(Worker):
    """One librdkafka producer. `acknowledged` and `tried` are the last numbers of each key."""

    def __init__(self, bootstrap: str, *, burst: int) -> None:
        super().__init__("keyed sender")
        from confluent_kafka import Producer

        self.acknowledged: dict[bytes, int] = {}
        self.tried: dict[bytes, int] = {}
        self.places: dict[bytes, int] = {}  # the offsets of the acknowledged
        self._burst = burst
        self._sent = 0
        self._open = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 0,
                "linger.ms": 1,
                "batch.num.messages": 20,
                "compression.type": "zstd",
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "socket.timeout.ms": 5_000,
                "log_level": 0,
            }
        )

    def step(self) -> None:
        if self._open < 200:
            for _ in range(self._burst):
                number, key = self._sent, b"key %d" % (self._sent % KEYS)
                self.tried[key] = number
                self._producer.produce(
                    TOPIC,
                    value_of(number),
                    key,
                    headers={"number": b"%d" % number},
                    on_delivery=self._told(key, number),
                )
                self._sent += 1
                self._open += 1
        self._producer.poll(0)
        self.pause(0.05)

    def finish(self) -> None:
        self._producer.flush(60)

    def _told(self, key: bytes, number: int) -> Callable[[Any, Any], None]:
        def report(error: Any, message: Any) -> None:
            self._open -= 1
            if error is not None:
                self.failure = f"keyed sender: record {number} failed: {error}"
            else:
                self.places[key] = told_offset(message)
                self.acknowledged[key] = number

        return report


def check_latest(records: list[Any], acknowledged: dict[bytes, int], sender: KeyedSender) -> None:
    """`records` is all that the topic holds; `acknowledged` what was acknowledged before it was read."""
    last: dict[bytes, int] = {}
    before = -1
    for record in records:
        assert record.offset() > before, f"{TOPIC}: offset {record.offset()} after {before}"
        before = record.offset()
        number = int(dict(record.headers())["number"])
        key, value = record.key(), record.value()
        assert number > last.get(key, -1), f"{key!r}: record {number} after {last[key]}"
        last[key] = number
        assert (value is None) == is_tombstone(number), f"{key!r}: {number} has the value {value!r}"
        assert value is None or value.startswith(b"%d:" % number), (
            f"{key!r}: {number} has the value {value!r}"
        )
    for key, due in acknowledged.items():
        found = last.get(key)
        if found is None:
            # All of it may have gone behind a tombstone.
            numbers = range(due, sender.tried[key] + 1, KEYS)
            assert any(map(is_tombstone, numbers)), f"{key!r}: {due} was acknowledged, nothing is there"
        else:
            assert found >= due, f"{key!r}: {due} was acknowledged, {found} is the last that is there"


def faults(files: Files, sender: KeyedSender) -> Iterator[Fault]:
    """As `check_latest`, of what a foreign reader has found in the files of a broker that is at rest. Such a reader
    tells the names of headers only, so that of tombstones it is not known which they are."""
    due = {
        key: Due(sender.places[key], key, value_of(number))
        for key, number in sender.acknowledged.copy().items()
    }

    files.counted(due.values())
    stored = files.partition(TOPIC, 0)

    def number_of(record: Record) -> int:
        return int((record.value or b"-1:").partition(b":")[0])

    def is_newer(key: bytes, record: Record) -> bool:
        later = range(sender.acknowledged[key] + KEYS, sender.tried[key] + 1, KEYS)
        return any(map(is_tombstone, later)) if record.value is None else number_of(record) in later

    def may_be_gone(key: bytes) -> bool:
        return any(map(is_tombstone, range(sender.acknowledged[key], sender.tried[key] + 1, KEYS)))

    def was_sent(record: Record) -> bool:
        if record.key not in sender.tried:
            return False
        number = number_of(record)
        return record.value is None or (
            record.value == value_of(number)
            and b"key %d" % (number % KEYS) == record.key
            and number <= sender.tried[record.key]
        )

    yield from acknowledged.latest(TOPIC, 0, due, stored, is_newer=is_newer, may_be_gone=may_be_gone)
    yield from acknowledged.nothing_else(TOPIC, 0, stored, was_sent)

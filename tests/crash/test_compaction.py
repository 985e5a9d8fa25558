"""The broker is killed at each step in which a cleaned segment takes the place of others; no last value is lost.

Records with keys come in between; after each start all keys have the last value that was acknowledged, `verify` finds
nothing, no file of a half exchange is left, and compaction goes on. What is left is read from the files by kio and by
Kafka's DumpLogSegments, also where the run has failed: of each key the last value that was acknowledged, at its offset.
`--long` kills at a later exchange of a round too, and once more while what the kill has left is compacted.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from crash import acknowledged
from crash.acknowledged import ALL, NONE, Due, Fault, Files
from crash.broker_run import BrokerRun
from crash.foreign import Record
from crash.workload import told_offset
from leafcuttr.crashpoints import POINTS
from support import librdkafka
from support.waiting import until

TOPIC = "latest"
KEYS = 200
VALUE_BYTES = 400
SETTINGS = {
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.segment.delete.delay.ms": "0",
    "log.index.size.max.bytes": "120",  # ten batches fill a segment
    "offsets.topic.num.partitions": "1",
}
STEPS = sorted(point for point in POINTS if point.startswith("compaction."))


def key_of(number: int) -> bytes:
    return b"key %d" % (number % KEYS)


def value_of(number: int) -> bytes:
    return b"%08d" % number + b"x" * VALUE_BYTES


class Keyed:
    """Sends records with keys, and knows what was acknowledged of them."""

    def __init__(self, run: BrokerRun) -> None:
        self.run = run
        self.latest: dict[bytes, int] = {}
        self.places: dict[bytes, int] = {}  # the offsets of the latest
        self.sent = 0

    def send(self, records: int) -> None:
        """So many records with keys in turn, until they are acknowledged or the broker is dead."""
        from confluent_kafka import Producer

        def delivered(error: Any, message: Any) -> None:
            if error is None:
                key, number = message.key(), int(message.value()[:8])
                if number > self.latest.get(key, -1):
                    self.latest[key], self.places[key] = number, told_offset(message)

        producer = Producer(
            {
                "bootstrap.servers": self.run.address,
                "batch.num.messages": 20,
                "linger.ms": 2,
                "log_level": 0,
            }
        )
        for _ in range(records):
            producer.produce(TOPIC, value_of(self.sent), key=key_of(self.sent), on_delivery=delivered)
            self.sent += 1
            producer.poll(0)
        while self.alive() and producer.flush(0.1):
            pass
        producer.purge()
        producer.flush(0)

    def pause(self, seconds: float) -> None:
        """So long, unless the broker dies."""
        assert self.run.broker is not None
        with suppress(subprocess.TimeoutExpired):
            self.run.broker.process.wait(seconds)

    def alive(self) -> bool:
        return self.run.broker is not None and self.run.broker.alive()

    def check(self) -> None:
        """Read all there is: each key's last value is at least the one that was acknowledged."""
        low, high = librdkafka.watermarks(self.run.address, TOPIC)
        found: dict[bytes, int] = {}
        for message in read_to(self.run.address, high):
            found[message.key()] = int(message.value()[:8])
        assert low == 0
        missing = {key: (n, found.get(key)) for key, n in self.latest.items() if found.get(key, -1) < n}
        assert not missing, f"acknowledged and found: {missing}"

    def check_files(self, kafka_reads: int) -> list[str]:
        """The same by readers that are not ours, of the files of a broker that does not run. Says what they read."""
        files = Files(self.run.data, [TOPIC], 0, kafka_reads=kafka_reads)
        acknowledged.check(self._faults(files))
        return files.said()

    def _faults(self, files: Files) -> Iterator[Fault]:
        stored = files.partition(TOPIC, 0)
        due = {key: Due(self.places[key], key, value_of(number)) for key, number in self.latest.items()}
        files.counted(due.values())

        def is_newer(key: bytes, record: Record) -> bool:
            return int((record.value or b"-1")[:8]) > self.latest[key]

        def was_sent(record: Record) -> bool:
            number = int((record.value or b"-1")[:8])
            sent = (key_of(number), value_of(number))
            return number < self.sent and (record.key, record.value) == sent

        yield from acknowledged.latest(
            TOPIC, 0, due, stored, is_newer=is_newer, may_be_gone=lambda key: False
        )
        yield from acknowledged.nothing_else(TOPIC, 0, stored, was_sent)

    def is_compacted(self) -> bool:
        """Whether little more is left than the last record of each key, but for the active segment."""
        try:
            sealed = sum(path.stat().st_size for path in self.log_files()[:-1])
        except FileNotFoundError:
            return False
        return sealed < 2 * KEYS * (VALUE_BYTES + 50)

    def log_files(self) -> list[Path]:
        return sorted((self.run.data / f"{TOPIC}-0").glob("*.log"))


def read_to(address: str, high: int) -> list[Any]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False, "check.crcs": True}
    )
    try:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        got: list[Any] = []
        while not got or got[-1].offset() < high - 1:
            message = consumer.poll(60)
            assert message is not None, f"nothing comes after {got[-1].offset() if got else 'the start'}"
            assert message.error() is None, message.error()
            got.append(message)
        return got
    finally:
        consumer.close()


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_kill_at_each_step(tmp_path: Path, again: bool, capsys: pytest.CaptureFixture[str]) -> None:
    run = BrokerRun(tmp_path, 0, SETTINGS)
    keyed = Keyed(run)
    try:
        assert run.start()
        librdkafka.create(run.address, TOPIC, cleanup_policy="compact")
        keyed.send(800)
        run.stop()
        for step in STEPS:
            if run.start(f"{step}:2" if again else step):
                keyed.send(800)
                while keyed.alive():
                    keyed.send(100)
                    # The process that compacts needs the processor more than what comes in meanwhile.
                    keyed.pause(0.05)
                run.killed_by(step)
            run.verify()
            assert run.start()
            keyed.check()
            if again:
                run.kill(0.5)
                run.verify()
                assert run.start()
            until(keyed.is_compacted, "compaction", seconds=60)
            keyed.check()
            run.stop()
            run.verify()
            left = [path.name for path in (run.data / f"{TOPIC}-0").iterdir()]
            assert not [name for name in left if name.endswith((".swap", ".cleaned"))]
        with capsys.disabled():
            print(f"\ncompaction: {run.kills} kills, " + "; ".join(keyed.check_files(ALL)))
    except Exception as error:
        run.end()
        try:
            keyed.check_files(NONE)
        except AssertionError as missing:
            raise AssertionError(f"{missing}\n\nThe run has ended by: {error}") from error
        raise
    finally:
        run.end()

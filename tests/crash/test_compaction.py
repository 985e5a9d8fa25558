"""The broker is killed at each step in which a cleaned segment takes the place of others; no last value is lost.

Records with keys come in between; after each start all keys have the last value that was acknowledged, `verify` finds
nothing, no file of a half exchange is left, and compaction goes on. Kafka's DumpLogSegments reads what is left.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.crashpoints import POINTS
from support import jars, librdkafka
from support.broker_process import BrokerProcess, start_broker
from support.waiting import free_port, until

TOPIC = "latest"
KEYS = 200
SETTINGS = {
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.segment.delete.delay.ms": "0",
    "log.segment.bytes": "1048576",
    "offsets.topic.num.partitions": "1",
}
STEPS = sorted(point for point in POINTS if point.startswith("compaction."))


class Run:
    """A data directory, and what was acknowledged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"127.0.0.1:{free_port()}"
        self.latest: dict[bytes, int] = {}
        self.sent = 0

    def start(self, point: str = "") -> BrokerProcess:
        settings = {**SETTINGS, "listeners": f"PLAINTEXT://{self.address}"}
        return start_broker(self.folder, settings, environ={"LEAFCUTTR_CRASH_POINT": point})

    def send(self, broker: BrokerProcess, megabytes: int) -> None:
        """Records of 2,000 bytes with keys in turn, until so much is acknowledged or the broker is dead."""
        from confluent_kafka import Producer

        def delivered(error: Any, message: Any) -> None:
            if error is None:
                key, number = message.key(), int(message.value()[:8])
                self.latest[key] = max(self.latest.get(key, -1), number)

        producer = Producer(
            {"bootstrap.servers": self.address, "message.timeout.ms": 3000, "log_level": 0, "linger.ms": 5}
        )
        for _ in range(megabytes * 500):
            value = b"%08d" % self.sent + b"x" * 1992
            producer.produce(TOPIC, value, key=b"key %d" % (self.sent % KEYS), on_delivery=delivered)
            self.sent += 1
            producer.poll(0)
            if not broker.alive():
                break
        producer.flush(4)

    def check(self) -> None:
        """Read all there is: each key's last value is at least the one that was acknowledged."""
        low, high = librdkafka.watermarks(self.address, TOPIC)
        found: dict[bytes, int] = {}
        for message in read_to(self.address, high):
            found[message.key()] = int(message.value()[:8])
        assert low == 0
        missing = {key: (n, found.get(key)) for key, n in self.latest.items() if found.get(key, -1) < n}
        assert not missing, f"acknowledged and found: {missing}"

    def verify(self) -> None:
        command = [sys.executable, "-m", "leafcuttr", "verify", str(self.folder / "data")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def is_compacted(self) -> bool:
        """Whether little more is left than the last record of each key, but for the active segment."""
        try:
            return sum(path.stat().st_size for path in self.log_files()[:-1]) < 2 * KEYS * 2100
        except FileNotFoundError:
            return False

    def log_files(self) -> list[Path]:
        return sorted((self.folder / "data" / f"{TOPIC}-0").glob("*.log"))


def read_to(address: str, high: int) -> list[Any]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False, "check.crcs": True}
    )
    try:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        got = []
        while not got or got[-1].offset() < high - 1:
            message = consumer.poll(10)
            assert message is not None, f"nothing comes after {got[-1].offset() if got else 'the start'}"
            assert message.error() is None, message.error()
            got.append(message)
        return got
    finally:
        consumer.close()


@pytest.mark.timeout(0)
def test_a_kill_at_each_step(tmp_path: Path) -> None:
    run = Run(tmp_path)
    broker = run.start()
    librdkafka.create(run.address, TOPIC, cleanup_policy="compact")
    run.send(broker, 1)
    assert broker.stop() == 0
    for point in [*STEPS, *(f"{step}:2" for step in STEPS)]:
        broker = run.start(point)
        while broker.alive():
            run.send(broker, 3)
        assert broker.process.returncode == -9, broker.log[-3000:]
        run.verify()
        broker = run.start()
        run.check()
        until(run.is_compacted, "compaction", seconds=30)
        run.check()
        broker.process.kill()
        broker.process.wait()
        broker = run.start()
        run.check()
        assert broker.stop() == 0
        run.verify()
        left = [path.name for path in (tmp_path / "data" / f"{TOPIC}-0").iterdir()]
        assert not [name for name in left if name.endswith((".swap", ".cleaned"))]
    if jars.missing() is None:
        dump(run.log_files())


def dump(files: list[Path]) -> None:
    names = ",".join(map(str, files))
    command = jars.java(
        "4.3.1", "org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--files", names
    )
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "isvalid: false" not in done.stdout
    assert "isvalid: true" in done.stdout

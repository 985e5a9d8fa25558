"""What the crash tests of copies have in common: a broker that keeps its port and its data, the committed records of a
topic, and what is wrong with a copy."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as Place

from support.broker_process import BrokerProcess, start_broker
from support.waiting import free_port


class Arming:
    """The file that has a running process die at a named point."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.text = f"@{file}"
        """The value of the variable that arms by the file."""

    def wait(self, process: subprocess.Popen[bytes], point: str, seconds: float) -> int | None:
        """Have it die at the point. Its status; None if it did not pass the point, and lives."""
        beside = self._file.with_suffix(".new")
        beside.write_text(point)
        beside.rename(self._file)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self._file.unlink()


class Cluster:
    """A broker that keeps its port and its data."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._settings = settings or {}
        self._arming = Arming(folder / "point")
        self.address = f"127.0.0.1:{free_port()}"
        self.broker = self._start()

    def kill(self) -> None:
        self.broker.process.kill()
        self.broker.process.wait()
        self.broker = self._start()

    def killed_at(self, point: str, seconds: float) -> None:
        """Have it die at a point of `leafcuttr.crashpoints`, and start it again."""
        status = self._arming.wait(self.broker.process, point, seconds)
        assert status == -9, f"status {status} at {point}: {self.broker.log[-3000:]}"
        self.broker = self._start()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        self.broker.stop()

    def _start(self) -> BrokerProcess:
        return start_broker(
            self._folder,
            {"listeners": f"PLAINTEXT://{self.address}", **self._settings},
            environ={"LEAFCUTTR_CRASH_POINT": self._arming.text},
        )


def committed_records(address: str, topic: str, partitions: int) -> list[list[bytes]]:
    """The values of each partition. Raises KafkaException, AssertionError where nothing comes."""
    found: list[list[bytes]] = [[] for _ in range(partitions)]
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "check",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([Place(topic, partition, 0) for partition in range(partitions)])
    ended: set[int] = set()
    while len(ended) < partitions:
        message = consumer.poll(10.0)
        assert message is not None, "the reader got nothing for ten seconds"
        if message.error() is not None:
            if message.error().name() != "_PARTITION_EOF":
                raise KafkaException(message.error())
            ended.add(message.partition())
        else:
            found[message.partition()].append(message.value())
    consumer.close()
    return found


def check(
    found: Sequence[Sequence[bytes]],
    wanted: Sequence[Sequence[bytes]],
    part: str = "partition",
    *,
    repeats: bool = False,
) -> None:
    """Raises AssertionError that says what is wrong. `repeats`: a copy may go back and come again from there on."""
    for number, (there, some) in enumerate(zip(found, wanted, strict=True)):
        missing = set(some) - set(there)
        assert not missing, f"{part} {number}: {len(missing)} are lost, {sorted(missing)[:3]} among them"
        added = set(there) - set(some)
        assert not added, f"{part} {number}: {len(added)} were never sent, {sorted(added)[:3]} among them"
        if repeats:
            assert _goes_on(there, some), f"{part} {number}: their order is another one"
            continue
        twice = len(there) - len(set(there))
        assert not twice, f"{part} {number}: {twice} come twice"
        assert [*there] == [*some], f"{part} {number}: their order is another one"


def _goes_on(found: Sequence[bytes], wanted: Sequence[bytes]) -> bool:
    """Whether each record follows the one before it, or is one that was there already."""
    places = {record: at for at, record in enumerate(wanted)}
    at = -1
    for record in found:
        if places[record] > at + 1:
            return False
        at = places[record]
    return at == len(wanted) - 1

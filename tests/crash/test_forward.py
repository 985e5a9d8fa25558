"""A relay, its source and its target are killed again and again while records come: at the target is what is at the
source, each record once and in its order.

The relay is the command `leafcuttr relay` in a process of its own, killed at the named points of a flow and at random
moments; the brokers are processes too, killed at random moments. A producer of librdkafka goes on all the time. At the
end each partition of the target is compared with that of the source, as readers of committed records see them.

The gate kills each of the three once, `--long` 100 times, `--kills` as often as one likes. `--crash-seed` repeats the
plan of a run, not its timing.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaException, Producer

from crash.copies import Cluster, check, committed_records
from leafcuttr_forward.flows.points import POINTS
from support import librdkafka
from support.broker_process import clean_environ
from support.waiting import until

PARTITIONS = 3
TOPIC = "orders"
PATIENCE_S = 180.0
EXACTLY_ONCE = sorted(POINTS - {"sent", "acknowledged", "position-stored", "dead-letter-begun"})
OFTEN = {"read": 5, "made": 10, "group-committed": 2}
"""With one of how many passes of a point the kill comes; of others one of four."""


class Victim(NamedTuple):
    """Which process is killed, and the relay at which point, "" for a random moment."""

    name: str
    point: str = ""


class Relay:
    """The command, started anew whenever it is killed."""

    def __init__(self, folder: Path, source: Cluster, target: Cluster) -> None:
        self._folder = folder
        self._file = folder / "relay.toml"
        self._file.write_text(
            f'[[sources]]\nname = "edge"\nservers = ["{source.address}"]\n'
            f'[target]\nname = "hub"\nservers = ["{target.address}"]\n'
            f'[topics]\n{TOPIC} = "{TOPIC}"\n[app]\nmetrics_server_addr = "127.0.0.1:0"\n'
        )
        self.process = self._start("")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process = self._start("")

    def killed_at(self, point: str) -> None:
        """End the one that runs, and start one that dies at the point, then one that does not."""
        self.process.kill()
        self.process.wait()
        self.process = self._start(point)
        assert self.process.wait(PATIENCE_S) == -9, self.log
        self.process = self._start("")

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    @property
    def log(self) -> str:
        return (self._folder / "relay.log").read_text()[-3000:]

    def _start(self, point: str) -> subprocess.Popen[bytes]:
        with (self._folder / "relay.log").open("ab") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "leafcuttr", "relay", "--config", str(self._file), "--name", "crash"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=clean_environ({"LEAFCUTTR_FLOW_CRASH_POINT": point} if point else None),
            )


@contextmanager
def producing(address: str) -> Iterator[None]:
    """Numbered records come all the time, whatever becomes of the broker."""
    ended = threading.Event()

    def run() -> None:
        producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 5})
        number = 0
        while not ended.is_set():
            for partition in range(PARTITIONS):
                try:
                    producer.produce(TOPIC, b"%d-%d" % (partition, number), partition=partition)
                except BufferError:
                    break
            number += 1
            producer.poll(0)
            ended.wait(0.002)
        producer.flush(60)

    thread = threading.Thread(target=run, name="producer")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def records(address: str) -> list[list[bytes]]:
    return committed_records(address, TOPIC, PARTITIONS)


def plan(dice: random.Random, kills: int) -> list[Victim]:
    """Each of the three once at least; two of three kills are the relay's, half of these at points."""
    steps = [Victim("relay", f"{dice.choice(EXACTLY_ONCE[3:])}:1"), Victim("target"), Victim("source")]
    while len(steps) < kills:
        name = dice.choice(["relay", "relay", "relay", "relay", "target", "source"])
        point = ""
        if name == "relay" and dice.random() < 0.6:
            chosen = dice.choice(EXACTLY_ONCE)
            point = f"{chosen}:{dice.randint(1, OFTEN.get(chosen, 4))}"
        steps.append(Victim(name, point))
    return steps[:kills]


@pytest.mark.timeout(3 * 3600)
def test_nothing_is_lost_or_comes_twice(tmp_path: Path, request: pytest.FixtureRequest, seed: int) -> None:
    kills = request.config.getoption("--kills") or (100 if request.config.getoption("--long") else 3)
    dice = random.Random(seed)
    unused = threading.Event()
    (tmp_path / "relay").mkdir()
    began = time.monotonic()
    with clusters(tmp_path) as (source, target):
        librdkafka.create(source.address, TOPIC, PARTITIONS)
        with Relay(tmp_path / "relay", source, target) as relay:
            with producing(source.address):
                until(lambda: has_some(target.address, relay), "the first records", seconds=PATIENCE_S)
                for victim in plan(dice, kills):
                    unused.wait(dice.uniform(0.1, 1.5))
                    kill(victim, relay, {"source": source, "target": target})
                    assert relay.process.poll() is None, relay.log
            wanted = records(source.address)
            until(lambda: is_there(target.address, wanted), "all of them", seconds=PATIENCE_S, pause=0.5)
            assert min(map(len, wanted)) > 10
            check(records(target.address), wanted)
            assert relay.stop() == 0, relay.log
    seconds = time.monotonic() - began
    print(
        f"{kills} kills in {seconds:.0f} s, {kills / seconds * 3600:.0f} an hour; {sum(map(len, wanted))} records, "
        "each once and in its order"
    )


def kill(victim: Victim, relay: Relay, clusters: Mapping[str, Cluster]) -> None:
    if victim.point:
        relay.killed_at(victim.point)
    elif victim.name == "relay":
        relay.kill()
    else:
        clusters[victim.name].kill()


@contextmanager
def clusters(folder: Path) -> Iterator[tuple[Cluster, Cluster]]:
    with Cluster(folder / "source") as source, Cluster(folder / "target") as target:
        yield source, target


def has_some(address: str, relay: Relay) -> bool:
    assert relay.process.poll() is None, relay.log
    try:
        return any(records(address))
    except (AssertionError, KafkaException):
        return False


def is_there(address: str, wanted: Sequence[Sequence[bytes]]) -> bool:
    try:
        found = records(address)
    except (AssertionError, KafkaException):
        return False
    return all(len(found[at]) >= len(some) for at, some in enumerate(wanted))


def test_the_checker_sees_what_is_wrong() -> None:
    wanted = [[b"a", b"b", b"c"]]
    check(wanted, wanted)
    for found, what in (
        ([[b"a", b"c"]], "1 are lost"),
        ([[b"a", b"b", b"b", b"c"]], "1 come twice"),
        ([[b"a", b"c", b"b"]], "their order"),
    ):
        with pytest.raises(AssertionError, match=what):
            check(found, wanted)

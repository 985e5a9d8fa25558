"""A run of `test_forward.py`: a relay, the load of its source, and the plan of what is killed. See there."""

from __future__ import annotations

import random
import subprocess
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

from crash.copies import Arming, Cluster
from leafcuttr_forward.flows.points import VARIABLE
from leafcuttr_forward.flows.spec import Guarantee
from support import librdkafka
from support.broker_process import clean_environ
from support.forked_start import start_leafcuttr
from support.waiting import until

PARTITIONS = 3
TOPIC, DEAD = "orders", "dead"
NAME = "crash"
REFUSED = b"late-"
"""Begins a value whose record the target refuses for its time: a dead letter."""
PATIENCE_S = 180.0
POINTS: Mapping[Guarantee, tuple[str, ...]] = {
    Guarantee.EXACTLY_ONCE: (
        "transaction-begun",
        "transaction-appended",
        "transaction-positioned",
        "transaction-committed",
        "read",
        "made",
        "group-committed",
        "dead-letter-begun",
    ),
    Guarantee.AT_LEAST_ONCE: (
        "sent",
        "acknowledged",
        "position-stored",
        "read",
        "made",
        "group-committed",
        "dead-letter-begun",
    ),
}
"""Those that a relay passes; the gate kills at one of the first three."""
_APPEND = ("append.staged", "append.written", "append.published")
_TRANSACTION = (
    "transaction.written",
    "transaction.before-prepare",
    "transaction.prepared",
    "transaction.marked",
    "transaction.before-complete",
)
ENDS: Mapping[Guarantee, Mapping[str, tuple[str, ...]]] = {
    Guarantee.EXACTLY_ONCE: {
        "source": (*_APPEND, "group-commit.appended"),
        "target": (*_APPEND, *_TRANSACTION),
    },
    Guarantee.AT_LEAST_ONCE: {"source": (*_APPEND, "group-commit.appended"), "target": _APPEND},
}
"""Points of `leafcuttr.crashpoints` that the brokers pass for records, transactions and positions of a relay."""
OFTEN = {"read": 5, "made": 10, "group-committed": 2, "position-stored": 2, "dead-letter-begun": 2}
OFTEN |= {"group-commit.appended": 2, **dict.fromkeys(_APPEND, 30)}
"""With one of how many passes of a point the kill comes; of others one of four."""
LATE_MS = 10_000_000_000_000
"""A time that the target refuses."""
PAUSE_S = 0.005
REFUSED_EVERY = 1500
"""Of so many rounds of the producer one has a record that the target refuses."""


class Victim(NamedTuple):
    """Which process is killed, and at which point, with its count; "" for a random moment."""

    name: str
    point: str = ""
    early: bool = False
    """A relay that is armed before it starts: its first passes. Without a point, one that may not have begun."""

    @property
    def place(self) -> str:
        return self.point.partition(":")[0]


def at(name: str, point: str, dice: random.Random) -> Victim:
    """Some pass of a point."""
    return Victim(name, f"{point}:{dice.randint(1, OFTEN.get(point, 4))}", dice.random() < 0.4)


def plan(dice: random.Random, kills: int, guarantee: Guarantee) -> list[Victim]:
    """The relay at a point, the target and the source; then in any order the relay at each point, if there are so many
    kills the ends at each of theirs, and what chance says: two of three kills are the relay's."""
    points, ends = POINTS[guarantee], ENDS[guarantee]
    first = [at("relay", dice.choice(points[:3]), dice), Victim("target"), Victim("source")]
    rest = [at("relay", point, dice) for point in points if point != first[0].place]
    of_the_ends = [at(name, point, dice) for name, some in ends.items() for point in some]
    dice.shuffle(of_the_ends)
    rest += [Victim("relay"), *of_the_ends]
    while len(first) + len(rest) < kills:
        name = dice.choice(["relay", "relay", "relay", "relay", "target", "source"])
        if dice.random() < 0.6:
            rest.append(at(name, dice.choice(points if name == "relay" else ends[name]), dice))
        else:
            rest.append(Victim(name, early=dice.random() < 0.3))
    rest = rest[: max(kills - len(first), 0)]
    dice.shuffle(rest)
    return [*first, *rest][:kills]


class Relay:
    """The command, started anew whenever it is killed."""

    def __init__(self, folder: Path, source: Cluster, target: Cluster, guarantee: Guarantee) -> None:
        folder.mkdir()
        self._log = folder / "relay.log"
        self._arming = Arming(folder / "point")
        self._file = folder / "relay.toml"
        self._file.write_text(
            f'[[sources]]\nname = "edge"\nservers = ["{source.address}"]\n'
            f'[target]\nname = "hub"\nservers = ["{target.address}"]\n'
            f'[topics]\n{TOPIC} = "{TOPIC}"\n[app]\nmetrics_server_addr = "127.0.0.1:0"\n'
        )
        self._options = ("--at-least-once",) if guarantee is Guarantee.AT_LEAST_ONCE else ()
        self._old = 0
        self.process = self._start()

    def kill(self, *, early: bool) -> None:
        """At once, or once it has begun."""
        if not early:
            until(self._reads, "the relay to begin", seconds=PATIENCE_S)
        self.process.kill()
        self.process.wait()
        self.process = self._start()

    def killed_at(self, point: str, *, early: bool) -> None:
        """Have the one that runs die at the point, or `early` one that is started in its place; start another one."""
        if early:
            self.process.kill()
            self.process.wait()
            self.process = self._start(point)
            status: int | None = self.process.wait(PATIENCE_S)
        else:
            status = self._arming.wait(self.process, point, PATIENCE_S)
        assert status == -9, f"status {status} at {point}: {self.log}"
        self.process = self._start()

    def check(self) -> None:
        assert self.process.poll() is None, self.log

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
        return self._log.read_text()[-3000:]

    def _reads(self) -> bool:
        self.check()
        return b"reading from" in self._log.read_bytes()[self._old :]

    def _start(self, point: str = "") -> subprocess.Popen[bytes]:
        words = ["relay", "--config", str(self._file), "--name", NAME, "--dead-letter-topic", DEAD]
        with self._log.open("ab") as out:
            self._old = out.tell()
            return start_leafcuttr(
                [*words, *self._options],
                cwd=Path.cwd(),
                environ=clean_environ({VARIABLE: point or self._arming.text}),
                stdout=out.fileno(),
                stderr=out.fileno(),
            )


class Load:
    """Numbered records come all the time, whatever becomes of the broker, and now and then one that the target
    refuses."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._ended = threading.Event()
        self._refused = threading.Event()
        self._thread = threading.Thread(target=self._run, name="producer")

    def send_refused(self) -> None:
        """The next round has some."""
        self._refused.set()

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self._address, "enable.idempotence": True, "linger.ms": 5})
        number = 0
        while not self._ended.wait(PAUSE_S):
            refused = self._refused.is_set() or number % REFUSED_EVERY == REFUSED_EVERY // 10
            self._refused.clear()
            for partition in range(PARTITIONS):
                value = b"%d-%d" % (partition, number)
                try:
                    if refused and number % PARTITIONS == partition:
                        producer.produce(TOPIC, REFUSED + value, partition=partition, timestamp=LATE_MS)
                    else:
                        producer.produce(TOPIC, value, partition=partition)
                except BufferError:
                    break
            number += 1
            producer.poll(0)
        producer.flush(60)


def create_topics(source: Cluster, target: Cluster) -> None:
    """The target's topic does not take all times that the source's takes, and that of dead letters does."""
    every = str(1 << 60)
    librdkafka.create(source.address, TOPIC, PARTITIONS, message_timestamp_after_max_ms=every)
    librdkafka.create(target.address, TOPIC, PARTITIONS, message_timestamp_after_max_ms="3600000")
    librdkafka.create(target.address, DEAD, PARTITIONS, message_timestamp_after_max_ms=every)


def wait_for_the_end(source: Cluster, relay: Relay) -> None:
    """Until all is copied, however long that takes: a busy machine takes its time, and only what stands still fails."""
    behind = records_behind(source)

    def fewer(than: int) -> bool:
        nonlocal behind
        relay.check()
        behind = records_behind(source)
        return behind < than

    while behind:
        until(partial(fewer, behind), f"copies of {behind} more", seconds=PATIENCE_S, pause=0.2)


def records_behind(source: Cluster) -> int:
    """How many offsets there are behind the position that the relay shows as its group."""
    consumer = Consumer({"bootstrap.servers": source.address, "group.id": f"leafcuttr-{NAME}"})
    try:
        places = consumer.committed([TopicPartition(TOPIC, number) for number in range(PARTITIONS)], 30)
        ends = [consumer.get_watermark_offsets(place, 30)[1] for place in places]
    finally:
        consumer.close()
    return sum(end - max(place.offset, 0) for place, end in zip(places, ends, strict=True))

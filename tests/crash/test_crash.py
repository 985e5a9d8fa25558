"""The broker is killed at random moments and at every named point, under load; nothing acknowledged may be lost.

The load: librdkafka producers (idempotent and not, to plain topics, to one in topic sync mode, to a compacted one),
producers on a socket of their own, Kafka's Java producer (and with `--long` its consumer group), transactions, commits,
members, topics that come and go, records that are deleted. Segments are small, and now and then a log is left with a
torn end.

After each start everything is read back: idempotent senders' records in order without gap or duplicate and where the
broker has said that they are, the others' without gap, the latest value of each key, transactions whole or not at all,
commits and topics as they were acknowledged; after each kill and after the last stop `leafcuttr verify` finds no
problem. The gate runs one kill at each point and a few at random; `--kills 200` (the `crash` session runs that by
default) as many as one likes. A failing run prints its seed; `--crash-seed` repeats it.

What exactly is running at the moment of a kill differs from run to run; the seed repeats the points, their counts,
the delays and the order.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crash import java_clients, keyed
from crash.broker_run import BrokerRun
from crash.raw_workers import Members, RawSender, Topics, Trimmer, create_topic
from crash.readback import Readback
from crash.workload import DATA, PARTITIONS, TRANSACTIONS, Committer, Sender, Transactor
from leafcuttr.crashpoints import POINTS
from support import jars
from support.wire_client import WireClient

SYNCED = "synced"
SETTINGS = {
    # A segment of any topic, internal ones too, is full after forty batches or fewer.
    "log.index.size.max.bytes": "480",
    "log.index.interval.bytes": "1024",
    "log.flush.offset.checkpoint.interval.ms": "700",
    "log.flush.start.offset.checkpoint.interval.ms": "700",
    "log.retention.check.interval.ms": "500",
    "log.segment.delete.delay.ms": "0",
    "log.cleaner.backoff.ms": "300",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
}

# Within a start; a file cannot arm them in time.
STARTING = {"recovery.cut", "recovery.scanned", "start.loaded", "start.unmarked"}

# The kill comes at one of so many passes of a point; otherwise at one of two.
OFTEN = {
    "append.staged": 300,
    "append.written": 300,
    "append.published": 300,
    "writer.before-write": 100,
    "writer.written": 100,
    "group-commit.appended": 20,
    "group.stored": 10,
    "transaction.written": 20,
    "transaction.before-prepare": 5,
    "transaction.prepared": 5,
    "transaction.marked": 20,
    "transaction.before-complete": 5,
    "retention.removing": 10,
}
STOPPING = {"shutdown.synced", "shutdown.checkpointed"}
ONCE = STOPPING | {"start.loaded", "start.unmarked", "recovery.cut"}
ONCE |= {name for name in POINTS if name.startswith("compaction.")}


class Kill(NamedTuple):
    """One step of the plan: a point with its count, or "" for a random moment. `early`: it may be in the start."""

    point: str
    early: bool = False

    @property
    def name(self) -> str:
        return self.point.partition(":")[0]


def kill_at(name: str, dice: random.Random, *, early: bool = False) -> Kill:
    most = 1 if name in ONCE else OFTEN.get(name, 2)
    return Kill(f"{name}:{dice.randint(1, most)}", early or name in STARTING)


def planned(dice: random.Random, kills: int, *, thorough: bool) -> list[Kill]:
    """Every point once, so many random moments; `thorough`: each point again, armed before the start."""
    plan = [kill_at(name, dice) for name in sorted(POINTS)]
    plan += [Kill("")] * kills
    if thorough:
        plan += [kill_at(name, dice, early=True) for name in sorted(POINTS - STOPPING)]
    dice.shuffle(plan)
    return plan


class Load:
    """All that runs against the broker, and the comparison of what it was told with what there is."""

    def __init__(self, run: BrokerRun, seed: int, *, group_too: bool) -> None:
        at = run.address
        numbered: list[Any] = [
            Sender(at, 0, idempotent=True, codec="none", partition=0),
            Sender(at, 1, idempotent=True, codec="lz4", partition=1),
            Sender(at, 2, idempotent=False, codec="none", partition=0),
            Sender(at, 3, idempotent=True, codec="none", topic=SYNCED, partition=0),
            RawSender(at, 4, DATA, 1),
            RawSender(at, 5, SYNCED, 1),
        ]
        self.keyed = keyed.KeyedSender(at)
        self.committer = Committer(at)
        self.transactor = Transactor(at)
        self.raw = [Members(at, DATA), Topics(at, seed), Trimmer(at, seed)]
        self.workers: list[Any] = [*numbered, self.keyed, self.committer, self.transactor, *self.raw]
        self.java: java_clients.JavaConsumer | None = None
        if jars.missing() is None:
            numbered.append(java_clients.JavaProducer(run.folder, at))
            self.workers.append(numbered[-1])
            if group_too:
                self.java = java_clients.JavaConsumer(run.folder, at)
                self.workers.append(self.java)
        else:
            run.notes.append(f"no Java clients: {jars.missing()}")
        self.readback = Readback(at, numbered, self.keyed, self.transactor)
        self.run = run

    def start(self) -> None:
        for worker in self.workers:
            worker.start()

    def stop(self) -> None:
        for worker in reversed(self.workers):
            worker.stop()

    def abandon(self) -> None:
        for worker in self.workers:
            worker.abandon()

    def check(self) -> None:
        """What was acknowledged is there, nobody has met an error, the broker lives."""
        timed = self.run.timed
        with timed("read records"):
            self.readback.check()
        with timed("read state"):
            self.readback.check_commits(self.committer)
            for worker in self.raw:
                worker.check()
            if self.java is not None:
                self.java.check(self.run.address)
        for worker in self.workers:
            assert worker.failure is None, worker.failure
        broker = self.run.broker
        assert broker is not None
        assert broker.alive(), broker.log[-3000:]


def create_topics(address: str) -> None:
    with WireClient(address) as client:
        create_topic(client, DATA, PARTITIONS)
        create_topic(client, SYNCED, PARTITIONS, lc_log_sync_always="true")
        create_topic(client, TRANSACTIONS, PARTITIONS)
        create_topic(client, Trimmer.TOPIC, 1)
        create_topic(client, java_clients.TOPIC, 1)
        create_topic(client, keyed.TOPIC, 1, **keyed.SETTINGS)


@pytest.mark.timeout(0)
def test_nothing_acknowledged_is_lost(
    tmp_path: Path, seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    long = request.config.getoption("--long", default=False)
    kills = request.config.getoption("--kills", default=None)
    kills = kills if kills is not None else (200 if long else 32)
    run = BrokerRun(tmp_path, seed, SETTINGS)
    plan = planned(run.random, kills, thorough=long)
    began = time.monotonic()
    load: Load | None = None
    try:
        assert run.start()
        create_topics(run.address)
        load = Load(run, seed, group_too=long)
        load.start()
        run.kill(0.5)
        while plan:
            one_kill(run, load, plan.pop(), patience=2.0 if long else 0.5)
            for name in POINTS - run.reached.keys():
                if not plan and run.reached["tries " + name] < 3:
                    run.reached["tries " + name] += 1
                    plan.append(Kill(f"{name}:1", name in STARTING))
        assert run.start()
        load.stop()
        load.readback.restart()
        load.check()
        run.stop()
        run.verify()
    finally:
        took = time.monotonic() - began
        if load is not None:
            load.abandon()
            with capsys.disabled():
                report(run, load.readback.records, took, seed)
        run.end()
    missed = sorted(name for name in POINTS if not run.reached[name])
    assert not missed, f"never reached: {missed}"


def one_kill(run: BrokerRun, load: Load, kill: Kill, *, patience: float) -> None:
    """Start, read back, kill, verify; a kill in the start leaves the reading to the next one."""
    if kill.early:
        run.tear(run.random.choice((f"{DATA}-0", f"{SYNCED}-0", f"{SYNCED}-1", f"{keyed.TOPIC}-0")))
        if run.start(kill.point):
            run.killed_by(kill.point)
    else:
        assert run.start()
        load.check()
        if kill.point:
            run.arm(kill.point)
            run.killed_by(kill.point)
        else:
            run.kill(patience)
    run.verify()


def report(run: BrokerRun, records: int, took: float, seed: int) -> None:
    print(
        f"\ncrash: seed {seed}, {run.kills} kills in {took:.0f} s, {3600 * run.kills / took:.0f} an hour, "
        f"{records} records read back, slowest start {run.slowest_start:.2f} s"
    )
    for title, found in ("time spent", run.spent), ("longest waits", run.waited):
        most = sorted(found.items(), key=lambda item: -item[1])[:6]
        print(f"  {title}: " + ", ".join(f"{what} {seconds:.1f} s" for what, seconds in most))
    for note in run.notes:
        print(f"  {note}")
    for name in sorted(POINTS):
        print(f"  {name:26} reached {run.reached[name]}")

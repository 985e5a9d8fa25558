"""The broker is killed at random moments and at every named point, under load; nothing acknowledged may be lost.

After each start everything is read back: idempotent senders' records in order without gap or duplicate, the others'
without gap, transactions whole or not at all, commits and topics as they were acknowledged; before each start and
after the last stop `leafcuttr verify` finds no problem. The gate runs one kill at each point and a few at random;
`--kills 200` (the `crash` session runs that by default) as many as one likes. A failing run prints its seed;
`--crash-seed` repeats it.

What exactly is running at the moment of a kill differs from run to run; the seed repeats the points, their counts,
the delays and the order.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.readback import Reader, check_commits, check_topics, check_transactions
from crash.workload import DATA, PARTITIONS, TRANSACTIONS, Chores, Committer, Sender, Transactor, Worker
from leafcuttr.crashpoints import POINTS
from support.broker_process import BrokerProcess, start_broker
from support.waiting import free_port

SETTINGS = {
    "log.segment.bytes": "1048576",
    "log.flush.offset.checkpoint.interval.ms": "700",
    "log.flush.start.offset.checkpoint.interval.ms": "700",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
}

# What runs here is not compacted: crash/test_compaction.py kills at these.
HERE = {name for name in POINTS if not name.startswith("compaction.")}

# The kill comes at one of so many passes of a point; otherwise at one of two.
OFTEN = {
    "shutdown.checkpointed": 1,
    "append.staged": 300,
    "append.written": 300,
    "append.published": 300,
    "group-commit.appended": 20,
    "transaction.written": 20,
    "transaction.before-prepare": 5,
    "transaction.prepared": 5,
    "transaction.marked": 20,
    "transaction.before-complete": 5,
}


class Run:
    """One run: a directory, a port, the clients, and what has been reached."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.port = free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.reached: Counter[str] = Counter()
        self.records = 0
        self.slowest_start = 0.0
        self.notes: list[str] = []
        self.patience = 0.4
        self._unused = threading.Event()

    def start(self, point: str = "") -> BrokerProcess | None:
        """A ready broker, or None if it has died at `point` before it was ready."""
        settings = {**SETTINGS, "listeners": f"PLAINTEXT://{self.bootstrap}"}
        began = time.monotonic()
        try:
            broker = start_broker(self.folder, settings, environ={"LEAFCUTTR_CRASH_POINT": point})
        except RuntimeError as error:
            if point and "status -9" in str(error):
                return None
            raise
        self.slowest_start = max(self.slowest_start, time.monotonic() - began)
        return broker

    def kill(self, broker: BrokerProcess | None, point: str) -> None:
        """End the broker by its point, or at a random moment."""
        name = point.partition(":")[0]
        if broker is None:
            self.reached[name] += 1
            return
        if name == "shutdown.checkpointed":
            self._unused.wait(self.random.uniform(0.1, 0.5))
            broker.process.terminate()
        if not point:
            self._unused.wait(self.random.uniform(0.0, self.patience))
            broker.process.kill()
        try:
            status = broker.process.wait(25)
        except subprocess.TimeoutExpired:
            broker.process.kill()
            broker.process.wait()
            self.notes.append(f"{point} was not reached in time")
            return
        if point:
            assert status == -9, f"the broker ended with status {status} at {point}: {broker.log[-3000:]}"
            self.reached[name] += 1

    def verify(self) -> None:
        """`leafcuttr verify` has nothing to complain of."""
        done = subprocess.run(
            [sys.executable, "-m", "leafcuttr", "verify", str(self.folder / "data")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"verify: {done.stdout[-3000:]}{done.stderr[-2000:]}"

    def point(self, name: str) -> str:
        """The point with the count at which it kills."""
        return f"{name}:{self.random.randint(1, OFTEN.get(name, 2))}"


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> Iterator[int]:
    given = request.config.getoption("--crash-seed", default=None)
    seed = given if given is not None else random.SystemRandom().randrange(1 << 32)
    print(f"--crash-seed {seed} repeats this run")
    yield seed


@pytest.mark.timeout(0)
def test_nothing_acknowledged_is_lost(
    tmp_path: Path, seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    long = request.config.getoption("--long", default=False)
    kills = request.config.getoption("--kills", default=None)
    kills = kills if kills is not None else (200 if long else 5)
    run = Run(tmp_path, seed)
    plan = [*(run.point(name) for name in sorted(HERE)), *([""] * kills)]
    run.random.shuffle(plan)
    if long:
        run.patience = 2.0

    broker = run.start()
    assert broker is not None
    create_data_topic(run.bootstrap)
    senders = [
        Sender(run.bootstrap, 0, idempotent=True, codec="none"),
        Sender(run.bootstrap, 1, idempotent=True, codec="lz4"),
        Sender(run.bootstrap, 2, idempotent=False, codec="none"),
    ]
    committer, chores = Committer(run.bootstrap), Chores(run.bootstrap, seed)
    transactor = Transactor(run.bootstrap)
    workers: list[Worker] = [*senders, committer, transactor, chores]
    reader = Reader(senders)

    def check(running: BrokerProcess) -> None:
        run.records += reader.read(run.bootstrap)
        check_commits(run.bootstrap, committer)
        check_transactions(run.bootstrap, transactor)
        check_topics(run.bootstrap, chores)
        for worker in workers:
            assert worker.failure is None, worker.failure
        assert running.alive(), running.log[-3000:]

    for worker in workers:
        worker.start()
    try:
        run.kill(broker, "")
        while plan:
            point = plan.pop()
            broker = run.start(point)
            if broker is not None and not point:
                check(broker)
            run.kill(broker, point)
            run.verify()
            broker = run.start()
            assert broker is not None
            check(broker)
            run.kill(broker, "")
            for name in HERE - run.reached.keys():
                if not plan and run.reached["tries " + name] < 3:
                    run.reached["tries " + name] += 1
                    plan.append(f"{name}:1")
        broker = run.start()
        assert broker is not None
        for worker in workers:
            worker.stop()
        reader.restart()
        check(broker)
        assert broker.stop() == 0
        run.verify()
    finally:
        for worker in workers:
            worker.abandon()
        if broker is not None and broker.alive():
            broker.process.kill()
            broker.process.wait()
        with capsys.disabled():
            print(
                f"\ncrash: seed {seed}, {run.records} records read back, slowest start {run.slowest_start:.2f} s"
            )
            for note in run.notes:
                print(f"  {note}")
            for name in sorted(HERE):
                print(f"  {name:26} reached {run.reached[name]}")
    missed = sorted(name for name in HERE if not run.reached[name])
    assert not missed, f"never reached: {missed}"


def create_data_topic(bootstrap: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for name in (DATA, TRANSACTIONS):
        admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(20)

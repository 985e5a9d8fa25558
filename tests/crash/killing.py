"""A run of `test_crash.py`: a broker that is killed at random moments and at named points, under load. See there."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from crash import keyed
from crash.acknowledged import ALL, NONE, SOME
from crash.broker_run import BrokerRun
from crash.load import PACE, SETTINGS, SYNCED, Load, create_topics
from crash.load_audit import check_complete, check_files
from crash.workload import DATA
from leafcuttr.crashpoints import POINTS

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
# Of the log and of compaction.
ELSEWHERE = ("roll.", "producer-snapshot.", "checkpoint.", "soft-checkpoint.", "compaction.")
"""Beginnings of the points at which other tests of the gate kill a process: `tests/log/test_manager.py` and
`test_compaction.py`, each of them (`test_crashpoints.py`)."""
STOPPING = {"shutdown.synced", "shutdown.checkpointed"}
ONCE = STOPPING | {"start.loaded", "start.unmarked", "recovery.cut"}
ONCE |= {name for name in POINTS if name.startswith("compaction.")}


UNREAD = 3
"""How many kills at points may come between two readings, where not each is followed by one."""


class Kill(NamedTuple):
    """One step of the plan: a point with its count, or "" for a random moment. `early`: it may be in the start."""

    point: str
    early: bool = False

    @property
    def name(self) -> str:
        return self.point.partition(":")[0]


def kill_at(name: str, dice: random.Random, *, early: bool = False, pace: float = 1.0) -> Kill:
    most = 1 if name in ONCE else max(round(OFTEN.get(name, 2) / pace), 2)
    return Kill(f"{name}:{dice.randint(1, most)}", early or name in STARTING)


def points(*, thorough: bool) -> list[str]:
    """Where a run kills: everywhere, or at those points at which no other test of the gate does."""
    return sorted(name for name in POINTS if thorough or not name.startswith(ELSEWHERE))


def planned(dice: random.Random, kills: int, *, thorough: bool) -> list[Kill]:
    """Every point of `points` once, so many random moments; `thorough`: each point again, armed before the start."""
    pace = 1.0 if thorough else PACE
    plan = [kill_at(name, dice, pace=pace) for name in points(thorough=thorough)]
    plan += [Kill("")] * kills
    if thorough:
        plan += [kill_at(name, dice, early=True) for name in sorted(POINTS - STOPPING)]
    dice.shuffle(plan)
    return plan


def run_kills(
    folder: Path,
    seed: int,
    plan_of: Callable[[random.Random], list[Kill]],
    *,
    thorough: bool,
    every_point: bool = True,
    patience: float = 0.5,
) -> BrokerRun:
    """Kill a broker as planned, read back at the end, and print what has come of it. `thorough`: more clients, and
    Kafka's tool reads all files; without it, `UNREAD` kills at points may come between two readings. `patience`:
    within how many seconds a kill at random comes; `every_point`: those of `points` that were not reached are tried
    again.

    Raises AssertionError where anything that was acknowledged is lost, with what is missing in the files.
    """
    run = BrokerRun(folder, seed, SETTINGS)
    plan = plan_of(run.random)
    began = time.monotonic()
    load: Load | None = None
    try:
        assert run.start()
        create_topics(run.address)
        load = Load(run, seed, thorough=thorough)
        _go_through(run, load, plan, thorough=thorough, patience=patience, every_point=every_point)
        with run.timed("read files"):
            files = check_files(run.data, load, seed, kafka_reads=ALL if thorough else SOME)
            check_complete(files, load)
            run.notes += files.said()
    except Exception as error:
        run.end()
        if load is not None:
            load.abandon()
            _name_missing(run, load, seed, error)
        raise
    finally:
        run.end()
        if load is not None:
            load.abandon()
            wanted = points(thorough=thorough) if every_point else []
            report(run, load.readback.records, time.monotonic() - began, seed, wanted)
    return run


def _go_through(
    run: BrokerRun, load: Load, plan: list[Kill], *, thorough: bool, patience: float, every_point: bool
) -> None:
    load.start()
    run.kill(0.5)
    unread = 0
    while plan:
        kill = plan.pop()
        look = thorough or unread == UNREAD or not kill.point
        unread = 0 if look else unread + 1
        one_kill(run, load, kill, look=look, patience=patience)
        wanted = points(thorough=thorough) if every_point else ()
        for name in (each for each in wanted if each not in run.reached):
            if not plan and run.reached["tries " + name] < 3:
                run.reached["tries " + name] += 1
                plan.append(Kill(f"{name}:1", name in STARTING))
    assert run.start()
    load.stop()
    load.readback.restart()
    load.check()
    run.stop()
    run.verify()


def _name_missing(run: BrokerRun, load: Load, seed: int, error: Exception) -> None:
    """Raises AssertionError, if the files of a broker that was killed say what the run has failed by."""
    try:
        check_files(run.data, load, seed, kafka_reads=NONE)
    except AssertionError as missing:
        raise AssertionError(f"{missing}\n\nThe run has ended by: {error}") from error


def one_kill(run: BrokerRun, load: Load, kill: Kill, *, look: bool, patience: float) -> None:
    """Start, read back, kill, verify; a kill in the start leaves the reading to the next one, and without `look` both
    are left to it."""
    if kill.early:
        run.tear(run.random.choice((f"{DATA}-0", f"{SYNCED}-0", f"{SYNCED}-1", f"{keyed.TOPIC}-0")))
        if run.start(kill.point):
            run.killed_by(kill.point)
    else:
        assert run.start()
        if look:
            load.check()
        if kill.point:
            run.arm(kill.point)
            run.killed_by(kill.point)
        else:
            run.kill(patience)
    if look:
        run.verify()


def report(run: BrokerRun, records: int, took: float, seed: int, wanted: Sequence[str]) -> None:
    """Print what has come of a run, and how often it has reached the points that were `wanted` and others."""
    print(
        f"\ncrash: seed {seed}, {run.kills} kills in {took:.0f} s, {3600 * run.kills / took:.0f} an hour, "
        f"{records} records read back, slowest start {run.slowest_start:.2f} s"
    )
    for title, found in ("time spent", run.spent), ("longest waits", run.waited):
        most = sorted(found.items(), key=lambda item: -item[1])[:6]
        print(f"  {title}: " + ", ".join(f"{what} {seconds:.1f} s" for what, seconds in most))
    for note in run.notes:
        print(f"  {note}")
    for name in sorted({*wanted, *(POINTS & run.reached.keys())}):
        print(f"  {name:26} reached {run.reached[name]}")

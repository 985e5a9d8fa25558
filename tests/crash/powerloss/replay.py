"""Recording a broker's life, and what comes after the power was cut at any moment of it.

life      start, traffic, a clean stop, a second start, more traffic, SIGKILL
a cut     before any entry of the recording; what the disk has then is one of several outcomes (`disk`)
after it  a broker starts on that, keeps its promises (`promises`), goes on, and `verify` finds nothing
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from crash.powerloss.disk import Chance, Disk, Outcome, plain_outcomes, put
from crash.powerloss.files import check_files
from crash.powerloss.promises import Witness
from crash.powerloss.recording import Entry, Recorder
from crash.powerloss.told import Told
from crash.powerloss.traffic import BROKER, Traffic
from leafcuttr.cli.common.offline import known_topics, stored_topics
from leafcuttr.log.layout.checkpoints import RECOVERY_POINTS
from leafcuttr.log.layout.partition_state import STATE_FILE
from leafcuttr.offline.verify import verify_directory
from leafcuttr.runtime.clock import SystemClock
from support.broker_process import BrokerProcess, running_broker, start_broker
from support.live_broker import live_broker
from support.waiting import until


class Life(NamedTuple):
    """A recorded life. `synced`: all topics are in topic sync mode that say nothing else, internal ones too."""

    entries: list[Entry]
    root: Path
    inode: int
    synced: bool
    later: Told

    @property
    def settings(self) -> Mapping[str, str]:
        return settings(self.synced)


def settings(synced: bool) -> dict[str, str]:
    return {**BROKER, "lc.log.sync.always": str(synced).lower()}


def live(library: Path, folder: Path, *, synced: bool, rounds: int) -> Life:
    """Record one life in `folder`."""
    recorder = Recorder(library, folder / "recorder", folder / "life")
    traffic = Traffic(recorder)
    with running_broker(recorder.root, settings(synced), environ=recorder.environ) as broker:
        traffic.make_topics(broker.address)
        traffic.run(broker.address, broker.data, rounds)
    recorder.mark("stopped")
    broker = start_broker(recorder.root, settings(synced), environ=recorder.environ)
    try:
        traffic.run(broker.address, broker.data, rounds // 2)
    finally:
        _cut(broker, recorder)
    recorder.close()
    entries = recorder.entries()
    return Life(entries, recorder.root, recorder.root.stat().st_ino, synced, Told.by(entries))


def start_again(library: Path, folder: Path, life: Life, state: State) -> tuple[Disk, list[Entry]]:
    """Record what a start on a state does, until it has written a checkpoint; the disk before it, and the recording."""
    recorder = Recorder(library, folder / "recorder", folder / "life")
    data = _lay_out(state, recorder.root)
    disk = Disk.of(recorder.root)
    before = _checkpoints(data)
    broker = start_broker(recorder.root, life.settings, environ=recorder.environ)
    try:
        if any(topic.there for topic in state.told.topics.values()):
            until(lambda: _checkpoints(data) != before, "a checkpoint", seconds=60)
    finally:
        _cut(broker, recorder)
    recorder.close()
    return disk, recorder.entries()


def _cut(broker: BrokerProcess, recorder: Recorder) -> None:
    """End the broker, and a process that compacts for it: that one would go on until it notices, and be recorded."""
    with recorder.between_entries():
        processes = Path(f"/proc/{broker.process.pid}/task").glob("*/children")
        children = [int(pid) for path in processes for pid in path.read_text().split()]
        broker.stop(signal.SIGKILL)
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: not any(map(_runs, children)), "the end of what compacts")


def _runs(pid: int) -> bool:
    """A zombie does not: nobody has waited for it yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _checkpoints(data: Path) -> list[int]:
    paths = [data / name for name in (STATE_FILE, RECOVERY_POINTS)]
    return [path.stat().st_mtime_ns if path.exists() else 0 for path in paths]


def cuts_of_start(state: State, disk: Disk, entries: list[Entry], count: int, seed: int) -> Iterator[State]:
    """So many states that a second cut may leave, during the start that followed the first."""
    dice, at = random.Random(seed), 0
    for cut in sorted(dice.sample(range(len(entries) + 1), min(count, len(entries) + 1))):
        disk.take(entries[at:cut])
        at = cut
        for outcome in (dice.choice(plain_outcomes()), Chance(seed + cut)):
            name = f"{state.outcome}; then before entry {cut} of the start, {outcome.name}"
            yield State(state.cut, name, disk.left(outcome), state.told)


class State(NamedTuple):
    """What a cut has left, and what clients had been told before it."""

    cut: int
    outcome: str
    files: dict[str, bytes | None]
    told: Told

    def __str__(self) -> str:
        return f"cut before entry {self.cut}, {self.outcome}"


def states(
    life: Life, cuts: Iterable[int], seed: int, *, chances: int, breaks: str = "(?!)"
) -> Iterator[State]:
    """Of each cut the plain outcomes and so many by chance."""
    disk, told, at = Disk(life.inode, breaks=breaks), Told(), 0
    for cut in sorted(cuts):
        disk.take(life.entries[at:cut])
        for entry in life.entries[at:cut]:
            if entry.kind == "K":
                told.hear(entry.mark)
        at = cut
        outcomes = [*plain_outcomes(), *(Chance(seed + cut * 1000 + each) for each in range(chances))]
        for outcome in outcomes:
            yield State(cut, outcome.name, disk.left(outcome), told)


def some_states(life: Life, count: int, seed: int) -> Iterator[State]:
    """So many states, each of another cut, the outcomes by turns."""
    dice = random.Random(seed)
    kinds: list[Outcome | None] = [*plain_outcomes(), None, None, None]
    disk, told, at = Disk(life.inode), Told(), 0
    for number, cut in enumerate(sorted(dice.sample(range(len(life.entries) + 1), count))):
        disk.take(life.entries[at:cut])
        for entry in life.entries[at:cut]:
            if entry.kind == "K":
                told.hear(entry.mark)
        at = cut
        outcome = kinds[number % len(kinds)] or Chance(seed + cut)
        yield State(cut, outcome.name, disk.left(outcome), told)


def judge(life: Life, state: State, folder: Path) -> None:
    """Start a broker of this process on the state, and look. Raises AssertionError, with what the broker has said."""
    witness = Witness(state.told, life.later, synced=life.synced)
    data = _lay_out(state, folder)
    with _heard() as lines:
        try:
            with live_broker(data, life.settings, clock=SystemClock()) as broker:
                witness.judge(broker.address, data)
                broker.run(broker.broker.logs.inspect)
            checked = verify_directory(data, deep=True, topics=known_topics(stored_topics(data)))
            wrong = [each for each in checked.problems if each.path.parent not in witness.left_behind]
            assert not wrong, [str(problem) for problem in wrong[:3]]
            check_files(witness, data)
        except Exception as error:
            said = "\n".join(line for line in lines if "is not used" not in line)
            raise AssertionError(f"{state}: {error!r}\n{said[-2000:]}") from error


def judge_process(life: Life, state: State, folder: Path, *, kafka_reads_too: bool = False) -> None:
    """As `judge`, with the program itself: it is killed when it has served, and serves again. `kafka_reads_too`: the
    files at the end are read by DumpLogSegments as well."""
    witness = Witness(state.told, life.later, synced=life.synced)
    data = _lay_out(state, folder)
    try:
        for how in (signal.SIGKILL, signal.SIGTERM):
            with running_broker(data.parent, life.settings) as broker:
                witness.judge(broker.address, data)
                broker.stop(how)
        command = [sys.executable, "-m", "leafcuttr", "verify", str(data)]
        checked = subprocess.run(command, capture_output=True, text=True, check=False)
        clean = checked.returncode == 0 or witness.left_behind
        assert clean, checked.stdout[-2000:] + checked.stderr[-2000:]
        check_files(witness, data, kafka_reads_too=kafka_reads_too)
    except Exception as error:
        raise AssertionError(f"{state}: {error!r}") from error


def _lay_out(state: State, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    put(state.files, folder)
    data = folder / "data"
    data.mkdir(exist_ok=True)
    return data


@contextmanager
def _heard() -> Iterator[list[str]]:
    lines: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    ear, logger = Ear(), logging.getLogger("leafcuttr")
    logger.addHandler(ear)
    try:
        yield lines
    finally:
        logger.removeHandler(ear)


def failures(life: Life, found: Iterable[State], folder: Path, *, most: int = 5) -> list[str]:
    """What is wrong with the states, at most so many."""
    wrong: list[str] = []
    for state in found:
        try:
            judge(life, state, folder)
        except AssertionError as error:
            wrong.append(str(error))
            if len(wrong) == most:
                break
    return wrong

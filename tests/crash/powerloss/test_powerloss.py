"""The power is cut, at any moment of a broker's life and with any outcome that a disk allows: what was promised is
there, nothing else came, and the broker goes on.

A recorded life is replayed up to a cut; see `replay`. `--crash-seed` repeats a run that has failed as far as the
machine lets it: the seed chooses the cuts and the outcomes, the recording is another each time.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from crash.foreign import log_files
from crash.powerloss.disk import Disk, Fate, Outcome, put
from crash.powerloss.files import check_files
from crash.powerloss.promises import Witness
from crash.powerloss.recording import tree
from crash.powerloss.replay import (
    Life,
    State,
    cuts_of_start,
    failures,
    judge_process,
    live,
    some_states,
    start_again,
    states,
)

GATE_STATES = 8


@pytest.mark.long
def test_nothing_was_missed_in_the_recording(life: Life) -> None:
    disk = Disk(life.inode)
    disk.take(life.entries)
    left, there = disk.left(Outcome("everything", Fate.THERE, True)), tree(life.root)
    # What the broker inherits open is not recorded, SQLite's index in memory is made anew.
    names = there.keys() - {"broker.log"}
    assert left.keys() == names
    assert {name for name in names if left[name] != there[name]} <= {"data/metadata.sqlite-shm"}


def test_promises_hold_after_a_cut(life: Life, seed: int, scratch: Path) -> None:
    wrong = failures(life, some_states(life, GATE_STATES, seed), scratch)
    assert not wrong, f"--crash-seed {seed}: " + "\n".join(wrong)


@pytest.mark.long
def test_the_program_starts_after_a_cut_and_once_more_after_sigkill(
    life: Life, seed: int, scratch: Path
) -> None:
    (state,) = (
        state for state in states(life, [_late(life, seed)], seed, chances=1) if "chance" in state.outcome
    )
    judge_process(life, state, scratch)


@pytest.mark.parametrize(
    "breaks",
    [
        pytest.param(r"^/data$", id="the data directory is never synced"),
        pytest.param(
            r"^/data/(sync|moved|__)[^/]*$",
            id="folders of partitions are never synced",
            marks=pytest.mark.long,
        ),
        pytest.param(r"/sync-0/\d+\.log$", id="records are not written through"),
        pytest.param(r"metadata\.sqlite", id="metadata is not synced"),
        pytest.param(
            r"log-start-offset-checkpoint", id="log start offsets are not synced", marks=pytest.mark.long
        ),
    ],
)
def test_a_broken_disk_is_noticed(life: Life, scratch: Path, breaks: str) -> None:
    """Whoever syncs nothing is caught: else the other tests here would prove nothing."""
    found: list[State] = []
    for cut in (len(life.entries), _late(life, 1)):
        found += states(life, [cut], 1, chances=0, breaks=breaks)
    assert failures(life, found, scratch, most=1)


def test_a_record_that_is_not_in_the_files_is_named(life: Life, scratch: Path) -> None:
    """What was acknowledged in topic sync mode, without any broker in between."""
    disk = Disk(life.inode)
    disk.take(life.entries)
    put(disk.left(Outcome("everything", Fate.THERE, True)), scratch)
    witness = Witness(life.later, life.later, synced=life.synced)
    assert check_files(witness, scratch / "data") > 100
    (path, *_) = (path for path in log_files(scratch / "data" / "sync-0") if int(path.stem))
    path.unlink()
    with pytest.raises(
        AssertionError, match=rf"topic sync, partition 0, offset {int(path.stem)}: acknowledged was"
    ):
        check_files(witness, scratch / "data")


def _late(life: Life, seed: int) -> int:
    """A cut in the second half of the life."""
    return random.Random(seed).randrange(len(life.entries) // 2, len(life.entries))


@pytest.mark.long
@pytest.mark.parametrize("synced", [True, False], ids=["synced", "plain"])
def test_the_program_starts_after_many_cuts(
    recorder_library: Path, tmp_path: Path, scratch: Path, seed: int, synced: bool
) -> None:
    life = live(recorder_library, tmp_path, synced=synced, rounds=40)
    for number, state in enumerate(some_states(life, 60, seed)):
        judge_process(life, state, scratch, kafka_reads_too=number % 10 == 9)


@pytest.mark.long
@pytest.mark.parametrize("synced", [True, False], ids=["synced", "plain"])
def test_promises_hold_after_a_cut_during_the_start_after_a_cut(
    recorder_library: Path, tmp_path: Path, scratch: Path, seed: int, synced: bool
) -> None:
    life = live(recorder_library, tmp_path, synced=synced, rounds=40)
    for number, state in enumerate(some_states(life, 20, seed)):
        disk, entries = start_again(recorder_library, tmp_path / str(number), life, state)
        wrong = failures(life, cuts_of_start(state, disk, entries, 10, seed), scratch)
        assert not wrong, f"--crash-seed {seed}: " + "\n".join(wrong)

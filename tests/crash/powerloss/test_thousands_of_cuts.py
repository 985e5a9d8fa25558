"""As `test_powerloss`, with thousands of cuts. In a file of its own: in several processes it runs beside the others."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from crash.powerloss.replay import failures, live, states

CUTS = 40  # of each life, with seven outcomes each


@pytest.mark.long
@pytest.mark.parametrize("synced", [True, False], ids=["synced", "plain"])
@pytest.mark.parametrize("number", range(3))
def test_promises_hold_after_thousands_of_cuts(
    recorder_library: Path, tmp_path: Path, scratch: Path, seed: int, synced: bool, number: int
) -> None:
    life = live(recorder_library, tmp_path, synced=synced, rounds=60)
    dice = random.Random(seed + number)
    cuts = dice.sample(range(len(life.entries) + 1), CUTS)
    wrong = failures(life, states(life, cuts, seed + number, chances=2), scratch)
    assert not wrong, f"--crash-seed {seed}: " + "\n".join(wrong)

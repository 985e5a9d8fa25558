"""The crash suite notices a broker that loses what it has acknowledged, and says what: the session `sabotage`.

Each sabotaged broker (see `patching`) is killed at random under the load of `test_crash.py`, with several seeds; each
run has to fail with the partition and the offset of what is missing. The broker as it is passes the same runs.
"""

import re
from pathlib import Path

import pytest

from crash.killing import Kill, run_kills
from crash.sabotage.patching import PATCHES, apply, copy_of_source, environ_of

SEEDS = range(1, 6)
KILLS = 12
PATIENCE_S = 1.5
"""Longer than from one soft checkpoint to the next, which some sabotages need."""
LINE = re.compile(
    r"^topic (\S+), partition (\d+), offset (\d+): acknowledged was key (.+), value (.+); (.+)$", re.MULTILINE
)

pytestmark = [pytest.mark.long, pytest.mark.timeout(0)]


def kill_at_random(folder: Path, seed: int) -> None:
    run_kills(
        folder, seed, lambda dice: [Kill("")] * KILLS, thorough=False, every_point=False, patience=PATIENCE_S
    )


@pytest.fixture(params=PATCHES, ids=lambda patch: patch.stem)
def sabotaged(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every broker that is started runs from a copy of the source with the patch in it."""
    source = copy_of_source(tmp_path / "source")
    apply(request.param, source)
    for name, value in environ_of(source).items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("sabotaged")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_sabotage_is_noticed_and_what_is_missing_is_named(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError) as failed, capsys.disabled():
        kill_at_random(tmp_path / "run", seed)
    message = str(failed.value)
    named = LINE.findall(message)
    assert named, message
    with capsys.disabled():
        print(f"  caught: {message.splitlines()[0]}\n    {LINE.search(message)[0]}")


@pytest.mark.parametrize("seed", SEEDS)
def test_the_broker_as_it_is_passes_the_same_run(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        kill_at_random(tmp_path, seed)

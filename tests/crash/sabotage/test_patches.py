"""The patches of the sabotaged brokers still apply to the source, and one that does not says so."""

import shutil
import subprocess
from pathlib import Path

import pytest

from crash.sabotage.patching import PATCHES, PatchError, apply, copy_of_source, environ_of


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_source(tmp_path_factory.mktemp("clean"))


@pytest.fixture
def source(clean: Path, tmp_path: Path) -> Path:
    """Of the package only what patches change."""
    shutil.copytree(clean / "leafcuttr" / "log", tmp_path / "leafcuttr" / "log")
    return tmp_path


def test_there_are_two() -> None:
    assert len(PATCHES) == 2


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_patch_applies(patch: Path, source: Path, clean: Path) -> None:
    apply(patch, source)
    changed = [
        path
        for path in (source / "leafcuttr").rglob("*.py")
        if path.read_text() != (clean / path.relative_to(source)).read_text()
    ]
    assert changed


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_applies_it_to_the_same_effect(
    patch: Path, source: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    by_git = tmp_path_factory.mktemp("git")
    shutil.copytree(source, by_git / "core")
    subprocess.run(["git", "init", "-q"], cwd=by_git, check=True)
    subprocess.run(["git", "apply", str(patch)], cwd=by_git, check=True)
    apply(patch, source)
    for path in (source / "leafcuttr").rglob("*.py"):
        assert path.read_text() == (by_git / "core" / path.relative_to(source)).read_text()


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_one_that_does_not_apply_says_which_and_where(patch: Path, source: Path) -> None:
    apply(patch, source)
    before = {path: path.read_text() for path in source.rglob("*.py")}
    with pytest.raises(PatchError) as said:
        apply(patch, source)
    message = str(said.value)
    assert message.startswith(f"{patch.name} no longer applies: core/leafcuttr/log/")
    assert " 0 times, not once" in message
    assert "\n" not in message
    assert before == {path: path.read_text() for path in source.rglob("*.py")}


def test_a_file_that_is_gone_is_named(source: Path) -> None:
    shutil.rmtree(source / "leafcuttr" / "log")
    with pytest.raises(PatchError, match=r"no longer applies: there is no core/leafcuttr/log/[\w/]+\.py$"):
        apply(PATCHES[0], source)


@pytest.mark.long
def test_a_broker_runs_from_the_copy(clean: Path, tmp_path: Path) -> None:
    assert environ_of(clean)["PYTHONPATH"].startswith(str(clean))
    with pytest.raises(PatchError, match="a broker would run from"):
        environ_of(tmp_path)

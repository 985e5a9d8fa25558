"""The compiled recorder, recorded lives, and where replayed directories are laid out."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.powerloss.recording import build_recorder
from crash.powerloss.replay import Life, live

_SHM = Path("/dev/shm")


@pytest.fixture(scope="session")
def recorder_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = build_recorder(tmp_path_factory.mktemp("recorder"))
    if isinstance(built, str):
        pytest.skip(built)
    return built


@pytest.fixture(scope="session")
def life(recorder_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """With the whole broker in topic sync mode; some topics are not."""
    return live(recorder_library, tmp_path_factory.mktemp("life"), synced=True, rounds=24)


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is room: thousands of directories are made here, and their syncs prove nothing."""
    if not os.access(_SHM, os.W_OK) or shutil.disk_usage(_SHM).free < 1 << 29:
        yield tmp_path / "scratch"
        return
    folder = Path(tempfile.mkdtemp(prefix="powerloss-", dir=_SHM))
    yield folder / "scratch"
    shutil.rmtree(folder, ignore_errors=True)

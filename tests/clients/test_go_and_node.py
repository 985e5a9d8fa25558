"""franz-go (Go) and kafkajs (Node): round trips and a group, by a small program each in `programs/`."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Fresh = Callable[[str], str]
PROGRAMS = Path(__file__).parent / "programs"
pytestmark = pytest.mark.long


def run(folder: Path, *command: str, environ: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | (environ or {}),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, (done.stderr + done.stdout)[-3000:]
    return done.stdout


@pytest.mark.client("franz-go", version="1.18.0")
@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_franz_go(bootstrap: str, fresh: Fresh, tmp_path: Path) -> None:
    """Each compression, idempotent, read back by a group that commits; topics and groups by kadm."""
    for name in ("main.go", "go.mod"):
        shutil.copy(PROGRAMS / "franz_go" / name, tmp_path)
    run(tmp_path, "go", "mod", "tidy", environ={"GOFLAGS": "-mod=mod"})
    assert run(tmp_path, "go", "run", ".", bootstrap, fresh("topic")).split() == ["ok"]


@pytest.mark.client("kafkajs", version="2.2.4")
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_kafkajs(bootstrap: str, fresh: Fresh, tmp_path: Path) -> None:
    """Uncompressed and gzip, read back by a group; administration."""
    shutil.copy(PROGRAMS / "kafkajs" / "main.js", tmp_path)
    run(tmp_path, "npm", "install", "--no-fund", "--no-audit", "--prefix", ".", "kafkajs@2.2.4")
    assert run(tmp_path, "node", "main.js", bootstrap, fresh("topic")).split() == ["ok"]

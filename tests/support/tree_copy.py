"""A copy of this checkout, for tests that change it: what the pages say is enough is done there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.broker_process import clean_environ

ROOT = Path(__file__).parents[2]
PACKAGES = ("core", "sdk", "plugins", "tests")


def copy_tree(target: Path) -> Path:
    """What git has, as it stands in the working tree; without the directories that were written by other versions."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file() and not name.startswith("tests/log/fixtures/"):
            file = target / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes((ROOT / name).read_bytes())
    return target


def environ_of(tree: Path, *first: Path) -> dict[str, str]:
    """With this tree's packages before those that are installed, and the folders in `first` before these."""
    packages = os.pathsep.join(map(str, (*first, *(tree / part for part in PACKAGES))))
    return {**clean_environ(), "PYTHONPATH": packages}


def run_tests(tree: Path, *tests: str, first: tuple[Path, ...] = ()) -> subprocess.CompletedProcess[str]:
    """pytest in the copy."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    command.append(f"--basetemp={tree.parent / f'{tree.name}-tests'}")
    return subprocess.run(
        command, cwd=tree, env=environ_of(tree, *first), capture_output=True, text=True, timeout=250
    )

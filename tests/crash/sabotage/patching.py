"""Deliberately broken brokers: the installed source, copied and patched in a temporary folder.

Each `*.patch` beside this file takes one promise away. They are unified diffs for `git apply` or `patch -p1`; they are
applied here by themselves, so that no git is needed: each hunk goes where its context and removed lines stand in the
file, wherever that is by now, and has to stand there once.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import leafcuttr
import leafcuttr_sdk

PATCHES: Final = tuple(sorted(Path(__file__).parent.glob("*.patch")))
_PREFIX: Final = "core/"  # in the patches' paths, before the package
_HUNK: Final = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*")


class PatchError(Exception):
    """The patch does not fit the source any more."""


class Hunk(NamedTuple):
    """One place in a file (`path`, from the folder of the package): the lines before and after."""

    path: str
    head: str
    before: str
    after: str


def hunks(patch: Path) -> Iterator[Hunk]:
    """What a patch consists of. Raises PatchError for what is none."""
    path, head, before, after = "", "", [], []
    for line in [*patch.read_text().splitlines(keepends=True), "--- end"]:
        if line.startswith(("--- ", "@@ ")) and head:
            yield Hunk(path, head, "".join(before), "".join(after))
            head, before, after = "", [], []
        if line.startswith("+++ b/"):
            path = line[len("+++ b/") :].strip().removeprefix(_PREFIX)
        elif _HUNK.match(line):
            head = line.strip()
        elif head and line[0] in " -+\n":
            line = " \n" if line == "\n" else line
            before += [line[1:]] if line[0] != "+" else []
            after += [line[1:]] if line[0] != "-" else []
        elif not line.startswith(("--- ", "diff ", "index ")):
            raise PatchError(f"{patch.name}: this is no line of a unified diff: {line!r}")


def apply(patch: Path, source: Path) -> None:
    """Patch the package `leafcuttr` in the folder `source`. Raises PatchError, with nothing changed in the file."""
    applied = 0
    for hunk in hunks(patch):
        file = source / hunk.path
        if not file.is_file():
            raise PatchError(f"{patch.name} no longer applies: there is no {_PREFIX}{hunk.path}")
        text = file.read_text()
        lines = re.compile(f"^{re.escape(hunk.before)}", re.MULTILINE)
        changed, places = lines.subn(lambda _: hunk.after, text)  # noqa: B023 - called at once
        if places != 1:
            raise PatchError(
                f"{patch.name} no longer applies: {_PREFIX}{hunk.path} has the lines of its hunk {hunk.head} "
                f"{places} times, not once; make the patch anew against the source as it is"
            )
        compile(changed, str(file), "exec")
        file.write_text(changed)
        applied += 1
    if not applied:
        raise PatchError(f"{patch.name} changes nothing")


def copy_of_source(folder: Path) -> Path:
    """The installed source of the broker, copied below `folder`; returns what has to be first on PYTHONPATH."""
    for package in (leafcuttr, leafcuttr_sdk):
        (there,) = package.__path__
        shutil.copytree(there, folder / package.__name__, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def environ_of(source: Path) -> dict[str, str]:
    """The variables with which every broker that is started runs from the source. Raises PatchError if it does not."""
    environ = {"PYTHONPATH": os.pathsep.join(filter(None, [str(source), os.environ.get("PYTHONPATH", "")]))}
    program = "import leafcuttr.log.log, sys; print(sys.modules['leafcuttr.log.log'].__file__)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    if not Path(done.stdout.strip()).is_relative_to(source):
        raise PatchError(f"a broker would run from {done.stdout.strip()}, not from {source}")
    return environ

"""What an installation gets: wheels that are built from this tree, and virtual environments that know nothing of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.broker_process import clean_environ, running_broker

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "tests" / "sample_plugin"
_PATIENCE_S = 240.0


def build_wheel(project: Path, into: Path) -> Path:
    """The wheel of a project whose backend is hatchling, built without a network."""
    before = set(into.glob("*.whl"))
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = set(into.glob("*.whl")) - before
    return wheel


@dataclass(frozen=True)
class Environment:
    """A virtual environment that knows nothing of this checkout."""

    folder: Path

    @classmethod
    def create(cls, folder: Path) -> Environment:
        """Without pip: see `pip_install`."""
        venv.create(folder, symlinks=True, with_pip=False)
        return cls(folder)

    def copy(self, folder: Path) -> Environment:
        """The same in another folder, in a moment: the files are linked, which pip replaces and does not write into."""
        copied = Environment.create(folder)
        # Programs of others may just be writing what they have compiled, first by a name of its own.
        ignore = shutil.ignore_patterns("*.pyc.*")
        shutil.copytree(
            self._packages, copied._packages, copy_function=os.link, dirs_exist_ok=True, ignore=ignore
        )
        for program in self.python.parent.iterdir():
            beside = copied.python.with_name(program.name)
            if not beside.exists():
                beside.write_bytes(
                    program.read_bytes().replace(os.fsencode(self.folder), os.fsencode(folder))
                )
                beside.chmod(0o755)
        return copied

    @property
    def _packages(self) -> Path:
        return next(self.folder.glob("lib/python*/site-packages"))

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: value for name, value in clean_environ().items() if not name.startswith("PYTHON")}
        path = os.pathsep.join([str(self.folder / "bin"), kept["PATH"]])
        return {**kept, "PATH": path, "VIRTUAL_ENV": str(self.folder)}

    def pip_install(self, *what: str) -> None:
        """By the pip beside the interpreter of the tests: a fresh one would take longer than what it installs."""
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet"]
        command += ["--disable-pip-version-check", *what]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, env=self.environ)
        assert done.returncode == 0, done.stdout + done.stderr

    def offer_pip(self) -> None:
        """The same as a program, for pages that install something."""
        program = self.folder / "bin" / "pip"
        program.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" -m pip --python "{self.python}" --disable-pip-version-check "$@"\n'
        )
        program.chmod(0o755)

    def run(self, *words: str, cwd: Path, status: int = 0, stdin: str = "") -> str:
        """Run a program of this environment; what it printed, errors too. Fails at another exit status."""
        done = subprocess.run(
            [str(self.folder / "bin" / words[0]), *words[1:]],
            cwd=cwd,
            env=self.environ,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_PATIENCE_S,
        )
        assert done.returncode == status, f"{' '.join(words)}: status {done.returncode}\n{done.stdout}"
        return done.stdout

    @contextmanager
    def broker(self, folder: Path, **settings: str) -> Iterator[dict[str, Any]]:
        """`leafcuttr serve` of this environment; its ready file, with `log` for where its words are."""
        forgotten = [word for name in os.environ if name.startswith("PYTHON") for word in ("-u", name)]
        with running_broker(
            folder,
            settings,
            environ=self.environ,
            before=("env", *forgotten),
            program=(str(self.folder / "bin" / "leafcuttr"),),
        ) as started:
            yield {**started.about, "log": folder / "broker.log"}

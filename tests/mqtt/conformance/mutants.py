"""Break the plugin in many places, one at a time: each has to be noticed by the conformance tests.

    nox -s mqtt-mutants                       all of mutants.toml
    nox -s mqtt-mutants -- outbound "left_ms" those whose module or text has one of these words

Each is a statement of mutants.toml, with the tests that are to notice it. It is put into a copy of the plugin outside
the work tree, which the tests find before the plugin itself. Exit status 1: some were not noticed, or the tests fail
without any change.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).parent
ROOT: Final = FOLDER.parents[2]
PLUGIN: Final = ROOT / "plugins" / "leafcuttr_mqtt"
LIST: Final = FOLDER / "mutants.toml"
PATIENCE: Final = "6"
"""Seconds in the place of `raw.PATIENCE`: a mutant that says nothing is noticed by it."""
_LIMIT_S: Final = 150
"""For the tests of one mutant: one that keeps the broker from ever ending is noticed too."""
_ALL_S: Final = 1200
_FAILED: Final = 1
"""Pytest's exit status if tests have failed; others say that it could not run them."""


class Mutant(NamedTuple):
    module: str
    before: str
    after: str
    tests: list[str]

    @property
    def name(self) -> str:
        before, after = (" ".join(text.split()) for text in (self.before, self.after))
        return f"{self.module}: {before} -> {after or 'nothing'}"

    def applied(self, source: str) -> str:
        """Raises ValueError where the module has no such text, or several."""
        count = source.count(self.before)
        if count != 1:
            raise ValueError(f"{self.name}: the module has this text {count} times")
        return source.replace(self.before, self.after)


def read_mutants() -> list[Mutant]:
    return [Mutant(**each) for each in tomllib.loads(LIST.read_text())["mutant"]]


def run_tests(tests: Sequence[str], folder: Path, limit_s: float) -> tuple[int, str]:
    """Pytest's exit status, and what it printed."""
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "tests")]),
        "LEAFCUTTR_MQTT_PATIENCE_S": PATIENCE,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    places = [f"{FOLDER / test}" for test in tests]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=line", "-p", "no:cacheprovider", *places]
    done = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=limit_s, check=False
    )
    return done.returncode, done.stdout + done.stderr


def copied(plugin: Path, folder: str) -> Path:
    return shutil.copytree(plugin, Path(folder) / PLUGIN.name, ignore=shutil.ignore_patterns("__pycache__"))


def is_noticed(plugin: Path, mutant: Mutant) -> bool:
    with tempfile.TemporaryDirectory(prefix="leafcuttr-mqtt-mutant-") as name:
        path = copied(plugin, name) / mutant.module
        path.write_text(mutant.applied(path.read_text()))
        try:
            status, output = run_tests(mutant.tests, Path(name), _LIMIT_S)
        except subprocess.TimeoutExpired:
            status, output = _FAILED, ""
    if status not in (0, _FAILED):
        raise RuntimeError(f"{mutant.name}: pytest ended with status {status}: {output[-2000:]}")
    print(f"{'noticed ' if status else 'SURVIVED'}  {mutant.name}", flush=True)
    return bool(status)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="nox -s mqtt-mutants --", description="Break the MQTT plugin in many places, one at a time."
    )
    parser.add_argument(
        "words", nargs="*", help="those whose module or text has one of these; all without any"
    )
    words = parser.parse_args().words
    mutants = [each for each in read_mutants() if not words or any(word in each.name for word in words)]
    if not mutants:
        parser.error("there is no such mutant")
    with tempfile.TemporaryDirectory(prefix="leafcuttr-mqtt-mutants-") as name:
        plugin = copied(PLUGIN, name)
        status, output = run_tests(
            sorted({test for each in mutants for test in each.tests}), Path(name), _ALL_S
        )
        if status:
            print(output, file=sys.stderr)
            print("the tests fail without any change", file=sys.stderr)
            return 1
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            noticed = list(pool.map(partial(is_noticed, plugin), mutants))
    print(f"{sum(noticed)} of {len(noticed)} were noticed")
    return 0 if all(noticed) else 1


if __name__ == "__main__":
    sys.exit(main())

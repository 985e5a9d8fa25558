#!/usr/bin/env python3
"""Run each test that is marked for a setting with that setting kept at its default: it has to fail.

  run_setting_marks.py [NAME ...]      the settings, by default all that a test is marked for

Each setting has a run of pytest of its own (`support.setting_defaults` drops the values, `support.setting_verdicts`
judges). Prints a line for each setting when it is done and a table at the end; exits with 1 if any test passed, failed
elsewhere or was never given a value.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))

from support.setting_defaults import DROPPED, NAME  # noqa: E402
from support.setting_marks import registered  # noqa: E402
from support.setting_verdicts import Verdict  # noqa: E402

BOUND_S = 120
"""For one test, by pytest-timeout: a test that runs into it has not failed by an assertion."""


class Ended(NamedTuple):
    """How one test ended, or one case of it."""

    setting: str
    test: str
    verdict: Verdict | None  # None: the run itself failed
    why: str
    ways: str


def run(setting: str, tests: list[str], *, more: tuple[str, ...] = ()) -> list[Ended]:
    """All tests of one setting, in one run of pytest; `more` are words for it.

    Those that wait in vain are run once more with nothing dropped: they have to pass in the same time.
    """
    ends = _run(setting, tests, more, control=False)
    waited = {end.test: end for end in ends if end.verdict is Verdict.AWAITS}
    if not waited:
        return ends
    controls = _run(setting, [str(TESTS.parent / test) for test in waited], more, control=True)
    passed = {end.test for end in controls if end.verdict is Verdict.PASSES}
    return [
        end._replace(verdict=Verdict.TOO_SLOW) if end.test in waited and end.test not in passed else end
        for end in ends
    ]


def _run(setting: str, tests: list[str], more: tuple[str, ...], *, control: bool) -> list[Ended]:
    with tempfile.TemporaryDirectory(prefix="setting-marks-") as folder:
        verdicts, dropped = Path(folder) / "verdicts.json", Path(folder) / "dropped"
        words = ["-q", "--tb=short", "-p", "support.setting_verdicts", "-p", "no:cacheprovider"]
        words += ["-c", str(TESTS.parent / "pyproject.toml"), "--rootdir", str(TESTS.parent)]
        # A folder of its own for its files: pytest would delete those of earlier runs, of all that ever ran here.
        words += [f"--basetemp={folder}/tests"]
        words += [f"--timeout={BOUND_S}", "--verdicts", str(verdicts), "--dropped", str(dropped)]
        path = os.pathsep.join([str(Path(__file__).parent / "child_site"), str(TESTS)])
        environ = {**os.environ, "PYTHONPATH": path}
        if control:
            words.append("--control")
        else:
            environ |= {NAME: setting, DROPPED: str(dropped)}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words, *more, *tests],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        rows = json.loads(verdicts.read_text(encoding="utf-8")) if verdicts.exists() else []
    ends = [
        Ended(setting, row["test"], Verdict[row["verdict"]], row["why"], ", ".join(row["ways"]))
        for row in rows
    ]
    # 1: some failed, which is what is wanted; 0: all passed. Anything else is pytest's own trouble.
    if done.returncode not in (0, 1) or not ends:
        why = " ".join((done.stdout + done.stderr).split())[-600:]
        ends.append(Ended(setting, " ".join(tests), None, f"pytest ended with {done.returncode}: {why}", ""))
    return ends


def show(ended: Ended) -> str:
    what = "THE RUN FAILED" if ended.verdict is None else ended.verdict.value
    test = ended.test.removeprefix("tests/")
    lines = f"{ended.setting:58} {what:24} {test}", f"dropped {ended.ways or 'nothing'}; {ended.why}"
    return f"{lines[0]}\n{'':59}{lines[1]}"


def main(names: list[str]) -> int:
    tests: dict[str, list[str]] = {}
    for mark in registered():
        tests.setdefault(mark.name, []).append(str(TESTS / mark.test))
    unknown = [name for name in names if name not in tests]
    if unknown:
        sys.exit(f"no test is marked for {', '.join(unknown)}")
    chosen = names or sorted(tests)
    ends: list[Ended] = []
    for number, name in enumerate(chosen, 1):
        began = time.monotonic()
        now = run(name, tests[name], more=("--long",))
        ends += now
        counts = Counter("THE RUN FAILED" if one.verdict is None else one.verdict.value for one in now)
        words = ", ".join(f"{count} {what}" for what, count in counts.items())
        print(f"[{number}/{len(chosen)}] {name}: {words} ({time.monotonic() - began:.0f} s)", flush=True)
        for one in now:
            if one.verdict is None or not one.verdict.holds:
                print("  " + show(one).replace("\n", "\n  "), flush=True)
    wrong = [one for one in ends if one.verdict is None or not one.verdict.holds]
    print("\n" + "\n".join(show(one) for one in ends))
    cases = {one.verdict: 0 for one in ends} | Counter(one.verdict for one in ends)
    print(
        f"\n{len(chosen)} settings, {len({one.test.partition('[')[0] for one in ends})} tests, {len(ends)} cases:"
    )
    for verdict, count in cases.items():
        print(f"  {count:4} {'the run failed' if verdict is None else verdict.value}")
    if wrong:
        print("\nNot as it has to be:\n" + "\n".join(show(one) for one in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

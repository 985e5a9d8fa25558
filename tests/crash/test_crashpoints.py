"""The crash points themselves: how a process is armed, and that every name is somewhere in the source."""

import os
import re
import subprocess
import sys
from pathlib import Path

import leafcuttr
from crash.killing import ELSEWHERE, points
from crash.test_compaction import STEPS
from leafcuttr.crashpoints import POINTS

PROGRAM = """
import sys
from pathlib import Path
from leafcuttr.crashpoints import reach
for number in range(3):
    reach("roll.before")
Path(sys.argv[1]).write_text("roll.before:2")
for number in range(3):
    print(number, flush=True)
    reach("roll.done")
    reach("roll.before")
"""


def run(program: str, *arguments: str, armed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "LEAFCUTTR_CRASH_POINT": armed},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_file_arms_a_process_that_runs(tmp_path: Path) -> None:
    arming = tmp_path / "point"
    done = run(PROGRAM, str(arming), armed=f"@{arming}")
    assert (done.returncode, done.stdout) == (-9, "0\n1\n")


def test_the_environment_arms_a_process_before_it_starts(tmp_path: Path) -> None:
    done = run(PROGRAM, str(tmp_path / "point"), armed="roll.before:4")
    assert (done.returncode, done.stdout) == (-9, "0\n")


def test_an_undeclared_name_is_refused() -> None:
    done = run('from leafcuttr.crashpoints import reach; reach("roll.nowhere")', armed="roll.before")
    assert "'roll.nowhere' is not a declared crash point" in done.stderr


def test_every_point_is_in_the_source_and_every_one_in_the_source_is_declared() -> None:
    source = "".join(path.read_text() for path in Path(leafcuttr.__file__).parent.rglob("*.py"))
    named = set(re.findall(r'\breach\("([^"]+)"\)', source))
    # Pairs of points that `replace_file` passes.
    for line in re.findall(r"\bpoints ?= ?(\".*)", source):
        named |= {
            f"{name}.{end}" for name in re.findall(r'"([a-z-]+)"', line) for end in ("written", "renamed")
        }
    assert named == POINTS


def test_what_the_slice_of_the_gate_leaves_out_is_killed_at_by_other_tests() -> None:
    left_out = POINTS - set(points(thorough=False))
    assert left_out == {name for name in POINTS if name.startswith(ELSEWHERE)}
    of_the_log = (Path(__file__).parents[1] / "log" / "test_manager.py").read_text()
    named = {name for name, _ in re.findall(r'"([a-z-]+\.[a-z-]+)(:\d+)?"', of_the_log)}
    assert left_out <= named | set(STEPS)
    assert set(points(thorough=True)) == POINTS

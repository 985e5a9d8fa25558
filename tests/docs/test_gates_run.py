"""`pytest --processes` (`support.forked_run`), over a small folder of tests: nothing is lost, whatever ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.forked_run import files_of
from support.tree_copy import ROOT
from support.waiting import until

SHARED = """
import os, warnings
import pytest

@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    yield os.getpid()
    with open(os.environ["NOTES"], "a") as notes:
        notes.write(f"{__name__} {os.getpid()}\\n")

@pytest.mark.parametrize("case", range(50))
def test_many(shared, tmp_path, case):
    assert shared == os.getpid() != os.getppid()
    print("this is", case)
    assert case != 7

def test_warns(shared):
    warnings.warn("a warning of a test")

@pytest.mark.skip(reason="on purpose")
def test_skipped():
    pass

def test_output(capfd):
    os.system("echo from a child")
    assert capfd.readouterr().out == "from a child\\n"
"""
ENDS = """
import os

def test_before():
    pass

def test_ends():
    os._exit(3)

def test_behind():
    pass
"""
MEETS = """
from pathlib import Path
from support.waiting import until

def test_meets():
    Path("{one}").touch()
    until(Path("{other}").exists, "the other one")
"""
FOLDERS = """
import os
from support.forked_run import shared_folder

def test_folder(tmp_path, tmp_path_factory):
    assert [each for each in tmp_path.parent.iterdir() if each.is_dir() and not each.is_symlink()] == [tmp_path]
    with open(os.environ["NOTES"], "a") as notes:
        notes.write(f"{tmp_path.parent} {shared_folder(tmp_path_factory)}\\n")
"""
OF_THE_SESSION = """
import pytest

MADE = []

@pytest.fixture(scope="session")
def one():
    MADE.append(1)
    yield len(MADE)
    raise RuntimeError("it does not end well")
"""
WAITS = """
import os, threading
import pytest

@pytest.fixture
def noted():
    yield
    with open(os.environ["NOTES"], "a") as notes:
        notes.write("ended\\n")

def test_waits(noted):
    with open(os.environ["NOTES"], "a") as notes:
        notes.write("begun\\n")
    threading.Event().wait()
"""
AT_SECOND = """
import os
import pytest

@pytest.fixture
def made():
    assert os.path.exists("made"), "it is not made yet"

def attempt(name):
    with open(os.environ["NOTES"], "a") as notes:
        notes.write(f"{name} {os.getpid()}\\n")
    if not os.path.exists(name):
        open(name, "w").close()
        assert False, "at first"

def test_passes():
    pass

def test_passes_then():
    attempt("one")

def test_is_made_then(made):
    pass

def test_makes():
    open("made", "w").close()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["support.forked_run"]\n')
    return tmp_path


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    without = [
        word for name in ("schemathesis", "hypothesispytest", "leafcuttr") for word in ("-p", f"no:{name}")
    ]
    command = [sys.executable, "-m", "pytest", *without, "--processes", "3", "-ra", "-o", "addopts=", *words]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "NOTES": str(folder / "notes")}
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run(folder: Path, *words: str) -> tuple[int, str]:
    process = start(folder, *words)
    said = process.communicate(timeout=120)[0]
    return process.returncode, said


def test_files_keep_the_order_in_which_they_come_first() -> None:
    assert files_of(["b", "b", "a", "b", "c"]) == [[0, 1, 3], [2], [4]]
    assert files_of([]) == []


def test_every_test_is_reported_once_with_what_it_said(folder: Path) -> None:
    for name in "abcd":
        (folder / f"test_{name}.py").write_text(SHARED)
    status, said = run(folder)
    assert status == 1
    assert "4 failed, 204 passed, 4 skipped, 4 warnings" in said
    assert "a warning of a test" in said
    assert said.count("this is 7") == 4
    assert "this is 8" not in said
    made = (folder / "notes").read_text().split()
    assert sorted(made[::2]) == ["test_a", "test_b", "test_c", "test_d"]


@pytest.mark.long
def test_each_file_has_a_temporary_folder_of_its_own(folder: Path) -> None:
    for name in "ab":
        (folder / f"test_{name}.py").write_text(FOLDERS)
    status, said = run(folder, "--processes", "1")
    assert status == 0, said
    (of_a, beside_a), (of_b, beside_b) = (
        line.split() for line in (folder / "notes").read_text().splitlines()
    )
    assert of_a != of_b
    assert beside_a == beside_b == str(Path(of_a).parent) == str(Path(of_b).parent)


@pytest.mark.long
def test_files_run_side_by_side(folder: Path) -> None:
    for one, other in ("a", "b"), ("b", "a"):
        (folder / f"test_{one}.py").write_text(MEETS.format(one=one, other=other))
    assert run(folder)[0] == 0


@pytest.mark.long
def test_a_process_that_ends_fails_its_test_and_the_run(folder: Path) -> None:
    (folder / "test_ends.py").write_text(ENDS)
    status, said = run(folder)
    assert status != 0
    assert re.search(r"FAILED test_ends.py::test_ends - the process that ran this test has ended", said)
    assert "with status 3" in said
    assert "1 failed, 1 passed" in said


@pytest.mark.long
def test_the_first_failure_ends_all_if_told(folder: Path) -> None:
    for name in "abcdef":
        (folder / f"test_{name}.py").write_text("def test_it():\n    assert False\n")
    status, said = run(folder, "-x")
    assert status == 1
    assert re.search(r"stopping after \d failures", said)  # several may fail at once


@pytest.mark.long
def test_nothing_is_chosen(folder: Path) -> None:
    (folder / "test_a.py").write_text("def test_it():\n    pass\n")
    assert run(folder, "-k", "another")[0] == 5


@pytest.mark.long
def test_an_error_of_the_collection_runs_nothing(folder: Path) -> None:
    (folder / "test_a.py").write_text("import there_is_none\n")
    (folder / "test_b.py").write_text("def test_it():\n    pass\n")
    status, said = run(folder)
    assert status == 2
    assert "1 error" in said


@pytest.mark.long
def test_what_is_interrupted_ends_what_it_has_made(folder: Path) -> None:
    """As Ctrl-C does it: all processes are told."""
    (folder / "test_a.py").write_text(WAITS)
    process = start(folder)
    notes = folder / "notes"
    until(lambda: notes.exists() and notes.read_text() == "begun\n", "the test")
    os.killpg(process.pid, signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=120)[0]
    assert process.returncode == 2
    assert notes.read_text() == "begun\nended\n"


@pytest.mark.long
def test_what_belongs_to_the_session_is_made_once_in_a_process_and_its_end_is_reported(folder: Path) -> None:
    with (folder / "conftest.py").open("a") as conftest:
        conftest.write(OF_THE_SESSION)
    for name in "ab":
        (folder / f"test_{name}.py").write_text("def test_it(one):\n    assert one == 1\n")
    status, said = run(folder, "--processes", "1")
    assert status == 1
    assert "2 passed, 1 error" in said
    assert "it does not end well" in said


def test_what_failed_is_run_once_more_alone_if_told(folder: Path) -> None:
    (folder / "test_a.py").write_text(AT_SECOND)
    status, said = run(folder, "--second-attempts", "2")
    assert status == 0, said
    assert "4 passed" in said
    assert "failed at first, passed at the second attempt, alone" in said
    assert "AT SECOND ATTEMPT test_a.py::test_passes_then" in said
    assert "AssertionError: at first" in said
    assert "AT SECOND ATTEMPT test_a.py::test_is_made_then" in said
    assert "AssertionError: it is not made yet" in said
    processes = [line.split()[1] for line in (folder / "notes").read_text().splitlines()]
    assert len(set(processes)) == 2


@pytest.mark.long
def test_without_being_told_nothing_is_run_again(folder: Path) -> None:
    (folder / "test_a.py").write_text(AT_SECOND)
    status, said = run(folder)
    assert status == 1
    assert "1 failed, 2 passed, 1 error" in said


@pytest.mark.long
def test_more_that_failed_than_may_be_run_again_have_failed(folder: Path) -> None:
    (folder / "test_a.py").write_text(AT_SECOND)
    status, said = run(folder, "--second-attempts", "1")
    assert status == 1
    assert "1 failed, 2 passed, 1 error" in said
    assert len((folder / "notes").read_text().splitlines()) == 1


@pytest.mark.long
def test_what_fails_twice_has_failed(folder: Path) -> None:
    (folder / "test_a.py").write_text("def test_it():\n    assert False\n" + AT_SECOND)
    status, said = run(folder, "--second-attempts", "3")
    assert status == 1
    assert "1 failed, 4 passed" in said
    assert "FAILED test_a.py::test_it" in said


@pytest.mark.long
def test_a_process_that_ends_has_no_second_attempt(folder: Path) -> None:
    (folder / "test_ends.py").write_text(ENDS)
    status, said = run(folder, "--second-attempts", "3")
    assert status != 0
    assert "1 failed, 1 passed" in said


@pytest.mark.long
def test_what_fails_with_the_session_has_no_second_attempt(folder: Path) -> None:
    with (folder / "conftest.py").open("a") as conftest:
        conftest.write(OF_THE_SESSION)
    (folder / "test_a.py").write_text("def test_it(one):\n    assert one == 1\n")
    status, said = run(folder, "--second-attempts", "3")
    assert status == 1
    assert "1 passed, 1 error" in said

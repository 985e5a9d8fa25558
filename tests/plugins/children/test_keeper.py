"""The process between the broker and a child, run as the broker runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.plugins.children import keeper
from plugins.children.conftest import FAMILY, is_gone, pids_in, python
from support import jars, real_kafka
from support.waiting import until

MB = 1 << 20


class Kept:
    """A keeper and its pipes."""

    def __init__(self, command: list[str], memory_bytes: int = 0, **options: Any) -> None:
        reading, self.orders = os.pipe()
        reports, writing = os.pipe()
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                keeper.__file__,
                str(reading),
                str(writing),
                str(memory_bytes),
                *command,
            ],
            pass_fds=(reading, writing),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
            **options,
        )
        os.close(reading)
        os.close(writing)
        self._reports = os.fdopen(reports, "rb")

    def report(self) -> dict[str, Any]:
        """The next one but for those of memory; {} at the end."""
        while line := self._reports.readline():
            found: dict[str, Any] = json.loads(line)
            if "memory" not in found:
                return found
        return {}

    def memory(self) -> int:
        """The next that is reported."""
        while "memory" not in (found := json.loads(self._reports.readline())):
            pass
        return int(found["memory"])

    def order(self, order: bytes) -> None:
        os.write(self.orders, order)

    def let_go(self) -> None:
        """As the kernel does at the end of the broker."""
        if self.orders >= 0:
            os.close(self.orders)
            self.orders = -1

    def close(self) -> None:
        self.let_go()
        self.process.wait(20)
        self._reports.close()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    """Of a program with a child and a daemon."""
    found = Kept(python(FAMILY, tmp_path))
    yield found
    found.close()


def family(kept: Kept, folder: Path) -> list[int]:
    pids = until(lambda: pids_in(folder), "the family", seconds=20)
    assert kept.report() == {"pid": pids[0]}
    assert not any(map(is_gone, pids))
    return pids


def test_a_program_from_its_start_to_its_end() -> None:
    kept = Kept(python("print('hello', flush=True); raise SystemExit(7)"))
    assert list(kept.report()) == ["pid"]
    assert kept.report() == {"status": 7}
    assert kept.report() == {}
    assert kept.process.wait(20) == 0
    assert kept.process.stdout is not None
    assert kept.process.stdout.read() == b"hello\n"
    kept.close()


def test_a_signal_that_ends_it_is_told() -> None:
    kept = Kept(python("import os; os.kill(os.getpid(), 6)"))
    assert list(kept.report()) == ["pid"]
    assert kept.report() == {"status": -6}
    kept.close()


@pytest.mark.parametrize(
    ("word", "why"),
    [("missing", "No such file or directory"), ("text", "Permission denied"), (".", "Permission denied")],
)
def test_a_program_that_cannot_be_started(tmp_path: Path, word: str, why: str) -> None:
    (tmp_path / "text").write_text("no program")
    kept = Kept([str(tmp_path / word)])
    assert kept.report() == {"failed": f"{why}: {tmp_path / word}"}
    assert kept.report() == {}
    kept.close()


def test_all_ends_with_the_broker(kept: Kept, tmp_path: Path) -> None:
    """Grandchildren and daemons included. Killed at once, whatever they do with SIGTERM."""
    pids = family(kept, tmp_path)
    kept.let_go()
    until(lambda: all(map(is_gone, pids)), "the end of all", seconds=20)
    assert kept.process.wait(20) == 0


def test_it_does_not_matter_which_thread_has_started_it(tmp_path: Path) -> None:
    """PR_SET_PDEATHSIG of the broker's side would be about that thread."""
    found: list[Kept] = []
    thread = threading.Thread(target=lambda: found.append(Kept(python(FAMILY, tmp_path))))
    thread.start()
    thread.join()
    (kept,) = found
    pids = family(kept, tmp_path)
    kept.order(keeper.TERMINATE)
    assert kept.report() == {"status": -signal.SIGTERM}
    assert all(map(is_gone, pids))
    kept.close()


def test_sigterm_is_for_the_program_alone_and_all_else_ends_behind_it(tmp_path: Path) -> None:
    program = FAMILY.replace(
        'note("program")',
        "import signal\n"
        "def end(*_):\n"
        "    with open(folder + '/child') as file:\n"
        "        os.kill(int(file.read()), 0)\n"
        "    raise SystemExit(5)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        'note("program")',
    )
    kept = Kept(python(program, tmp_path))
    pids = family(kept, tmp_path)
    kept.order(keeper.TERMINATE)
    assert kept.report() == {"status": 5}, "its child was there, and it could end by itself"
    assert all(map(is_gone, pids))
    kept.close()


def test_a_program_that_does_not_care_is_killed(tmp_path: Path) -> None:
    kept = Kept(python("import signal; signal.signal(15, signal.SIG_IGN)\n" + FAMILY, tmp_path))
    pids = family(kept, tmp_path)
    kept.order(keeper.TERMINATE)
    assert not is_gone(pids[0])
    kept.order(keeper.KILL)
    assert kept.report() == {"status": -signal.SIGKILL}
    assert all(map(is_gone, pids))
    kept.close()


def test_what_a_terminal_or_a_manager_sends_the_keeper_is_not_the_programs(
    kept: Kept, tmp_path: Path
) -> None:
    pids = family(kept, tmp_path)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        kept.process.send_signal(number)
    kept.order(keeper.TERMINATE)
    assert kept.report() == {"status": -signal.SIGTERM}
    assert all(map(is_gone, pids))


def test_a_program_takes_signals_as_any(tmp_path: Path) -> None:
    """The keeper ignores some, which must not come to the program."""
    kept = Kept(
        python(
            "import signal as s; print([s.getsignal(n).name for n in (s.SIGTERM, s.SIGHUP, s.SIGQUIT)], flush=True)"
        )
    )
    assert kept.process.stdout is not None
    assert kept.process.stdout.readline() == b"['SIG_DFL', 'SIG_DFL', 'SIG_DFL']\n"
    kept.close()


def test_a_keeper_that_is_killed_takes_the_program_with_it(kept: Kept, tmp_path: Path) -> None:
    pids = family(kept, tmp_path)
    kept.process.kill()
    until(lambda: is_gone(pids[0]), "the end of the program", seconds=20)
    os.killpg(pids[0], signal.SIGKILL)  # as the broker does
    until(lambda: is_gone(pids[1]), "the end of its child", seconds=20)
    os.kill(pids[2], signal.SIGKILL)


def test_it_leads_a_group_and_a_session_of_its_own(kept: Kept, tmp_path: Path) -> None:
    pids = family(kept, tmp_path)
    assert os.getpgid(pids[0]) == os.getsid(pids[0]) == pids[0]
    assert os.getpgid(pids[1]) == pids[0]
    assert int(Path(f"/proc/{pids[0]}/oom_score_adj").read_text()) == 500
    assert (
        not list(Path(f"/proc/{pids[0]}/fd").iterdir())
        or len(list(Path(f"/proc/{pids[0]}/fd").iterdir())) == 3
    )


GREEDY = """
import os, sys, time
kept = bytearray(int(sys.argv[1]))
for at in range(0, len(kept), 4096):
    kept[at] = 1
os.write(1, b"full\\n")
time.sleep(600)
"""


def test_memory_of_all_of_it_together_is_limited(tmp_path: Path) -> None:
    program = "import os, sys\nfor _ in range(2):\n    if os.fork() == 0: break\n" + GREEDY
    kept = Kept(python(program, 60 * MB), memory_bytes=150 * MB)
    pid = kept.report()["pid"]
    over = kept.report()
    assert list(over) == ["over"]
    assert over["over"] > 150 * MB
    assert kept.report() == {"status": -signal.SIGKILL}
    assert is_gone(pid)
    kept.close()


def test_what_is_shared_counts_once() -> None:
    """Four processes with the same 60 MB, and a limit of 150."""
    program = GREEDY.replace("os.write(", "for _ in range(2): os.fork()\nos.write(")
    kept = Kept(python(program, 60 * MB), memory_bytes=150 * MB)
    kept.report()
    assert kept.process.stdout is not None
    for _ in range(4):
        assert kept.process.stdout.readline() == b"full\n"
    for _ in range(2):
        assert 60 * MB < kept.memory() < 150 * MB
    kept.order(keeper.KILL)
    assert kept.report() == {"status": -signal.SIGKILL}
    kept.close()


def test_without_a_limit_memory_is_told() -> None:
    kept = Kept(python(GREEDY, 30 * MB))
    assert kept.process.stdout is not None
    assert kept.process.stdout.readline() == b"full\n"
    assert kept.memory() > 0
    kept.close()


@pytest.mark.long
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
def test_a_jvm_behind_a_shell_ends_with_the_broker() -> None:
    """As a driver of Spark has one: here a consumer of Kafka that finds no broker."""
    consumer = jars.java(
        real_kafka.VERSION,
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "--bootstrap-server",
        "127.0.0.1:1",
        "--topic",
        "t",
    )
    kept = Kept(["sh", "-c", '"$@" & echo $!; wait', "sh", *consumer])
    kept.report()
    assert kept.process.stdout is not None
    pid = int(kept.process.stdout.readline())
    until(lambda: b"java" in Path(f"/proc/{pid}/cmdline").read_bytes(), "the JVM", seconds=30)
    until(lambda: keeper.resident(pid) > 30 * MB or None, "its heap", seconds=60)
    kept.let_go()
    until(lambda: is_gone(pid), "its end", seconds=20)
    kept.close()


def test_environment_and_folder_are_those_it_was_started_with(tmp_path: Path) -> None:
    kept = Kept(
        python("import os; print(os.getcwd(), os.environ['NAME'], os.environ['PYTHONPATH'], flush=True)"),
        cwd=tmp_path,
        env={"NAME": "x", "PYTHONPATH": "/nowhere"},
    )
    assert kept.process.stdout is not None
    assert kept.process.stdout.readline().decode() == f"{tmp_path} x /nowhere\n"
    kept.close()

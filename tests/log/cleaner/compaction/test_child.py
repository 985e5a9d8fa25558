"""The process that compacts, by itself: how it ends, and what it says when something is wrong that nobody expected."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.log.cleaner.job import Round
from leafcuttr.wire.records import Record, encode_batch
from support.compaction import write_segments
from support.logs import NOW

PATIENCE_S = 60


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "leafcuttr.log.cleaner.compaction.child"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        yield process
        process.kill()


def ask(child: subprocess.Popen[bytes], **message: Any) -> dict[str, Any]:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps(message).encode() + b"\n")
    child.stdin.flush()
    found: dict[str, Any] = json.loads(child.stdout.readline())
    return found


def a_round(folder: Path, **changed: Any) -> dict[str, Any]:
    sources = write_segments(folder, [encode_batch([Record(0, NOW, b"k", b"v")])])
    plain = Round(str(folder), [sources], 0, NOW, 0, 4096, 1 << 16, 1 << 24, 0.0, {}, [])._asdict()
    return {"type": "round", **plain, **changed}


def test_what_nobody_expected_is_said_and_the_process_lives_on(
    child: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    said = ask(child, **a_round(tmp_path, groups=[[["no number", 1, 2]]]))
    assert (said["type"], said["damage"]) == ("failed", True)
    assert said["reason"].startswith("ValueError: Unknown format code 'd'")
    assert said["reason"].endswith(")") and "compact.py, line " in said["reason"]
    said = ask(child, type="round")
    assert said["reason"].startswith("KeyError: 'directory' (job.py, line ")
    said = ask(child, **a_round(tmp_path, table_bytes=1 << 70))  # more than setrlimit takes
    assert said["reason"].startswith("OverflowError: ")
    assert ask(child, **a_round(tmp_path))["type"] == "cleaned"
    _, errors = child.communicate(timeout=PATIENCE_S)
    assert (child.returncode, errors) == (0, b"")


def test_input_that_is_no_message_ends_it_with_one_line(child: subprocess.Popen[bytes]) -> None:
    _, errors = child.communicate(b'{"type": "rate", "rate": 1}\nnonsense\n', timeout=PATIENCE_S)
    assert child.returncode == 1
    assert errors.startswith(b"the process that compacts cannot read on: JSONDecodeError: ")
    assert errors.count(b"\n") == 1


def test_it_ends_with_its_input_and_not_by_an_interrupt(
    child: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    assert ask(child, **a_round(tmp_path))["type"] == "cleaned"
    child.send_signal(signal.SIGINT)  # as a terminal sends it to all of its processes
    assert ask(child, type="go")["type"] == "done"
    _, errors = child.communicate(timeout=PATIENCE_S)
    assert (child.returncode, errors) == (0, b"")


def test_a_long_line_comes_in_pieces(child: subprocess.Popen[bytes], tmp_path: Path) -> None:
    aborted = [[1, 2, 3, 4]] * 50_000
    assert ask(child, **a_round(tmp_path, aborted=aborted))["type"] == "cleaned"


def test_an_exception_of_the_main_thread_is_no_abort(tmp_path: Path) -> None:
    """The thread that reads must not hold what the interpreter needs to end."""
    program = (
        "import sys, threading\n"
        "from leafcuttr.log.cleaner.compaction import child\n"
        "broker = child._Broker()\n"
        "thread = threading.Thread(target=broker.listen, daemon=True)\n"
        "thread.start()\n"
        "print(broker.next())\n"  # the thread is about to read on
        "for _ in range(200):\n"
        "    threading.Event().wait(0.01)\n"
        "    if sys._current_frames()[thread.ident].f_code is child._lines.__code__:\n"
        "        break\n"  # it reads
        "raise LookupError('as by a bug')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b'{"type": "go"}\n')
        process.stdin.flush()
        errors = process.stderr.read()
        assert process.wait(PATIENCE_S) == 1, errors
    assert errors.endswith(b"LookupError: as by a bug\n")

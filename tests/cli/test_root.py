"""The command as a whole: standard streams that are full, closed or gone, Ctrl-C, huge numbers, colours."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import leafcuttr.cli as package
from leafcuttr.cli.common.commands import COMMANDS
from leafcuttr.cli.completion.command import command as completion
from leafcuttr.cli.root import cli
from support.broker_process import clean_environ

Run = Callable[..., Any]

HUGE = "99999999999999999999999"


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "create", "wide", "-p", "100001"),
        ("topics", "create", "wide", "-p", HUGE),
        ("topics", "create", "wide", "-r", HUGE),
        ("topics", "create", "wide", "--replica-assignment", HUGE),
        ("topics", "alter", "wide", "-p", HUGE),
        ("produce", "wide", "-p", "2147483648"),
        ("perf", "produce", "--topic", "wide", "--num-records", "1", "--record-size", HUGE),
        ("perf", "produce", "--topic", "t", "-n", "1", "--record-size", "1", "--throughput", "nan"),
        ("transactions", "abort", "wide:0", "--producer-id", HUGE),
    ],
    ids=" ".join,
)
def test_a_number_that_nothing_can_hold_is_wrong_usage(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 2
    assert "Error: " in done.stderr


def _shell(line: str, own_address: str) -> tuple[int, str, str]:
    """Status, output and errors."""
    done = subprocess.run(
        ["sh", "-c", line.replace("leafcuttr", f"{sys.executable} -m leafcuttr")],
        capture_output=True,
        text=True,
        timeout=120,
        env=clean_environ({"LEAFCUTTR_BOOTSTRAP_SERVER": own_address}),
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.one_in(3)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", ["topics list", "consume many", "config describe --json", "--version"])
def test_a_full_place_for_the_output_is_one_line(run_process: Run, own_address: str, words: str) -> None:
    if words.startswith("consume"):
        run_process("produce", "many", stdin=b"x" * 100 + b"\n" * 2000)
    done = _shell(f"leafcuttr {words} > /dev/full", own_address)
    assert done == (1, "", "leafcuttr: cannot write the output: No space left on device\n")


@pytest.mark.long
def test_a_closed_standard_stream_is_as_dev_null(run_process: Run, own_address: str) -> None:
    run_process("topics", "create", "closed", "-p", "1")
    assert _shell("leafcuttr topics list >&-", own_address) == (0, "", "")
    assert _shell("leafcuttr consume closed >&-", own_address) == (0, "", "")
    assert _shell("leafcuttr topics list 2>&-", own_address)[0] == 0
    assert _shell("leafcuttr produce closed <&-", own_address) == (0, "", "0 records acknowledged\n")


def test_ctrl_c_while_no_broker_answers_is_status_130() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        port = silent.getsockname()[1]
        waiting = subprocess.Popen(
            [sys.executable, "-m", "leafcuttr", "logdirs", "-b", f"127.0.0.1:{port}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=clean_environ({}),
        )
        silent.accept()[0].recv(1)  # it has asked
        waiting.send_signal(signal.SIGINT)
        assert waiting.communicate(timeout=60) == ("", "leafcuttr: interrupted\n")
        assert waiting.returncode == 130


@pytest.mark.parametrize(("value", "coloured"), [("", True), ("1", False)])
def test_no_color_is_heard_on_a_terminal(value: str, coloured: bool) -> None:
    ours, theirs = pty.openpty()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    subprocess.run(
        [sys.executable, "-m", "leafcuttr", "doctor", f"127.0.0.1:{port}"],
        stdout=theirs,
        stderr=theirs,
        check=False,
        timeout=120,
        env=clean_environ({"TERM": "xterm", "NO_COLOR": value}),
    )
    shown = os.read(ours, 4096).decode()
    os.close(theirs)
    os.close(ours)
    assert "problem" in shown
    assert ("\x1b[31m" in shown) is coloured


def test_what_a_command_of_ours_raises_keeps_what_came_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a bug, and the traceback has all of it."""

    def broken(**given: object) -> None:
        try:
            raise KeyError("first")
        except KeyError:
            raise ValueError("second")  # noqa: B904

    monkeypatch.setattr(completion, "callback", broken)
    with pytest.raises(ValueError, match="second") as raised:
        cli.main(["completion", "bash"], standalone_mode=False)
    assert isinstance(raised.value.__context__, KeyError)
    assert not raised.value.__suppress_context__


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", COMMANDS)
def test_only_the_command_that_is_called_is_imported(name: str) -> None:
    program = """
import sys
from leafcuttr.cli.root import cli
cli([sys.argv[1], "--help"], standalone_mode=False)
print(*sys.modules, file=sys.stderr)
"""
    words = [sys.executable, "-c", program, name]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=clean_environ())
    imported = set(done.stderr.split())
    parts = {module.split(".")[2] for module in imported if module.startswith("leafcuttr.cli.")}
    assert parts == {"root", "common", name}, done.stderr
    assert not {"rich", "confluent_kafka", "trio"} & imported


def test_every_folder_is_a_command_that_the_help_lists() -> None:
    folders = {path.parent.name for path in Path(package.__file__).parent.glob("*/command.py")}
    assert folders == set(COMMANDS)

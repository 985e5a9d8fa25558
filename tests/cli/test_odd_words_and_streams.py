"""Words that are no text, numbers that nothing can hold, and standard streams that are full, closed or gone."""

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
from confluent_kafka import Consumer, TopicPartition

from leafcuttr.cli.common.librdkafka.client import client_settings
from leafcuttr.cli.consume.reading import Reader, Watch
from leafcuttr.cli.root import cli
from support.broker_process import clean_environ

Run = Callable[..., Any]

NO_TEXT = os.fsdecode(b"caf\xe9")  # Latin-1, as an old script would have it
HUGE = "99999999999999999999999"


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "create", NO_TEXT),
        ("topics", "delete", NO_TEXT),
        ("topics", "list", "-X", f"{NO_TEXT}=1"),
        ("topics", "list", "-b", NO_TEXT),
        ("produce", NO_TEXT),
        ("produce", "words", "-H", f"{NO_TEXT}=1"),
        ("produce", "words", "-t", NO_TEXT),
        ("consume", "words", "-g", NO_TEXT),
        ("groups", "describe", NO_TEXT),
        ("groups", "delete", NO_TEXT),
        ("groups", "reset-offsets", NO_TEXT, "--topic", "words", "--to-earliest"),
        ("configs", "alter", "topic", "words", "--set", f"{NO_TEXT}=1"),
        ("perf", "produce", "--topic", NO_TEXT, "--num-records", "1", "--record-size", "1"),
    ],
    ids=" ".join,
)
def test_a_name_that_is_not_utf8_is_wrong_usage(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli, words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "not UTF-8" in done.stderr


def test_keys_and_values_of_headers_may_be_any_bytes(run: Run) -> None:
    run("topics", "create", "latin", "-p", "1")
    assert run("produce", "latin", "--key", NO_TEXT, "-H", f"a={NO_TEXT}", stdin=b"x\n").status == 0
    read = run("consume", "latin", "--json").json
    assert read["key_base64"] == "Y2Fm6Q=="
    assert read["headers"] == [{"name": "a", "value_base64": "Y2Fm6Q=="}]


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


def _shell(line: str, address: str) -> tuple[int, str, str]:
    """Status, output and errors."""
    done = subprocess.run(
        ["sh", "-c", line.replace("leafcuttr", f"{sys.executable} -m leafcuttr")],
        capture_output=True,
        text=True,
        timeout=120,
        env=clean_environ({"LEAFCUTTR_BOOTSTRAP_SERVER": address}),
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", ["topics list", "consume many", "config describe --json", "--version"])
def test_a_full_place_for_the_output_is_one_line(run: Run, address: str, words: str) -> None:
    if words.startswith("consume"):
        run("produce", "many", stdin=b"x" * 100 + b"\n" * 2000)
    done = _shell(f"leafcuttr {words} > /dev/full", address)
    assert done == (1, "", "leafcuttr: cannot write the output: No space left on device\n")


def test_a_closed_standard_stream_is_as_dev_null(run: Run, address: str) -> None:
    run("topics", "create", "closed", "-p", "1")
    assert _shell("leafcuttr topics list >&-", address) == (0, "", "")
    assert _shell("leafcuttr consume closed >&-", address) == (0, "", "")
    assert _shell("leafcuttr topics list 2>&-", address)[0] == 0
    assert _shell("leafcuttr produce closed <&-", address) == (0, "", "0 records acknowledged\n")


def test_ctrl_c_while_nobody_answers_is_status_130() -> None:
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


def test_ctrl_c_while_librdkafka_calls_back_ends_the_reading() -> None:
    class Interrupting(Watch):
        def heard(self, error: Any) -> None:
            if not self.down:
                self.down = True
                signal.raise_signal(signal.SIGINT)

    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    watch = Interrupting()
    settings = client_settings(address, **{"group.id": "x", "error_cb": watch.heard})
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition("words", 0)])
        with pytest.raises(KeyboardInterrupt):
            for _ in Reader(consumer, watch, address, None).batches(lambda: 1):
                pass
    finally:
        consumer.close()


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

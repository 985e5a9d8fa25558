"""`produce` and `consume` in processes of their own, as a user runs them: what they print and how they end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.broker_process import clean_environ
from support.waiting import free_port

Run = Callable[..., Any]


def test_lines_go_in_and_come_out(run_process: Run, topic: str) -> None:
    sent = run_process("produce", topic, "-p", "0", stdin=b"one\ntwo\n\nfour")
    assert (sent.status, sent.out, sent.err) == (0, "", "4 records acknowledged\n")
    read = run_process("consume", topic)
    assert (read.status, read.out) == (0, "one\ntwo\n\nfour\n")
    assert run_process("consume", topic, "--from", "2", "-p", "0").out == "\nfour\n"
    assert run_process("consume", topic, "--max", "1").out == "one\n"
    assert run_process("consume", topic, "--from", "latest").out == ""


def test_keys_headers_and_compression(run_process: Run, topic: str) -> None:
    words = ("-p", "0", "-K", ":", "-H", "source=test", "-z", "zstd", "-q")
    sent = run_process("produce", topic, *words, stdin=b"alice:42:7\nbob:\n")
    assert (sent.status, sent.err) == (0, "")
    assert run_process("consume", topic, "-k").out == "alice\t42:7\nbob\t\n"
    first, second = run_process("consume", topic, "--json").out.splitlines()
    record = json.loads(first)
    assert record.pop("timestamp") > 0
    assert record == {
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "key": "alice",
        "value": "42:7",
        "headers": [{"name": "source", "value": "test"}],
        "timestamp_type": "CreateTime",
    }
    assert json.loads(second)["value"] == ""


def test_bytes_that_are_no_text(run_process: Run, topic: str, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\n")
    assert run_process("produce", topic, str(tmp_path / "bytes")).status == 0
    assert '"value_base64": "//4="' in run_process("consume", topic, "--json").out


def test_a_line_without_the_separator(run_process: Run, topic: str) -> None:
    sent = run_process("produce", topic, "-K", ":", stdin=b"a:1\nb\n")
    assert sent.status == 2
    assert sent.err == "leafcuttr: line 2: no ':' in it; 1 of 1 record acknowledged\n"
    assert run_process("consume", topic).out == "1\n"


def test_a_record_that_is_too_large(run_process: Run, topic: str) -> None:
    assert run_process("topics", "create", topic, "-c", "max.message.bytes=100").status == 0
    sent = run_process("produce", topic, stdin=b"x" * 1000)
    assert sent.status == 1
    assert "MESSAGE_TOO_LARGE" in sent.err


@pytest.mark.long
def test_consuming_what_is_not_there(run_process: Run, topic: str) -> None:
    read = run_process("consume", topic)
    assert (read.status, read.err) == (1, f"leafcuttr: there is no topic {topic}\n")
    run_process("topics", "create", topic, "-p", "1")
    read = run_process("consume", topic, "-p", "5")
    assert (read.status, read.err) == (1, f"leafcuttr: {topic} has no partition 5\n")
    assert run_process("consume", topic, "--from", "yesterday").status == 2
    assert run_process("consume", topic, "-g", "g", "--from", "3").status == 2


@pytest.mark.long
def test_a_reader_that_goes_away(run_process: Run, topic: str, own_address: str) -> None:
    run_process("produce", topic, stdin=b"line\n" * 50_000)
    command = [sys.executable, "-m", "leafcuttr", "consume", topic, "-b", own_address]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=clean_environ(), **pipes) as reader:  # type: ignore[call-overload]
        assert reader.stdout.readline() == b"line\n"
        reader.stdout.close()
        assert reader.wait(120) == 0
        assert b"Traceback" not in reader.stderr.read()


def test_a_group_goes_on_where_it_was(run_process: Run, topic: str) -> None:
    group = f"group-{topic}"
    run_process("produce", topic, "-p", "0", stdin=b"one\ntwo\nthree\n")
    assert run_process("consume", topic, "-g", group, "-n", "2").out == "one\ntwo\n"
    (described,) = run_process("groups", "describe", group, "--json").json
    assert (described["group"], described["state"], described["members"]) == (group, "empty", [])
    assert {
        "topic": topic,
        "partition": 0,
        "committed": 2,
        "end": 3,
        "lag": 1,
        "member": None,
        "client": None,
        "host": None,
    } in described["offsets"]
    assert run_process("consume", topic, "-g", group).out == "three\n"
    assert {"group": group, "state": "empty", "type": "classic"} in run_process(
        "groups", "list", "--json"
    ).json
    assert f"{group}: empty, 0 members" in run_process("groups", "describe", group).out


@pytest.mark.long
def test_no_broker_answers(run_process: Run) -> None:
    """All at once, because each waits for one as long as commands do."""
    nowhere = f"127.0.0.1:{free_port()}"
    commands = (
        ("topics", "list"),
        ("groups", "list"),
        ("consume", "t"),
        ("produce", "t", "-X", "message.timeout.ms=500"),
        ("config", "diff", "-b", nowhere),
    )

    def ended(words: tuple[str, ...]) -> tuple[tuple[str, ...], int, str]:
        failed = run_process(
            *words, "-X", "socket.connection.setup.timeout.ms=1000", at=nowhere, stdin=b"x\n"
        )
        return words, failed.status, failed.err

    with ThreadPoolExecutor(len(commands)) as together:
        for words, status, err in together.map(ended, commands):
            assert (words, status, err) == (words, 1, f"leafcuttr: no broker answers at {nowhere}\n")

"""`leafcuttr completion`: the scripts, sourced by the shells that are here, complete what a person types."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from support.broker_process import clean_environ
from support.librdkafka import create
from support.waiting import free_port

_BASH = """
source <("$1" completion bash)
COMP_WORDS=(leafcuttr "${@:2}")
COMP_CWORD=$(( $# - 1 ))
_leafcuttr_completion leafcuttr
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The console script, in a folder of its own: what a shell finds on its path."""
    file = tmp_path_factory.mktemp("bin") / "leafcuttr"
    file.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m leafcuttr "$@"\n')
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def complete(command: Path, own_address: str, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    done = subprocess.run(
        ["bash", "-c", _BASH, "bash", str(command), *words],
        capture_output=True,
        text=True,
        timeout=120,
        env=clean_environ(
            {
                "LEAFCUTTR_BOOTSTRAP_SERVER": own_address,
                "LEAFCUTTR_COMPLETION_TIMEOUT": "60",
                "PATH": os.pathsep.join([str(command.parent), os.environ["PATH"]]),
            }
        ),
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.fixture
def made(own_address: str, topic: str) -> str:
    create(own_address, topic)
    return topic


needs_bash = pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")


@pytest.mark.long
@needs_bash
def test_commands_and_options(command: Path, own_address: str) -> None:
    everything = complete(command, own_address, "")
    assert {"serve", "topics", "groups", "completion"} <= set(everything)
    assert complete(command, own_address, "tra") == ["transactions"]
    assert complete(command, own_address, "groups", "re") == ["reset-offsets"]
    assert "--to-datetime" in complete(command, own_address, "groups", "reset-offsets", "--to-d")
    assert complete(command, own_address, "completion", "b") == ["bash"]
    assert complete(command, own_address, "configs", "describe", "br") == ["broker", "broker-logger"]


@pytest.mark.long
@needs_bash
def test_topics_come_from_the_broker(command: Path, own_address: str, made: str) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    assert made in complete(command, own_address, "topics", "describe", "")
    assert made in complete(command, own_address, "configs", "describe", "topic", made[:4])
    # The one on the line counts, not the variable.
    assert made in complete(command, nowhere, "topics", "delete", "-b", own_address, made[:4])
    assert complete(command, nowhere, "topics", "describe", "") == []


@pytest.mark.long
@needs_bash
def test_groups_come_from_the_broker(command: Path, own_address: str, made: str) -> None:
    done = subprocess.run(
        [str(command), "groups", "reset-offsets", f"g-{made}", "-t", made, "--to-latest", "--execute"],
        capture_output=True,
        env=clean_environ({"LEAFCUTTR_BOOTSTRAP_SERVER": own_address}),
    )
    assert done.returncode == 0, done.stderr
    assert complete(command, own_address, "groups", "describe", f"g-{made}") == [f"g-{made}"]
    assert complete(command, own_address, "configs", "alter", "group", f"g-{made}") == [f"g-{made}"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("shell", "check"), [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")])
def test_a_shell_can_read_its_script(command: Path, shell: str, check: str, tmp_path: Path) -> None:
    printed = subprocess.run(
        [str(command), "completion", shell], capture_output=True, text=True, env=clean_environ()
    )
    assert printed.returncode == 0, printed.stderr
    assert "_LEAFCUTTR_COMPLETE" in printed.stdout
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed: its script is printed, not read")
    script = tmp_path / "script"
    script.write_text(printed.stdout)
    assert subprocess.run([shell, check, str(script)]).returncode == 0


def test_other_shells(command: Path) -> None:
    refused = subprocess.run(
        [str(command), "completion", "csh"], capture_output=True, text=True, env=clean_environ()
    )
    assert refused.returncode == 2
    assert "bash" in refused.stderr


@pytest.mark.long
@needs_bash
def test_the_settings_of_the_client_in_the_line_hold(command: Path, own_address: str, topic: str) -> None:
    create(own_address, topic)
    line = ("topics", "describe", "-b", own_address, "-X")
    assert complete(command, own_address, *line, "client.id=x", topic[:-1]) == [topic]
    # What stands in the line cannot work here: neither names nor an error.
    for wrong in ("security.protocol=SSL", "security.protocol=nonsense", "no.such.name=1"):
        assert complete(command, own_address, *line, wrong, topic[:-1]) == []

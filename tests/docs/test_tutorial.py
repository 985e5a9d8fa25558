"""The commands of the tutorial, run as they stand on the page; what it shows is what they print.

Only the port is another, so that the test does not need 9092.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from leafcuttr import __version__
from support.broker_process import clean_environ
from support.waiting import free_port, until

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "ten-minutes.md"
_PART = re.compile(
    r"(?P<skip><!-- not run -->\n)?```sh\n(?P<command>.*?)```\n(?:\n```text\n(?P<shown>.*?)```\n)?"
    r"|(?P<stop><!-- stop -->)",
    re.DOTALL,
)


def parts(text: str) -> Iterator[tuple[str, str | None]]:
    """The commands in order, each with the output that is shown for it, if any; `stop` where the broker ends."""
    for found in _PART.finditer(text):
        if found["stop"]:
            yield "stop", None
        elif not found["skip"]:
            yield found["command"], found["shown"]


def test_the_page_shows_this_version() -> None:
    assert f"LeafCuttr {__version__} is ready on" in PAGE.read_text()


@pytest.mark.skipif(not shutil.which("bash"), reason="the commands are for bash")
def test_the_commands_do_what_the_page_shows(tmp_path: Path) -> None:
    port = free_port()
    text = PAGE.read_text().replace("localhost:9092", f"localhost:{port}")
    environ = clean_environ(
        {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "KAFKA_LISTENERS": f"PLAINTEXT://localhost:{port}",
            "LEAFCUTTR_BOOTSTRAP_SERVER": f"localhost:{port}",
        }
    )
    log = tmp_path / "serve.log"
    broker: subprocess.Popen[bytes] | None = None
    ran = 0
    try:
        for command, shown in parts(text):
            if command == "leafcuttr serve\n":
                assert shown is not None
                with log.open("wb") as out:
                    broker = subprocess.Popen(
                        command.split(), cwd=tmp_path, env=environ, stdout=out, stderr=out
                    )
                until(lambda: "\n" in log.read_text(), "the first line of the broker")
                assert log.read_text() == shown
            elif command == "stop":
                assert broker is not None
                broker.send_signal(signal.SIGINT)
                assert broker.wait(120) == 0
            elif command.startswith("kcat") and not shutil.which("kcat"):
                continue
            else:
                done = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", command],
                    cwd=tmp_path,
                    env=environ,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    timeout=120,
                )
                assert done.returncode == 0, f"{command}{done.stdout}"
                assert shown is None or done.stdout == shown, command
            ran += 1
    finally:
        if broker is not None and broker.poll() is None:
            broker.kill()
            broker.wait()
    assert ran >= 14

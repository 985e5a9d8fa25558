"""Runs the commands of a page of the documentation as they stand there, and compares what they print.

Each ```sh block is run by bash in one folder; a ```text block right behind it is what it prints. A block that is
`leafcuttr serve ...` starts a broker and goes on; `<!-- stop -->` ends the one that was started last, cleanly. A block
behind `<!-- not run: why -->` is not run. Only ports are others than on the page.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from support.broker_process import clean_environ
from support.waiting import free_port, until

DOCS = Path(__file__).parents[2] / "docs"
_PART = re.compile(
    r"(?P<skip><!-- not run[^>]*-->\n)?```sh\n(?P<command>.*?)```\n(?:\n```text\n(?P<shown>.*?)```\n)?"
    r"|(?P<stop><!-- stop -->)",
    re.DOTALL,
)
_PATIENCE_S = 600.0
"""Some commands start a Spark."""
_PORT = re.compile(r"(localhost:|\.port=)(\d+)")


def parts(text: str) -> Iterator[tuple[str, str | None]]:
    """The commands in order, each with the output that is shown for it, if any; `stop` where a broker ends."""
    for found in _PART.finditer(text):
        if found["stop"]:
            yield "stop", None
        elif not found["skip"]:
            yield found["command"], found["shown"]


def run_page(
    page: str,
    folder: Path,
    *,
    without: tuple[str, ...] = (),
    until_heading: str = "",
    programs: Path = Path(sys.executable).parent,
) -> int:
    """Run a page below docs/ in `folder`; how many of its parts were run. Parts that begin with a word of `without`
    are left out, and all from `until_heading` on. `programs` is where `leafcuttr` and `python` are."""
    text = (DOCS / page).read_text(encoding="utf-8")
    if until_heading:
        text, found, _ = text.partition(f"\n{until_heading}\n")
        assert found, f"{page} has no heading {until_heading}"
    ports = {"9092": str(free_port())}
    for _, port in _PORT.findall(text):
        ports.setdefault(port, "0" if port == "0" else str(free_port()))
    text = _PORT.sub(lambda found: f"{found[1]}{ports[found[2]]}", text)
    environ = clean_environ(
        {
            "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
            "KAFKA_LISTENERS": f"PLAINTEXT://localhost:{ports['9092']}",
            "LEAFCUTTR_BOOTSTRAP_SERVER": f"localhost:{ports['9092']}",
            # Nobody who reads along would notice the three seconds; a test does.
            "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        }
    )
    if "9404" in ports:
        environ["KAFKA_LC_METRICS_PORT"] = str(ports["9404"])
    if "8081" in ports:
        environ["LEAFCUTTR_SCHEMA_REGISTRY_URL"] = f"http://localhost:{ports['8081']}"
    brokers: list[subprocess.Popen[bytes]] = []
    ran = 0
    try:
        for command, shown in parts(text):
            if command.startswith("leafcuttr serve"):
                brokers.append(_serve(command, shown, folder, environ))
            elif command == "stop":
                assert brokers, f"{page}: no broker to stop"
                brokers[-1].send_signal(signal.SIGINT)
                assert brokers.pop().wait(_PATIENCE_S) == 0
            elif not command.startswith(without) or not without:
                _run(command, shown, folder, environ)
            else:
                continue
            ran += 1
    finally:
        for broker in brokers:
            broker.kill()
            broker.wait()
    return ran


def _serve(command: str, shown: str | None, folder: Path, environ: dict[str, str]) -> subprocess.Popen[bytes]:
    log = folder / "serve.log"
    with log.open("wb") as out:
        broker = subprocess.Popen(command.split(), cwd=folder, env=environ, stdout=out, stderr=out)

    def ready() -> bool:
        assert broker.poll() is None, log.read_text()
        return " is ready on " in log.read_text() and log.read_text().endswith("\n")

    until(ready, f"the broker of {command}")
    assert shown is None or log.read_text() == shown
    return broker


def _run(command: str, shown: str | None, folder: Path, environ: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_PATIENCE_S,
    )
    assert done.returncode == 0, f"{command}{done.stdout}"
    assert shown is None or done.stdout == shown, f"{command}{done.stdout}"

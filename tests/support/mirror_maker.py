"""MirrorMaker 2: its classes, run by a small program of ours, and its process."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support import jars
from support.real_kafka import VERSION

PROGRAM = Path(__file__).parent.parent / "forward" / "mm2" / "Mirror.java"
SECONDS = 300.0


def _java(*words: str) -> list[str]:
    home = jars.mirror(VERSION)
    options = [
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        f"-Dlog4j2.configurationFile={home}/log4j2.yaml",
    ]
    return ["java", *options, "-cp", f"{home}/libs/*", *words]


def ask(*words: str, lines: list[str] | None = None) -> list[str]:
    """What the program answers to these words and these lines of its input."""
    done = subprocess.run(
        _java(str(PROGRAM), *words),
        input="".join(f"{line}\n" for line in lines or ()),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def start_mirror_maker(settings: Path, log: Path) -> subprocess.Popen[bytes]:
    """A MirrorMaker with this file; what it says goes to `log`."""
    with log.open("ab") as out:
        return subprocess.Popen(
            _java("org.apache.kafka.connect.mirror.MirrorMaker", str(settings)),
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            cwd=settings.parent,
        )

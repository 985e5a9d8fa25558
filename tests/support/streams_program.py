"""A Kafka Streams program of tests/clients/programs in a process of its own, started again and again with its state."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import jars
from support.waiting import until

VERSION = "4.3.1"
SECONDS = 180.0
PROGRAMS = Path(__file__).parent.parent / "clients" / "programs" / "kafka_streams"


class StreamsProgram:
    """The program says on its standard output which state it is in; all it says goes to the file `out`."""

    def __init__(self, out: Path, source: str, *arguments: str) -> None:
        self._out = out
        self._source = source
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it has its partitions."""
        before = self._told().count("RUNNING")
        self.begin()

        def running() -> bool:
            self._alive()
            return self._told().count("RUNNING") > before

        until(running, "a running Streams application", seconds=SECONDS)

    def begin(self) -> None:
        """Start it, and do not wait."""
        more = jars.streams(VERSION) / "libs"
        command = jars.java(VERSION, str(PROGRAMS / self._source), *self._arguments, more=more)
        with self._out.open("ab") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)

    def stop(self, how: signal.Signals) -> int:
        assert self._process is not None
        self._alive()
        self._process.send_signal(how)
        return self._process.wait(SECONDS)

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def tail(self) -> str:
        return self.said()[-3000:]

    def said(self) -> str:
        return self._out.read_text() if self._out.exists() else ""

    def _told(self) -> list[str]:
        return self.said().splitlines()

    def _alive(self) -> None:
        assert self._process is not None
        assert self._process.poll() is None, self.tail()


@contextmanager
def streams_program(out: Path, source: str, *arguments: str) -> Iterator[StreamsProgram]:
    """One that is killed at the end if it has not ended."""
    program = StreamsProgram(out, source, *arguments)
    try:
        yield program
    finally:
        program.end()

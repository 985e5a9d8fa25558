"""The two brokers under test, started and measured the same way."""

import abc
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
_CPU_OF_PROCESS = 2  # CPUCLOCK_SCHED: with a process number, the clock that clock_getcpuclockid(3) gives
_PAGE = os.sysconf("SC_PAGE_SIZE")


def free_port() -> int:
    """One of two neighbouring ports that nobody has (the Kafka peer takes the next one too), below those that the
    kernel gives to outgoing connections."""
    while True:
        port = random.randrange(10_000, 30_000)
        with socket.socket() as first, socket.socket() as second, contextlib.suppress(OSError):
            first.bind(("127.0.0.1", port))
            second.bind(("127.0.0.1", port + 1))
            return port


@dataclass
class Peer(abc.ABC):
    """One broker: `start` brings it up on an existing or empty directory, `cpu_s` and `rss_mb` are the broker's own."""

    name: str
    directory: Path
    port: int = field(default_factory=free_port)
    pid: int = 0
    version: str = ""
    settings: tuple[str, ...] = ()

    @abc.abstractmethod
    def start(self, *settings: str) -> None:
        """Start the process and return at once, or when it listens."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def cpu_s(self) -> float:
        """User and system time of all its threads, also of those that have ended, in nanoseconds: /proc has ticks."""
        return time.clock_gettime((~self.pid << 3) | _CPU_OF_PROCESS)

    def rss_mb(self) -> float:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE / 1e6

    def stop(self, how: signal.Signals = signal.SIGTERM) -> float:
        """End the process, if it runs; returns the seconds it took."""
        if not self.pid:
            return 0.0  # and never signal process 0, which is this whole group
        began = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, how)
        while Path(f"/proc/{self.pid}").exists() and time.monotonic() - began < 70:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, os.WNOHANG)
            if time.monotonic() - began > 60:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.005)
        self.pid = 0
        return time.monotonic() - began

    def wipe(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)


@dataclass
class LeafCuttr(Peer):
    """This project as it is installed in an interpreter, by default the one that runs the bench; `python` are words
    for that."""

    python: tuple[str, ...] = ()
    interpreter: str = sys.executable

    def start(self, *settings: str) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        options = [
            f"listeners=PLAINTEXT://127.0.0.1:{self.port}",
            f"log.dirs={self.directory / 'data'}",
            "group.initial.rebalance.delay.ms=0",  # as the other peers
            *self.settings,
            *settings,
        ]
        with (self.directory / "out.log").open("ab") as out:
            self.pid = subprocess.Popen(
                [
                    self.interpreter,
                    *self.python,
                    "-m",
                    "leafcuttr",
                    "serve",
                    *(word for item in options for word in ("-o", item)),
                ],
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
            ).pid


class Kafka(Peer):
    """Apache Kafka from Maven Central, by `kafka_peer.py`."""

    def start(self, *settings: str) -> None:
        command = [sys.executable, str(HERE / "kafka_peer.py"), "start", str(self.directory), str(self.port)]
        command += [*self.settings, *settings]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        about = json.loads(done.stdout)
        self.pid, self.version = about["pid"], about["version"]

"""A real `leafcuttr serve` in a process of its own, on a free port, for tests that need one. README.md beside this file
says when that is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.forked_start import start_leafcuttr
from support.waiting import free_port, until

_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class BrokerProcess:
    """A running broker. `listeners` maps the name of each listener to its bound `host:port`."""

    process: subprocess.Popen[bytes]
    folder: Path
    listeners: dict[str, str]
    about: Mapping[str, Any] = field(default_factory=dict)  # all that the ready file says
    ended: bool = False  # by the test, not by itself

    @property
    def address(self) -> str:
        """Of the first listener: what a client takes as its bootstrap server."""
        return next(iter(self.listeners.values()))

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> str:
        """What it wrote to standard output and standard error."""
        return (self.folder / "broker.log").read_text()

    def resident_mb(self) -> float:
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * _PAGE / 1e6

    def alive(self) -> bool:
        return self.process.poll() is None

    def stop(self, how: signal.Signals = signal.SIGTERM, seconds: float = 120.0) -> int:
        """End the process; returns its exit status."""
        self.ended = True
        if self.alive():
            self.process.send_signal(how)
        return self.process.wait(seconds)


def clean_environ(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without settings for a broker, but for a free port of its metrics, because several
    brokers share this machine; and `environ` on top."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
    return {**plain, "KAFKA_LC_METRICS_PORT": "0", **(environ or {})}


def start_broker(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    *,
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
    options: tuple[str, ...] = (),
    seconds: float = 120.0,
    before: tuple[str, ...] = (),
    program: tuple[str, ...] = (),
    fresh: bool = False,
) -> BrokerProcess:
    """Start a broker with its data in `folder`/data and wait until it is ready.

    With a `config` file that file says where it listens and where its data is. `options` are more words of the
    command line, `before` a program that becomes the broker, `program` the broker of another installation. It is forked
    from a process that has imported what a start uses; `fresh`: a new interpreter (`forked_start`). Raises
    RuntimeError with its own words if it ends before it is ready.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ready, log = folder / "ready.json", folder / "broker.log"
    ready.unlink(missing_ok=True)
    words = ["serve", "--ready-file", str(ready), *options]
    own = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(folder / "data"),
        "group.initial.rebalance.delay.ms": "0",
    }
    if config is not None:
        own = {}
        words += ["--config", str(config)]
    words += [
        word for name, value in {**own, **(settings or {})}.items() for word in ("-o", f"{name}={value}")
    ]
    with log.open("ab") as out:
        process = (
            subprocess.Popen(
                [*before, *(program or (sys.executable, "-m", "leafcuttr")), *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=folder,
                env=clean_environ(environ),
            )
            if before or program
            else start_leafcuttr(
                words,
                cwd=folder,
                environ=clean_environ(environ),
                stdout=out.fileno(),
                stderr=out.fileno(),
                fresh=fresh,
            )
        )

    def is_ready() -> bool:
        if process.poll() is not None:
            raise RuntimeError(
                f"the broker ended with status {process.returncode}: {log.read_text()[-3000:]}"
            )
        return ready.exists()

    try:
        until(is_ready, "the broker's ready file", seconds=seconds)
    except BaseException:
        process.kill()
        process.wait()
        raise
    about = json.loads(ready.read_text())
    return BrokerProcess(process, folder, about["listeners"], about)


@contextmanager
def running_broker(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    *,
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
    options: tuple[str, ...] = (),
    before: tuple[str, ...] = (),
    program: tuple[str, ...] = (),
    fresh: bool = False,
) -> Iterator[BrokerProcess]:
    """`start_broker` and a clean stop at the end, whose exit status must be 0.

    A broker that the test itself has stopped is left alone; one that ended by itself fails the test.
    """
    broker = start_broker(
        folder,
        settings,
        config=config,
        environ=environ,
        options=options,
        before=before,
        program=program,
        fresh=fresh,
    )
    try:
        yield broker
        if not broker.ended:
            status = broker.stop()
            assert status == 0, f"the broker stopped with status {status}: {broker.log[-3000:]}"
    finally:
        if broker.alive():
            broker.process.kill()
            broker.process.wait()


class Restarting:
    """A broker that is stopped or killed and comes back at the same address with the same data."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._settings = settings or {}
        self.address = f"127.0.0.1:{free_port()}"
        self.process = self._start()

    def _start(self) -> BrokerProcess:
        own = {"listeners": f"PLAINTEXT://{self.address}"}
        return start_broker(self._folder, {**own, **self._settings})

    def restart(self, how: signal.Signals) -> None:
        status = self.process.stop(how)
        assert status == (0 if how == signal.SIGTERM else -signal.SIGKILL), self.process.log[-3000:]
        self.process = self._start()

    def end(self) -> None:
        self.process.stop(signal.SIGKILL)

"""A real `leafcuttr serve` in a process of its own, on a free port, for tests that need one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.waiting import until

_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class BrokerProcess:
    """A running broker. `log` is what it wrote to standard error."""

    process: subprocess.Popen[bytes]
    folder: Path
    address: str

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> str:
        return (self.folder / "broker.log").read_text()

    def resident_mb(self) -> float:
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * _PAGE / 1e6

    def alive(self) -> bool:
        return self.process.poll() is None

    def stop(self, how: signal.Signals = signal.SIGTERM, seconds: float = 15.0) -> int:
        """End the process; returns its exit status."""
        if self.alive():
            self.process.send_signal(how)
        return self.process.wait(seconds)


def start_broker(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    seconds: float = 30.0,
) -> BrokerProcess:
    """Start a broker with its data in `folder`/data and wait until it is ready.

    Raises RuntimeError with its own words if it ends before that.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ready = folder / "ready.json"
    ready.unlink(missing_ok=True)
    options = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(folder / "data"), **(settings or {})}
    command = [sys.executable, "-m", "leafcuttr", "serve", "--ready-file", str(ready)]
    command += [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
    with (folder / "broker.log").open("ab") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**clean, **(environ or {})})

    def is_ready() -> bool:
        if process.poll() is not None:
            words = (folder / "broker.log").read_text()[-2000:]
            raise RuntimeError(f"the broker ended with status {process.returncode}: {words}")
        return ready.exists()

    try:
        until(is_ready, "the broker's ready file", seconds=seconds)
    except BaseException:
        process.kill()
        process.wait()
        raise
    address = next(iter(json.loads(ready.read_text())["listeners"].values()))
    return BrokerProcess(process, folder, address)


@contextmanager
def running_broker(
    folder: Path, settings: Mapping[str, str] | None = None, *, environ: Mapping[str, str] | None = None
) -> Iterator[BrokerProcess]:
    """`start_broker` and a clean stop at the end, whose exit status must be 0."""
    broker = start_broker(folder, settings, environ=environ)
    try:
        yield broker
        status = broker.stop()
        assert status == 0, f"the broker stopped with status {status}: {broker.log[-2000:]}"
    finally:
        if broker.alive():
            broker.process.kill()
            broker.process.wait()

"""Starts `leafcuttr serve` as a process of its own, as a user does, on a free port."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.waiting import until

STOP_SECONDS = 30


@dataclass
class Served:
    """A running broker process: its address, its data and the process itself."""

    host: str
    port: int
    data: Path
    process: subprocess.Popen[bytes]

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    def stop(self) -> int:
        """Ends it by SIGTERM and returns its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS)


@contextmanager
def leafcuttr(folder: Path, settings: Sequence[str] = (), *, config: Path | None = None) -> Iterator[Served]:
    """A broker on port 0 with its data in `folder/data` and `key=value` settings; killed at the end if it still runs.

    Raises RuntimeError with its standard error if it ends before it is ready.
    """
    folder.mkdir(parents=True, exist_ok=True)
    data, ready, log = folder / "data", folder / "ready.json", folder / "leafcuttr.log"
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", "leafcuttr", "serve", "--ready-file", str(ready)]
    if config is not None:
        command += ["--config", str(config)]
    else:
        settings = ("listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={data}", *settings)
    for setting in settings:
        command += ["-o", setting]
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=folder)

    def bound() -> str | None:
        if process.poll() is not None:
            raise RuntimeError(f"leafcuttr serve ended with {process.returncode}: {log.read_text()[-3000:]}")
        return str(json.loads(ready.read_text())["listeners"]["PLAINTEXT"]) if ready.exists() else None

    try:
        host, port = until(bound, "leafcuttr serve to be ready").rsplit(":", 1)
        yield Served(host, int(port), data, process)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()

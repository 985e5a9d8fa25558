"""One broker that is started, armed, killed and verified again and again on one data directory and one port.

A kill is at a named point (`leafcuttr.crashpoints`) or at a random moment. A point is armed while the broker runs, by a
file, so that one start serves both to read back what the last kill has left and to be killed; or before the start, so
that it may die within it. Here is no client, and nothing is known of what the data is.
"""

from __future__ import annotations

import random
import struct
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner

from leafcuttr.cli.verify.command import command as verify_command
from support.broker_process import BrokerProcess, start_broker
from support.waiting import free_port

PATIENCE_S = 180.0
"""How long a point may take to be reached: only a bound, for a point that the load does not come to at all. The process
that compacts runs with what others leave of the processors, which may be little."""


def torn_batch(log: Path, dice: random.Random) -> bytes:
    """At most 90 bytes of the first batch of this file, and never all of them: what the cleaner leaves of a producer is
    a header, a batch of its own that recovery takes for one that was written."""
    with log.open("rb") as file:
        start = file.read(90)
    (length,) = struct.unpack_from(">i", start, 8)  # of what follows the base offset and itself
    return start[: dice.randint(1, min(90, 12 + length - 1))]


class BrokerRun:
    """The directory, the port, and what has been reached. `spent` says where the time goes, `waited` how long a point
    was waited for, in seconds."""

    def __init__(self, folder: Path, seed: int, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.address = f"127.0.0.1:{free_port()}"
        self.reached: Counter[str] = Counter()
        self.kills = 0
        self.slowest_start = 0.0
        self.spent: dict[str, float] = {}
        self.waited: dict[str, float] = {}
        self.notes: list[str] = []
        self.broker: BrokerProcess | None = None
        self._settings = {**settings, "listeners": f"PLAINTEXT://{self.address}"}
        self._arming = folder / "crash-point"
        self._unused = threading.Event()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.spent[what] = self.spent.get(what, 0.0) + time.monotonic() - began

    def start(self, point: str = "") -> bool:
        """Start the broker, armed with `point`; whether it is ready. If not, the point has killed it in the start."""
        self.broker = None
        began = time.monotonic()
        with self.timed("start"):
            try:
                self.broker = start_broker(
                    self.folder,
                    self._settings,
                    environ={"LEAFCUTTR_CRASH_POINT": point or f"@{self._arming}"},
                    seconds=PATIENCE_S,
                )
            except RuntimeError as error:
                if point and "status -9" in str(error):
                    self._count(point)
                    return False
                raise
        self.slowest_start = max(self.slowest_start, time.monotonic() - began)
        return True

    def arm(self, point: str) -> None:
        """Have the running broker die at the point."""
        beside = self._arming.with_suffix(".new")
        beside.write_text(point)
        beside.rename(self._arming)
        if point.startswith("shutdown."):
            self._running.process.terminate()

    def kill(self, patience: float) -> None:
        """Kill it within `patience` seconds, at a random moment."""
        self._unused.wait(self.random.uniform(0.0, patience))
        self._running.process.kill()
        self._running.process.wait()
        self._count("")

    def killed_by(self, point: str) -> bool:
        """Wait until the point has killed it. If nothing reaches the point, it is killed all the same, with a note."""
        broker, began = self._running, time.monotonic()
        with self.timed("wait"):
            try:
                broker.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.notes.append(f"{point} was not reached in {PATIENCE_S:.0f} s")
                broker.process.kill()
                broker.process.wait()
                self._arming.unlink(missing_ok=True)
                return False
        self.waited[point] = time.monotonic() - began
        self._arming.unlink(missing_ok=True)
        status = broker.process.returncode
        assert status == -9, f"the broker ended with status {status} at {point}: {broker.log[-3000:]}"
        self._count(point)
        return True

    def verify(self) -> None:
        """`leafcuttr verify` has nothing to complain of. In this process: another start of Python for each kill would
        take longer than what it does."""
        with self.timed("verify"):
            done = CliRunner().invoke(verify_command, [str(self.data)])
        assert done.exit_code == 0, f"verify: {done.output[-3000:]} {done.exception!r}"

    def tear(self, partition: str) -> None:
        """Leave the beginning of a batch at the end of a partition's log, as a write that was cut short does."""
        paths = sorted((self.data / partition).glob("*.log"))
        first = next((path for path in paths if path.stat().st_size), None)
        if first is None:
            return
        part = torn_batch(first, self.random)
        with paths[-1].open("ab") as file:
            file.write(part)

    def stop(self) -> None:
        """The clean stop."""
        assert self._running.stop() == 0, self._running.log[-3000:]

    def end(self) -> None:
        """Leave nothing running."""
        if self.broker is not None and self.broker.alive():
            self.broker.process.kill()
            self.broker.process.wait()

    @property
    def _running(self) -> BrokerProcess:
        assert self.broker is not None
        return self.broker

    def _count(self, point: str) -> None:
        self.kills += 1
        if point:
            self.reached[point.partition(":")[0]] += 1

"""The broker's end of one run of a child: its keeper started, told what to do, and read. See `keeper` for the orders
and reports."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Final, NamedTuple

import trio

from leafcuttr.plugins.children import keeper
from leafcuttr_sdk.children import ChildError

_PYTHON: Final = (sys.executable, "-I", "-S")
_END_S: Final = 10.0
"""More than a keeper takes to kill what there is."""
_PIECE: Final = 1 << 16
_LONGEST_REPORT: Final = 1 << 16


class Program(NamedTuple):
    """What a child runs. `memory_bytes` of 0 are no limit."""

    command: Sequence[str]
    environment: Mapping[str, str]
    folder: str | None
    memory_bytes: int


class KeptProcess:
    """One run. `pid` is known once it has started; `status` once it has ended, None where nobody knows it."""

    def __init__(self, process: trio.Process, orders: int, reports: int) -> None:
        self.pid: int | None = None
        self.status: int | None = None
        self.memory_bytes = 0
        self.over: int | None = None
        self.left: Sequence[int] = ()
        self._process = process
        self._orders = orders
        self._reports = trio.lowlevel.FdStream(reports)
        self._begun = b""
        assert process.stdout is not None
        self.output: trio.abc.ReceiveStream = process.stdout

    @classmethod
    async def start(cls, program: Program) -> "KeptProcess":
        """Raises ChildError where the program cannot be run, OSError where the machine cannot start a process."""
        with ExitStack() as of_it, ExitStack() as of_us:
            reading, orders = os.pipe()
            of_it.callback(os.close, reading)
            of_us.callback(os.close, orders)
            reports, writing = os.pipe()
            of_us.callback(os.close, reports)
            of_it.callback(os.close, writing)
            try:
                process = await trio.lowlevel.open_process(
                    [
                        *_PYTHON,
                        keeper.__file__,
                        str(reading),
                        str(writing),
                        str(program.memory_bytes),
                        *program.command,
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=(reading, writing),
                    env=program.environment,
                    cwd=program.folder,
                    # A Ctrl-C in a terminal is the broker's.
                    process_group=0,
                )
            except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
                # Of the folder: the interpreter is there.
                raise ChildError(f"{error.strerror}: {program.folder}") from None
            of_us.pop_all()
        kept = cls(process, orders, reports)
        try:
            report = await kept.report()
        except BaseException:
            await kept.close()
            raise
        if report is None or "failed" in report:
            await kept.close()
            raise ChildError("its keeper has ended" if report is None else str(report["failed"]))
        return kept

    async def report(self) -> Mapping[str, Any] | None:
        """The next one, after what it says was noted here; None at the end. Cancelled: nothing is lost."""
        while b"\n" not in self._begun:
            try:
                data = await self._reports.receive_some(_PIECE)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                data = b""
            if not data or len(self._begun) > _LONGEST_REPORT:
                return None
            self._begun += data
        line, _, self._begun = self._begun.partition(b"\n")
        try:
            report: Mapping[str, Any] = json.loads(line)
        except ValueError:
            return None
        self.pid = report.get("pid", self.pid)
        self.memory_bytes = report.get("memory", report.get("over", self.memory_bytes))
        self.over = report.get("over", self.over)
        self.status = report.get("status", self.status)
        self.left = report.get("left", self.left)
        return report

    def terminate(self) -> None:
        """SIGTERM to the program."""
        self._order(keeper.TERMINATE)

    def kill(self) -> None:
        """End it and all that it has started."""
        self._order(keeper.KILL)

    async def ended(self) -> None:
        """Wait until its keeper has ended, which is after all that it keeps."""
        await self._process.wait()

    async def close(self) -> None:
        """End all of it, and read no more. Waits for that, for a moment."""
        with trio.CancelScope(shield=True):
            if self._orders >= 0:
                os.close(self._orders)  # for the keeper, the end of the broker
                self._orders = -1
            with trio.move_on_after(_END_S):
                await self._process.wait()
            if self._process.returncode is None:
                self._process.kill()
                await self._process.wait()
            if self.pid is not None and self.status is None and self._process.returncode != 0:
                # The keeper was killed: what is in the group of the program is left.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, signal.SIGKILL)
        await trio.aclose_forcefully(self._reports)
        await trio.aclose_forcefully(self.output)

    def _order(self, order: bytes) -> None:
        if self._orders >= 0:
            with suppress(OSError):  # it has ended
                os.write(self._orders, order)
